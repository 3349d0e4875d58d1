// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ConditionDecided is true when the last decision of a PlacementPolicy follows its
// present spec and the present KPIs. Otherwise the last good decision stays.
const ConditionDecided = "Decided"

// Reasons of a PlacementPolicy's Decided condition.
const (
	ReasonDecided           = "Decided"
	ReasonNoConsumer        = "NoConsumer"
	ReasonInvalidCriteria   = "InvalidCriteria"
	ReasonFilterFailed      = "FilterFailed"
	ReasonNobodyPasses      = "NobodyPasses"
	ReasonSpreadUnsatisfied = "SpreadUnsatisfied"
	ReasonNotStored         = "NotStored"
)

// PlacementPolicy says by what criteria the broker chooses providers for the
// namespaces of consumers. A namespace follows one policy; without any, all providers are
// used.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=plp,categories={liqo,brokering}
// +kubebuilder:printcolumn:name="Scope",type=string,JSONPath=`.spec.appliesTo.scope`
// +kubebuilder:printcolumn:name="Priority",type=integer,JSONPath=`.spec.priority`
// +kubebuilder:printcolumn:name="Max",type=integer,JSONPath=`.spec.maxProviders`
// +kubebuilder:printcolumn:name="Decided",type=string,JSONPath=`.status.conditions[?(@.type == 'Decided')].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type == 'Decided')].reason`
// +kubebuilder:printcolumn:name="Consumers",type=integer,JSONPath=`.status.consumers`
// +kubebuilder:printcolumn:name="Providers",type=string,JSONPath=`.status.summary`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type PlacementPolicy struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is Kubernetes' own.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what people want.
	// +required
	Spec PlacementPolicySpec `json:"spec"`
	// status is what the broker sees and has decided.
	// +optional
	Status PlacementPolicyStatus `json:"status,omitempty"`
}

// Weight is how much a KPI counts.
// +kubebuilder:validation:Minimum=-10
// +kubebuilder:validation:Maximum=10
type Weight int32

// Filter is a CEL expression over a provider.
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=1024
type Filter string

// PlacementPolicySpec is what people demand of the providers.
//
// +kubebuilder:validation:XValidation:rule="!has(self.scaling) || !has(self.maxProviders)",message="with scaling, scaling.max is the largest number of providers, not maxProviders"
// +kubebuilder:validation:XValidation:rule="!has(self.scaling) || !has(self.scaling.groupBy) || !has(self.spread)",message="spread cannot be combined with scaling.groupBy"
type PlacementPolicySpec struct {
	// appliesTo says which namespaces follow the policy. All pods of a namespace follow the
	// same one.
	// +required
	AppliesTo AppliesTo `json:"appliesTo"`
	// priority decides between several policies of one scope that apply to a namespace: it
	// follows the one with the highest, and of equal ones the first by name.
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=-1000000
	// +kubebuilder:validation:Maximum=1000000
	// +optional
	Priority int32 `json:"priority,omitempty"`

	// filters are CEL expressions that must all hold for a provider. Its variables
	// are id and name, labels (a map of strings: those of the Provider object, and
	// those that Liqo shows of the cluster), and kpi (a map of numbers: the KPIs
	// in the Provider's status that are known, in the unit that most of the providers use
	// that pass the filters before it). An expression that asks for what is unknown does
	// not hold.
	// +kubebuilder:validation:MaxItems=16
	// +listType=atomic
	// +optional
	Filters []Filter `json:"filters,omitempty"`
	// weights tell how much the KPIs of the providers count, by name: from 1 to 10
	// if more is better, from -1 to -10 if less is better. Each KPI is normalized
	// to between the worst and the best of the providers that pass the filters; an
	// unknown one is as bad as the worst.
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(name, name.size() <= 253)",message="names of KPIs must have at most 253 characters"
	// +optional
	Weights map[string]Weight `json:"weights,omitempty"`
	// maxProviders is the largest number of providers to choose. Without it, all that
	// pass the filters are chosen.
	// +kubebuilder:validation:Minimum=1
	// +optional
	MaxProviders *int32 `json:"maxProviders,omitempty"`
	// spread are constraints that the chosen providers meet together.
	// +kubebuilder:validation:MaxItems=4
	// +listType=map
	// +listMapKey=label
	// +optional
	Spread []SpreadConstraint `json:"spread,omitempty"`
	// scaling keeps a KPI, such as the delay of users, between two thresholds
	// by using more or fewer providers. Without it, maxProviders says how many.
	// +optional
	Scaling *Scaling `json:"scaling,omitempty"`
	// steady keeps what is chosen until something better lasts.
	// +kubebuilder:default={}
	// +optional
	Steady Steadiness `json:"steady,omitempty"`
	// maxMovesPerMinute bounds how many pods the broker moves because the choice has
	// changed, of all namespaces that follow the policy.
	// +kubebuilder:default=60
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=6000
	// +optional
	MaxMovesPerMinute int32 `json:"maxMovesPerMinute,omitempty"`
	// failover says what becomes of the pods on a provider that is out of reach.
	// +kubebuilder:default={}
	// +optional
	Failover Failover `json:"failover,omitempty"`
	// moveSingletons says whether a workload of one copy leaves a provider that is
	// drained or not chosen any more: Never, or WithGap, in which nothing serves
	// until its pod runs elsewhere.
	// +kubebuilder:default=Never
	// +optional
	MoveSingletons SingletonRule `json:"moveSingletons,omitempty"`
}

// SpreadConstraint demands distinct values of a label.
type SpreadConstraint struct {
	// label is the key of a label of providers. One without it has no value.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$`
	// +required
	Label string `json:"label"`
	// minValues is how many distinct values the chosen providers have at least.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	// +required
	MinValues int32 `json:"minValues"`
}

// Steadiness says when something better is better enough.
type Steadiness struct {
	// marginPercent is how much better a provider must be than a chosen one to take
	// its place, as a part of the score of a provider that is the best in everything.
	// +kubebuilder:default=10
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	// +optional
	MarginPercent *int32 `json:"marginPercent,omitempty"`
	// duration is for how long it must be better.
	// +kubebuilder:default="5m"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s')",message="must be a duration such as 5m, and must not be negative"
	// +optional
	Duration *metav1.Duration `json:"duration,omitempty"`
}

// PlacementPolicyStatus says whether the policy decides, and how much it has decided.
type PlacementPolicyStatus struct {
	// observedGeneration is the generation of the spec that the status answers to.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// consumers is the number of consumers that the policy has decided for. What it has
	// decided is in a PlacementDecision for each.
	// +optional
	Consumers int32 `json:"consumers,omitempty"`
	// summary names some of the providers that are chosen for any consumer, and says how many
	// more there are.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Summary string `json:"summary,omitempty"`
	// conditions are Decided and Shadowed, with weights KPIsKnown, and with scaling Measured.
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// PlacementPolicyList is a list of PlacementPolicies.
//
// +kubebuilder:object:root=true
type PlacementPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []PlacementPolicy `json:"items"`
}
