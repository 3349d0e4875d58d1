// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package twin

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/controller/watch"
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

// everywhere returns every twin namespace: a policy that comes, goes or is written by people may
// come to apply to any.
func (r *Reconciler) everywhere(ctx context.Context, _ client.Object) []reconcile.Request {
	return r.all(ctx)
}

// following returns the twin namespaces of a decision's consumer that follow its policy.
func (r *Reconciler) following(ctx context.Context, o client.Object) []reconcile.Request {
	d, is := o.(*v1alpha1.PlacementDecision)
	if !is {
		return nil
	}
	names, err := r.reader.FollowersOf(ctx, d.Policy, cluster.ID(d.Consumer))
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Cannot find the namespaces that a decision affects", "placementDecision", d.Name)
		return r.all(ctx)
	}
	return requests(names)
}

// choiceChanged lets only those updates of a decision pass by which others are chosen.
func choiceChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: watch.Changed(snapshot.ChoiceChanged)}
}

// ofConsumer returns the twin namespaces of a consumer.
func (r *Reconciler) ofConsumer(ctx context.Context, consumer client.Object) []reconcile.Request {
	return r.those(ctx, func(of cluster.ID) bool { return of == cluster.ID(consumer.GetName()) })
}

// ofTenant returns the twin namespaces of the consumer in whose tenant namespace an object is.
func (r *Reconciler) ofTenant(ctx context.Context, o client.Object) []reconcile.Request {
	id, err := r.reader.TenantOf(ctx, o.GetNamespace())
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Cannot find the cluster of a tenant namespace", "tenantNamespace", o.GetNamespace())
		return r.all(ctx)
	}
	return r.those(ctx, func(of cluster.ID) bool { return of == id && id != "" })
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
