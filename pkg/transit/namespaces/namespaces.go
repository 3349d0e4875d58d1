// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package namespaces tells the controllers of the transit, which look at one namespace or one consumer at a time, at which ones to look
// when something changes.
//
// It does not know what they do there.
package namespaces

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
)

// Inside asks for the namespace in which an object is.
func Inside() handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: client.ObjectKey{Name: o.GetNamespace()}}}
	})
}

// OfConsumer asks for the consumer whose twin namespace an object is, or is in.
func OfConsumer(objects client.Reader) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(ofConsumer(objects))
}

func ofConsumer(objects client.Reader) handler.MapFunc {
	return func(ctx context.Context, o client.Object) []reconcile.Request {
		ns, is := o.(*corev1.Namespace)
		if !is {
			ns = &corev1.Namespace{}
			if err := objects.Get(ctx, client.ObjectKey{Name: o.GetNamespace()}, ns); err != nil {
				if client.IgnoreNotFound(err) != nil {
					ctrl.LoggerFrom(ctx).Error(err, "Cannot get the namespace of an object", "namespace", o.GetNamespace())
				}
				return nil // It is looked at when it comes.
			}
		}
		consumer, is := liqo.TwinOf(ns)
		if !is {
			return nil
		}
		return []reconcile.Request{{NamespacedName: client.ObjectKey{Name: string(consumer)}}}
	}
}

// OfPeer asks for those namespaces of the cluster of which an object tells that other options select as well.
func OfPeer(objects client.Reader, of func(client.Object) cluster.ID, options ...client.ListOption) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(ofPeer(objects, of, options...))
}

func ofPeer(objects client.Reader, of func(client.Object) cluster.ID, options ...client.ListOption) handler.MapFunc {
	return func(ctx context.Context, o client.Object) []reconcile.Request {
		id := of(o)
		var all corev1.NamespaceList
		selected := append([]client.ListOption{client.MatchingLabels{liqo.LabelRemoteClusterID: string(id)}}, options...)
		if err := objects.List(ctx, &all, selected...); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "Cannot list the namespaces of a peer", "cluster", id)
			return nil
		}
		requests := make([]reconcile.Request, len(all.Items))
		for i := range all.Items {
			requests[i].Name = all.Items[i].Name
		}
		return requests
	}
}
