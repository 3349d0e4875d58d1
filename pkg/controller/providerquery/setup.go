// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package providerquery asks Prometheus the ProviderQueries, and writes the values into the
// status of the Providers that they name.
//
// It does not know what the values are used for: a policy reads them as it reads the
// KPIs that the broker measures itself.
package providerquery

import (
	"context"
	"fmt"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/controller/conflict"
)

// Setup registers the controller with a manager.
func Setup(mgr ctrl.Manager, cfg Config) error {
	r := New(cfg)
	err := ctrl.NewControllerManagedBy(mgr).
		Named("providerquery").
		For(&v1alpha1.ProviderQuery{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&v1alpha1.Provider{}, handler.EnqueueRequestsFromMapFunc(r.all), builder.WithPredicates(named())).
		WithOptions(controller.Options{MaxConcurrentReconciles: 4}). // Prometheus may take its time.
		Complete(conflict.Requeue(r))
	if err != nil {
		return fmt.Errorf("set up the controller of queries: %w", err)
	}
	return nil
}

// all returns every query.
func (r *Reconciler) all(ctx context.Context, _ client.Object) []reconcile.Request {
	var queries v1alpha1.ProviderQueryList
	if err := r.client.List(ctx, &queries); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Cannot list the queries")
		return nil
	}
	requests := make([]reconcile.Request, len(queries.Items))
	for i := range queries.Items {
		requests[i].Name = queries.Items[i].Name
	}
	return requests
}

// named lets a Provider pass that came, or that goes by another name.
func named() predicate.Predicate {
	return predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			return e.ObjectOld.(*v1alpha1.Provider).Status.ClusterName != e.ObjectNew.(*v1alpha1.Provider).Status.ClusterName
		},
		DeleteFunc: func(event.DeleteEvent) bool { return false },
	}
}
