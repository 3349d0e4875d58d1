// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import corev1 "k8s.io/api/core/v1"

// Nodes is by which virtual nodes a consumer sees the providers.
// +kubebuilder:validation:Enum=One;PerProvider
type Nodes string

// The virtual nodes of a Consumer.
const (
	// NodesOne is one node, which stands for the broker and has the sum.
	NodesOne Nodes = "One"
	// NodesPerProvider is a node for each provider, with what that has: the consumer's
	// scheduler chooses the provider.
	NodesPerProvider Nodes = "PerProvider"
)

// NodeOffer is what a consumer is offered on one of several virtual nodes.
type NodeOffer struct {
	// node is the name of the virtual node; empty for the one that stands for the broker.
	// +kubebuilder:validation:MaxLength=253
	// +required
	Node string `json:"node"`
	// provider is the only one to which the node's pods go; empty for any, and for one
	// that is gone.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Provider string `json:"provider,omitempty"`
	// offered is what the node has.
	// +optional
	Offered corev1.ResourceList `json:"offered,omitempty"`
}

// EffectiveNodes returns by which nodes the consumer is to see the providers at this
// moment. While it is not known that the mode shows providers, it hides them.
func (c *Consumer) EffectiveNodes() Nodes {
	if c.Spec.Nodes == NodesPerProvider && c.Status.Mode == ModeOrchestrated && c.Spec.Mode != ModeAggregated {
		return NodesPerProvider
	}
	return NodesOne
}
