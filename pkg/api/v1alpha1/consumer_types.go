// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
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

// ConsumerScheduling is whether a consumer gets anything new.
// +kubebuilder:validation:Enum=Active;Suspended
type ConsumerScheduling string

// The values of a Consumer's spec.scheduling.
const (
	// ConsumerActive is offered what there is for it.
	ConsumerActive ConsumerScheduling = "Active"
	// ConsumerSuspended keeps what it uses, and gets nothing new: it is offered no more than
	// it uses, nothing is reserved for it, and its new pods wait.
	ConsumerSuspended ConsumerScheduling = "Suspended"
)

// ConsumerViews is whether a consumer has to tell that it can reach providers.
// +kubebuilder:validation:Enum=Acknowledged;Unchecked
type ConsumerViews string

// The values of a Consumer's spec.views.
const (
	// ViewsAcknowledged has nothing granted until the agent of the consumer has told that it
	// reaches the pods of a provider.
	ViewsAcknowledged ConsumerViews = "Acknowledged"
	// ViewsUnchecked grants without asking.
	ViewsUnchecked ConsumerViews = "Unchecked"
)

// Reasons of a Consumer's Ready condition, besides ReasonOffering, ReasonNotPeered,
// ReasonPeeringEnds and ReasonClusterNameTaken.
const (
	// ReasonPeeringPending: the peering is being established, or has another virtual node.
	ReasonPeeringPending = "PeeringPending"
	ReasonNoProvider     = "NoProvider"
	ReasonModeNotServed  = "ModeNotServed"
	// ReasonSuspended: people suspended the consumer.
	ReasonSuspended = "Suspended"
	// ReasonProvidersHidden: the cluster is to have a node for each provider, and its
	// mode hides the providers.
	ReasonProvidersHidden = "ProvidersHidden"
)

// ConditionReservationMet is true while a Consumer can use all that is reserved for it.
const ConditionReservationMet = "ReservationMet"

// Reasons of a Consumer's ReservationMet condition.
const (
	ReasonNothingReserved    = "NothingReserved"
	ReasonReserved           = "Reserved"
	ReasonTooLittleFree      = "TooLittleFree"
	ReasonReservedAboveLimit = "ReservedAboveLimit"
	// ReasonInvalidCapacity: spec.capacity has what cannot be read, which counts as zero.
	ReasonInvalidCapacity = "InvalidCapacity"
)

// ConditionAgentReporting is true while the agent of a Consumer tells, with Liqo 1.x, that it
// reaches the providers, and false when it has not told so for a minute. It is unknown of an
// agent that need not tell. With Liqo 0.9 there is no such condition.
const ConditionAgentReporting = "AgentReporting"

// Reasons of a Consumer's AgentReporting condition, besides ReasonNotPeered.
const (
	ReasonReporting = "Reporting"
	// ReasonNotAsked: spec.views is Unchecked.
	ReasonNotAsked = "NotAsked"
	// ReasonAgentMissing: nothing was ever heard of an agent.
	ReasonAgentMissing = "AgentMissing"
	// ReasonSilent: what the agent told last is too old to count, or its clock is wrong.
	ReasonSilent = "Silent"
	// ReasonUnreadable: some of what it tells cannot be read.
	ReasonUnreadable = "Unreadable"
	// ReasonViewsUnknown: it has not acknowledged all networks of providers that it was told.
	ReasonViewsUnknown = "ViewsUnknown"
)

// Consumer is a cluster that uses the broker. Its name is the Liqo cluster ID.
// The broker creates it at the first incoming peering. It stays when the peering ends,
// for when the cluster is back; who wants it gone deletes it.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=bcons,categories={liqo,brokering}
// +kubebuilder:printcolumn:name="Cluster",type=string,JSONPath=`.status.clusterName`
// +kubebuilder:printcolumn:name="Mode",type=string,JSONPath=`.status.mode`
// +kubebuilder:printcolumn:name="Scheduling",type=string,JSONPath=`.spec.scheduling`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type == 'Ready')].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type == 'Ready')].reason`
// +kubebuilder:printcolumn:name="CPU",type=string,JSONPath=`.status.offered.cpu`
// +kubebuilder:printcolumn:name="Memory",type=string,JSONPath=`.status.offered.memory`
// +kubebuilder:printcolumn:name="Used CPU",type=string,JSONPath=`.status.used.cpu`
// +kubebuilder:printcolumn:name="Used Memory",type=string,JSONPath=`.status.used.memory`
// +kubebuilder:printcolumn:name="Nodes",type=string,priority=1,JSONPath=`.status.nodes`
// +kubebuilder:printcolumn:name="Reserved CPU",type=string,priority=1,JSONPath=`.spec.capacity.reserved.cpu`
// +kubebuilder:printcolumn:name="Limit CPU",type=string,priority=1,JSONPath=`.spec.capacity.limit.cpu`
// +kubebuilder:printcolumn:name="Share",type=integer,priority=1,JSONPath=`.spec.capacity.sharePercent`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Consumer struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is Kubernetes' own.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what people want.
	// +kubebuilder:default={}
	// +optional
	Spec ConsumerSpec `json:"spec,omitempty"`
	// status is what the broker sees and has decided.
	// +optional
	Status ConsumerStatus `json:"status,omitempty"`
}

