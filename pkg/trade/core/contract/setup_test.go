// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package contract_test

import (
	"testing"
	"time"

	"github.com/capacitorset/liqo-broker/pkg/trade/core/contract"
)

// TestSetUpWithin checks that a buyer ends what it has signed and never used, by a clock that does not leap, and nothing else.
func TestSetUpWithin(t *testing.T) {
	const within = time.Hour
	seen := func(state contract.State, change func(*contract.Purchase)) contract.Purchase {
		p := contract.Purchase{Terms: termsOf("buyer", 2, 2), Signature: "buyer's", Seen: contract.View{State: state}}
		if change != nil {
			change(&p)
		}
		return p
	}
	for name, c := range map[string]struct {
		reason   string
		purchase contract.Purchase
		ends     bool
	}{
		"not granted":    {"the seller prepares nothing", seen(contract.Signed, nil), true},
		"not peered":     {"the clusters do not peer", seen(contract.Provisioning, nil), true},
		"not answered":   {"the seller may hold its signature", seen(contract.Reserved, nil), true},
		"not signed":     {"it owes nothing", seen(contract.Reserved, func(p *contract.Purchase) { p.Signature = "" }), false},
		"to be approved": {"people decide", seen(contract.Proposed, func(p *contract.Purchase) { p.Signature = "" }), false},
		"in use":         {"it has what it wants", seen(contract.Active, nil), false},
		"not in use now": {"the seller has it back soon", seen(contract.Suspended, nil), false},
		"shown less":     {"it was in use", seen(contract.Provisioning, func(p *contract.Purchase) { p.Restored = true }), false},
		"left": {
			"its seller does not know it", seen(contract.Signed, func(p *contract.Purchase) { p.Standing = contract.Left }), false,
		},
		"ended by people": {"it is told why", seen(contract.Provisioning, func(p *contract.Purchase) { *p = p.End("enough") }), false},
	} {
		t.Run(name, func(t *testing.T) {
			p := c.purchase.Pass(within - time.Second).SetUpWithin(within)
			if p.NotSetUp {
				t.Fatal("it does not wait for as long as it was told")
			}
			if left, waits := p.Waits(within); waits != c.ends || waits && left != time.Second {
				t.Errorf("a second before the hour, it waits for %s: %t", left, waits)
			}
			if p = p.Pass(time.Second).SetUpWithin(within); p.NotSetUp != c.ends {
				t.Errorf("%s: after the hour it ends: %t", c.reason, p.NotSetUp)
			}
			next := p.Next(begin.Add(time.Minute))
			if ends := next.Request.Event == contract.Terminate && next.Request.Reason != "enough"; ends != c.ends {
				t.Errorf("%s: the next is %+v", c.reason, next)
			}
		})
	}
}

// TestDue checks when the time alone changes a contract.
func TestDue(t *testing.T) {
	all := scenes(t, time.Hour)
	end := begin.Add(30*day - drainFor)
	for state, want := range map[contract.State]time.Time{
		contract.Signed: begin.Add(contract.SetUpAtMost), contract.Provisioning: begin.Add(contract.SetUpAtMost), contract.Active: end,
		contract.Suspended: end,
	} {
		record := all[state][0].record
		if got := record.Due(); !got.Equal(want) || !record.Idle(want.Add(-time.Second)) || record.Idle(want) {
			t.Errorf("%s: due at %s, want %s; idle before %t, and then %t", state, got, want, record.Idle(want.Add(-time.Second)), record.Idle(want))
		}
	}
}
