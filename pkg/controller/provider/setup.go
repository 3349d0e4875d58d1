// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package provider keeps a Provider object for each cluster that the broker has
// an outgoing peering with: what it offers, whether it can be used, and how far
// it is drained when people want that.
//
// It closes and opens the provider's virtual nodes for new pods. It moves no
// pod: package twin does.
package provider

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/controller/conflict"
	"github.com/capacitorset/liqo-broker/pkg/controller/watch"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/snapshot"
)

// Setup registers the controller with a manager.
func Setup(mgr ctrl.Manager, cfg Config) error {
	r := New(cfg)
	kinds := r.reader.Line().Kinds()
	b := ctrl.NewControllerManagedBy(mgr).
		Named("provider").
		For(&v1alpha1.Provider{}).
		Watches(kinds.Record, handler.EnqueueRequestsFromMapFunc(watch.OfRecord(r.reader))).
		Watches(kinds.Offer, handler.EnqueueRequestsFromMapFunc(watch.OfTenant(r.reader))).
		Watches(&corev1.Node{}, handler.EnqueueRequestsFromMapFunc(watch.OfNode(r.reader)), builder.WithPredicates(nodeChanged())).
		Watches(&corev1.Pod{}, r.podHandler())
	for _, kind := range kinds.Peering {
		b = b.Watches(kind, handler.EnqueueRequestsFromMapFunc(watch.OfTenant(r.reader)))
	}
	if r.gateways != nil {
		b = b.WatchesRawSource(source.Channel(r.gateways.turned, handler.EnqueueRequestsFromMapFunc(r.gateways.takeTurned)))
		if err := mgr.Add(r.gateways); err != nil {
			return fmt.Errorf("watch the gateways to providers: %w", err)
		}
	}
	if err := b.Complete(conflict.Requeue(r)); err != nil {
		return fmt.Errorf("set up the provider controller: %w", err)
	}
	return nil
}

// accountingPause is how long the pods of a provider may change before its status
// says what they use: a burst of them makes one write.
const accountingPause = time.Second

// podHandler looks at the provider of a pod: at once if the provider is drained,
// because people wait for it to be drained, and otherwise after a pause.
func (r *Reconciler) podHandler() handler.EventHandler {
	look := func(ctx context.Context, q workqueue.TypedRateLimitingInterface[ctrl.Request], pod client.Object, useChanged bool) {
		id, draining := r.ofPod(ctx, pod.(*corev1.Pod))
		switch {
		case id == "":
		case draining:
			q.Add(watch.Provider(id)[0])
		case useChanged:
			q.AddAfter(watch.Provider(id)[0], accountingPause)
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q workqueue.TypedRateLimitingInterface[ctrl.Request]) {
			look(ctx, q, e.Object, true)
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q workqueue.TypedRateLimitingInterface[ctrl.Request]) {
			look(ctx, q, e.Object, true)
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q workqueue.TypedRateLimitingInterface[ctrl.Request]) {
			look(ctx, q, e.ObjectNew, snapshot.UseChanged(e.ObjectOld.(*corev1.Pod), e.ObjectNew.(*corev1.Pod)))
		},
	}
}

// ofPod returns the provider that a pod runs on, and whether it is to be drained.
func (r *Reconciler) ofPod(ctx context.Context, pod *corev1.Pod) (id cluster.ID, draining bool) {
	var node corev1.Node
	if pod.Spec.NodeName == "" || r.client.Get(ctx, client.ObjectKey{Name: pod.Spec.NodeName}, &node) != nil {
		return "", false
	}
	var p v1alpha1.Provider
	id, err := r.reader.ClusterOf(ctx, &node)
	if err != nil {
		return "", false
	}
	if r.client.Get(ctx, client.ObjectKey{Name: string(id)}, &p) != nil {
		return "", false
	}
	return id, p.EffectiveScheduling() == v1alpha1.SchedulingDrained
}

// nodeChanged lets only those changes of a node pass that a Provider's status
// depends on, and not the heartbeats.
func nodeChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: watch.Changed(func(before, after *corev1.Node) bool {
		return liqo.NodeReadiness(before) != liqo.NodeReadiness(after) ||
			liqo.OnlyBare(before) != liqo.OnlyBare(after) ||
			liqo.NodeCluster(before) != liqo.NodeCluster(after) ||
			!equality.Semantic.DeepEqual(before.Status.Allocatable, after.Status.Allocatable) ||
			!equality.Semantic.DeepEqual(before.Spec.Taints, after.Spec.Taints)
	})}
}