// ConsumerSpec is what people chose for a consumer.
type ConsumerSpec struct {
	// mode is how the broker serves the consumer. Without it the broker takes the first
	// that it runs of Orchestrated and Aggregated. A consumer whose mode the broker does
	// not run is not served: it keeps what it uses, and gets nothing new.
	// +optional
	Mode Mode `json:"mode,omitempty"`
	// scheduling is whether the consumer gets anything new. One that is Suspended keeps what
	// it uses: it is offered no more than that, nothing is reserved for it, and its new pods
	// wait.
	// +kubebuilder:default=Active
	// +optional
	Scheduling ConsumerScheduling `json:"scheduling,omitempty"`
	// nodes is by which virtual nodes the consumer sees the providers. PerProvider
	// needs the mode Orchestrated: in the other one, providers are not to be known.
	// +kubebuilder:default=One
	// +optional
	Nodes Nodes `json:"nodes,omitempty"`
	// views is whether the consumer's agent has to acknowledge, with Liqo 1.x, the networks of
	// providers before the consumer gets anything on them: without them it shows pods under
	// wrong addresses. Unchecked is for consumers whose people list the networks by hand. With
	// Liqo 0.9 it has no effect.
	// +kubebuilder:default=Acknowledged
	// +optional
	Views ConsumerViews `json:"views,omitempty"`
	// capacity says how much of the providers the broker offers to the consumer.
	// +kubebuilder:default={}
	// +optional
	Capacity ConsumerCapacity `json:"capacity,omitempty"`
}

// ConsumerCapacity says how much of the providers the broker offers to a consumer.
// The API server compares reserved with limit where both are plain numbers; the
// condition ReservationMet covers all others.
//
// +kubebuilder:validation:XValidation:rule="!has(self.reserved) || !has(self.limit) || self.reserved.all(name, !(name in self.limit) || type(self.reserved[name]) != int || type(self.limit[name]) != int || self.reserved[name] <= self.limit[name])",message="reserved must not exceed limit"
type ConsumerCapacity struct {
	// reserved is kept for the consumer: what it does not use of it is not offered to
	// others. It is an amount in the sum over all providers, not on one of them.
	// +optional
	Reserved Quantities `json:"reserved,omitempty"`
	// limit is the most that the consumer is offered of the resources that it names,
	// what it uses included.
	// +optional
	Limit Quantities `json:"limit,omitempty"`
	// sharePercent is the part that the consumer is offered of what is free and
	// reserved for nobody. While the shares of all consumers add up to 100 at most, the
	// broker offers nothing twice.
	// +kubebuilder:default=100
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	// +optional
	SharePercent *int32 `json:"sharePercent,omitempty"`
}

// Share returns the percentage of what is free that the consumer is offered, which
// is all of it by default.
func (c *ConsumerCapacity) Share() int32 {
	if c.SharePercent == nil {
		return 100
	}
	return *c.SharePercent
}

// ConsumerStatus is how the broker serves a consumer.
type ConsumerStatus struct {
	// clusterName is the consumer's name for people. It need not be unique.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	ClusterName string `json:"clusterName,omitempty"`
	// mode is how the broker serves the consumer, after defaulting; empty if it does not.
	// +optional
	Mode Mode `json:"mode,omitempty"`
	// nodes is by which virtual nodes the consumer sees the providers.
	// +optional
	Nodes Nodes `json:"nodes,omitempty"`
	// nodeOffers is what each of several virtual nodes is offered. A node of a provider that
	// takes no new pods has what its pods use. The node without a name is the one that
	// stands for the broker.
	// +kubebuilder:validation:MaxItems=10000
	// +listType=map
	// +listMapKey=node
	// +optional
	NodeOffers []NodeOffer `json:"nodeOffers,omitempty"`
	// offered is what the broker offers to the consumer: what the providers except the
	// consumer itself have, less what others use of it and what is reserved for others,
	// within the consumer's share and limit. What the consumer uses is part of it.
	// +optional
	Offered corev1.ResourceList `json:"offered,omitempty"`
	// used is what the consumer's pods on the providers request.
	// +optional
	Used corev1.ResourceList `json:"used,omitempty"`
	// granted is what Liqo has told the consumer last. It follows Offered.
	// +optional
	Granted corev1.ResourceList `json:"granted,omitempty"`
	// roundTrips are how far providers are from the consumer, as it told. They count in
	// the choice of providers for this consumer, as the KPI consumerRoundTripTime.
	// +kubebuilder:validation:MaxItems=10000
	// +listType=map
	// +listMapKey=provider
	// +optional
	RoundTrips []RoundTrip `json:"roundTrips,omitempty"`
	// observedGeneration is the generation of the spec that the status answers to.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// conditions are Ready, ReservationMet and AgentReporting.
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// IsSuspended reports whether the consumer gets nothing new. What the API server would refuse
// in spec.scheduling suspends it.
func (c *Consumer) IsSuspended() bool {
	return c.Spec.Scheduling != "" && c.Spec.Scheduling != ConsumerActive
}

// HasToAcknowledge reports whether the consumer's agent has to tell that it can reach providers. It is true
// for what the API server would refuse in spec.views.
func (c *Consumer) HasToAcknowledge() bool { return c.Spec.Views != ViewsUnchecked }

// IsServed reports whether the cluster has a peering with the broker at present, also one
// that begins or ends, and is known by a name of its own.
func (c *Consumer) IsServed() bool {
	ready := meta.FindStatusCondition(c.Status.Conditions, ConditionReady)
	return ready != nil && ready.Reason != ReasonNotPeered && ready.Reason != ReasonClusterNameTaken
}

// ConsumerList is a list of Consumers.
//
// +kubebuilder:object:root=true
type ConsumerList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Consumer `json:"items"`
}
