// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ConditionMeasured is true when what a Prometheus is asked for is known: the KPI
// that a PlacementPolicy keeps, for all consumers, or that of a ProviderQuery, for at
// least one provider. While it is false nothing changes because of the KPI.
const ConditionMeasured = "Measured"

// Reasons of the Measured condition.
const (
	ReasonMeasured = "Measured"
	// ReasonNoPrometheus: the broker was not told of one.
	ReasonNoPrometheus = "NoPrometheus"
	// ReasonPrometheusUnavailable: it cannot be reached, or cannot answer in time.
	ReasonPrometheusUnavailable = "PrometheusUnavailable"
	// ReasonQueryRefused: the query is wrong, or the broker may not ask.
	ReasonQueryRefused = "QueryRefused"
	// ReasonUnusableAnswer: it is too long, incomplete, or not the values of one moment.
	ReasonUnusableAnswer = "UnusableAnswer"
	// ReasonNoData: the answer has no value.
	ReasonNoData = "NoData"
	// ReasonNotANumber: the value is NaN or infinite.
	ReasonNotANumber = "NotANumber"
	// ReasonAmbiguous: the answer has several values for one consumer or provider.
	ReasonAmbiguous = "Ambiguous"
	// ReasonStale: the value was measured too long ago, or in the future.
	ReasonStale = "Stale"
	// ReasonNameTaken: the broker has a KPI of the same name.
	ReasonNameTaken = "NameTaken"
)

// Reasons of the events about spec.scaling.
const (
	ReasonScaledUp   = "ScaledUp"
	ReasonScaledDown = "ScaledDown"
)

// Scaling keeps a KPI between two thresholds, by using more or fewer providers. The more
// are used, the lower the KPI is expected to be.
//
// +kubebuilder:validation:XValidation:rule="double(self.unoffloadBelow) < double(self.offloadAbove)",message="unoffloadBelow must be less than offloadAbove"
// +kubebuilder:validation:XValidation:rule="!has(self.max) || self.min <= self.max",message="min must not exceed max"
type Scaling struct {
	// query is what the Prometheus of the broker is asked, in PromQL: one number, or one
	// for each value of consumerLabel.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	// +required
	Query string `json:"query"`
	// unit is the unit of the KPI and of the thresholds.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	// +required
	Unit string `json:"unit"`
	// consumerLabel is the label of the result that names the consumer, by cluster ID or
	// cluster name. Without it, the KPI is the same for all consumers.
	// +kubebuilder:validation:Pattern=`^[a-zA-Z_][a-zA-Z0-9_]*$`
	// +kubebuilder:validation:MaxLength=128
	// +optional
	ConsumerLabel string `json:"consumerLabel,omitempty"`
	// expiry is for how long a measured value counts.
	// +kubebuilder:default="1m"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('10s')",message="expiry must be at least 10s"
	// +optional
	Expiry *metav1.Duration `json:"expiry,omitempty"`
	// offloadAbove is the offload threshold: if the KPI is above it for the window,
	// one provider more is used, the next best.
	// +required
	OffloadAbove Number `json:"offloadAbove"`
	// unoffloadBelow is the un-offload threshold: if the KPI is below it for the
	// window, one provider less is used.
	// +required
	UnoffloadBelow Number `json:"unoffloadBelow"`
	// window is for how long the KPI must be outside before something changes, and
	// the shortest time between two changes.
	// +kubebuilder:default="2m"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('10s')",message="window must be at least 10s"
	// +optional
	Window *metav1.Duration `json:"window,omitempty"`
	// groupBy is a label of providers whose values are used instead of single providers, such
	// as topology.kubernetes.io/zone: a step is then all providers of a zone. Providers
	// without the label are not used.
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$`
	// +optional
	GroupBy string `json:"groupBy,omitempty"`
	// min is the smallest number of providers, or values of the label, to use.
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +optional
	Min int32 `json:"min,omitempty"`
	// max is the largest number of providers, or values of the label, to use.
	// +kubebuilder:validation:Minimum=1
	// +optional
	Max *int32 `json:"max,omitempty"`
}

// ScalingDirection is whether more or fewer providers are about to be used.
// +kubebuilder:validation:Enum=Up;Down
type ScalingDirection string

// The directions of scaling.
const (
	ScalingUp   ScalingDirection = "Up"
	ScalingDown ScalingDirection = "Down"
)

// ScalingStatus is where the KPI of spec.scaling stands for one consumer, and how many
// providers are used because of it.
type ScalingStatus struct {
	// count is how many providers, or values of the label, are used if there are so many.
	// +kubebuilder:validation:Minimum=0
	// +required
	Count int32 `json:"count"`
	// value is the last known value, in the unit.
	// +optional
	Value Number `json:"value,omitempty"`
	// unit is that of the value.
	// +kubebuilder:validation:MaxLength=32
	// +optional
	Unit string `json:"unit,omitempty"`
	// measuredTime is when it was measured.
	// +optional
	MeasuredTime *metav1.Time `json:"measuredTime,omitempty"`
	// unknown is why there is no value at the moment, so that the count holds.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Unknown string `json:"unknown,omitempty"`
	// direction is Up or Down while the KPI is outside the thresholds, and more or fewer
	// providers could be used.
	// +optional
	Direction ScalingDirection `json:"direction,omitempty"`
	// sinceTime is since when it is outside.
	// +optional
	SinceTime *metav1.Time `json:"sinceTime,omitempty"`
	// seenTime is when a value outside was measured last.
	// +optional
	SeenTime *metav1.Time `json:"seenTime,omitempty"`
}
