// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package connectorv1alpha1

// Finalizer is on what must not be gone before it is over at the other side.
const Finalizer = "brokering.liqo.io/connector"

// ConditionReady is true while what somebody wants can be used: capacity that was bought or requested, and what was sold.
const ConditionReady = "Ready"

// Reasons of the condition Ready of Purchases and Sales that follow from the state of the contract, and of CapacityRequests that have a
// Purchase.
const (
	// ReasonActive: the contract is in use.
	ReasonActive = "Active"
	// ReasonNegotiating: it is not signed yet.
	ReasonNegotiating = "Negotiating"
	// ReasonAwaitsApproval: somebody at the seller has to approve it.
	ReasonAwaitsApproval = "AwaitsApproval"
	// ReasonSettingUp: it is signed, and the clusters are about to peer.
	ReasonSettingUp = "SettingUp"
	// ReasonContractSuspended: the seller grants nothing for now.
	ReasonContractSuspended = "ContractSuspended"
	// ReasonEnding: the workloads leave, and the peering ends.
	ReasonEnding = "Ending"
	// ReasonEnded: it is over as agreed.
	ReasonEnded = "Ended"
	// ReasonRejected: the seller does not sell it, or cannot.
	ReasonRejected = "Rejected"
	// ReasonExpired: it was not approved or not signed in time.
	ReasonExpired = "Expired"
	// ReasonFailed: it was signed, and could not be granted.
	ReasonFailed = "Failed"
)

// PartyID is who a party is: the fingerprint of its first key.
// +kubebuilder:validation:Pattern=`^[a-z2-7]{52}$`
// +kubebuilder:validation:MinLength=52
// +kubebuilder:validation:MaxLength=52
type PartyID string

// Label is a name of up to 63 characters: lower-case letters, digits and hyphens.
// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=63
type Label string

// Amount is money in units of a currency: a decimal number without sign and exponent, with up to nine digits before and after the point.
// +kubebuilder:validation:Pattern=`^(0|[1-9][0-9]{0,8})(\.[0-9]{1,9})?$`
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=19
type Amount string

// Period is for how long a price is: a minute, an hour, a day, a week, 730 hours or 8760 hours, as ISO 8601 or Go write it. The connector
// writes the former.
// +kubebuilder:validation:Enum=PT1M;PT1H;P1D;P1W;P1M;P1Y;"1m";"1h";"24h";"168h";"730h";"8760h"
type Period string

// Price is money for a period.
type Price struct {
	// amount is how much.
	// +required
	Amount Amount `json:"amount"`
	// currency is a code of ISO 4217, such as EUR.
	// +kubebuilder:validation:Pattern=`^[A-Z]{3}$`
	// +kubebuilder:validation:MinLength=3
	// +kubebuilder:validation:MaxLength=3
	// +required
	Currency string `json:"currency"`
	// period is for how long.
	// +required
	Period Period `json:"period"`
}

// Money is an amount in a currency.
type Money struct {
	// amount is how much.
	// +required
	Amount Amount `json:"amount"`
	// currency is a code of ISO 4217, such as EUR.
	// +kubebuilder:validation:Pattern=`^[A-Z]{3}$`
	// +kubebuilder:validation:MinLength=3
	// +kubebuilder:validation:MaxLength=3
	// +required
	Currency string `json:"currency"`
}

// PartyStatus is a party at the other end of a contract, as it was known when the contract was made.
type PartyStatus struct {
	// name is what it calls itself. It is not distinct.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Name string `json:"name,omitempty"`
	// endpoint is where its connector negotiates.
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Endpoint string `json:"endpoint,omitempty"`
	// keys are its keys, as signed documents, from the first one.
	// +kubebuilder:validation:MaxItems=17
	// +kubebuilder:validation:items:MaxLength=8192
	// +listType=atomic
	// +optional
	Keys []string `json:"keys,omitempty"`
}

// ClusterStatus is a cluster of Liqo.
type ClusterStatus struct {
	// id is Liqo's cluster ID.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	ID string `json:"id,omitempty"`
	// name is the cluster's name. It is not distinct.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Name string `json:"name,omitempty"`
}
