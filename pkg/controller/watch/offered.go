// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
)

// pause is how long what is offered may change before who tells of it follows: a burst of
// pods changes what every consumer is offered with each pod.
const pause = time.Second

// Accounts tell whose the objects of peers are, and who uses what.
type Accounts interface {
	Records
	Tenants
	// AccountChanged reports whether an update of an object changes what consumers are offered: not what the broker itself measures and
	// writes.
	AccountChanged(before, after any) bool
}

// Offered has a controller that keeps something of each Consumer look at one when Liqo's objects of its cluster change, and at every one
// a moment after a change of what is offered: what a provider has, what a pod uses and what is reserved is part of each one's offer.
func Offered(b *builder.Builder, consumers client.Reader, accounts Accounts) *builder.Builder {
	kinds := accounts.Line().Kinds()
	b = b.Watches(kinds.Record, handler.EnqueueRequestsFromMapFunc(OfRecord(accounts)))
	for _, kind := range append([]client.Object{kinds.Offer}, kinds.Peering...) {
		b = b.Watches(kind, handler.EnqueueRequestsFromMapFunc(OfTenant(accounts)))
	}
	changed := builder.WithPredicates(predicate.Funcs{UpdateFunc: Changed(accounts.AccountChanged)})
	for _, kind := range []client.Object{
		&v1alpha1.Provider{}, &v1alpha1.Consumer{}, &v1alpha1.PlacementPolicy{}, &v1alpha1.PlacementDecision{}, &corev1.Pod{},
	} {
		b = b.Watches(kind, Later(EveryConsumer(consumers)), changed)
	}
	return b
}

// EveryConsumer is for all Consumers. It returns a handler.MapFunc.
func EveryConsumer(consumers client.Reader) handler.MapFunc {
	return Every[v1alpha1.ConsumerList](consumers, "Cannot list the consumers")
}

// Promptly handles an update at once, unless it has handled another one a moment ago: of many that people make in a row the first does not
// wait, and the others are for who handles the same ones by [Later]. What is counted may not know yet of what is handled so early.
func Promptly(of handler.MapFunc, clock clock.PassiveClock) handler.EventHandler {
	var mu sync.Mutex
	var last time.Time
	isFirst := func() bool {
		mu.Lock()
		defer mu.Unlock()
		now := clock.Now()
		first := last.IsZero() || now.Sub(last) >= pause
		if first {
			last = now
		}
		return first
	}
	return handler.Funcs{
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			if !isFirst() {
				return
			}
			for _, request := range of(ctx, e.ObjectNew) {
				q.Add(request)
			}
		},
	}
}

// Later handles an event after a pause in which others of the same requests are waited for.
func Later(of handler.MapFunc) handler.EventHandler {
	add := func(ctx context.Context, o client.Object, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		for _, request := range of(ctx, o) {
			q.AddAfter(request, pause)
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			add(ctx, e.Object, q)
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			add(ctx, e.ObjectNew, q)
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			add(ctx, e.Object, q)
		},
	}
}
