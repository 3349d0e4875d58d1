// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
)

// PolicyOf returns the policy that applies to a consumer whose pods wish none: one that names it, else
// a default one, and of several the first by name; nil if there is none.
func PolicyOf(policies []v1alpha1.PlacementPolicy, consumer cluster.ID) *v1alpha1.PlacementPolicy {
	var found *v1alpha1.PlacementPolicy
	named := false
	for i := range policies {
		p := &policies[i]
		names := !p.Spec.Selectable && slices.Contains(p.Spec.Consumers, string(consumer))
		if !p.DeletionTimestamp.IsZero() || !names && !p.Spec.Default || named && !names {
			continue
		}
		if found == nil || names && !named || p.Name < found.Name {
			found, named = p, names
		}
	}
	return found
}

// wished returns the policy that the pods of a namespace wish: the first by name of
// those that the consumer may wish; nil if there is none.
func wished(policies []v1alpha1.PlacementPolicy, consumer cluster.ID, shadows []metav1.PartialObjectMetadata) *v1alpha1.PlacementPolicy {
	wishes := map[string]bool{}
	for i := range shadows {
		wishes[shadows[i].Labels[liqo.LabelPolicy]] = true
	}
	var found *v1alpha1.PlacementPolicy
	for i := range policies {
		if p := &policies[i]; wishes[p.Name] && Selectable(p, consumer) && (found == nil || p.Name < found.Name) {
			found = p
		}
	}
	return found
}

// Selectable tells whether the pods of a consumer may wish a policy.
func Selectable(p *v1alpha1.PlacementPolicy, consumer cluster.ID) bool {
	return p.Spec.Selectable && p.DeletionTimestamp.IsZero() &&
		(len(p.Spec.Consumers) == 0 || slices.Contains(p.Spec.Consumers, string(consumer)))
}

// follow marks the providers that the policy of a namespace has not chosen.
func (r *Registry) follow(
	ctx context.Context, n *Namespace, consumer cluster.ID, shadows []metav1.PartialObjectMetadata,
) error {
	var policies v1alpha1.PlacementPolicyList
	if err := r.reader.List(ctx, &policies, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list placement policies: %w", err)
	}
	if n.Policy = wished(policies.Items, consumer, shadows); n.Policy == nil {
		n.Policy = PolicyOf(policies.Items, consumer)
	}
	if n.Policy == nil {
		return nil
	}
	chosen := map[cluster.ID]bool{}
	for _, d := range n.Policy.Status.Decisions {
		if d.Consumer == string(consumer) {
			for _, c := range d.Chosen {
				chosen[cluster.ID(c.ID)] = true
			}
		}
	}
	n.Snapshot.Undecided = len(chosen) == 0
	for i := range n.Snapshot.Providers {
		p := &n.Snapshot.Providers[i]
		p.Unchosen = !chosen[p.ID]
	}
	return nil
}
