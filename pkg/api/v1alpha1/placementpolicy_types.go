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
	ReasonTooLarge          = "TooLarge"
)

// PlacementPolicy says by what criteria the broker chooses providers for the
// namespaces of consumers. A namespace follows one policy; without any, all providers are
// used.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,categories=liqo
// +kubebuilder:printcolumn:name="Scope",type=string,JSONPath=`.spec.appliesTo.scope`
// +kubebuilder:printcolumn:name="Priority",type=integer,JSONPath=`.spec.priority`
// +kubebuilder:printcolumn:name="Max",type=integer,JSONPath=`.spec.maxProviders`
// +kubebuilder:printcolumn:name="Decided",type=string,JSONPath=`.status.conditions[?(@.type == 'Decided')].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type == 'Decided')].reason`
// +kubebuilder:printcolumn:name="Providers",type=string,JSONPath=`.status.decisions[*].chosen[*].name`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type PlacementPolicy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   PlacementPolicySpec   `json:"spec"`
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
	// AppliesTo says which namespaces follow the policy. All pods of a namespace follow the
	// same one.
	AppliesTo AppliesTo `json:"appliesTo"`
	// Priority decides between several policies of one scope that apply to a namespace: it
	// follows the one with the highest, and of equal ones the first by name.
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=-1000000
	// +kubebuilder:validation:Maximum=1000000
	// +optional
	Priority int32 `json:"priority,omitempty"`

	// Filters are CEL expressions that must all hold for a provider. Its variables
	// are id and name, labels (a map of strings: those of the Provider object, and
	// those that Liqo shows of the cluster), and kpi (a map of numbers: the KPIs
	// in the Provider's status that are known, in the unit that most of the providers use
	// that pass the filters before it). An expression that asks for what is unknown does
	// not hold.
	// +kubebuilder:validation:MaxItems=16
	// +listType=atomic
	// +optional
	Filters []Filter `json:"filters,omitempty"`
	// Weights tell how much the KPIs of the providers count, by name: from 1 to 10
	// if more is better, from -1 to -10 if less is better. Each KPI is normalized
	// to between the worst and the best of the providers that pass the filters; an
	// unknown one is as bad as the worst.
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(name, name.size() <= 253)",message="the name of a KPI has at most 253 characters"
	// +optional
	Weights map[string]Weight `json:"weights,omitempty"`
	// MaxProviders is the largest number of providers to choose. Without it, all that
	// pass the filters are chosen.
	// +kubebuilder:validation:Minimum=1
	// +optional
	MaxProviders *int32 `json:"maxProviders,omitempty"`
	// Spread are constraints that the chosen providers meet together.
	// +kubebuilder:validation:MaxItems=4
	// +listType=map
	// +listMapKey=label
	// +optional
	Spread []SpreadConstraint `json:"spread,omitempty"`
	// Scaling keeps a KPI, such as the delay of users, between two thresholds
	// by using more or fewer providers. Without it, maxProviders says how many.
	// +optional
	Scaling *Scaling `json:"scaling,omitempty"`
	// Steady keeps what is chosen until something better lasts.
	// +kubebuilder:default={}
	// +optional
	Steady Steadiness `json:"steady,omitempty"`
	// MaxMovesPerMinute bounds how many pods the broker moves because the choice has
	// changed, of all namespaces that follow the policy.
	// +kubebuilder:default=60
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=6000
	// +optional
	MaxMovesPerMinute int32 `json:"maxMovesPerMinute,omitempty"`
	// Failover says what becomes of the pods on a provider that is out of reach.
	// +kubebuilder:default={}
	// +optional
	Failover Failover `json:"failover,omitempty"`
	// MoveSingletons says whether a workload of one copy leaves a provider that is
	// drained or not chosen any more: Never, or WithGap, in which nothing serves
	// until its pod runs elsewhere.
	// +kubebuilder:default=Never
	// +optional
	MoveSingletons SingletonRule `json:"moveSingletons,omitempty"`
}

// SpreadConstraint demands distinct values of a label.
type SpreadConstraint struct {
	// Label is the key of a label of providers. One without it has no value.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$`
	Label string `json:"label"`
	// MinValues is how many distinct values the chosen providers have at least.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	MinValues int32 `json:"minValues"`
}

// Steadiness says when something better is better enough.
type Steadiness struct {
	// MarginPercent is how much better a provider must be than a chosen one to take
	// its place, as a part of the score of a provider that is the best in everything.
	// +kubebuilder:default=10
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	// +optional
	MarginPercent *int32 `json:"marginPercent,omitempty"`
	// Duration is for how long it must be better.
	// +kubebuilder:default="5m"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s')",message="must be a duration such as 5m, and must not be negative"
	// +optional
	Duration *metav1.Duration `json:"duration,omitempty"`
}

