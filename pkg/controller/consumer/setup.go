// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package consumer keeps a Consumer object for each cluster that has an incoming
// peering with the broker: in which mode it is served, what it is offered, and, with Liqo
// 1.x, what is missing of its agent.
//
// It does not place the consumer's workloads: package twin does.
package consumer

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/controller/conflict"
	"github.com/capacitorset/liqo-broker/pkg/controller/reports"
	"github.com/capacitorset/liqo-broker/pkg/controller/watch"
)

// Setup registers the controller with a manager. The broker runs the given modes.
func Setup(mgr ctrl.Manager, cfg Config) error {
	b := watch.Offered(ctrl.NewControllerManagedBy(mgr).Named("consumer").For(&v1alpha1.Consumer{}), cfg.Client, cfg.Reader)
	if cfg.Heard != nil { // However often a consumer reports, its status is written once in a while.
		b = b.Watches(&corev1.ConfigMap{}, watch.Later(watch.OfTenant(cfg.Reader)), builder.WithPredicates(reports.Changed()))
	}
	if err := b.Complete(conflict.Requeue(New(cfg))); err != nil {
		return fmt.Errorf("set up the consumer controller: %w", err)
	}
	return nil
}
