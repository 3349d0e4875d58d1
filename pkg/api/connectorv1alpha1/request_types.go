// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package connectorv1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
)

// Reasons of the condition Ready of CapacityRequests, besides those of their Purchases.
const (
	// ReasonNoOffer: no offer that is known fits, or those that do were tried recently.
	ReasonNoOffer = "NoOffer"
	// ReasonInvalidRequest: the request makes no sense; the message names the field.
	ReasonInvalidRequest = "InvalidRequest"
)

// CapacityRequest is capacity that is needed: the connector looks for the cheapest offer that fits, buys it, and looks for another one
// if that fails. When it is deleted, its Purchase is ended.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=creq,categories={liqo,brokering}
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type == 'Ready')].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type == 'Ready')].reason`
// +kubebuilder:printcolumn:name="Purchase",type=string,JSONPath=`.status.purchase`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type CapacityRequest struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is Kubernetes' own.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what people want.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="a request cannot be changed: make another one"
	// +required
	Spec CapacityRequestSpec `json:"spec"`
	// status is what became of it.
	// +optional
	Status CapacityRequestStatus `json:"status,omitempty"`
}

// CapacityRequestSpec is what is needed. What is left out does not count; of a list one is enough.
//
// +kubebuilder:validation:XValidation:rule="!has(self.currency) || !has(self.maxPrice) || self.currency == self.maxPrice.currency",message="currency is that of maxPrice"
// +kubebuilder:validation:XValidation:rule="!has(self.maxTotal) || (!has(self.currency) || self.currency == self.maxTotal.currency) && (!has(self.maxPrice) || self.maxPrice.currency == self.maxTotal.currency)",message="maxTotal is in the currency of maxPrice and currency"
type CapacityRequestSpec struct {
	// resources are the least that is needed.
	// +required
	Resources v1alpha1.Quantities `json:"resources"`
	// duration is for how long.
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1m')",message="duration must be at least 1m"
	// +required
	Duration metav1.Duration `json:"duration"`
	// renew is whether capacity is needed for longer, until the request is deleted or renew of its Purchase is set to false: its contract is
	// renewed by duration, for what maxPrice and maxTotal allow, and if that is refused, another one is bought before it ends.
	// +optional
	Renew bool `json:"renew,omitempty"`
	// maxPrice is the most that it may cost.
	// +optional
	MaxPrice *Price `json:"maxPrice,omitempty"`
	// maxTotal is the most that the request may cost in all: for as long as capacity is needed, and with what is owed for those of its
	// Purchases that are over and kept.
	// +optional
	MaxTotal *Money `json:"maxTotal,omitempty"`
	// currency is in what it is paid, a code of ISO 4217, such as EUR. It must be there, or maxPrice or maxTotal, if plans in several
	// currencies fit: their prices cannot be compared.
	// +kubebuilder:validation:Pattern=`^[A-Z]{3}$`
	// +kubebuilder:validation:MaxLength=3
	// +optional
	Currency string `json:"currency,omitempty"`
	// regions are where the resources may be.
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=63
	// +listType=set
	// +optional
	Regions []string `json:"regions,omitempty"`
	// architectures are what the nodes may be.
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MaxLength=63
	// +listType=set
	// +optional
	Architectures []string `json:"architectures,omitempty"`
	// types are what the clusters may be.
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=63
	// +listType=set
	// +optional
	Types []string `json:"types,omitempty"`
	// kinds are what may stand behind an offer.
	// +kubebuilder:validation:MaxItems=2
	// +listType=set
	// +optional
	Kinds []SellerKind `json:"kinds,omitempty"`
	// sellers are the parties that may sell.
	// +kubebuilder:validation:MaxItems=64
	// +listType=set
	// +optional
	Sellers []PartyID `json:"sellers,omitempty"`
	// expression is in CEL, about offer and plan.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Expression string `json:"expression,omitempty"`
}

// CapacityRequestStatus is what became of a request.
type CapacityRequestStatus struct {
	// purchase is the name of the Purchase that serves the request.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Purchase string `json:"purchase,omitempty"`
	// leaving is the name of a Purchase that is not renewed and lasts until its end, while another one is bought in its place.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Leaving string `json:"leaving,omitempty"`
	// successors is how many Purchases were bought in the place of ones that were not renewed.
	// +optional
	Successors int32 `json:"successors,omitempty"`
	// tried are the sellers that did not serve, the last ones. Sellers that were not tried come first, and then those that were not for the
	// longest time.
	// +kubebuilder:validation:MaxItems=64
	// +listType=map
	// +listMapKey=seller
	// +optional
	Tried []TriedSeller `json:"tried,omitempty"`
	// pendingTime is since when there is a Purchase that is not in use yet, or not any more, though nobody has to approve it.
	// +optional
	PendingTime *metav1.Time `json:"pendingTime,omitempty"`
	// remaining is for how long capacity is still needed, after a contract that was in use has ended early.
	// +optional
	Remaining *metav1.Duration `json:"remaining,omitempty"`
	// observedGeneration is the generation of the spec that the status answers to.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// conditions are Ready, and Renewal of a request that renews.
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// TriedSeller is a seller that did not serve.
type TriedSeller struct {
	// seller is the party that sells.
	// +required
	Seller PartyID `json:"seller"`
	// offer is the ID of the offer that was tried last.
	// +required
	Offer Label `json:"offer"`
	// plan is that of its plan.
	// +required
	Plan Label `json:"plan"`
	// time is when it was given up.
	// +required
	Time metav1.Time `json:"time"`
	// failures is how often in a row the seller did not serve.
	// +required
	Failures int32 `json:"failures"`
	// nextTime is from when the seller is asked again.
	// +required
	NextTime metav1.Time `json:"nextTime"`
	// reason is why not.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	Reason string `json:"reason,omitempty"`
}

// CapacityRequestList is a list of CapacityRequests.
//
// +kubebuilder:object:root=true
type CapacityRequestList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []CapacityRequest `json:"items"`
}
