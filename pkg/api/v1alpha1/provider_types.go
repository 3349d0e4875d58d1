// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Conditions of a Provider.
const (
	// ConditionReady is true when pods can be placed on the provider and what it
	// offers counts. A Consumer has it too: true when it is offered something.
	ConditionReady = "Ready"

	// ConditionDraining is true while pods are left on a provider that is to be drained.
	ConditionDraining = "Draining"

	// ConditionDrained is true when none is left any more. It has the reasons and the message of
	// ConditionDraining.
	ConditionDrained = "Drained"

	// ConditionReachable is false while the provider is out of reach: somebody says of its
	// virtual nodes that they are not ready, and of none that it is, or the gateway to it is
	// silent. The transition to false is when the last of them turned, which may be before the
	// broker knew it, and stays as long as the condition is false. It is unknown while there is
	// no node, or nobody reports on any: then nobody can tell.
	ConditionReachable = "Reachable"

	// ConditionObjectsRefused is true while some of what Liqo has of the provider counts
	// for nothing, because nobody can mean it or it is said of another cluster. It is
	// missing otherwise.
	ConditionObjectsRefused = "ObjectsRefused"
)

// Reasons of a Provider's Ready condition.
const (
	ReasonOffering     = "Offering"
	ReasonNotPeered    = "NotPeered"
	ReasonNoOffer      = "NoOffer"
	ReasonInvalidOffer = "InvalidOffer"
	// ReasonInvalidDeclaration: spec.capacity.declared has quantities that nobody can mean.
	ReasonInvalidDeclaration = "InvalidDeclaration"
	// ReasonNothingDeclared: the rule believes what people declare, and they declared nothing.
	ReasonNothingDeclared = "NothingDeclared"
	ReasonNodeNotReady    = "NodeNotReady"
	// ReasonNodeUnknown: the virtual kubelet does not report how the virtual node is.
	ReasonNodeUnknown = "NodeUnknown"
	// ReasonGatewaySilent: the gateway to the provider said that the tunnel is up, and does not say so any more; nor that it is not. The
	// Reachable condition has this reason too.
	ReasonGatewaySilent = "GatewaySilent"
	// ReasonWithdrawn: the cluster offers nothing any more, and pods leave it.
	ReasonWithdrawn = "Withdrawn"
	// ReasonNodeRefused: the provider's virtual node says that it is another cluster's. The
	// ObjectsRefused condition has this reason too, or ReasonInvalidOffer.
	ReasonNodeRefused = "NodeRefused"
	// ReasonClusterNameTaken: Liqo has the same unique name for the cluster as for another one. A
	// Consumer has this reason too.
	ReasonClusterNameTaken = "ClusterNameTaken"
	// ReasonPeeringEnds: one of the two clusters ends the peering, and Liqo evicts all pods.
	ReasonPeeringEnds = "PeeringEnds"
	// ReasonCordoned: nothing but that people cordoned it keeps new pods from the provider.
	ReasonCordoned = "Cordoned"
	// ReasonDraining: the provider is to be drained, and pods are left. When none is,
	// the reason is ReasonDrained.
	ReasonDraining = "Draining"
)

// StateUnknown is the state of a Provider without a Ready condition.
const StateUnknown = "Unknown"

// ProviderStates returns all states of a Provider: the reasons of its Ready condition, and
// StateUnknown.
func ProviderStates() []string {
	return []string{
		ReasonOffering, ReasonNotPeered, ReasonNoOffer, ReasonInvalidOffer, ReasonInvalidDeclaration, ReasonNothingDeclared,
		ReasonNodeNotReady, ReasonNodeUnknown, ReasonGatewaySilent, ReasonWithdrawn, ReasonNodeRefused, ReasonClusterNameTaken,
		ReasonPeeringEnds, ReasonCordoned, ReasonDraining, ReasonDrained, StateUnknown,
	}
}

// Reasons of a Provider's Draining and Drained conditions.
const (
	ReasonNotDraining = "NotDraining"
	ReasonPodsLeaving = "PodsLeaving"
	ReasonPodsHeld    = "PodsHeld"
	// ReasonDrained: no pod is left. The Ready condition has this reason too.
	ReasonDrained = "Drained"
)

// Reasons of a Provider's Reachable condition, besides ReasonNodeUnknown and ReasonGatewaySilent.
const (
	ReasonNodeReady     = "NodeReady"
	ReasonNodesNotReady = "NodesNotReady"
	// ReasonNothingOffered: a virtual node is not ready for no other reason than that the
	// cluster offers nothing; what runs there goes on.
	ReasonNothingOffered = "NothingOffered"
	ReasonNoNode         = "NoNode"
)

