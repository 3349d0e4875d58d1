// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Number is a decimal number, written as a text because JSON's numbers lose digits. Large and
// small ones have an exponent of ten, such as 2.5e+20.
// +kubebuilder:validation:MaxLength=32
// +kubebuilder:validation:Pattern=`^-?[0-9]{1,21}(\.[0-9]{1,21})?(e[+-][0-9]{1,3})?$`
type Number string

// Period is for how long a price is: a duration of ISO 8601 of one unit, such as P1D or PT1H, or of Go, such as 24h. A month has 730 hours,
// and a year 8760.
// +kubebuilder:validation:MaxLength=64
// +kubebuilder:validation:Pattern=`^(P([1-9][0-9]?Y|[1-9][0-9]{0,2}M|[1-9][0-9]{0,3}[WD]|T[1-9][0-9]{0,3}[HMS])|\+?([0-9]{1,9}(\.[0-9]{1,9})?(ns|us|µs|ms|s|m|h)){1,6})$`
// +kubebuilder:validation:XValidation:rule="self.startsWith('P') || duration(self) > duration('0s')",message="must be a positive duration such as 1h or P1D"
type Period string

// Price is what a provider costs. Amounts that are missing are those that the
// provider offers, in this currency and for this period.
type Price struct {
	// currency is the three letters of the currency (ISO 4217).
	// +kubebuilder:validation:Pattern=`^[A-Z]{3}$`
	// +kubebuilder:validation:MaxLength=3
	// +required
	Currency string `json:"currency"`
	// period is the time that the amounts are for, such as 24h or P1D.
	// +kubebuilder:default="1h"
	// +optional
	Period Period `json:"period,omitempty"`
	// cpu is the price of one core.
	// +optional
	CPU *resource.Quantity `json:"cpu,omitempty"`
	// memory is the price of one GiB.
	// +optional
	Memory *resource.Quantity `json:"memory,omitempty"`
}

// Carbon is what the electricity of a provider emits.
type Carbon struct {
	// intensity is how much, in the unit. More than 10,000 is not believed.
	// +kubebuilder:validation:XValidation:rule="!string(self).startsWith('-')",message="must not be negative"
	// +required
	Intensity resource.Quantity `json:"intensity"`
	// unit is grams of carbon dioxide, or what warms as much, for a kilowatt-hour.
	// +kubebuilder:validation:Enum="gCO2e/kWh"
	// +required
	Unit string `json:"unit"`
	// measuredTime is when it was measured; without it, it is true at any time.
	// +kubebuilder:validation:XValidation:rule="timestamp(self) > timestamp('1970-01-01T00:00:00Z')",message="must be a time such as 2024-01-31T12:00:00Z"
	// +optional
	MeasuredTime *metav1.Time `json:"measuredTime,omitempty"`
	// expirationTime is when it no longer counts; without it, it does not expire.
	// +kubebuilder:validation:XValidation:rule="timestamp(self) > timestamp('1970-01-01T00:00:00Z')",message="must be a time such as 2024-01-31T12:00:00Z"
	// +optional
	ExpirationTime *metav1.Time `json:"expirationTime,omitempty"`
}

// KPI is one measured value of a provider.
type KPI struct {
	// name is what policies call it.
	// +kubebuilder:validation:MaxLength=253
	// +required
	Name     string `json:"name"`
	KPIValue `json:",inline"`
}

// KPIValue is a number with its unit, and when it counts.
type KPIValue struct {
	// value is in the unit.
	// +required
	Value Number `json:"value"`
	// unit is that of the value: only values of one unit are compared with each other.
	// +kubebuilder:validation:MaxLength=32
	// +required
	Unit string `json:"unit"`
	// measuredTime is when it was measured, by the broker's clock where others told it.
	// +required
	MeasuredTime metav1.Time `json:"measuredTime"`
	// expirationTime is when it no longer counts.
	// +required
	ExpirationTime metav1.Time `json:"expirationTime"`
}

// RoundTrip is how far a provider is from a consumer, as the consumer told.
type RoundTrip struct {
	// provider is the cluster ID of the provider.
	// +kubebuilder:validation:MaxLength=253
	// +required
	Provider string `json:"provider"`
	KPIValue `json:",inline"`
}

// ProviderHistory is what the broker has seen of a provider's availability and of the pods
// there, as it remembers it. It has the name of the Provider, and is not meant for people: they
// read the KPIs that the broker makes of it.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ProviderHistory struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is Kubernetes' own.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// history is a text of the broker's own. One that it cannot read begins again.
	// +kubebuilder:validation:MaxLength=262144
	// +optional
	History string `json:"history,omitempty"`
}

// ProviderHistoryList is a list of ProviderHistories.
//
// +kubebuilder:object:root=true
type ProviderHistoryList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ProviderHistory `json:"items"`
}
