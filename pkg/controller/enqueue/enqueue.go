// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package enqueue tells which Provider an object is about, for the controllers
// that keep something of each Provider.
//
// It does not know what they keep, nor which changes of the object matter to it.
package enqueue

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/capacitorset/liqo-broker/pkg/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
)

// Provider returns a request for the Provider of a cluster; none for an empty ID.
func Provider(id cluster.ID) []reconcile.Request {
	if id == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Name: string(id)}}}
}

// OfNode is for the provider that a virtual node stands for. It is a
// handler.MapFunc.
func OfNode(_ context.Context, node client.Object) []reconcile.Request {
	return Provider(liqo.NodeCluster(node.(*corev1.Node)))
}

// OfOffer is for the provider that a ResourceOffer is from. It is a
// handler.MapFunc.
func OfOffer(_ context.Context, offer client.Object) []reconcile.Request {
	return Provider(liqo.OfferedBy(offer.(*liqo.ResourceOffer)))
}
