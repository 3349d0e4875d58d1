// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package connectorv1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
)

// Reasons of the condition Ready of Purchases, besides those that follow from the state of the contract.
const (
	// ReasonSellerUnknown: no registry has shown the seller.
	ReasonSellerUnknown = "SellerUnknown"
	// ReasonSellerUnreachable: the connector of the seller does not answer.
	ReasonSellerUnreachable = "SellerUnreachable"
	// ReasonOrderRefused: the seller does not sell this; the message says why.
	ReasonOrderRefused = "OrderRefused"
	// ReasonNotReachable: one of the two clusters does not reach the other one, as it must to peer, so that nothing is signed; the message
	// says what.
	ReasonNotReachable = "NotReachable"
	// ReasonTooExpensive: it costs more than spec.maxPrice, or in all more than spec.maxTotal, or that cannot be compared.
	ReasonTooExpensive = "TooExpensive"
	// ReasonPeeringForeign: the clusters are peered without a contract, and that peering is left alone.
	ReasonPeeringForeign = "PeeringForeign"
	// ReasonUnguarded: nothing would keep strangers in bounds on this cluster, so that it neither buys nor sells.
	ReasonUnguarded = "Unguarded"
	// ReasonNodeNotReady: the contract is in use, but none of its virtual nodes is ready.
	ReasonNodeNotReady = "NodeNotReady"
	// ReasonNotSetUp: it was signed, and could never be used within spec.readyWithin, so that this side has ended it.
	ReasonNotSetUp = "NotSetUp"
	// ReasonEndedEarly: its seller has ended it before its time, or does not know it any more: if it knows it again within its time, it goes
	// on.
	ReasonEndedEarly = "EndedEarly"
	// ReasonContractUnknown: the seller says that it does not know the contract. If it says so for some minutes, this side leaves.
	ReasonContractUnknown = "ContractUnknown"
	// ReasonSellerRestored: the seller shows less of the contract than both have signed, as after it was restored from an older copy.
	ReasonSellerRestored = "SellerRestored"
	// ReasonOtherParty: the contract is of a party that this cluster is not any more.
	ReasonOtherParty = "OtherParty"
	// ReasonUnreadable: status.record cannot be read. The connector does nothing before somebody mends it, or deletes the object.
	ReasonUnreadable = "Unreadable"
)

// ConditionRenewal is on Purchases with spec.renew, while they are in use, and on CapacityRequests that have such a Purchase. It is true
// while nothing speaks against a later end.
const ConditionRenewal = "Renewal"

// Reasons of the condition Renewal.
const (
	// ReasonRenews: a later end is asked for in time.
	ReasonRenews = "Renews"
	// ReasonRenewalAsked: a later end was asked for, and is being agreed.
	ReasonRenewalAsked = "RenewalAsked"
	// ReasonRenewalRefused: the seller refuses a later end, or it is too expensive. It is asked for again for a while.
	ReasonRenewalRefused = "RenewalRefused"
	// ReasonRenewed: there is a later end, and the next one is asked for in time.
	ReasonRenewed = "Renewed"
	// ReasonNotRenewed: the contract ends, since no later end was agreed in time.
	ReasonNotRenewed = "NotRenewed"
	// ReasonBuyingElsewhere: the contract ends, and the CapacityRequest buys another one in its place.
	ReasonBuyingElsewhere = "BuyingElsewhere"
	// ReasonBoughtElsewhere: another contract is in use in the place of one that ends.
	ReasonBoughtElsewhere = "BoughtElsewhere"
)

