// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package readiness says what people are told of contracts: the condition Ready of a Sale and of a Purchase, by the state of the contract,
// and which changes of conditions they are warned of.
//
// It takes values and returns values.
package readiness

import (
	"cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/contract"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/grant"
)

// said is what people are told of a contract.
type said struct{ reason, message string }

// states say what follows from the state of a contract, for its seller and its buyer.
var states = map[contract.State]said{
	contract.None:         {connectorv1alpha1.ReasonNegotiating, "The contract is negotiated."},
	contract.Proposed:     {connectorv1alpha1.ReasonAwaitsApproval, "Somebody at the seller has to approve the contract."},
	contract.Reserved:     {connectorv1alpha1.ReasonNegotiating, "The contract is reserved, and the buyer has not signed it yet."},
	contract.Signed:       {connectorv1alpha1.ReasonSettingUp, "The contract is signed, and the seller prepares what it grants."},
	contract.Provisioning: {connectorv1alpha1.ReasonSettingUp, "The contract is signed, and the clusters are about to peer."},
	contract.Active:       {connectorv1alpha1.ReasonActive, "The contract is in use."},
	contract.Resizing:     {connectorv1alpha1.ReasonActive, "The contract is in use, and new terms are being agreed."},
	contract.Suspended:    {connectorv1alpha1.ReasonContractSuspended, "The seller grants nothing for now."},
	contract.Terminating:  {connectorv1alpha1.ReasonEnding, "The contract ends: the pods leave, and then the peering ends."},
	contract.Ended:        {connectorv1alpha1.ReasonEnded, "The contract is over."},
	contract.Rejected:     {connectorv1alpha1.ReasonRejected, "The seller does not sell it."},
	contract.Expired:      {connectorv1alpha1.ReasonExpired, "The contract was not approved or not signed in time."},
	contract.Failed:       {connectorv1alpha1.ReasonFailed, "The contract was signed, and the seller could not grant it."},
}

// OfSale returns the reason and the message of the condition Ready that follow from the record of a seller.
func OfSale(record contract.Record) (reason, message string) {
	now := states[record.State]
	switch {
	case record.Duty() == contract.WithdrawDuty:
		now.reason = connectorv1alpha1.ReasonWithdrawing
	case record.State == contract.Failed && record.Reason == grant.ErrTaken.Error():
		now.reason = connectorv1alpha1.ReasonClusterTaken
	}
	return now.reason, cmp.Or(record.Reason, now.message)
}

// OfPurchase returns the reason and the message of the condition Ready that follow from what a buyer knows of its contract; the message is
// empty where nothing is to be said but why the reason is this one. Wanted is whether people still want the contract, and unreached whether
// the seller has not signed because it does not reach the buyer's cluster.
func OfPurchase(p contract.Purchase, wanted, unreached bool) (reason, message string) {
	state := p.State()
	left := p.Standing.Over()
	unknown := p.Doubt == contract.UnknownDoubt || p.Doubt == contract.OlderDoubt
	over := left || state == contract.Ended
	switch {
	case over && wanted && p.Signature == "": // The seller has not decided in time.
		state = contract.Expired
	case over && p.NotSetUp:
		return connectorv1alpha1.ReasonNotSetUp, "It was signed, and was not in use within spec.readyWithin, so that it was ended."
	case over && !p.Ending && (left && unknown || !p.Seen.Ends.IsZero() && p.Seen.Ends.Before(p.Terms.EndsAt)):
		return connectorv1alpha1.ReasonEndedEarly, ""
	case over:
		state = contract.Ended
	case state.Final(): // There is nothing to doubt.
	case p.Doubt == contract.UnknownDoubt && p.Committed():
		return connectorv1alpha1.ReasonContractUnknown, ""
	case p.Ending, p.Standing == contract.Alone:
		state = contract.Terminating
	case state == contract.Reserved && unreached:
		return connectorv1alpha1.ReasonNotReachable, ""
	case state != contract.Terminating && (p.Restored || p.Doubt == contract.OlderDoubt):
		return connectorv1alpha1.ReasonSellerRestored, ""
	case state.InUse() && (p.Peering != contract.Joined || p.Drained): // It is in use for the seller alone.
		state = contract.Provisioning
	}
	return states[state].reason, states[state].message
}

// Status returns the status of the condition Ready with a reason.
func Status(reason string) metav1.ConditionStatus {
	if reason == connectorv1alpha1.ReasonActive {
		return metav1.ConditionTrue
	}
	return metav1.ConditionFalse
}