// Provider is a cluster that shares its resources with the broker. Its name is
// the Liqo cluster ID. The broker creates it at the first outgoing peering. It stays when
// the peering ends, for when the cluster is back; who wants it gone deletes it.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=bprov,categories={liqo,brokering}
// +kubebuilder:printcolumn:name="Cluster",type=string,JSONPath=`.status.clusterName`
// +kubebuilder:printcolumn:name="Scheduling",type=string,JSONPath=`.spec.scheduling`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type == 'Ready')].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type == 'Ready')].reason`
// +kubebuilder:printcolumn:name="Drained",type=string,JSONPath=`.status.conditions[?(@.type == 'Drained')].status`
// +kubebuilder:printcolumn:name="CPU",type=string,JSONPath=`.status.offered.cpu`
// +kubebuilder:printcolumn:name="Memory",type=string,JSONPath=`.status.offered.memory`
// +kubebuilder:printcolumn:name="Free CPU",type=string,JSONPath=`.status.free.cpu`
// +kubebuilder:printcolumn:name="Free Memory",type=string,JSONPath=`.status.free.memory`
// +kubebuilder:printcolumn:name="Rule",type=string,priority=1,JSONPath=`.spec.capacity.rule`
// +kubebuilder:printcolumn:name="Overcommit",type=integer,priority=1,JSONPath=`.spec.capacity.overcommitPercent`
// +kubebuilder:printcolumn:name="Largest CPU",type=string,priority=1,JSONPath=`.status.largestPod.cpu`
// +kubebuilder:printcolumn:name="Largest Memory",type=string,priority=1,JSONPath=`.status.largestPod.memory`
// +kubebuilder:printcolumn:name="Reachable",type=string,priority=1,JSONPath=`.status.conditions[?(@.type == 'Reachable')].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Provider struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is Kubernetes' own.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what people want.
	// +kubebuilder:default={}
	// +optional
	Spec ProviderSpec `json:"spec,omitempty"`
	// status is what the broker sees and has decided.
	// +optional
	Status ProviderStatus `json:"status,omitempty"`
}

// Scheduling is whether pods may come to a provider, and whether they may stay.
// +kubebuilder:validation:Enum=Active;Cordoned;Drained
type Scheduling string

// The values of a Provider's spec.scheduling.
const (
	// SchedulingActive lets new pods come, and those stay that are there.
	SchedulingActive Scheduling = "Active"
	// SchedulingCordoned lets no new pods come, and those stay that are there, as on a
	// node that is cordoned.
	SchedulingCordoned Scheduling = "Cordoned"
	// SchedulingDrained lets no new pods come, and moves those that are there.
	SchedulingDrained Scheduling = "Drained"
)

// EffectiveScheduling returns what people want of the provider, which is Active by default.
// What the API server would refuse is Cordoned: it adds nothing and moves nothing.
func (p *Provider) EffectiveScheduling() Scheduling {
	switch p.Spec.Scheduling {
	case "", SchedulingActive:
		return SchedulingActive
	case SchedulingDrained:
		return SchedulingDrained
	case SchedulingCordoned:
	}
	return SchedulingCordoned
}

// ProviderSpec is what people chose for a provider.
type ProviderSpec struct {
	// scheduling is whether pods may come to the provider, and whether they may stay. Active
	// lets them. Cordoned lets no new pods come, and those stay that are there: what they use
	// is offered to their consumers, and what is free to nobody. Drained moves them to other
	// providers, a few at a time, and the provider counts for nothing.
	// +kubebuilder:default=Active
	// +optional
	Scheduling Scheduling `json:"scheduling,omitempty"`
	// capacity says how much the broker offers of the provider to consumers.
	// +kubebuilder:default={}
	// +optional
	Capacity ProviderCapacity `json:"capacity,omitempty"`
	// price is what the provider costs.
	// +optional
	Price *Price `json:"price,omitempty"`
	// carbon is what the provider's electricity emits. It goes before the label
	// brokering.liqo.io/carbon-gco2e-per-kwh of the cluster.
	// +optional
	Carbon *Carbon `json:"carbon,omitempty"`
}

// CapacityRule says whom the broker believes about what a provider has.
// +kubebuilder:validation:Enum=Measured;Declared;Min
type CapacityRule string

// The rules of a ProviderCapacity.
const (
	// CapacityMeasured believes what the provider offers to the broker through Liqo.
	CapacityMeasured CapacityRule = "Measured"
	// CapacityDeclared believes the declared quantities, and takes the others for zero.
	CapacityDeclared CapacityRule = "Declared"
	// CapacityMin is the measured quantities, and no more than the declared ones.
	CapacityMin CapacityRule = "Min"
)

// Quantities are quantities of resources that people write, by the resource's name.
// +kubebuilder:validation:MaxProperties=16
// +kubebuilder:validation:XValidation:rule="self.all(name, !string(self[name]).startsWith('-'))",message="quantities must not be negative"
// +kubebuilder:validation:XValidation:rule="self.all(name, name.size() >= 1 && name.size() <= 317)",message="names of resources must have 1 to 317 characters"
type Quantities map[corev1.ResourceName]resource.Quantity