// Purchase is a contract by which this cluster buys. The connector of this cluster negotiates it with that of the seller, has the clusters
// peer, and has them part at its end. A Purchase that is deleted is ended first, as by spec.end.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=bpur,categories={liqo,brokering}
// +kubebuilder:printcolumn:name="Seller",type=string,JSONPath=`.status.seller.name`
// +kubebuilder:printcolumn:name="Offer",type=string,JSONPath=`.spec.offer`
// +kubebuilder:printcolumn:name="Plan",type=string,JSONPath=`.status.plan`
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.state`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type == 'Ready')].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type == 'Ready')].reason`
// +kubebuilder:printcolumn:name="CPU",type=string,JSONPath=`.status.resources.cpu`
// +kubebuilder:printcolumn:name="Memory",type=string,JSONPath=`.status.resources.memory`
// +kubebuilder:printcolumn:name="Ends",type=date,priority=1,JSONPath=`.status.endTime`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Purchase struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is Kubernetes' own.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what people want.
	// +required
	Spec PurchaseSpec `json:"spec"`
	// status is what became of it.
	// +optional
	Status PurchaseStatus `json:"status,omitempty"`
}

// PurchaseSpec is what is bought.
//
// +kubebuilder:validation:XValidation:rule="has(self.duration) || has(self.endTime)",message="a purchase has a duration or an endTime"
// +kubebuilder:validation:XValidation:rule="!has(self.renew) || !self.renew || has(self.duration)",message="a purchase that renews has a duration: it is renewed by as long"
// +kubebuilder:validation:XValidation:rule="has(self.maxPrice) || has(self.listed)",message="a purchase says maxPrice, the most that it may cost"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.listed) || has(self.listed)",message="what was listed cannot be changed"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.end) || has(self.end)",message="the end of a contract cannot be taken back"
type PurchaseSpec struct {
	// seller is the party that sells.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="the seller cannot be changed"
	// +required
	Seller PartyID `json:"seller"`
	// offer is the ID of its offer.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="the offer cannot be changed"
	// +required
	Offer Label `json:"offer"`
	// plan is the ID of a plan of the offer. A change asks the seller for another plan, for the time that is left.
	// +required
	Plan Label `json:"plan"`
	// resources are the least that is wanted of a plan with a range; of one with fixed resources they can be left out. A change asks
	// the seller for another size.
	// +optional
	Resources v1alpha1.Quantities `json:"resources,omitempty"`
	// duration is for how long, from when the connector asks the seller for the first time. It does not count if there is an endTime.
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1m')",message="duration must be at least 1m"
	// +optional
	Duration *metav1.Duration `json:"duration,omitempty"`
	// endTime is until when. A later one asks the seller for a renewal.
	// +optional
	EndTime *metav1.Time `json:"endTime,omitempty"`
	// renew is whether the connector asks for a later end, each time by duration, in time before the end. What it may cost, maxPrice or
	// listed and maxTotal say.
	// +optional
	Renew bool `json:"renew,omitempty"`
	// readyWithin is for how long the connector waits, from the signature on, until the contract is Active for the first time; an hour if it
	// is left out. If it is not by then, the connector ends it, without notice.
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('10m') && duration(self) <= duration('24h')",message="readyWithin must be from 10m to 24h"
	// +optional
	ReadyWithin *metav1.Duration `json:"readyWithin,omitempty"`
	// maxPrice is the most that it may cost. It must be there if there is no listed.
	// +optional
	MaxPrice *Price `json:"maxPrice,omitempty"`
	// maxTotal is the most that the contract may cost in all, from its beginning to its end. Another size or a later end that would cost more
	// is not asked for.
	// +optional
	MaxTotal *Money `json:"maxTotal,omitempty"`
	// listed is what the catalog showed when a CapacityRequest chose the plan. What the seller wants to sell must be that, or be in the same
	// region, give as much notice, pass the request again, and cost no more than maxPrice, or no more than this if there is none.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="what was listed cannot be changed"
	// +optional
	Listed *ListedPlan `json:"listed,omitempty"`
	// end is set to end the contract. It cannot be taken back.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="the end of a contract cannot be taken back"
	// +optional
	End *ContractEnd `json:"end,omitempty"`
}

// ListedPlan is what the catalog showed of a plan.
type ListedPlan struct {
	// digest is that of the offer, as it was signed.
	// +kubebuilder:validation:MaxLength=253
	// +required
	Digest string `json:"digest"`
	// price is what the wanted resources cost.
	// +required
	Price Price `json:"price"`
	// region is where the resources are.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Region string `json:"region,omitempty"`
	// notice is for how long a seller that ends the contract early goes on giving, and a buyer that ends it goes on paying.
	// +optional
	Notice metav1.Duration `json:"notice,omitempty"`
}

