// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package connectorv1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ReasonClusterTaken is a reason of the condition Ready of Sales: another party has a contract for the same cluster.
const ReasonClusterTaken = "ClusterTaken"

// ReasonWithdrawing is a reason of the condition Ready of Sales: the contract is over, and what was granted is being taken back.
const ReasonWithdrawing = "Withdrawing"

// Decision is what somebody says about a sale that waits for approval.
// +kubebuilder:validation:Enum=Approve;Refuse
type Decision string

// The decisions.
const (
	DecisionApprove Decision = "Approve"
	DecisionRefuse  Decision = "Refuse"
)

// Sale is a contract by which this cluster sells. The connector creates it when a buyer asks, and people decide in its spec. One that is
// not over cannot be deleted: it waits until it is.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=bsale,categories={liqo,brokering}
// +kubebuilder:printcolumn:name="Buyer",type=string,JSONPath=`.status.buyer.name`
// +kubebuilder:printcolumn:name="Offer",type=string,JSONPath=`.status.offer`
// +kubebuilder:printcolumn:name="Plan",type=string,JSONPath=`.status.plan`
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.state`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type == 'Ready')].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type == 'Ready')].reason`
// +kubebuilder:printcolumn:name="CPU",type=string,JSONPath=`.status.resources.cpu`
// +kubebuilder:printcolumn:name="Memory",type=string,JSONPath=`.status.resources.memory`
// +kubebuilder:printcolumn:name="Ends",type=date,priority=1,JSONPath=`.status.endTime`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Sale struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is Kubernetes' own.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is whose contract it is, and what people have decided.
	// +required
	Spec SaleSpec `json:"spec"`
	// status is what became of it.
	// +optional
	Status SaleStatus `json:"status,omitempty"`
}

// SaleSpec is whose contract it is, and what people have decided.
//
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.end) || has(self.end)",message="the end of a contract cannot be taken back"
type SaleSpec struct {
	// buyer is the party that buys.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="the buyer cannot be changed"
	// +required
	Buyer PartyID `json:"buyer"`
	// contractID is what the buyer named the contract.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="the contract cannot be changed"
	// +required
	ContractID Label `json:"contractID"`
	// decision is what somebody says about terms that wait for approval. It counts for terms of decisionRevision.
	// +optional
	Decision Decision `json:"decision,omitempty"`
	// decisionRevision is the revision of the terms that were decided about; 1 for those of the sale itself, more for those of a change.
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +optional
	DecisionRevision int64 `json:"decisionRevision,omitempty"`
	// suspended is whether nothing is granted for now.
	// +optional
	Suspended bool `json:"suspended,omitempty"`
	// end is set to end the contract, after the agreed time of notice. It cannot be taken back.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="the end of a contract cannot be taken back"
	// +optional
	End *ContractEnd `json:"end,omitempty"`
	// reason is told to the buyer with a refusal or a suspension.
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Reason string `json:"reason,omitempty"`
}

// SaleStatus is what became of a sale.
type SaleStatus struct {
	ContractStatus `json:",inline"`

	// buyer is the party that buys.
	// +kubebuilder:default={}
	// +optional
	Buyer PartyStatus `json:"buyer,omitempty"`
	// offer is the ID of the offer that was bought.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Offer string `json:"offer,omitempty"`
	// pendingRevision is the revision of terms that wait for approval.
	// +optional
	PendingRevision int64 `json:"pendingRevision,omitempty"`
}

// SaleList is a list of Sales.
//
// +kubebuilder:object:root=true
type SaleList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Sale `json:"items"`
}

// LedgerName is the name of the one SalesLedger.
const LedgerName = "default"

// SalesLedger is what all contracts and reservations hold of what this cluster sells. There is one, and it is written before a contract
// that needs it: so nothing is sold twice. It is not meant for people.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name == 'default'",message="there is one ledger, named default"
type SalesLedger struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is Kubernetes' own.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// holds are what is held, in the order of buyers and contracts.
	// +kubebuilder:validation:MaxItems=4096
	// +listType=atomic
	// +optional
	Holds []SalesHold `json:"holds,omitempty"`
}

// SalesHold is what one contract or reservation holds.
type SalesHold struct {
	// buyer is the party that buys.
	// +required
	Buyer PartyID `json:"buyer"`
	// contractID is what the buyer named the contract.
	// +required
	ContractID Label `json:"contractID"`
	// offer is the offer's ID.
	// +required
	Offer Label `json:"offer"`
	// plan is the plan's ID.
	// +required
	Plan Label `json:"plan"`
	// resources are how much of the capacity is held, besides one of the plan's stock.
	// +required
	Resources corev1.ResourceList `json:"resources"`
	// untilTime is when a reservation lapses. A contract has none.
	// +optional
	UntilTime *metav1.Time `json:"untilTime,omitempty"`
	// nextResources are what is held for new terms.
	// +optional
	NextResources corev1.ResourceList `json:"nextResources,omitempty"`
	// nextPlans are plans of which one of the stock is held besides, for new terms.
	// +kubebuilder:validation:MaxItems=8
	// +listType=atomic
	// +optional
	NextPlans []Label `json:"nextPlans,omitempty"`
	// nextUntilTime is when these lapse.
	// +optional
	NextUntilTime *metav1.Time `json:"nextUntilTime,omitempty"`
}

// SalesLedgerList is a list of SalesLedgers.
//
// +kubebuilder:object:root=true
type SalesLedgerList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []SalesLedger `json:"items"`
}
