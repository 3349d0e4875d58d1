// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package contract_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/capacitorset/liqo-broker/pkg/trade/core/contract"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/offer/offertest"
)

// bargain is both sides of a contract, over a network that loses nothing.
type bargain struct {
	t        *testing.T
	now      time.Time
	scene    scene
	purchase contract.Purchase
	verdict  contract.Verdict
}

func newBargain(t *testing.T, verdict contract.Verdict) *bargain {
	t.Helper()
	purchase, err := contract.NewPurchase(termsOf("buyer", 2, 2), time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	return &bargain{t: t, now: begin, purchase: purchase, verdict: verdict}
}

// seller lets the seller do something.
func (b *bargain) seller(event contract.Event) {
	b.t.Helper()
	b.scene = b.scene.after(b.t, b.now, contract.Request{Event: event})
}

// until has the buyer do what it does, up to a state.
func (b *bargain) until(state contract.State) {
	b.t.Helper()
	for range 30 {
		if b.scene.record != nil {
			var err error
			if b.purchase, err = b.purchase.Observe(b.scene.record.View, b.now); err != nil {
				b.t.Fatal(err)
			}
		}
		if b.purchase.State() == state && b.purchase.Proposal == nil {
			return
		}
		action := b.purchase.Next(b.now)
		b.purchase = b.purchase.Begin(action)
		signature := ""
		switch action.Deed { //nolint:exhaustive // The others need nothing.
		case contract.Send:
			request := action.Request
			request.Verdict, request.Countersignature = b.verdict, "seller over "+request.Signature
			b.scene = b.scene.after(b.t, b.now, request)
		case contract.SignTerms:
			signature = "buyer of revision " + strings.Repeat("i", int(action.Request.Terms.Revision))
		case contract.Watch:
			if b.purchase.State() != contract.Signed {
				b.t.Fatalf("the buyer waits in state %s", b.purchase.State())
			}
			b.seller(contract.Grant)
		}
		b.purchase = b.purchase.Finish(action, signature)
	}
	b.t.Fatalf("the contract is %s, not %s", b.purchase.State(), state)
}

// TestBegin checks that nobody pays for the wait for an approval: a contract begins when it is signed.
func TestBegin(t *testing.T) {
	const lasts = 30 * day
	for name, c := range map[string]struct {
		reason       string
		waits        time.Duration
		fixed        bool
		starts, ends time.Duration
	}{
		"at once":             {"there was no wait", 20 * time.Second, false, 0, lasts},
		"after a while":       {"it is as long as it was to be", decideFor / 2, false, decideFor / 2, lasts + decideFor/2},
		"with a fixed end":    {"people want that end", decideFor / 2, true, decideFor / 2, lasts},
		"by a clock set back": {"it begins no earlier than it was ordered for", -time.Hour, false, 0, lasts},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBargain(t, contract.Ask)
			b.purchase.EndFixed = c.fixed
			b.until(contract.Proposed)
			b.now = b.now.Add(c.waits)
			b.seller(contract.Approve)
			b.until(contract.Active)
			for side, terms := range map[string]contract.Terms{"seller": b.scene.record.Terms, "buyer": b.purchase.Terms} {
				if !terms.StartsAt.Equal(begin.Add(c.starts)) || !terms.EndsAt.Equal(begin.Add(c.ends)) {
					t.Errorf("%s, and the %s has %s to %s", c.reason, side, terms.StartsAt, terms.EndsAt)
				}
			}
			if !b.scene.record.Ends.Equal(b.scene.record.Terms.EndsAt) {
				t.Errorf("it ends at %s", b.scene.record.Ends)
			}
		})
	}
}