// ContractEnd ends a contract before its time.
type ContractEnd struct {
	// reason is told to the other side.
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Reason string `json:"reason,omitempty"`
}

// ContractStatus is what both sides know of a contract.
type ContractStatus struct {
	// state is how far the contract is, as the seller has written it.
	// +kubebuilder:validation:MaxLength=32
	// +optional
	State string `json:"state,omitempty"`
	// contractID is what the buyer named the contract.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	ContractID string `json:"contractID,omitempty"`
	// plan is the ID of the plan by which it is sold: of a Purchase that asks for another one, the old one until both have signed.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Plan string `json:"plan,omitempty"`
	// resources are what is sold.
	// +optional
	Resources corev1.ResourceList `json:"resources,omitempty"`
	// price is what it costs.
	// +optional
	Price *Price `json:"price,omitempty"`
	// startTime is from when.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`
	// endTime is until when.
	// +optional
	EndTime *metav1.Time `json:"endTime,omitempty"`
	// paidUntilTime is until when the buyer pays: earlier than the end of the terms if either side has ended the contract.
	// +optional
	PaidUntilTime *metav1.Time `json:"paidUntilTime,omitempty"`
	// effectiveTime is from when the terms count that are in force: earlier ones are in superseded.
	// +optional
	EffectiveTime *metav1.Time `json:"effectiveTime,omitempty"`
	// superseded are the last terms that both had signed before, the oldest first. Their signatures are in the record.
	// +kubebuilder:validation:MaxItems=32
	// +listType=map
	// +listMapKey=revision
	// +optional
	Superseded []SupersededTerms `json:"superseded,omitempty"`
	// documents are by which documents it is sold: of the properties of the offer that the terms in force name, terms-url, terms-sha256,
	// sla-url, sla-sha256, sla-availability and sla-credit.
	// +kubebuilder:validation:MaxProperties=6
	// +optional
	Documents map[string]PropertyValue `json:"documents,omitempty"`
	// cluster is the one at the other end.
	// +kubebuilder:default={}
	// +optional
	Cluster ClusterStatus `json:"cluster,omitempty"`
	// record is all that the connector knows of the contract, with the signatures, as text of its own.
	// +kubebuilder:validation:MaxLength=262144
	// +optional
	Record string `json:"record,omitempty"`
	// observedGeneration is the generation of the spec that the status answers to.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// conditions are Ready, Renewal of a Purchase that renews, and Covered of a Sale of which the seller has lacked something.
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// SupersededTerms are terms that both had signed before they signed others. They count until the terms after them do.
type SupersededTerms struct {
	// revision is the number of the terms.
	// +kubebuilder:validation:Minimum=1
	// +required
	Revision int64 `json:"revision"`
	// effectiveTime is from when they count.
	// +required
	EffectiveTime metav1.Time `json:"effectiveTime"`
	// endTime is until when the contract lasted by them.
	// +required
	EndTime metav1.Time `json:"endTime"`
	// plan is that of the offer by which it was sold.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Plan string `json:"plan,omitempty"`
	// resources are what was sold.
	// +optional
	Resources corev1.ResourceList `json:"resources,omitempty"`
	// price is what it cost.
	// +optional
	Price *Price `json:"price,omitempty"`
}

// PurchaseStatus is what became of a purchase.
type PurchaseStatus struct {
	ContractStatus `json:",inline"`

	// seller is the party that sells.
	// +kubebuilder:default={}
	// +optional
	Seller PartyStatus `json:"seller,omitempty"`
	// nodes are the virtual nodes that stand for the seller's cluster.
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=253
	// +listType=atomic
	// +optional
	Nodes []string `json:"nodes,omitempty"`
	// podsLeft is how many pods still have to leave before the peering ends.
	// +optional
	PodsLeft int32 `json:"podsLeft,omitempty"`
}

// PurchaseList is a list of Purchases.
//
// +kubebuilder:object:root=true
type PurchaseList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Purchase `json:"items"`
}
