// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package connectorv1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
)

// ConditionPublished is true while an offer stands in all registries that it is to stand in.
const ConditionPublished = "Published"

// Reasons of the condition Published of Offers.
const (
	ReasonPublished = "Published"
	// ReasonNotPublished: not all registries have the offer yet.
	ReasonNotPublished = "NotPublished"
	// ReasonNoRegistry: there is no Registry to publish in.
	ReasonNoRegistry = "NoRegistry"
	// ReasonInvalidOffer: the offer makes no sense; the message names the field.
	ReasonInvalidOffer = "InvalidOffer"
	// ReasonClosed: people have closed the sale.
	ReasonClosed = "Closed"
	// ReasonOfferRefused: a registry does not take the offer.
	ReasonOfferRefused = "OfferRefused"
)

// ConditionCovered is on Offers of which something is sold, and on Sales of which something was lacking. It is true while the cluster has
// what it has sold, until the contracts end.
const ConditionCovered = "Covered"

// Reasons of the condition Covered of Offers and Sales.
const (
	// ReasonCovered: the cluster has what it has sold.
	ReasonCovered = "Covered"
	// ReasonOvercommitted: what the cluster needs itself, and what it has sold, are together more than it has.
	ReasonOvercommitted = "Overcommitted"
	// ReasonUncovered: a contract by which the cluster has bought ends before what it has sold of that.
	ReasonUncovered = "Uncovered"
)

// SaleSwitch is whether something is for sale.
// +kubebuilder:validation:Enum=Open;Closed
type SaleSwitch string

// The values of an Offer's spec.sale.
const (
	SaleOpen   SaleSwitch = "Open"
	SaleClosed SaleSwitch = "Closed"
)

// SellerKind is what stands behind an offer.
// +kubebuilder:validation:Enum=Cluster;Broker
type SellerKind string

// The kinds of an Offer's spec.kind.
const (
	KindCluster SellerKind = "Cluster"
	KindBroker  SellerKind = "Broker"
)

// Verdict is what is to happen to somebody who wants to buy.
// +kubebuilder:validation:Enum=Accept;Ask;Deny
type Verdict string

// The verdicts.
const (
	VerdictAccept Verdict = "Accept"
	VerdictAsk    Verdict = "Ask"
	VerdictDeny   Verdict = "Deny"
)

// Offer is what this cluster sells. Its name is the offer's ID.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=boff,categories={liqo,brokering}
// +kubebuilder:printcolumn:name="Title",type=string,JSONPath=`.spec.title`
// +kubebuilder:printcolumn:name="Sale",type=string,JSONPath=`.spec.sale`
// +kubebuilder:printcolumn:name="Published",type=string,JSONPath=`.status.conditions[?(@.type == 'Published')].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type == 'Published')].reason`
// +kubebuilder:printcolumn:name="Sold",type=integer,JSONPath=`.status.sold`
// +kubebuilder:printcolumn:name="Revision",type=integer,priority=1,JSONPath=`.status.revision`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 63 && !self.metadata.name.contains('.')",message="the name is the offer's ID: up to 63 characters, without dots"
type Offer struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is Kubernetes' own.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what people want.
	// +required
	Spec OfferSpec `json:"spec"`
	// status is what the connector has signed and sold.
	// +optional
	Status OfferStatus `json:"status,omitempty"`
}

// OfferSpec is what is for sale, and to whom.
type OfferSpec struct {
	// title is what people read first.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +required
	Title string `json:"title"`
	// description says more.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Description string `json:"description,omitempty"`
	// sale is whether it is for sale. What was sold before stays sold.
	// +kubebuilder:default=Open
	// +optional
	Sale SaleSwitch `json:"sale,omitempty"`
	// kind tells a cluster that sells its own nodes from a broker that sells what it gets from others.
	// +kubebuilder:default=Cluster
	// +optional
	Kind SellerKind `json:"kind,omitempty"`
	// mode is how the broker serves those who buy; it is for the kind Broker.
	// +optional
	Mode v1alpha1.Mode `json:"mode,omitempty"`
	// type is a word for the sort of cluster, in the words of the seller.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Type string `json:"type,omitempty"`
	// region is where the resources are, in the words of the seller.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Region string `json:"region,omitempty"`
	// zone is a part of the region.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Zone string `json:"zone,omitempty"`
	// architectures are those of the nodes, such as amd64.
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MaxLength=63
	// +listType=set
	// +optional
	Architectures []string `json:"architectures,omitempty"`
	// labels are labels that a buyer can filter by.
	// +kubebuilder:validation:MaxProperties=32
	// +optional
	Labels map[string]LabelValue `json:"labels,omitempty"`
	// properties say more about what is sold. Reserved are terms-url and sla-url, https URLs of documents, with terms-sha256 and sla-sha256,
	// their SHA-256, and sla-availability and sla-credit, in percent.
	// +kubebuilder:validation:MaxProperties=32
	// +optional
	Properties map[string]PropertyValue `json:"properties,omitempty"`
	// plans are what can be bought.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=id
	// +required
	Plans []OfferPlan `json:"plans"`
	// buyers says who may buy. Without it, somebody has to approve each sale.
	// +kubebuilder:default={}
	// +optional
	Buyers Buyers `json:"buyers,omitempty"`
	// validity is for how long the offer is signed each time. It is signed again in good time.
	// +kubebuilder:default="1h"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1m') && duration(self) <= duration('720h')",message="validity must be from 1m to 720h"
	// +optional
	Validity *metav1.Duration `json:"validity,omitempty"`
}

