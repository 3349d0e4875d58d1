// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/core/resources"
)

// Node is a virtual node by which a consumer sees providers.
type Node struct {
	// Name is empty for the node that stands for the broker.
	Name string
	// Provider is the only one to which the node's pods go; empty for all.
	Provider cluster.ID
	// Open tells that new pods may come to the node. One that is not open has what
	// its pods use, so that they stay and nothing comes.
	Open bool
	// Used is what the consumer's pods on the node use of the providers.
	Used corev1.ResourceList
}

// NodeOffer is what a consumer is offered on one node.
type NodeOffer struct {
	Node     string
	Provider cluster.ID
	Offered  corev1.ResourceList
}

// NodeOffers returns what a consumer is offered on each of its nodes, in their order. In
// sum it is no more than Offered. Each node has what its pods use. The rest is for
// the open ones: each has what is free of its provider if that is no more than the
// rest in sum, and else its part. What the consumer was told of is there as zero if
// nobody has it any more: a node keeps a resource that its offer does not name.
func (s *Snapshot) NodeOffers(consumer cluster.ID) []NodeOffer {
	total, used := s.Offered(consumer), s.used[consumer]
	nothing := resources.Scale(total, 0)
	for _, name := range s.told[consumer] {
		if _, named := nothing[name]; !named {
			nothing[name] = resource.Quantity{}
		}
	}
	nodes := s.nodes[consumer]
	if len(nodes) == 0 {
		return []NodeOffer{{Offered: resources.Sum(nothing, total)}}
	}
	rest, room := resources.Subtract(total, used), corev1.ResourceList{}
	free := make([]corev1.ResourceList, len(nodes))
	for i, node := range nodes {
		switch {
		case !node.Open:
		case node.Provider == "":
			free[i] = rest
		case node.Provider != consumer:
			free[i] = s.free[node.Provider]
		}
		resources.Add(room, free[i])
	}
	pools := make([]NodeOffer, len(nodes))
	for i, node := range nodes {
		// With a limit below the use, not even that is offered.
		kept := resources.Prorate(node.Used, total, used)
		pools[i] = NodeOffer{
			Node: node.Name, Provider: node.Provider,
			Offered: resources.Sum(nothing, kept, resources.Prorate(free[i], rest, room)),
		}
	}
	return pools
}

// EqualNodeOffers reports whether two lists offer the same on the same nodes.
func EqualNodeOffers(a, b []NodeOffer) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].Node != b[i].Node || a[i].Provider != b[i].Provider || !resources.Equal(a[i].Offered, b[i].Offered) {
			return false
		}
	}
	return true
}
