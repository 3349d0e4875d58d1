// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package negotiationtest

import (
	"fmt"
	"testing"

	"github.com/capacitorset/liqo-broker/pkg/trade/core/contract"
)

// race is a look at a contract, during which another process changes that contract and the ledger.
type race struct {
	// before is what has happened to the contract, and meanwhile what happens to it during the look.
	before, meanwhile []contract.Event
	// others are contracts that are reserved and signed meanwhile.
	others []string
	// holds is whether the contract holds something in the end.
	holds bool
}

// races are the looks by which an old record could meet a newer ledger, or the other way round.
func races() map[string]race {
	signed := []contract.Event{contract.Reserve, contract.Sign}
	over := []contract.Event{contract.Reserve, contract.Sign, contract.Grant, contract.Terminate, contract.Drained}
	return map[string]race{
		"LookBesideSignature":  {meanwhile: signed, holds: true},
		"LookBesideWithdrawal": {before: over, meanwhile: []contract.Event{contract.Withdrawn}, others: []string{"a", "b", "c"}},
		"LookBesideEnd":        {before: signed[:1], meanwhile: []contract.Event{contract.Terminate}, others: []string{"a", "b", "c"}},
		"LookBesideSign":       {before: signed[:1], meanwhile: signed[1:], others: []string{"a"}, holds: true},
	}
}

// run has the other process be faster than the first one at each of its reads in turn: whenever that is, the ledger holds what the records
// that are stored need, and nothing else.
func (r race) run(t *testing.T, open Open) {
	t.Helper()
	for at := 1; ; at++ {
		var reading func()
		one, other := contests(t, open, func() {
			if reading != nil {
				reading()
			}
		})
		other.do(t, key("x"), r.before...)
		reads := 0
		reading = func() {
			if reads++; reads != at {
				return
			}
			reading = nil
			other.do(t, key("x"), r.meanwhile...)
			for _, id := range r.others {
				other.do(t, key(id), contract.Reserve, contract.Sign)
			}
		}
		if _, err := one.Update(t.Context(), key("x"), one.deciding(key("x"), contract.Tick)); err != nil {
			t.Fatalf("look at a contract that changes before read %d: %v", at, err)
		}
		if reads < at {
			if reads < 2 {
				t.Errorf("a look reads %d times, not the record and the ledger", reads)
			}
			return
		}
		want := map[string]bool{}
		for _, id := range r.others {
			want[id] = true
		}
		if r.holds {
			want["x"] = true
		}
		held := map[string]bool{}
		for _, hold := range other.held(t).Holds {
			held[hold.Key.ID] = true
		}
		if fmt.Sprint(held) != fmt.Sprint(want) {
			t.Errorf("changed before read %d: %v hold something, want %v", at, held, want)
		}
	}
}
