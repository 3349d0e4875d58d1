// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Mode is how the broker serves a consumer.
// +kubebuilder:validation:Enum=Orchestrated;Aggregated
type Mode string

// The modes of a Consumer.
const (
	// ModeOrchestrated shows the consumer which provider runs what, and lets it
	// talk directly to the providers that it is peered with.
	ModeOrchestrated Mode = "Orchestrated"
	// ModeAggregated hides the providers: all traffic passes the broker.
	ModeAggregated Mode = "Aggregated"
)

// Reasons of a Consumer's Ready condition, besides ReasonOffering and ReasonNotPeered.
const (
	ReasonNoProvider    = "NoProvider"
	ReasonModeNotServed = "ModeNotServed"
)

// Consumer is a cluster that uses the broker. Its name is the Liqo cluster ID.
// The broker creates it at the first incoming peering and Kubernetes removes it
// together with its ForeignCluster.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,categories=liqo
// +kubebuilder:printcolumn:name="Cluster",type=string,JSONPath=`.status.clusterName`
// +kubebuilder:printcolumn:name="Mode",type=string,JSONPath=`.status.mode`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type == 'Ready')].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type == 'Ready')].reason`
// +kubebuilder:printcolumn:name="CPU",type=string,JSONPath=`.status.offered.cpu`
// +kubebuilder:printcolumn:name="Memory",type=string,JSONPath=`.status.offered.memory`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Consumer struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +kubebuilder:default={}
	Spec   ConsumerSpec   `json:"spec,omitempty"`
	Status ConsumerStatus `json:"status,omitempty"`
}

// ConsumerSpec is what people chose for a consumer.
type ConsumerSpec struct {
	// Mode is how the broker serves the consumer. Without it, and when the broker
	// does not run the mode, the broker takes the first that it runs of
	// Orchestrated and Aggregated.
	// +optional
	Mode Mode `json:"mode,omitempty"`
}

// ConsumerStatus is how the broker serves a consumer.
type ConsumerStatus struct {
	// ClusterName is the consumer's name for people. It need not be unique.
	// +optional
	ClusterName string `json:"clusterName,omitempty"`
	// Mode is how the broker serves the consumer, after defaulting.
	// +optional
	Mode Mode `json:"mode,omitempty"`
	// Offered is what the broker offers to the consumer: the sum over the providers
	// except the consumer itself.
	// +optional
	Offered corev1.ResourceList `json:"offered,omitempty"`
	// ObservedGeneration is the generation of the spec that the status answers to.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Conditions is Ready.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ConsumerList is a list of Consumers.
//
// +kubebuilder:object:root=true
type ConsumerList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Consumer `json:"items"`
}
