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
// +kubebuilder:resource:scope=Cluster,shortName=pq,categories={liqo,brokering}
// +kubebuilder:printcolumn:name="Unit",type=string,JSONPath=`.spec.unit`
// +kubebuilder:printcolumn:name="Providers",type=integer,JSONPath=`.status.providers`
// +kubebuilder:printcolumn:name="Measured",type=string,JSONPath=`.status.conditions[?(@.type == 'Measured')].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type == 'Measured')].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ProviderQuery struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is Kubernetes' own.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what people want.
	// +required
	Spec ProviderQuerySpec `json:"spec"`
	// status is what the broker sees and has decided.
	// +optional
	Status ProviderQueryStatus `json:"status,omitempty"`
}

// ProviderQuerySpec is what Prometheus is asked.
type ProviderQuerySpec struct {
	// query is in PromQL. Its result has one value for each provider.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	// +required
	Query string `json:"query"`
	// unit is the unit of the values.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	// +required
	Unit string `json:"unit"`
	// providerLabel is the label of the result that names the provider, by cluster ID or
	// cluster name.
	// +kubebuilder:validation:Pattern=`^[a-zA-Z_][a-zA-Z0-9_]*$`
	// +kubebuilder:validation:MaxLength=128
	// +required
	ProviderLabel string `json:"providerLabel"`
	// interval is how often Prometheus is asked.
	// +kubebuilder:default="30s"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s')",message="interval must be at least 1s"
	// +optional
	Interval *metav1.Duration `json:"interval,omitempty"`
	// expiry is for how long a value counts.
	// +kubebuilder:default="5m"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('10s')",message="expiry must be at least 10s"
	// +optional
	Expiry *metav1.Duration `json:"expiry,omitempty"`
}

// ProviderQueryStatus is what became of the query.
type ProviderQueryStatus struct {
	// providers is how many providers the last usable answer had a value for.
	// +optional
	Providers int32 `json:"providers,omitempty"`
	// observedGeneration is the generation of the spec that the status answers to.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// conditions is Measured.
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