// TestBeginRefuses checks what of a reservation a buyer cannot change when it signs.
func TestBeginRefuses(t *testing.T) {
	s := scenes(t, time.Hour)[contract.Reserved][0]
	for name, change := range map[string]func(*contract.Terms){
		"earlier":          func(terms *contract.Terms) { terms.StartsAt = terms.StartsAt.Add(-time.Hour) },
		"in the future":    func(terms *contract.Terms) { terms.StartsAt, terms.EndsAt = begin.Add(day), terms.EndsAt.Add(day) },
		"for longer":       func(terms *contract.Terms) { terms.EndsAt = terms.EndsAt.Add(time.Hour) },
		"for less":         func(terms *contract.Terms) { terms.EndsAt = terms.EndsAt.Add(-time.Hour) },
		"another price":    func(terms *contract.Terms) { terms.Price = offertest.Price("0") },
		"from when counts": func(terms *contract.Terms) { terms.EffectiveAt = begin.Add(time.Hour) },
	} {
		t.Run(name, func(t *testing.T) {
			terms := s.record.Terms
			change(&terms)
			request := signed(contract.Sign, terms)
			request.Key = theKey
			if _, err := theSeller.Apply(s.record, request, begin, s.books, theLimits()); !errors.Is(err, contract.ErrTerms) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// TestSuperseded checks that both sides keep what they had agreed before, and from when which terms count.
func TestSuperseded(t *testing.T) {
	b := newBargain(t, contract.Accept)
	b.until(contract.Active)
	first := b.scene.record.Terms
	change := func(event contract.Event, with func(*contract.Terms)) {
		t.Helper()
		terms := b.purchase.Terms
		with(&terms)
		var err error
		if b.purchase, err = b.purchase.Propose(event, terms); err != nil {
			t.Fatal(err)
		}
		b.until(contract.Active)
	}
	b.now = begin.Add(day)
	change(contract.Renew, func(terms *contract.Terms) { terms.EndsAt, terms.Price = terms.EndsAt.Add(day), offertest.Price("3") })
	b.now = begin.Add(2 * day)
	change(contract.Resize, func(terms *contract.Terms) { terms.Resources = resourcesOf(3, 2) })
	for side, kept := range map[string]struct {
		superseded []contract.Superseded
		terms      contract.Terms
	}{"seller": {b.scene.record.Superseded, b.scene.record.Terms}, "buyer": {b.purchase.Superseded, b.purchase.Terms}} {
		var counts []time.Time
		var signatures []string
		for _, each := range kept.superseded {
			counts, signatures = append(counts, each.Terms.Counts()), append(signatures, each.Countersignature)
		}
		counts = append(counts, kept.terms.Counts())
		if want := []time.Time{begin, first.EndsAt, begin.Add(2 * day)}; !slices.EqualFunc(counts, want, time.Time.Equal) {
			t.Errorf("the terms of the %s count from %v, want %v", side, counts, want)
		}
		if want := []string{"seller over buyer of revision i", "seller over buyer of revision ii"}; !slices.Equal(signatures, want) {
			t.Errorf("the %s keeps %q, want %q", side, signatures, want)
		}
	}
	for range 100 {
		b.now = b.now.Add(time.Minute)
		change(contract.Resize, func(terms *contract.Terms) { terms.Price = offertest.Price("10") })
	}
	kept := b.scene.record.Superseded
	if len(kept) != 32 || kept[31].Terms.Revision+1 != b.scene.record.Terms.Revision || len(b.purchase.Superseded) != 32 {
		t.Errorf("%d terms are kept at the seller, the last of revision %d, and %d at the buyer", len(kept), kept[len(kept)-1].Terms.Revision,
			len(b.purchase.Superseded))
	}
}

// TestResizeCounts checks that another size counts from its signature on, by a clock that is not far from the seller's.
func TestResizeCounts(t *testing.T) {
	s := scenes(t, time.Hour)[contract.Resizing][0]
	for name, c := range map[string]struct {
		at   time.Time
		want error
	}{
		"now":           {begin, nil},
		"a little late": {begin.Add(reserveFor), nil},
		"too late":      {begin.Add(reserveFor + time.Second), contract.ErrTerms},
		"before":        {begin.Add(-time.Second), contract.ErrTerms},
	} {
		t.Run(name, func(t *testing.T) {
			terms := s.record.Change.Terms
			terms.EffectiveAt = c.at
			request := signed(contract.Confirm, terms)
			request.Key = theKey
			result, err := theSeller.Apply(s.record, request, begin, s.books, theLimits())
			if !errors.Is(err, c.want) || c.want == nil && (err != nil || !result.Record.Terms.Counts().Equal(c.at)) {
				t.Errorf("got %v", err)
			}
		})
	}
}
