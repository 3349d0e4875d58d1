// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/binding"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/core/placement"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
)

// Decision returns what a policy has decided for a consumer; the zero ConsumerDecision if nothing.
// It shares memory with the cache.
func (r *Reader) Decision(ctx context.Context, policy *v1alpha1.PlacementPolicy, consumer cluster.ID) (v1alpha1.ConsumerDecision, error) {
	name := v1alpha1.DecisionName(policy.Name, string(consumer))
	var d v1alpha1.PlacementDecision
	if err := r.reader.Get(ctx, client.ObjectKey{Name: name}, &d); apierrors.IsNotFound(err) {
		return v1alpha1.ConsumerDecision{}, nil
	} else if err != nil {
		return v1alpha1.ConsumerDecision{}, fmt.Errorf("get placement decision %s: %w", name, err)
	}
	if !d.IsOf(policy, string(consumer)) {
		return v1alpha1.ConsumerDecision{}, nil
	}
	return d.ConsumerDecision, nil
}

// chosen returns the providers that a policy has chosen for a consumer, each with whether it is
// barred, so that it gets no new pods.
func (r *Reader) chosen(ctx context.Context, policy *v1alpha1.PlacementPolicy, consumer cluster.ID) (map[cluster.ID]bool, error) {
	decision, err := r.Decision(ctx, policy, consumer)
	if err != nil {
		return nil, err
	}
	return barredOf(&decision), nil
}

// barredOf returns the chosen providers of a decision, each with whether it is barred.
func barredOf(d *v1alpha1.ConsumerDecision) map[cluster.ID]bool {
	barred := make(map[cluster.ID]bool, len(d.Chosen))
	for _, c := range d.Chosen {
		barred[cluster.ID(c.ID)] = c.Barred
	}
	return barred
}

// follow reads the policy of a namespace, and the providers that concern it: all of
// them without a policy, and with one those that it has chosen, those that are
// selected, and those where pods are.
func (r *Reader) follow(ctx context.Context, n *Twin, ns *corev1.Namespace, shadows []metav1.PartialObjectMetadata) error {
	var policies v1alpha1.PlacementPolicyList
	if err := r.reader.List(ctx, &policies, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list placement policies: %w", err)
	}
	consumer, _ := liqo.TwinOf(ns)
	n.Policy = named(policies.Items, binding.Follows(Rules(policies.Items), twinOf(ns, shadows)))
	n.Snapshot.Failover = failoverOf(n.Policy)
	if n.Policy == nil {
		var providers v1alpha1.ProviderList
		if err := r.reader.List(ctx, &providers, client.UnsafeDisableDeepCopy); err != nil {
			return fmt.Errorf("list providers: %w", err)
		}
		for i := range providers.Items {
			r.addProvider(n, &providers.Items[i], ns, placement.Chosen)
		}
		return nil
	}
	// With a policy, few of many providers concern a namespace: only these are read.
	n.Snapshot.MoveSingletons = n.Policy.Spec.MoveSingletons == v1alpha1.SingletonsWithGap
	barred, err := r.chosen(ctx, n.Policy, consumer)
	if err != nil {
		return err
	}
	n.Snapshot.Undecided = len(barred) == 0
	concern := maps.Clone(barred)
	for _, id := range n.Snapshot.Selected {
		concern[id] = true
	}
	for _, c := range n.Snapshot.Copies {
		concern[c.Provider] = true
	}
	delete(concern, "") // Of copies that are nowhere, or on the broker.
	for _, id := range slices.Sorted(maps.Keys(concern)) {
		var p v1alpha1.Provider
		if err := r.reader.Get(ctx, client.ObjectKey{Name: string(id)}, &p); apierrors.IsNotFound(err) {
			continue
		} else if err != nil {
			return fmt.Errorf("get provider %s: %w", id, err)
		}
		bars, chosen := barred[id]
		r.addProvider(n, &p, ns, choiceOf(chosen, bars))
	}
	return nil
}

// addProvider adds a provider to a namespace, of which the policy says something.
func (r *Reader) addProvider(n *Twin, p *v1alpha1.Provider, ns *corev1.Namespace, said placement.Choice) {
	id := identity(p)
	received := r.reception(n.Offloading, id)
	known := provider(p, r.namespaceOn(id, ns, received))
	known.Choice = said
	n.Snapshot.Providers = append(n.Snapshot.Providers, known)
	if received.Refused {
		n.Refused[known.ID] = received.Since
	}
}

// choosable returns which providers some policy has chosen for pods of a consumer;
// without a policy these are all. Other providers get none of its pods.
func (r *Reader) choosable(
	ctx context.Context, policies []v1alpha1.PlacementPolicy, rules []binding.Policy, consumer cluster.ID,
) (func(cluster.ID) bool, error) {
	usual := binding.OfConsumer(rules, consumer)
	if usual == "" {
		return func(cluster.ID) bool { return true }, nil
	}
	ids := map[cluster.ID]bool{}
	for i := range rules {
		if rule := &rules[i]; rule.Name == usual || rule.MayApply(consumer) {
			chosen, err := r.chosen(ctx, named(policies, rule.Name), consumer)
			if err != nil {
				return nil, err
			}
			maps.Copy(ids, chosen)
		}
	}
	return func(id cluster.ID) bool { _, is := ids[id]; return is }, nil
}

// ChoiceChanged reports whether an update of a decision can change who is chosen: most
// updates are of the explanation.
func ChoiceChanged(before, after *v1alpha1.PlacementDecision) bool {
	return before.Policy != after.Policy || before.Consumer != after.Consumer ||
		!equality.Semantic.DeepEqual(metav1.GetControllerOfNoCopy(before), metav1.GetControllerOfNoCopy(after)) ||
		!maps.Equal(barredOf(&before.ConsumerDecision), barredOf(&after.ConsumerDecision))
}
