// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package readiness_test

import (
	"testing"
	"time"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/readiness"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/contract"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/grant"
)

// TestEveryState holds that something is said of each state, and that a contract is ready where it is in use, and nowhere else.
func TestEveryState(t *testing.T) {
	for _, state := range contract.States() {
		reason, message := readiness.OfSale(contract.Record{View: contract.View{State: state}})
		if reason == "" || message == "" {
			t.Errorf("of a sale that is %q it says %q: %q", state, reason, message)
		}
		if ready := readiness.Status(reason) == "True"; ready != state.InUse() {
			t.Errorf("a sale that is %q is ready: %t", state, ready)
		}
		bought := contract.Purchase{Seen: contract.View{State: state}, Peering: contract.Joined}
		if same, _ := readiness.OfPurchase(bought, false, false); same != reason {
			t.Errorf("of a contract that is %q the seller reads %q, and the buyer %q", state, reason, same)
		}
	}
}

func TestOfSale(t *testing.T) {
	for _, tc := range []struct {
		record          contract.Record
		reason, message string
	}{
		{
			contract.Record{View: contract.View{State: contract.Failed, Reason: grant.ErrTaken.Error()}}, connectorv1alpha1.ReasonClusterTaken,
			grant.ErrTaken.Error(),
		},
		{contract.Record{View: contract.View{State: contract.Rejected, Reason: "no"}}, connectorv1alpha1.ReasonRejected, "no"},
		{
			contract.Record{View: contract.View{State: contract.Ended, Countersignature: "s"}}, connectorv1alpha1.ReasonWithdrawing,
			"The contract is over.",
		},
		{
			contract.Record{View: contract.View{State: contract.Ended, Countersignature: "s"}, Withdrawn: true}, connectorv1alpha1.ReasonEnded,
			"The contract is over.",
		},
	} {
		if reason, message := readiness.OfSale(tc.record); reason != tc.reason || message != tc.message {
			t.Errorf("OfSale(%+v) = %s, %q, want %s, %q", tc.record, reason, message, tc.reason, tc.message)
		}
	}
}

func TestOfPurchase(t *testing.T) {
	end := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	// purchase returns one that both have signed, changed.
	purchase := func(state contract.State, change func(*contract.Purchase)) contract.Purchase {
		p := contract.Purchase{Terms: contract.Terms{EndsAt: end}, Signature: "s", Seen: contract.View{State: state}}
		change(&p)
		return p
	}
	for reason, tc := range map[string]struct {
		purchase          contract.Purchase
		wanted, unreached bool
		want              string
	}{
		"It is in use for the seller, and the clusters have not peered.": {
			purchase(contract.Active, func(*contract.Purchase) {}), true, false, connectorv1alpha1.ReasonSettingUp,
		},
		"It is in use for the seller, and drained.": {
			purchase(contract.Active, func(p *contract.Purchase) { p.Peering, p.Drained = contract.Joined, true }), true, false,
			connectorv1alpha1.ReasonSettingUp,
		},
		"It is over, and nothing was signed.": {
			purchase(contract.Ended, func(p *contract.Purchase) { p.Signature = "" }), true, false, connectorv1alpha1.ReasonExpired,
		},
		"It is over, nothing was signed, and nobody wants it.": {
			purchase(contract.Ended, func(p *contract.Purchase) { p.Signature = "" }), false, false, connectorv1alpha1.ReasonEnded,
		},
		"The seller has ended it before its time.": {
			purchase(contract.Ended, func(p *contract.Purchase) { p.Seen.Ends = end.Add(-time.Hour) }), true, false,
			connectorv1alpha1.ReasonEndedEarly,
		},
		"The buyer has ended it before its time.": {
			purchase(contract.Ended, func(p *contract.Purchase) { p.Seen.Ends, p.Ending = end.Add(-time.Hour), true }), false, false,
			connectorv1alpha1.ReasonEnded,
		},
		"The buyer has left a seller that does not know it.": {
			purchase(contract.Active, func(p *contract.Purchase) { p.Standing, p.Doubt = contract.Left, contract.UnknownDoubt }), true, false,
			connectorv1alpha1.ReasonEndedEarly,
		},
		"Its seller does not know it.": {
			purchase(contract.Active, func(p *contract.Purchase) { p.Doubt = contract.UnknownDoubt }), true, false,
			connectorv1alpha1.ReasonContractUnknown,
		},
		"A contract that failed is not doubted.": {
			purchase(contract.Failed, func(p *contract.Purchase) { p.Doubt = contract.UnknownDoubt }), true, false, connectorv1alpha1.ReasonFailed,
		},
		"The buyer ends it.": {
			purchase(contract.Active, func(p *contract.Purchase) { p.Ending = true }), false, false, connectorv1alpha1.ReasonEnding,
		},
		"Its seller does not reach the cluster.": {
			purchase(contract.Reserved, func(*contract.Purchase) {}), true, true, connectorv1alpha1.ReasonNotReachable,
		},
		"Its seller was restored.": {
			purchase(contract.Active, func(p *contract.Purchase) { p.Restored = true }), true, false, connectorv1alpha1.ReasonSellerRestored,
		},
	} {
		if got, _ := readiness.OfPurchase(tc.purchase, tc.wanted, tc.unreached); got != tc.want {
			t.Errorf("%s\nOfPurchase() = %s, want %s", reason, got, tc.want)
		}
	}
}
