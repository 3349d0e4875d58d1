// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package managed registers the controller of placement policies with a manager, and says what makes it decide again. It is apart from the
// controller, so that a program that only tries a policy is not made of all that a manager needs.
//
// It does not know how policies decide.
package managed

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/controller/conflict"
	"github.com/capacitorset/liqo-broker/pkg/controller/placementpolicy"
	"github.com/capacitorset/liqo-broker/pkg/controller/watch"
)

// Config is what the controller needs.
type Config = placementpolicy.Config

// Setup registers the controller with a manager.
func Setup(mgr ctrl.Manager, cfg Config) error {
	all := handler.EnqueueRequestsFromMapFunc(watch.Every[v1alpha1.PlacementPolicyList](cfg.Client, "Cannot list the placement policies"))
	err := ctrl.NewControllerManagedBy(mgr).
		Named("placementpolicy").
		For(&v1alpha1.PlacementPolicy{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		// Who else applies to a consumer changes with any policy.
		Watches(&v1alpha1.PlacementPolicy{}, all, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&v1alpha1.Provider{}, all, builder.WithPredicates(providerChanged())).
		Watches(&v1alpha1.Consumer{}, all, builder.WithPredicates(came())).
		// What somebody else changes or removes is restored.
		Watches(&v1alpha1.PlacementDecision{}, handler.EnqueueRequestsFromMapFunc(policyOf), builder.WithPredicates(meddled())).
		// One policy that waits for Prometheus does not keep others from deciding.
		WithOptions(controller.Options{MaxConcurrentReconciles: 4}).
		Complete(conflict.Requeue(placementpolicy.New(cfg)))
	if err != nil {
		return fmt.Errorf("set up the controller of placement policies: %w", err)
	}
	return nil
}

// policyOf returns the policy of a decision.
func policyOf(_ context.Context, o client.Object) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Name: o.(*v1alpha1.PlacementDecision).Policy}}}
}

// meddled lets changes of decisions pass, the controller's own among them, and that they go.
func meddled() predicate.Predicate {
	return predicate.Funcs{CreateFunc: func(event.CreateEvent) bool { return false }}
}

// providerChanged lets those changes of a Provider pass that a decision depends on.
func providerChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: watch.Changed(func(before, after *v1alpha1.Provider) bool {
		return before.EffectiveScheduling() != after.EffectiveScheduling() || before.Status.ClusterName != after.Status.ClusterName ||
			before.Status.ObservedGeneration != after.Status.ObservedGeneration ||
			meta.IsStatusConditionTrue(before.Status.Conditions, v1alpha1.ConditionReady) !=
				meta.IsStatusConditionTrue(after.Status.Conditions, v1alpha1.ConditionReady) ||
			!equality.Semantic.DeepEqual(before.Labels, after.Labels) ||
			!equality.Semantic.DeepEqual(before.Status.KPIs, after.Status.KPIs) ||
			!equality.Semantic.DeepEqual(before.Status.QueriedKPIs, after.Status.QueriedKPIs)
	})}
}

// came lets objects pass that come and go, and not their changes.
func came() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(event.UpdateEvent) bool { return false }}
}
