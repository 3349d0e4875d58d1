// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/capacity"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/core/nodename"
	"github.com/capacitorset/liqo-broker/pkg/core/resources"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
)

// nodes returns the virtual nodes of those consumers that have or are to have others
// than the one that stands for the broker: those that Liqo has told them of, and one
// for each provider that takes new pods if they are to have that. Nothing is used of them yet.
func (r *Reader) nodes(
	ctx context.Context, consumers []v1alpha1.Consumer, providers []v1alpha1.Provider, accounts map[cluster.ID]capacity.Account,
	offers []liqo.Offer,
) (map[cluster.ID][]capacity.Node, error) {
	told := map[cluster.ID][]string{}
	for id, o := range toConsumers(offers) {
		told[id] = append(told[id], o.Node)
	}
	var policies v1alpha1.PlacementPolicyList
	if err := r.reader.List(ctx, &policies, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list placement policies: %w", err)
	}
	rules := Rules(policies.Items)
	var marks map[string]cluster.Identity
	nodes := map[cluster.ID][]capacity.Node{}
	for i := range consumers {
		c := &consumers[i]
		id, perProvider := cluster.ID(c.Name), c.EffectiveNodes() == v1alpha1.NodesPerProvider
		if !perProvider && !slices.ContainsFunc(told[id], func(name string) bool { return name != "" }) {
			continue
		}
		if marks == nil {
			marks = r.marks(providers)
		}
		open := map[cluster.ID]bool{}
		may, err := r.choosable(ctx, policies.Items, rules, id)
		if err != nil {
			return nil, err
		}
		for p, account := range accounts {
			open[p] = perProvider && r.served(c) && p != id && account.Offers == capacity.OffersAll && may(p)
		}
		nodes[id] = r.nodesOf(told[id], perProvider, marks, open)
	}
	return nodes, nil
}

// toConsumers returns the offers that Liqo has told consumers of, each with its consumer.
func toConsumers(offers []liqo.Offer) iter.Seq2[cluster.ID, *liqo.Offer] {
	return func(yield func(cluster.ID, *liqo.Offer) bool) {
		for i := range offers {
			o := &offers[i]
			if id := o.To(); id != "" && !o.Deleted && !yield(id, o) {
				return
			}
		}
	}
}

// toldOf returns the resources that each consumer was told of: those of which it was told
// zero are at most resources.MaxResources, because providers name resources as they like.
func toldOf(offers []liqo.Offer) map[cluster.ID][]corev1.ResourceName {
	told, zero := map[cluster.ID][]corev1.ResourceName{}, map[cluster.ID][]corev1.ResourceName{}
	for id, o := range toConsumers(offers) {
		for name, quantity := range o.Resources {
			if quantity.IsZero() {
				zero[id] = append(zero[id], name)
			} else {
				told[id] = append(told[id], name)
			}
		}
	}
	for id, names := range zero {
		slices.Sort(names)
		names = slices.Compact(names)
		told[id] = append(told[id], names[:min(len(names), resources.MaxResources)]...)
	}
	return told
}

// marks returns the providers by the marks of their nodes.
func (r *Reader) marks(providers []v1alpha1.Provider) map[string]cluster.Identity {
	marks := make(map[string]cluster.Identity, len(providers))
	for i := range providers {
		id := identity(&providers[i])
		marks[nodename.Mark(r.own, id.ID)] = id
	}
	return marks
}

// nodesOf returns the nodes of one consumer, in order of their names: those that it
// was told of, and those that it is to have besides. A provider that calls itself
// otherwise than before keeps its node.
func (r *Reader) nodesOf(told []string, perProvider bool, marks map[string]cluster.Identity, open map[cluster.ID]bool) []capacity.Node {
	told = slices.Compact(slices.Sorted(slices.Values(told)))
	var nodes []capacity.Node
	has := map[cluster.ID]bool{}
	for _, name := range told {
		node := capacity.Node{Name: name, Open: name == "" && !perProvider}
		if mark, ok := nodename.MarkOf(name); ok {
			node.Provider = marks[mark].ID // Empty for a provider that is gone.
			node.Open = open[node.Provider] && !has[node.Provider]
			has[node.Provider] = true
		}
		nodes = append(nodes, node)
	}
	for _, id := range marks {
		if open[id.ID] && !has[id.ID] {
			nodes = append(nodes, capacity.Node{Name: r.nodeName(id), Provider: id.ID, Open: true})
		}
	}
	// Without any offer, there is no peering.
	if len(nodes) == 0 || !perProvider && !slices.Contains(told, "") {
		nodes = append(nodes, capacity.Node{Open: !perProvider})
	}
	slices.SortFunc(nodes, func(a, b capacity.Node) int { return cmp.Compare(a.Name, b.Name) })
	return nodes
}

// nodeName returns what the node of a provider is called that a consumer has not been told of. With Liqo 1.x it is that of a ResourceSlice.
func (r *Reader) nodeName(provider cluster.Identity) string {
	if r.line.HasPlugin() {
		return nodename.Name(r.own, provider)
	}
	return nodename.OfSlice(r.own, provider)
}

// use counts what a pod requests as used of its node. Whatever is on none of a
// provider's nodes is on the one that stands for the broker, which comes first.
func use(nodes []capacity.Node, name string, requests corev1.ResourceList) {
	i, found := slices.BinarySearchFunc(nodes, name, func(n capacity.Node, name string) int { return cmp.Compare(n.Name, name) })
	if !found {
		if i = 0; nodes[i].Name != "" {
			return
		}
	}
	if nodes[i].Used == nil {
		nodes[i].Used = corev1.ResourceList{}
	}
	resources.Add(nodes[i].Used, requests)
}

// ProviderOf returns the provider that a consumer's node stands for, or nil if there
// is none.
//
//nolint:nilnil // That there is none is an answer, which every caller has to deal with.
func (r *Reader) ProviderOf(ctx context.Context, node string) (*v1alpha1.Provider, error) {
	mark, is := nodename.MarkOf(node)
	if !is {
		return nil, nil
	}
	var providers v1alpha1.ProviderList
	if err := r.reader.List(ctx, &providers, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list providers: %w", err)
	}
	for i := range providers.Items {
		if p := &providers.Items[i]; nodename.Mark(r.own, cluster.ID(p.Name)) == mark {
			return p.DeepCopy(), nil
		}
	}
	return nil, nil
}

// Pinned reports whether a pod of a consumer is on its node of one provider, which is
// the only one on which the pod may run; nil if that provider is gone.
func (r *Reader) Pinned(ctx context.Context, consumer cluster.ID, pod *corev1.Pod) (provider *v1alpha1.Provider, pinned bool, err error) {
	node := liqo.OriginNode(pod)
	if _, is := nodename.MarkOf(node); !is {
		return nil, false, nil
	}
	if provider, err = r.ProviderOf(ctx, node); err != nil || provider != nil {
		return provider, provider != nil, err
	}
	// Another node of the consumer may have a name that looks like that.
	peer, err := r.Peer(ctx, consumer)
	if err != nil {
		return nil, false, err
	}
	offers, err := r.OffersTo(ctx, peer)
	if err != nil {
		return nil, false, err
	}
	return nil, slices.ContainsFunc(offers, func(o liqo.Offer) bool { return o.Node == node }), nil
}
