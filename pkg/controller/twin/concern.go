// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package twin

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/snapshot"
)

// concerned returns the twin namespaces whose plan can change with a provider. All
// others are left alone: there may be thousands.
func (r *Reconciler) concerned(ctx context.Context, provider client.Object) []reconcile.Request {
	names, err := r.reader.AffectedBy(ctx, cluster.ID(provider.GetName()))
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Cannot find the namespaces that a provider affects", "provider", provider.GetName())
		return r.all(ctx)
	}
	return requests(names)
}

// policyHandler looks at every namespace when a policy comes, goes or is written by
// people, because it may come to apply to any; and when only its choice for some
// consumers has changed, at their namespaces that follow it.
func (r *Reconciler) policyHandler() handler.EventHandler {
	add := func(q workqueue.RateLimitingInterface, requests []reconcile.Request) {
		for _, request := range requests {
			q.Add(request)
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, _ event.CreateEvent, q workqueue.RateLimitingInterface) { add(q, r.all(ctx)) },
		DeleteFunc: func(ctx context.Context, _ event.DeleteEvent, q workqueue.RateLimitingInterface) { add(q, r.all(ctx)) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q workqueue.RateLimitingInterface) {
			add(q, r.following(ctx, e.ObjectOld.(*v1alpha1.PlacementPolicy), e.ObjectNew.(*v1alpha1.PlacementPolicy)))
		},
	}
}

// following returns the twin namespaces whose plan can change with an update of a policy.
func (r *Reconciler) following(ctx context.Context, before, after *v1alpha1.PlacementPolicy) []reconcile.Request {
	if before.Generation != after.Generation {
		return r.all(ctx)
	}
	changed := snapshot.Rechosen(before.Status.Decisions, after.Status.Decisions)
	if len(changed) == 0 {
		return nil
	}
	names, err := r.reader.FollowersOf(ctx, after.Name, changed)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Cannot find the namespaces that a policy affects", "policy", after.Name)
		return r.all(ctx)
	}
	return requests(names)
}

// ofConsumer returns the twin namespaces of a consumer.
func (r *Reconciler) ofConsumer(ctx context.Context, consumer client.Object) []reconcile.Request {
	return r.those(ctx, func(of cluster.ID) bool { return of == cluster.ID(consumer.GetName()) })
}

// all returns every twin namespace.
func (r *Reconciler) all(ctx context.Context) []reconcile.Request {
	return r.those(ctx, func(cluster.ID) bool { return true })
}

// those returns the twin namespaces of some consumers.
func (r *Reconciler) those(ctx context.Context, wanted func(consumer cluster.ID) bool) []reconcile.Request {
	var namespaces corev1.NamespaceList
	if err := r.client.List(ctx, &namespaces, client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Cannot list the namespaces")
		return nil
	}
	var names []string
	for i := range namespaces.Items {
		if consumer, ok := liqo.TwinOf(&namespaces.Items[i]); ok && wanted(consumer) {
			names = append(names, namespaces.Items[i].Name)
		}
	}
	return requests(names)
}

func requests(namespaces []string) []reconcile.Request {
	requests := make([]reconcile.Request, len(namespaces))
	for i, name := range namespaces {
		requests[i].Name = name
	}
	return requests
}
