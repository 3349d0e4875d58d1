// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PolicyScope is to what a PlacementPolicy applies.
// +kubebuilder:validation:Enum=Default;Consumers;Namespaces;OnRequest
type PolicyScope string

// The scopes, the widest first: a narrower one goes before a wider one.
const (
	// ScopeDefault is all namespaces of all consumers.
	ScopeDefault PolicyScope = "Default"
	// ScopeConsumers is all namespaces of the consumers in the list.
	ScopeConsumers PolicyScope = "Consumers"
	// ScopeNamespaces is some namespaces of the consumers in the list or, without a list, of all.
	ScopeNamespaces PolicyScope = "Namespaces"
	// ScopeOnRequest is the namespaces with a pod that has the label brokering.liqo.io/policy
	// with the name of the policy, of the consumers in the list or, without a list, of all.
	ScopeOnRequest PolicyScope = "OnRequest"
)

// AppliesTo says which namespaces follow a policy.
//
// +kubebuilder:validation:XValidation:rule="self.scope != 'Default' || !has(self.consumers)",message="a policy with the scope Default applies to all consumers: leave consumers out"
// +kubebuilder:validation:XValidation:rule="self.scope != 'Consumers' || has(self.consumers)",message="with the scope Consumers, name them in consumers"
// +kubebuilder:validation:XValidation:rule="(self.scope == 'Namespaces') == has(self.namespaces)",message="namespaces are given with the scope Namespaces, and only with it"
type AppliesTo struct {
	// scope is Default, Consumers, Namespaces or OnRequest. A namespace follows a policy
	// OnRequest before one of its Namespaces, that before one of its Consumers, and that
	// before a Default.
	// +required
	Scope PolicyScope `json:"scope"`
	// consumers are cluster IDs.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	// +listType=set
	// +optional
	Consumers []string `json:"consumers,omitempty"`
	// namespaces are those of the scope Namespaces.
	// +optional
	Namespaces *NamespaceBinding `json:"namespaces,omitempty"`
}

// NamespaceBinding names namespaces of consumers. A namespace is meant that has one of
// the names, if there are any, and that the selector matches, if there is one.
//
// +kubebuilder:validation:XValidation:rule="has(self.names) || has(self.selector)",message="give names or a selector"
type NamespaceBinding struct {
	// names are what the consumers themselves call the namespaces.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +listType=set
	// +optional
	Names []string `json:"names,omitempty"`
	// selector is over the labels that the namespaces have on the broker. Those that they
	// have on the consumer do not cross.
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
}

// Conditions of a PlacementPolicy about other policies and about KPIs.
const (
	// ConditionShadowed is true while another policy of the same scope goes before this one for
	// some of what both apply to.
	ConditionShadowed = "Shadowed"
	// ConditionKPIsKnown is false while a weight is for a KPI that no provider has, which counts
	// as the worst for all. It is missing without weights.
	ConditionKPIsKnown = "KPIsKnown"
)

// Reasons of the conditions Shadowed and KPIsKnown.
const (
	ReasonNotShadowed = "NotShadowed"
	ReasonOtherPolicy = "OtherPolicy"
	ReasonKPIsKnown   = "KPIsKnown"
	ReasonUnknownKPI  = "UnknownKPI"
)
