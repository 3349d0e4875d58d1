// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Conditions of a Provider.
const (
	// ConditionReady is true when pods can be placed on the provider and what it
	// offers counts. A Consumer has it too: true when it is offered something.
	ConditionReady = "Ready"

	// ConditionDraining is true while pods leave a provider that is turned off.
	ConditionDraining = "Draining"
)

// Reasons of a Provider's Ready condition.
const (
	ReasonOffering     = "Offering"
	ReasonDisabled     = "Disabled"
	ReasonNotPeered    = "NotPeered"
	ReasonNoOffer      = "NoOffer"
	ReasonInvalidOffer = "InvalidOffer"
	ReasonNodeNotReady = "NodeNotReady"
)

// Reasons of a Provider's Draining condition.
const (
	ReasonEnabled     = "Enabled"
	ReasonPodsLeaving = "PodsLeaving"
	ReasonPodsHeld    = "PodsHeld"
	ReasonDrained     = "Drained"
)

// Provider is a cluster that shares its resources with the broker. Its name is
// the Liqo cluster ID. The broker creates it at the first outgoing peering and
// Kubernetes removes it together with its ForeignCluster.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,categories=liqo
// +kubebuilder:printcolumn:name="Cluster",type=string,JSONPath=`.status.clusterName`
// +kubebuilder:printcolumn:name="Enabled",type=boolean,JSONPath=`.spec.enabled`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type == 'Ready')].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type == 'Ready')].reason`
// +kubebuilder:printcolumn:name="Draining",type=string,JSONPath=`.status.conditions[?(@.type == 'Draining')].status`
// +kubebuilder:printcolumn:name="CPU",type=string,JSONPath=`.status.offered.cpu`
// +kubebuilder:printcolumn:name="Memory",type=string,JSONPath=`.status.offered.memory`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Provider struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +kubebuilder:default={}
	Spec   ProviderSpec   `json:"spec,omitempty"`
	Status ProviderStatus `json:"status,omitempty"`
}

// IsEnabled tells whether the provider is turned on, which is the default.
func (p *Provider) IsEnabled() bool { return p.Spec.Enabled == nil || *p.Spec.Enabled }

// ProviderSpec is what people chose for a provider.
type ProviderSpec struct {
	// Enabled tells whether workloads may be placed on the provider. Turning it
	// off moves the workloads that run there to other providers, a few at a time.
	// +kubebuilder:default=true
	// +optional
	Enabled *bool `json:"enabled,omitempty"`
}

// ProviderStatus is what the broker sees of a provider.
type ProviderStatus struct {
	// ClusterName is the provider's name for people. It need not be unique.
	// +optional
	ClusterName string `json:"clusterName,omitempty"`
	// Offered is what the provider adds to the broker's sum. Empty when it adds nothing.
	// +optional
	Offered corev1.ResourceList `json:"offered,omitempty"`
	// ObservedGeneration is the generation of the spec that the status answers to.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Conditions are Ready and Draining.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ProviderList is a list of Providers.
//
// +kubebuilder:object:root=true
type ProviderList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Provider `json:"items"`
}
