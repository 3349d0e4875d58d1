// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package consumer keeps a Consumer object for each cluster that has an incoming
// peering with the broker: in which mode it is served and what it is offered.
//
// It does not place the consumer's workloads: package twin does.
package consumer

import (
	"context"
	"fmt"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/controller/conflict"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/registry"
)

// Setup registers the controller with a manager. The broker runs the given modes.
func Setup(mgr ctrl.Manager, modes Modes) error {
	r := New(mgr.GetClient(), registry.New(mgr.GetClient()), modes)
	err := ctrl.NewControllerManagedBy(mgr).
		Named("consumer").
		For(&v1alpha1.Consumer{}).
		Watches(&liqo.ForeignCluster{}, handler.EnqueueRequestsFromMapFunc(ofForeignCluster)).
		Watches(&v1alpha1.Provider{}, handler.EnqueueRequestsFromMapFunc(r.all)).
		Complete(conflict.Requeue(r))
	if err != nil {
		return fmt.Errorf("set up the consumer controller: %w", err)
	}
	return nil
}

func ofForeignCluster(_ context.Context, o client.Object) []reconcile.Request {
	if id := liqo.Identity(o.(*liqo.ForeignCluster)).ID; id != "" {
		return []reconcile.Request{{NamespacedName: client.ObjectKey{Name: string(id)}}}
	}
	return nil
}

// all returns every consumer: what a provider offers is part of each one's sum.
func (r *Reconciler) all(ctx context.Context, _ client.Object) []reconcile.Request {
	var consumers v1alpha1.ConsumerList
	if err := r.client.List(ctx, &consumers); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Cannot list the consumers")
		return nil
	}
	requests := make([]reconcile.Request, len(consumers.Items))
	for i := range consumers.Items {
		requests[i].Name = consumers.Items[i].Name
	}
	return requests
}
