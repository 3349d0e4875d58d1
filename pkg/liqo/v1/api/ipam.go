// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package api

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Network is a range of addresses that Liqo keeps free of others: one of this cluster, or the one under which a network of a peer is seen.
//
// +kubebuilder:object:root=true
type Network struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   NetworkSpec   `json:"spec"`
	Status NetworkStatus `json:"status,omitempty"`
}

// NetworkSpec is what is asked for.
type NetworkSpec struct {
	// CIDR is the range that is wanted. It never changes.
	CIDR string `json:"cidr"`
	// PreAllocated is how many addresses from the first one on nobody gets. It never changes.
	PreAllocated uint32 `json:"preAllocated"`
}

// NetworkStatus is what was given.
type NetworkStatus struct {
	// CIDR is the range; empty until there is one. Liqo keeps one that it finds.
	CIDR string `json:"cidr,omitempty"`
}

// NetworkList is a list of Networks.
//
// +kubebuilder:object:root=true
type NetworkList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Network `json:"items"`
}

// IP opens an address of this cluster to all peers, under another one. Liqo deletes a Service that is called as an IP beside it is. The
// Service that Liqo could make of it is left out.
//
// +kubebuilder:object:root=true
type IP struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   IPSpec   `json:"spec"`
	Status IPStatus `json:"status,omitempty"`
}

// IPSpec is the address.
type IPSpec struct {
	// IP is the address as this cluster knows it. It never changes.
	IP string `json:"ip"`
	// NetworkRef names the Network in which the other address is; nil is the external network of this cluster.
	NetworkRef *corev1.ObjectReference `json:"networkRef,omitempty"`
	// Masquerade has packets to it come from an address of the node.
	Masquerade *bool `json:"masquerade,omitempty"`
}

// IPStatus is what was given for it.
type IPStatus struct {
	// IP is the address under which peers reach it, and CIDR the network of that; empty until there is one.
	IP   string `json:"ip,omitempty"`
	CIDR string `json:"cidr,omitempty"`
}

// IPList is a list of IPs.
//
// +kubebuilder:object:root=true
type IPList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []IP `json:"items"`
}