// ProviderCapacity says how much the broker offers of a provider to consumers.
type ProviderCapacity struct {
	// rule says whom to believe: Measured is what the provider offers to the broker
	// through Liqo; Declared is what is declared here, and nothing else; Min is what
	// is measured, and no more than is declared.
	// +kubebuilder:default=Measured
	// +optional
	Rule CapacityRule `json:"rule,omitempty"`
	// declared is what people say that the provider has.
	// +optional
	Declared Quantities `json:"declared,omitempty"`
	// overcommitPercent is how much the broker offers of what the provider has by the
	// rule: 100 is all of it, and 150 half as much again. What is offered and not
	// there is refused by the scheduler, and the pod waits.
	// +kubebuilder:default=100
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	// +optional
	OvercommitPercent *int32 `json:"overcommitPercent,omitempty"`
}

// Overcommit returns the percentage of what the provider has that the broker
// offers, which is all of it and no more by default.
func (c *ProviderCapacity) Overcommit() int32 {
	if c.OvercommitPercent == nil {
		return 100
	}
	return *c.OvercommitPercent
}

// ProviderStatus is what the broker sees of a provider.
type ProviderStatus struct {
	// clusterName is the provider's name for people. It need not be unique.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	ClusterName string `json:"clusterName,omitempty"`
	// measured is what the provider offers to the broker through Liqo, on virtual nodes
	// that are ready. Empty when pods cannot be placed on it, for other reasons than that it
	// is cordoned.
	// +optional
	Measured corev1.ResourceList `json:"measured,omitempty"`
	// offered is what the provider adds to the broker's sum: what it has by the rule
	// of spec.capacity, and the overcommitment. Of one that is cordoned it is what pods
	// use. Empty when it adds nothing.
	// +optional
	Offered corev1.ResourceList `json:"offered,omitempty"`
	// used is what the pods on the provider request, of whatever consumer.
	// +optional
	Used corev1.ResourceList `json:"used,omitempty"`
	// free is what is offered and not used. Empty when nothing is offered.
	// +optional
	Free corev1.ResourceList `json:"free,omitempty"`
	// largestPod is the largest pod that the scheduler can place on one virtual node of
	// the provider. How the provider's own nodes are filled the broker cannot see.
	// +optional
	LargestPod corev1.ResourceList `json:"largestPod,omitempty"`
	// kpis are what the broker measures of the provider, by name.
	// +kubebuilder:validation:MaxItems=64
	// +listType=map
	// +listMapKey=name
	// +optional
	KPIs []KPI `json:"kpis,omitempty"`
	// queriedKPIs are the values that a Prometheus has, by the names of the ProviderQueries.
	// +kubebuilder:validation:MaxItems=1024
	// +listType=map
	// +listMapKey=name
	// +optional
	QueriedKPIs []KPI `json:"queriedKPIs,omitempty"`

	// held are pods that stay although the provider is to be drained, by namespace and name:
	// the first 64.
	// +kubebuilder:validation:MaxItems=64
	// +listType=map
	// +listMapKey=namespace
	// +listMapKey=pod
	// +optional
	Held []HeldPod `json:"held,omitempty"`

	// observedGeneration is the generation of the spec that the status answers to.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// conditions are Ready, Reachable, Draining and Drained, and at times ObjectsRefused.
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// MaxHeld is how many pods Held has at most.
const MaxHeld = 64

// HeldPod is a pod that stays for the moment on a provider that is to be drained.
type HeldPod struct {
	// namespace is where the pod is on the broker.
	// +kubebuilder:validation:MaxLength=63
	// +required
	Namespace string `json:"namespace"`
	// pod is its name.
	// +kubebuilder:validation:MaxLength=253
	// +required
	Pod string `json:"pod"`
	// reason says why it stays.
	// +kubebuilder:validation:MaxLength=256
	// +required
	Reason string `json:"reason"`
}

// String says of a pod that it stays, and why.
func (h HeldPod) String() string { return h.Namespace + "/" + h.Pod + " stays: " + h.Reason }

// MayHavePods reports whether pods can be on the provider: it is not to be drained, or not known
// to be empty since.
func (p *Provider) MayHavePods() bool {
	draining := meta.FindStatusCondition(p.Status.Conditions, ConditionDraining)
	drained := draining != nil && draining.Reason == ReasonDrained && draining.ObservedGeneration == p.Generation
	return p.EffectiveScheduling() != SchedulingDrained || !drained
}

// UnreachableSince returns since when the provider is out of reach, in whole seconds; nil if
// it is not, or nobody can tell.
func (p *Provider) UnreachableSince() *metav1.Time {
	reachable := meta.FindStatusCondition(p.Status.Conditions, ConditionReachable)
	if reachable == nil || reachable.Status != metav1.ConditionFalse {
		return nil
	}
	return &reachable.LastTransitionTime
}

// GatewayIsSilent reports whether the provider is out of reach though its virtual nodes are said to be ready.
func (p *Provider) GatewayIsSilent() bool {
	reachable := meta.FindStatusCondition(p.Status.Conditions, ConditionReachable)
	return reachable != nil && reachable.Status == metav1.ConditionFalse && reachable.Reason == ReasonGatewaySilent
}

// ProviderList is a list of Providers.
//
// +kubebuilder:object:root=true
type ProviderList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Provider `json:"items"`
}
