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
	"github.com/capacitorset/liqo-broker/pkg/trade/core/ledger"
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

// TestMove moves a contract to another plan: both plans are held until both have signed, whatever is killed between, and the notice is then
// that of the new plan.
func TestMove(t *testing.T) {
	s := scenes(t, time.Hour)[contract.Active][0]
	was, wanted := s.record.Terms, elsewhere(s.record.Terms, 2)
	s = s.after(t, begin, contract.Request{Event: contract.Resize, Terms: wanted, Verdict: contract.Accept})
	plans := func(held ledger.Ledger) []string {
		hold, _ := held.Get(theKey)
		return hold.Plans()
	}
	if hold, _ := s.books.Get(theKey); !slices.Equal(plans(s.books), []string{"small", "large"}) ||
		!hold.NextUntil.Equal(begin.Add(reserveFor)) ||
		s.record.State != contract.Resizing || s.record.Terms.Plan != "small" {
		t.Errorf("while it is agreed, it is %s and holds %+v", s.record.State, hold)
	}
	request := signed(contract.Confirm, wanted)
	request.Key = theKey
	result, err := theSeller.Apply(s.record, request, begin, s.books, theLimits())
	if err != nil || result.Record.Terms.Plan != "large" || result.Record.Terms.Notice != was.Notice+time.Minute {
		t.Fatalf("confirmed: %+v, %v", result.Record.Terms, err)
	}
	hold, _ := result.Before.Get(theKey)
	if both := slices.Sorted(slices.Values(hold.Plans())); !slices.Equal(both, []string{"large", "small"}) || !hold.NextUntil.IsZero() {
		t.Errorf("before the record is written, it holds %+v", hold)
	}
	if after := plans(result.After); !slices.Equal(after, []string{"large"}) {
		t.Errorf("after it is written, it holds %q", after)
	}
	if rates := contract.Rates(result.Record.Rates, result.Record.Terms); len(rates) != 1 || rates[0].Plan != "large" {
		t.Errorf("from its beginning on it costs %v", rates)
	}
	// Killed before or after the record is written, and looked at again.
	for name, stored := range map[string]contract.Record{"small": *s.record, "large": result.Record} {
		after, err := theSeller.Apply(&stored, contract.Request{Event: contract.Tick, Key: theKey}, begin, result.Before, theLimits())
		want := map[string][]string{"small": {"small", "large"}, "large": {"large"}}[name]
		if held := plans(after.After); err != nil || !slices.Equal(held, want) {
			t.Errorf("killed with plan %s in the record, it holds %q, %v", name, held, err)
		}
	}
}

// TestMoveRefused checks that a contract stays as it is where nothing is left of the plan that it is to move to.
func TestMoveRefused(t *testing.T) {
	s := scenes(t, time.Hour)[contract.Active][0]
	none := int64(0)
	for name, limits := range map[string]ledger.Limits{
		"none are left":               {Plan: "large", Stock: &none, Capacity: resourcesOf(6, 6)},
		"the stock is another plan's": {Plan: "small", Capacity: resourcesOf(6, 6)},
	} {
		request := contract.Request{Event: contract.Resize, Key: theKey, Terms: elsewhere(s.record.Terms, 2), Verdict: contract.Accept}
		result, err := theSeller.Apply(s.record, request, begin, s.books, limits)
		if err != nil || result.Record.State != contract.Active || result.Record.Refused == nil || result.Record.Terms.Plan != "small" ||
			!strings.Contains(result.Record.Refused.Reason, "plan large") || !result.After.Equal(s.books) {
			t.Errorf("%s: it is %s, refused %+v, %v", name, result.Record.State, result.Record.Refused, err)
		}
	}
}

// TestAbout says whose plan's limits count: those of the terms that are brought, or that are being agreed, or that are in force.
func TestAbout(t *testing.T) {
	all := scenes(t, time.Hour)
	moving := all[contract.Resizing][3].record
	for name, c := range map[string]struct {
		record *contract.Record
		terms  contract.Terms
		want   string
	}{
		"nothing":        {nil, contract.Terms{}, ""},
		"what it asks":   {nil, contract.Terms{Plan: "x"}, "x"},
		"a late one":     {moving, contract.Terms{Plan: "x"}, "x"},
		"being agreed":   {moving, contract.Terms{}, "large"},
		"what is signed": {all[contract.Active][0].record, contract.Terms{}, "small"},
	} {
		if got := (contract.Request{Terms: c.terms}).About(c.record).Plan; got != c.want {
			t.Errorf("%s is about %q, want %q", name, got, c.want)
		}
	}
}
