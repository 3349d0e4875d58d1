// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package twin offloads the twin namespaces of consumers to providers: it keeps
// Liqo's NamespaceOffloading in each, and recreates pods that are, or wait, in
// the wrong place.
//
// What to do is decided in package placement. Liqo's own controllers do the
// rest: they make the namespaces on the providers, recreate a deleted pod, and
// direct new pods to the selected providers.
package twin

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/controller/conflict"
	"github.com/capacitorset/liqo-broker/pkg/controller/twin/planning"
	"github.com/capacitorset/liqo-broker/pkg/controller/watch"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/snapshot"
)

// Config is what the controller needs.
type Config struct {
	Client client.Client
	// Live reads from the API server, and not from a cache.
	Live     client.Reader
	Reader   *snapshot.Reader
	Recorder record.EventRecorder
	// Planner decides.
	Planner *planning.Planner
	// Own is what the broker's cluster is called.
	Own cluster.Identity
	// Mapping is how Liqo names the namespaces on the providers, where the names
	// get not too long. It applies to offloadings that are yet to be created: Liqo
	// refuses a change.
	Mapping liqo.Mapping
	// MaxNamespaces is how many namespaces of a consumer are offloaded, the oldest first; zero for
	// all.
	MaxNamespaces int
	// ViewsChanged lets the changes of ConfigMaps in tenant namespaces pass by which the Planner's views of that consumer may say something
	// else; nil watches none.
	ViewsChanged predicate.Predicate
	// SeenChanged lets the changes of the networks of peers pass by which they are seen under other prefixes. It belongs to ViewsChanged.
	SeenChanged predicate.Predicate
	// Metrics are what the controller counts and measures.
	Metrics *Metrics
	Clock   clock.Clock
}

// Setup registers the controller with a manager.
func Setup(mgr ctrl.Manager, cfg Config) error {
	r, kinds := New(cfg), cfg.Reader.Line().Kinds()
	ofNamespace := handler.EnqueueRequestsFromMapFunc(ofNamespace)
	b := ctrl.NewControllerManagedBy(mgr).
		Named("twin").
		For(&corev1.Namespace{}).
		Watches(kinds.Offloading, ofNamespace).
		Watches(&corev1.Pod{}, ofNamespace).
		WatchesMetadata(kinds.Shadow, ofNamespace, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&v1alpha1.Provider{}, handler.EnqueueRequestsFromMapFunc(r.concerned), builder.WithPredicates(providerChanged())).
		Watches(&v1alpha1.PlacementPolicy{}, handler.EnqueueRequestsFromMapFunc(r.everywhere),
			builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&v1alpha1.PlacementDecision{}, handler.EnqueueRequestsFromMapFunc(r.following), builder.WithPredicates(choiceChanged())).
		Watches(&v1alpha1.Consumer{}, handler.EnqueueRequestsFromMapFunc(r.ofConsumer), builder.WithPredicates(servingChanged()))
	if cfg.ViewsChanged != nil {
		b = b.Watches(&corev1.ConfigMap{}, handler.EnqueueRequestsFromMapFunc(r.ofTenant), builder.WithPredicates(cfg.ViewsChanged)).
			Watches(cfg.Reader.Line().Kinds().Network, handler.EnqueueRequestsFromMapFunc(r.everywhere), builder.WithPredicates(cfg.SeenChanged))
	}
	if err := b.Complete(conflict.Requeue(r)); err != nil {
		return fmt.Errorf("set up the twin namespace controller: %w", err)
	}
	return nil
}

func ofNamespace(_ context.Context, o client.Object) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Name: o.GetNamespace()}}}
}

// servingChanged lets only those updates of a Consumer pass by which it is to be served in
// another mode, or suspended, or not any more, or is asked for views, or not any more.
func servingChanged() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: watch.Changed(func(before, after *v1alpha1.Consumer) bool {
			return before.Spec.Mode != after.Spec.Mode || before.IsSuspended() != after.IsSuspended() ||
				before.HasToAcknowledge() != after.HasToAcknowledge()
		}),
	}
}

// providerChanged lets only those changes of a Provider pass that can change a
// plan, and not those of what it offers.
func providerChanged() predicate.Predicate {
	type view struct {
		seen, lost bool
		ready      metav1.ConditionStatus
		reason     string
	}
	usable := func(p *v1alpha1.Provider) view {
		ready := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionReady)
		v := view{seen: p.Status.ObservedGeneration == p.Generation, lost: p.UnreachableSince() != nil}
		if ready != nil {
			v.ready, v.reason = ready.Status, ready.Reason
		}
		return v
	}
	return predicate.Funcs{UpdateFunc: watch.Changed(func(before, after *v1alpha1.Provider) bool {
		return before.EffectiveScheduling() != after.EffectiveScheduling() || usable(before) != usable(after) ||
			before.Status.ClusterName != after.Status.ClusterName
	})}
}
