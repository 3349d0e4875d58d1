// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package consumer keeps a Consumer object for each cluster that has an incoming
// peering with the broker: in which mode it is served and what it is offered.
//
// It does not place the consumer's workloads: package twin does.
package consumer

import (
	"fmt"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/controller/conflict"
	"github.com/capacitorset/liqo-broker/pkg/controller/watch"
)

// Setup registers the controller with a manager. The broker runs the given modes.
func Setup(mgr ctrl.Manager, cfg Config) error {
	b := ctrl.NewControllerManagedBy(mgr).Named("consumer").For(&v1alpha1.Consumer{})
	if err := watch.Offered(b, cfg.Client, cfg.Reader).Complete(conflict.Requeue(New(cfg))); err != nil {
		return fmt.Errorf("set up the consumer controller: %w", err)
	}
	return nil
}
