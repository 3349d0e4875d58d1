// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"fmt"
	"slices"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/cluster"
)

// PolicyOf returns the policy that applies to a consumer: one that names it, else
// a default one, and of several the first by name; nil if there is none.
func PolicyOf(policies []v1alpha1.PlacementPolicy, consumer cluster.ID) *v1alpha1.PlacementPolicy {
	var found *v1alpha1.PlacementPolicy
	named := false
	for i := range policies {
		p := &policies[i]
		names := slices.Contains(p.Spec.Consumers, string(consumer))
		if !p.DeletionTimestamp.IsZero() || !names && !p.Spec.Default || named && !names {
			continue
		}
		if found == nil || names && !named || p.Name < found.Name {
			found, named = p, names
		}
	}
	return found
}

// follow marks the providers that the policy of a consumer has not chosen.
func (r *Registry) follow(ctx context.Context, n *Namespace, consumer cluster.ID) error {
	var policies v1alpha1.PlacementPolicyList
	if err := r.reader.List(ctx, &policies); err != nil {
		return fmt.Errorf("list placement policies: %w", err)
	}
	n.Policy = PolicyOf(policies.Items, consumer)
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
