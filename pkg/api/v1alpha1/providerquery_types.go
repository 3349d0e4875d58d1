// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ProviderQuery is a query to Prometheus whose results are a KPI of providers. The
// name of the KPI is that of the object. The values are in the status of the
// Providers.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,categories=liqo
// +kubebuilder:printcolumn:name="Unit",type=string,JSONPath=`.spec.unit`
// +kubebuilder:printcolumn:name="Providers",type=integer,JSONPath=`.status.providers`
// +kubebuilder:printcolumn:name="Measured",type=string,JSONPath=`.status.conditions[?(@.type == 'Measured')].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type == 'Measured')].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ProviderQuery struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ProviderQuerySpec   `json:"spec"`
	Status ProviderQueryStatus `json:"status,omitempty"`
}

// ProviderQuerySpec is what Prometheus is asked.
type ProviderQuerySpec struct {
	// Query is in PromQL. Its result has one value for each provider.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	Query string `json:"query"`
	// Unit is the unit of the values.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	Unit string `json:"unit"`
	// ProviderLabel is the label of the result that names the provider, by cluster ID or
	// cluster name.
	// +kubebuilder:validation:Pattern=`^[a-zA-Z_][a-zA-Z0-9_]*$`
	// +kubebuilder:validation:MaxLength=128
	ProviderLabel string `json:"providerLabel"`
	// Interval is how often Prometheus is asked.
	// +kubebuilder:default="30s"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s')",message="the interval must be 1s at least"
	// +optional
	Interval *metav1.Duration `json:"interval,omitempty"`
	// Expiry is for how long a value counts.
	// +kubebuilder:default="5m"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('10s')",message="a value must count for 10s at least"
	// +optional
	Expiry *metav1.Duration `json:"expiry,omitempty"`
}

// ProviderQueryStatus is what became of the query.
type ProviderQueryStatus struct {
	// Providers is how many providers the last usable answer had a value for.
	// +optional
	Providers int32 `json:"providers,omitempty"`
	// ObservedGeneration is the generation of the spec that the status answers to.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Conditions is Measured.
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ProviderQueryList is a list of ProviderQueries.
//
// +kubebuilder:object:root=true
type ProviderQueryList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ProviderQuery `json:"items"`
}
