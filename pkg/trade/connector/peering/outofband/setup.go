// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package outofband

import (
	"fmt"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
)

// Setup registers the controllers with a manager that look after what the Driver has peered that it returns.
func Setup(mgr ctrl.Manager, cfg Config) (*Driver, error) {
	driver, err := New(cfg)
	if err != nil {
		return nil, err
	}
	for _, controller := range []struct {
		name  string
		looks client.Object
		does  reconcile.Reconciler
	}{
		{"tunnel", &v09.TunnelEndpoint{}, NewTunnels(mgr.GetClient())},
		{"gateway", &v09.TunnelEndpoint{}, NewGateway(mgr.GetClient(), cfg.Namespace, cfg.Clock)},
		{"arrivals", &v09.ForeignCluster{}, NewArrivals(driver)},
		{"cleanup", &v09.ForeignCluster{}, NewCleanup(driver)},
	} {
		if err := ctrl.NewControllerManagedBy(mgr).Named(controller.name).For(controller.looks).Complete(controller.does); err != nil {
			return nil, fmt.Errorf("set up the controller %s: %w", controller.name, err)
		}
	}
	return driver, nil
}
