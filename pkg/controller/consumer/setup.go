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
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/controller/conflict"
	"github.com/capacitorset/liqo-broker/pkg/controller/watch"
)

// accountingPause is how long the offers may change before the statuses follow: a
// burst of pods changes what every consumer is offered with each pod.
const accountingPause = time.Second

// Setup registers the controller with a manager. The broker runs the given modes.
func Setup(mgr ctrl.Manager, cfg Config) error {
	r := New(cfg)
	kinds := r.reader.Line().Kinds()
	b := ctrl.NewControllerManagedBy(mgr).
		Named("consumer").
		For(&v1alpha1.Consumer{}).
		Watches(kinds.Record, handler.EnqueueRequestsFromMapFunc(watch.OfRecord(r.reader))).
		Watches(kinds.Offer, handler.EnqueueRequestsFromMapFunc(watch.OfTenant(r.reader))).
		Watches(&v1alpha1.Provider{}, r.accountHandler(), builder.WithPredicates(r.accountChanged())).
		Watches(&v1alpha1.Consumer{}, r.accountHandler(), builder.WithPredicates(r.accountChanged())).
		Watches(&v1alpha1.PlacementPolicy{}, r.accountHandler(), builder.WithPredicates(r.accountChanged())).
		Watches(&v1alpha1.PlacementDecision{}, r.accountHandler(), builder.WithPredicates(r.accountChanged())).
		Watches(&corev1.Pod{}, r.accountHandler(), builder.WithPredicates(r.accountChanged()))
	for _, kind := range kinds.Peering {
		b = b.Watches(kind, handler.EnqueueRequestsFromMapFunc(watch.OfTenant(r.reader)))
	}
	if err := b.Complete(conflict.Requeue(r)); err != nil {
		return fmt.Errorf("set up the consumer controller: %w", err)
	}
	return nil
}

// accountHandler looks at every consumer after a pause: what a provider has, what a
// pod uses and what is reserved is part of each one's offer.
func (r *Reconciler) accountHandler() handler.EventHandler {
	all := func(ctx context.Context, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		for _, request := range r.all(ctx) {
			q.AddAfter(request, accountingPause)
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, _ event.CreateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			all(ctx, q)
		},
		UpdateFunc: func(ctx context.Context, _ event.UpdateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			all(ctx, q)
		},
		DeleteFunc: func(ctx context.Context, _ event.DeleteEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			all(ctx, q)
		},
	}
}

// accountChanged lets only those updates of an object pass that change an account:
// not those of what the broker itself measures and writes.
func (r *Reconciler) accountChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return r.reader.AccountChanged(e.ObjectOld, e.ObjectNew)
	}}
}

// all returns every consumer.
func (r *Reconciler) all(ctx context.Context) []reconcile.Request {
	var consumers v1alpha1.ConsumerList
	if err := r.client.List(ctx, &consumers, client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Cannot list the consumers")
		return nil
	}
	requests := make([]reconcile.Request, len(consumers.Items))
	for i := range consumers.Items {
		requests[i].Name = consumers.Items[i].Name
	}
	return requests
}
