// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kpis measures the providers: how available they are, how far away, what
// they cost and emit, and what becomes of the pods there. It writes the KPIs
// into the status of each Provider, and what it has to remember into ProviderHistories.
//
// It does not know what they are used for.
package kpis

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/controller/watch"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
)

// Setup registers the controller with a manager.
func Setup(mgr ctrl.Manager, cfg Config) error {
	r := New(cfg)
	kinds := r.reader.Line().Kinds()
	b := ctrl.NewControllerManagedBy(mgr).
		Named("kpis").
		For(&v1alpha1.Provider{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&corev1.Node{}, handler.EnqueueRequestsFromMapFunc(watch.OfNode(r.reader)), builder.WithPredicates(nodeChanged())).
		Watches(&corev1.Pod{}, r.pods.handler()).
		Watches(kinds.Record, handler.EnqueueRequestsFromMapFunc(watch.OfRecord(r.reader)), builder.WithPredicates(boughtChanged())).
		Watches(kinds.Offer, handler.EnqueueRequestsFromMapFunc(watch.OfTenant(r.reader)), builder.WithPredicates(r.offerChanged()))
	for _, kind := range append(kinds.Tunnels, kinds.Network) {
		b = b.Watches(kind, handler.EnqueueRequestsFromMapFunc(watch.OfTenant(r.reader)))
	}
	if err := b.Complete(r); err != nil {
		return fmt.Errorf("set up the controller of KPIs: %w", err)
	}
	return nil
}

// nodeChanged lets a node pass that became ready or ceased to be.
func nodeChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: watch.Changed(func(before, after *corev1.Node) bool {
		return liqo.NodeReady(before) != liqo.NodeReady(after)
	})}
}

// offerChanged lets an offer pass that changed its prices, or came into force.
func (r *Reconciler) offerChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		was, is := r.reader.Line().OfferOf(e.ObjectOld), r.reader.Line().OfferOf(e.ObjectNew)
		return was.Accepted != is.Accepted || !equality.Semantic.DeepEqual(was.Prices, is.Prices)
	}}
}

// boughtChanged lets a foreign cluster pass that costs something else.
func boughtChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return liqo.CorePrice(e.ObjectOld) != liqo.CorePrice(e.ObjectNew)
	}}
}