// LabelValue is the value of a label.
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:Pattern=`^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$`
type LabelValue string

// PropertyValue is the value of a property.
// +kubebuilder:validation:MaxLength=253
type PropertyValue string

// OfferPlan is one way to buy.
//
// +kubebuilder:validation:XValidation:rule="has(self.resources) != has(self.range)",message="a plan has either resources or a range"
// +kubebuilder:validation:XValidation:rule="!has(self.unitPrices) || has(self.range)",message="unitPrices are for a range"
type OfferPlan struct {
	// id is unique in the offer.
	// +required
	ID Label `json:"id"`
	// title is for people.
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Title string `json:"title,omitempty"`
	// resources are what a buyer gets: cpu, memory and pods at least.
	// +optional
	Resources v1alpha1.Quantities `json:"resources,omitempty"`
	// range is for buyers who choose how much they get.
	// +optional
	Range *OfferRange `json:"range,omitempty"`
	// price is for the resources, and of a range the part that does not depend on the amount.
	// +required
	Price Price `json:"price"`
	// unitPrices are what the resources of a range cost besides, by the resource's name, for the period of the price.
	// +kubebuilder:validation:MaxProperties=16
	// +optional
	UnitPrices map[string]UnitPrice `json:"unitPrices,omitempty"`
	// stock is how many contracts there are at a time at most. Without it, only the capacity of the cluster counts.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	// +optional
	Stock *int64 `json:"stock,omitempty"`
	// minDuration is the shortest contract.
	// +optional
	MinDuration *metav1.Duration `json:"minDuration,omitempty"`
	// maxDuration is the longest contract.
	// +optional
	MaxDuration *metav1.Duration `json:"maxDuration,omitempty"`
	// notice is for how long a seller that ends a contract early goes on giving, and a buyer that ends one goes on paying.
	// +optional
	Notice *metav1.Duration `json:"notice,omitempty"`
}

// OfferRange is what a buyer can choose from.
type OfferRange struct {
	// min is the least of each resource.
	// +required
	Min v1alpha1.Quantities `json:"min"`
	// max is the most of each resource.
	// +required
	Max v1alpha1.Quantities `json:"max"`
	// step is by how much each resource grows from the least.
	// +required
	Step v1alpha1.Quantities `json:"step"`
}

// UnitPrice is what an amount of a resource costs.
type UnitPrice struct {
	// amount is how much money.
	// +required
	Amount Amount `json:"amount"`
	// per is for how much of the resource.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=48
	// +kubebuilder:validation:Pattern=`^[0-9]{1,15}(\.[0-9]{1,3})?(m|k|M|G|T|P|Ki|Mi|Gi|Ti|Pi)?$`
	// +required
	Per string `json:"per"`
}

// Buyers says who may buy.
type Buyers struct {
	// rules decide about who wants to buy: the first whose expression is true.
	// +kubebuilder:validation:MaxItems=64
	// +listType=atomic
	// +optional
	Rules []BuyerRule `json:"rules,omitempty"`
	// otherwise is what happens to those for whom no rule is true.
	// +kubebuilder:default=Ask
	// +optional
	Otherwise Verdict `json:"otherwise,omitempty"`
}

// BuyerRule decides about those for whom an expression is true.
type BuyerRule struct {
	// expression is in CEL. Its variables are buyer, buyer.held, terms and offer.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	// +required
	Expression string `json:"expression"`
	// verdict is what happens: Accept sells, Ask waits for somebody's approval, Deny refuses.
	// +required
	Verdict Verdict `json:"verdict"`
	// reason is what a buyer is told who is refused.
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Reason string `json:"reason,omitempty"`
}

// OfferStatus is what the connector has signed and sold.
type OfferStatus struct {
	// revision grows with each change.
	// +optional
	Revision int64 `json:"revision,omitempty"`
	// signed is the signed offer, as registries have it.
	// +kubebuilder:validation:MaxLength=31744
	// +optional
	Signed string `json:"signed,omitempty"`
	// validTime is until when the signed offer counts.
	// +optional
	ValidTime *metav1.Time `json:"validTime,omitempty"`
	// sold is how many contracts hold something of the offer.
	// +optional
	Sold int32 `json:"sold,omitempty"`
	// plans says what is left of each plan.
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=id
	// +optional
	Plans []OfferPlanStatus `json:"plans,omitempty"`
	// observedGeneration is the generation of the spec that the status answers to.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// conditions are Published, and Covered of an offer of which something is sold.
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// OfferPlanStatus is what is left of a plan.
type OfferPlanStatus struct {
	// id is that of the plan.
	// +required
	ID Label `json:"id"`
	// sold is how many contracts hold it.
	// +optional
	Sold int64 `json:"sold,omitempty"`
	// available is how many more there could be.
	// +optional
	Available int64 `json:"available,omitempty"`
}

// OfferList is a list of Offers.
//
// +kubebuilder:object:root=true
type OfferList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Offer `json:"items"`
}
