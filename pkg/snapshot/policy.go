// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/binding"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/core/placement"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
)

// chosen returns the providers that a policy has chosen for a consumer.
func chosen(policy *v1alpha1.PlacementPolicy, consumer cluster.ID) map[cluster.ID]bool {
	return choices(policy, consumer, func(v1alpha1.ChosenProvider) bool { return true })
}

// barred returns those of them that get no new pods.
func barred(policy *v1alpha1.PlacementPolicy, consumer cluster.ID) map[cluster.ID]bool {
	return choices(policy, consumer, func(c v1alpha1.ChosenProvider) bool { return c.Barred })
}

func choices(policy *v1alpha1.PlacementPolicy, consumer cluster.ID, which func(v1alpha1.ChosenProvider) bool) map[cluster.ID]bool {
	ids := map[cluster.ID]bool{}
	for _, c := range policy.Status.DecisionFor(string(consumer)).Chosen {
		if which(c) {
			ids[cluster.ID(c.ID)] = true
		}
	}
	return ids
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
			n.add(&providers.Items[i], ns, placement.Chosen)
		}
		return nil
	}
	n.Snapshot.MoveSingletons = n.Policy.Spec.MoveSingletons == v1alpha1.SingletonsWithGap
	chosen, barred := chosen(n.Policy, consumer), barred(n.Policy, consumer)
	n.Snapshot.Undecided = len(chosen) == 0
	concern := maps.Clone(chosen)
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
		n.add(&p, ns, choiceOf(chosen[id], barred[id]))
	}
	return nil
}

// add adds a provider to a namespace, of which the policy says something.
func (n *Twin) add(p *v1alpha1.Provider, ns *corev1.Namespace, said placement.Choice) {
	known := provider(p, ns, n.Offloading)
	known.Choice = said
	n.Snapshot.Providers = append(n.Snapshot.Providers, known)
	if n.Offloading == nil {
		return
	}
	if since, refused := liqo.Refused(n.Offloading, identity(p)); refused {
		n.Refused[known.ID] = since
	}
}

// choosable returns which providers some policy has chosen for pods of a consumer;
// without a policy these are all. Other providers get none of its pods.
func choosable(policies []v1alpha1.PlacementPolicy, rules []binding.Policy, consumer cluster.ID) func(cluster.ID) bool {
	usual := binding.OfConsumer(rules, consumer)
	if usual == "" {
		return func(cluster.ID) bool { return true }
	}
	ids := map[cluster.ID]bool{}
	for i := range rules {
		if rule := &rules[i]; rule.Name == usual || rule.MayApply(consumer) {
			maps.Copy(ids, chosen(named(policies, rule.Name), consumer))
		}
	}
	return func(id cluster.ID) bool { return ids[id] }
}

// ChoiceChanged reports whether an update of a policy can change who is chosen: most
// updates are of the explanations.
func ChoiceChanged(before, after *v1alpha1.PlacementPolicy) bool {
	return before.Generation != after.Generation || len(Rechosen(before.Status.Decisions, after.Status.Decisions)) > 0
}

// Rechosen returns the consumers whose providers differ between two statuses of a policy.
func Rechosen(before, after []v1alpha1.PlacementDecision) map[cluster.ID]bool {
	was, is := byConsumer(before), byConsumer(after)
	compared := map[[2]*v1alpha1.PlacementDecision]bool{} // Many consumers share a decision.
	changed := map[cluster.ID]bool{}
	for _, decisions := range []map[string]*v1alpha1.PlacementDecision{was, is} {
		for consumer := range decisions {
			pair := [2]*v1alpha1.PlacementDecision{was[consumer], is[consumer]}
			same, known := compared[pair]
			if !known {
				same = sameChoice(pair, "")
				compared[pair] = same
			}
			if !same && !sameChoice(pair, consumer) {
				changed[cluster.ID(consumer)] = true
			}
		}
	}
	return changed
}

// byConsumer returns the decision for each consumer.
func byConsumer(decisions []v1alpha1.PlacementDecision) map[string]*v1alpha1.PlacementDecision {
	by := map[string]*v1alpha1.PlacementDecision{}
	for i := range decisions {
		for _, c := range decisions[i].Consumers {
			by[c.ID] = &decisions[i]
		}
	}
	return by
}

// sameChoice reports whether two decisions, either of which may be nil, choose the same for
// a consumer; for all if it is empty.
func sameChoice(pair [2]*v1alpha1.PlacementDecision, consumer string) bool {
	var chosen [2]map[string]bool // Whether each is barred.
	for i, d := range pair {
		chosen[i] = map[string]bool{}
		if d == nil {
			continue
		}
		for _, c := range d.Chosen {
			if c.ID != consumer {
				chosen[i][c.ID] = c.Barred
			}
		}
	}
	return maps.Equal(chosen[0], chosen[1])
}
