// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package watch tells which Provider an object is about, for the controllers that keep something of each Provider; or which Consumer, as
// both have the name of their cluster. It also finds all objects of a kind, for controllers that look at each of them.
//
// It does not know what they keep, nor which changes of the object matter to it.
package watch

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/liqo/line"
)

// Changed has a predicate.Funcs let pass those updates of objects of one type that a function tells from others.
func Changed[T any](has func(before, after T) bool) func(event.UpdateEvent) bool {
	return func(e event.UpdateEvent) bool {
		before, one := e.ObjectOld.(T)
		after, other := e.ObjectNew.(T)
		return one && other && has(before, after)
	}
}

// Every is for all objects of the kind of a list; for none if they cannot be listed, of which the log tells by a message. It returns a
// handler.MapFunc.
func Every[L any, List interface {
	*L
	client.ObjectList
}](objects client.Reader, message string) handler.MapFunc {
	return func(ctx context.Context, _ client.Object) []reconcile.Request {
		var requests []reconcile.Request
		all := List(new(L))
		err := objects.List(ctx, all, client.UnsafeDisableDeepCopy)
		if err == nil {
			err = line.Each(all, func(o client.Object) {
				requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(o)})
			})
		}
		if err != nil {
			ctrl.LoggerFrom(ctx).Error(err, message)
			return nil
		}
		return requests
	}
}

// Provider returns a request for the Provider or Consumer of a cluster; none for an empty ID.
func Provider(id cluster.ID) []reconcile.Request {
	if id == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Name: string(id)}}}
}

// Records tells whose the records of peers are, and finds clusters that Liqo cannot tell apart.
type Records interface {
	// Line is the line of Liqo that keeps the records.
	Line() line.Line
	// Namesakes returns the others that have the same unique name as a cluster.
	Namesakes(ctx context.Context, id cluster.Identity) ([]cluster.ID, error)
}

// OfRecord is for the Provider or Consumer of the cluster of which Liqo keeps a record, and for those
// whose unique name is the same: one of them may have it now. It returns a handler.MapFunc.
func OfRecord(records Records) handler.MapFunc {
	return func(ctx context.Context, o client.Object) []reconcile.Request {
		id := records.Line().IdentityOf(o)
		others, err := records.Namesakes(ctx, id)
		if err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "Cannot find the clusters of the same name", "foreignCluster", o.GetName())
		}
		requests := Provider(id.ID)
		for _, other := range others {
			requests = append(requests, Provider(other)...)
		}
		return requests
	}
}

// Tenants tells whose a tenant namespace and the virtual nodes are.
type Tenants interface {
	// TenantOf returns the cluster whose tenant namespace a namespace is, or none.
	TenantOf(ctx context.Context, namespace string) (cluster.ID, error)
	// OwnersOf returns the clusters that offer a virtual node of a name.
	OwnersOf(ctx context.Context, node string) ([]cluster.ID, error)
}

// OfNode is for the providers whose a virtual node is, and for the one that it says it
// is of. It returns a handler.MapFunc.
func OfNode(tenants Tenants) handler.MapFunc {
	return func(ctx context.Context, node client.Object) []reconcile.Request {
		says := liqo.NodeCluster(node.(*corev1.Node))
		requests := Provider(says)
		owners, err := tenants.OwnersOf(ctx, node.GetName())
		if err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "Cannot find the cluster of a virtual node", "node", node.GetName())
		}
		for _, id := range owners {
			if id != says {
				requests = append(requests, Provider(id)...)
			}
		}
		return requests
	}
}

// OfTenant is for the provider in whose tenant namespace an object is. It returns a
// handler.MapFunc.
func OfTenant(tenants Tenants) handler.MapFunc {
	return func(ctx context.Context, o client.Object) []reconcile.Request {
		id, err := tenants.TenantOf(ctx, o.GetNamespace())
		if err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "Cannot find the cluster of a tenant namespace", "tenantNamespace", o.GetNamespace())
		}
		return Provider(id)
	}
}
