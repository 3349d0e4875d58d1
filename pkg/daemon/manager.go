// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"fmt"

	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// NewManager returns the manager of the controllers of a program, for some options. It serves neither metrics nor probes: ports of the
// program do. What a controller is to look at now it looks at now, and at what it is to look at a moment later it looks then as well,
// whatever has been looked at meanwhile.
func NewManager(config *rest.Config, options ctrl.Options) (ctrl.Manager, error) {
	options.Metrics, options.HealthProbeBindAddress = metricsserver.Options{BindAddress: "0"}, "0"
	// A queue with priorities has one entry for each object. One that is looked at now is not looked at a moment later any more, though
	// what is counted may know only then what has happened; and one that was there when the program began comes after all that happens, at
	// each later look as well.
	options.Controller.UsePriorityQueue = new(false)
	mgr, err := ctrl.NewManager(config, options)
	if err != nil {
		return nil, fmt.Errorf("make the manager for %s: %w", config.Host, err)
	}
	return mgr, nil
}