// PlacementPolicyStatus is what was decided, and why.
type PlacementPolicyStatus struct {
	// ObservedGeneration is the generation of the spec that the status answers to.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Decisions are the last good ones; consumers for which the same was decided share one.
	// +kubebuilder:validation:MaxItems=10000
	// +listType=atomic
	// +optional
	Decisions []PlacementDecision `json:"decisions,omitempty"`
	// Explanations say why, for a few consumers.
	// +kubebuilder:validation:MaxItems=64
	// +listType=atomic
	// +optional
	Explanations []Explanation `json:"explanations,omitempty"`
	// Conditions are Decided and Shadowed, with weights KPIsKnown, and with scaling Measured.
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// PlacementDecision is what was decided for some consumers.
type PlacementDecision struct {
	// Consumers are those for which it was decided, each once in all decisions.
	// +kubebuilder:validation:MaxItems=10000
	// +listType=atomic
	Consumers []DecidedConsumer `json:"consumers"`
	// Chosen are the providers on which the pods of the consumers are placed. A consumer
	// that is one of them is chosen for the others, and never for itself.
	// +kubebuilder:validation:MaxItems=10000
	// +listType=atomic
	// +optional
	Chosen []ChosenProvider `json:"chosen,omitempty"`
	// Better are providers that are better by the margin of steady than a chosen one, and
	// take its place when that has lasted.
	// +kubebuilder:validation:MaxItems=16
	// +listType=atomic
	// +optional
	Better []BetterProvider `json:"better,omitempty"`
}

// DecidedConsumer is a consumer for which was decided.
type DecidedConsumer struct {
	// ID is its cluster ID.
	// +kubebuilder:validation:MaxLength=253
	ID string `json:"id"`
	// Name is its name for people.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Name string `json:"name,omitempty"`
	// Scaling is where the KPI of spec.scaling stands.
	// +optional
	Scaling *ScalingStatus `json:"scaling,omitempty"`
}

// Explanation says why it was decided so for a consumer.
type Explanation struct {
	// Consumer is the cluster ID of the consumer.
	// +kubebuilder:validation:MaxLength=253
	Consumer string `json:"consumer"`
	// Providers are the ones that come first, and some that do not come into question.
	// +kubebuilder:validation:MaxItems=64
	// +listType=atomic
	// +optional
	Providers []ExplainedProvider `json:"providers,omitempty"`
	// NotExplained is the number of further providers.
	// +optional
	NotExplained int32 `json:"notExplained,omitempty"`
}

// ChosenProvider is a provider that was chosen.
type ChosenProvider struct {
	// ID is its cluster ID.
	// +kubebuilder:validation:MaxLength=253
	ID string `json:"id"`
	// Name is its name for people.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Name string `json:"name,omitempty"`
	// AwaySinceTime is since when it cannot be used. It keeps its place for the duration
	// of steady, and has a substitute.
	// +optional
	AwaySinceTime *metav1.Time `json:"awaySinceTime,omitempty"`
	// Substitute is true while the provider stands in for one that cannot be used, and goes
	// when that is back.
	// +optional
	Substitute bool `json:"substitute,omitempty"`
	// Barred is true while the policy cannot decide and may exclude the provider: what
	// runs there stays, and no new pod goes there.
	// +optional
	Barred bool `json:"barred,omitempty"`
}

// BetterProvider is a provider that is better than a chosen one.
type BetterProvider struct {
	// ID is its cluster ID.
	// +kubebuilder:validation:MaxLength=253
	ID string `json:"id"`
	// SinceTime is since when.
	SinceTime metav1.Time `json:"sinceTime"`
}

// ExplainedProvider says what became of a provider.
type ExplainedProvider struct {
	// ID is its cluster ID.
	// +kubebuilder:validation:MaxLength=253
	ID string `json:"id"`
	// Name is its name for people.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Name string `json:"name,omitempty"`
	// Chosen tells whether it was chosen.
	Chosen bool `json:"chosen"`
	// Excluded is why it does not come into question.
	// +kubebuilder:validation:MaxLength=2048
	// +optional
	Excluded string `json:"excluded,omitempty"`
	// Score is how good it is; 100 is the best in everything.
	// +optional
	Score Number `json:"score,omitempty"`
	// Terms are what the score is made of.
	// +kubebuilder:validation:MaxItems=64
	// +listType=map
	// +listMapKey=kpi
	// +optional
	Terms []ExplainedTerm `json:"terms,omitempty"`
}

// ExplainedTerm is what one KPI adds to a score.
type ExplainedTerm struct {
	// KPI is the name of the KPI.
	// +kubebuilder:validation:MaxLength=253
	KPI string `json:"kpi"`
	// Value is its value, in the unit.
	// +optional
	Value Number `json:"value,omitempty"`
	// Unit is that of the value.
	// +kubebuilder:validation:MaxLength=32
	// +optional
	Unit string `json:"unit,omitempty"`
	// Unknown is why the provider has no value that counts.
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Unknown string `json:"unknown,omitempty"`
	// Normalized is 1 for the best and 0 for the worst.
	Normalized Number `json:"normalized"`
	// Weight is how much it counts.
	Weight int32 `json:"weight"`
}

// PlacementPolicyList is a list of PlacementPolicies.
//
// +kubebuilder:object:root=true
type PlacementPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []PlacementPolicy `json:"items"`
}
