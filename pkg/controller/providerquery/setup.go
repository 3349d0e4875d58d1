// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package providerquery asks Prometheus the ProviderQueries, and writes the values into the
// status of the Providers that they name.
//
// It does not know what the values are used for: a policy reads them as it reads the
// KPIs that the broker measures itself.
package providerquery

import (
	"fmt"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/controller/conflict"
	"github.com/capacitorset/liqo-broker/pkg/controller/watch"
)

// Setup registers the controller with a manager.
func Setup(mgr ctrl.Manager, cfg Config) error {
	all := watch.Every[v1alpha1.ProviderQueryList](cfg.Client, "Cannot list the queries")
	err := ctrl.NewControllerManagedBy(mgr).
		Named("providerquery").
		For(&v1alpha1.ProviderQuery{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&v1alpha1.Provider{}, handler.EnqueueRequestsFromMapFunc(all), builder.WithPredicates(named())).
		WithOptions(controller.Options{MaxConcurrentReconciles: 4}). // Prometheus may take its time.
		Complete(conflict.Requeue(New(cfg)))
	if err != nil {
		return fmt.Errorf("set up the controller of queries: %w", err)
	}
	return nil
}

// named lets a Provider pass that came, or that goes by another name.
func named() predicate.Predicate {
	return predicate.Funcs{
		UpdateFunc: watch.Changed(func(before, after *v1alpha1.Provider) bool {
			return before.Status.ClusterName != after.Status.ClusterName
		}),
		DeleteFunc: func(event.DeleteEvent) bool { return false },
	}
}
