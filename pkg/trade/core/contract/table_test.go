// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package contract_test

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/capacitorset/liqo-broker/pkg/trade/core/contract"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/ledger"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/offer/offertest"
)

// scene is a record in a state, and the ledger beside it.
type scene struct {
	record *contract.Record
	books  ledger.Ledger
}

var (
	theSeller = contract.Seller{ReserveFor: reserveFor, DecideFor: decideFor}
	theKey    = contract.Key{Buyer: "buyer", ID: "c1"}
)

func theLimits() ledger.Limits {
	stock := int64(3)
	return ledger.Limits{Stock: &stock, Capacity: resourcesOf(6, 6)}
}

// after returns the scene after a request, which must succeed.
func (s scene) after(t *testing.T, now time.Time, request contract.Request) scene {
	t.Helper()
	request.Key = theKey
	result, err := theSeller.Apply(s.record, request, now, s.books, theLimits())
	if err != nil {
		t.Fatal(err)
	}
	return scene{&result.Record, result.After}
}

// signed returns a request that carries both signatures of terms, of which another size counts from the beginning.
func signed(event contract.Event, terms contract.Terms) contract.Request {
	if event == contract.Confirm && terms.EffectiveAt.IsZero() {
		terms.EffectiveAt = begin
	}
	signature := fmt.Sprintf("buyer of revision %d", terms.Revision)
	return contract.Request{Event: event, Terms: terms, Signature: signature, Countersignature: "seller over " + signature}
}

// revised returns the terms as a Resize or Renew proposes them.
func revised(terms contract.Terms, event contract.Event, revision, cpu int64) contract.Terms {
	terms.Revision = revision
	if event == contract.Renew {
		terms.EffectiveAt, terms.EndsAt = terms.EndsAt, terms.EndsAt.Add(day)
	} else {
		terms.Resources = resourcesOf(cpu, 2)
	}
	return terms
}

// elsewhere returns the terms as a Resize proposes them that moves to another plan, with another notice.
func elsewhere(terms contract.Terms, revision int64) contract.Terms {
	terms = revised(terms, contract.Resize, revision, 1)
	terms.Plan, terms.Notice, terms.Price = "large", terms.Notice+time.Minute, offertest.Price("2")
	return terms
}

// scenes returns records in every state, by every way that makes a difference.
func scenes(t *testing.T, notice time.Duration) map[contract.State][]scene {
	t.Helper()
	terms := termsOf("buyer", 2, 2)
	terms.Notice = notice
	do := func(s scene, event contract.Event) scene {
		return s.after(t, begin, contract.Request{Event: event, Reason: "because"})
	}
	propose := func(s scene, event contract.Event, verdict contract.Verdict) scene {
		return s.after(t, begin, contract.Request{Event: event, Terms: revised(terms, event, 4, 3), Verdict: verdict})
	}
	none := scene{}
	proposed := none.after(t, begin, contract.Request{Event: contract.Reserve, Terms: terms, Verdict: contract.Ask})
	reserved := none.after(t, begin, contract.Request{Event: contract.Reserve, Terms: terms, Verdict: contract.Accept})
	both := reserved.after(t, begin, signed(contract.Sign, terms))
	provisioning := do(both, contract.Grant)
	active := do(provisioning, contract.Peered)
	resizing := propose(active, contract.Resize, contract.Accept)
	moving := active.after(t, begin, contract.Request{Event: contract.Resize, Terms: elsewhere(terms, 4), Verdict: contract.Accept})
	suspended := do(active, contract.Suspend)
	terminating := do(active, contract.Terminate)
	ended := do(terminating, contract.Drained)
	failed := do(both, contract.Fail)
	all := map[contract.State][]scene{
		contract.None: {none}, contract.Proposed: {proposed}, contract.Reserved: {reserved, do(proposed, contract.Approve)},
		contract.Signed: {both}, contract.Provisioning: {provisioning},
		contract.Active: {
			active, propose(active, contract.Resize, contract.Deny),
			resizing.after(t, begin, signed(contract.Confirm, resizing.record.Change.Terms)),
			moving.after(t, begin, signed(contract.Confirm, moving.record.Change.Terms)),
		},
		contract.Resizing:  {resizing, propose(active, contract.Renew, contract.Ask), propose(active, contract.Resize, contract.Ask), moving},
		contract.Suspended: {suspended}, contract.Terminating: {terminating},
		contract.Ended:    {ended, do(ended, contract.Withdrawn), do(reserved, contract.Terminate)},
		contract.Rejected: {do(proposed, contract.Refuse)},
		contract.Expired:  {reserved.after(t, begin.Add(reserveFor), contract.Request{Event: contract.Tick})},
		contract.Failed:   {failed, do(failed, contract.Withdrawn)},
	}
	if notice > drainFor { // else it ends at once
		for _, state := range []contract.State{contract.Signed, contract.Provisioning, contract.Active, contract.Suspended} {
			all[state] = append(all[state], do(all[state][0], contract.Notice))
		}
	}
	return all
}

// requests returns what can be meant by an event.
func requests(event contract.Event, s scene, terms contract.Terms) []contract.Request {
	verdicts := []contract.Verdict{contract.Accept, contract.Ask, contract.Deny}
	var all []contract.Request
	switch event { //nolint:exhaustive // The others need nothing, or the default.
	case contract.Reserve:
		for _, verdict := range verdicts {
			all = append(all, contract.Request{Terms: terms, Verdict: verdict})
		}
	case contract.Sign:
		all = append(all, signed(event, terms))
	case contract.Resize, contract.Renew:
		for _, verdict := range verdicts {
			all = append(all, contract.Request{Terms: revised(terms, event, 9, 3), Verdict: verdict})
		}
		all = append(all,
			contract.Request{Terms: elsewhere(terms, 9), Verdict: contract.Accept},
			contract.Request{Terms: revised(terms, event, 9, 5000), Verdict: contract.Accept},
			contract.Request{Terms: revised(terms, event, 3, 3), Verdict: contract.Accept})
		if s.record != nil {
			all = append(all, contract.Request{Terms: s.record.Terms, Verdict: contract.Accept})
		}
	case contract.Confirm:
		all = append(all, signed(event, revised(terms, contract.Resize, 77, 3)), signed(contract.Sign, terms))
		if s.record != nil && s.record.Change != nil {
			all = append(all, signed(event, s.record.Change.Terms))
		}
		if s.record != nil && s.record.Terms.Revision > 1 {
			all = append(all, contract.Request{Terms: s.record.Terms, Signature: s.record.Signature, Countersignature: s.record.Countersignature})
		}
	default:
		all = append(all, contract.Request{Reason: "because"})
	}
	for i := range all {
		all[i].Event, all[i].Key = event, theKey
	}
	return all
}

// TestTable walks every event in every state: what happens is what the table says, all that the table says happens, and what is done twice
// is done once.
func TestTable(t *testing.T) {
	type seen struct {
		state contract.State
		event contract.Event
		what  string
	}
	happened := map[seen]bool{}
	others := ledger.Hold{Key: contract.Key{Buyer: "z", ID: "z"}, Offer: "o", Plan: "small", Resources: resourcesOf(4, 4)}
	all := others
	all.Resources = resourcesOf(6, 6)
	walk := func(s scene, state contract.State, request contract.Request, now time.Time) {
		cell := contract.Lookup(state, request.Event)
		result, err := theSeller.Apply(s.record, request, now, s.books, theLimits())
		what := string(result.Outcome)
		switch result.Outcome { //nolint:exhaustive // The others need nothing, or the default.
		case contract.Done:
			what = string(result.Record.State)
			if err != nil || !slices.Contains(cell.To, result.Record.State) {
				t.Errorf("%s in %q: done, in state %s with error %v; the table says %v", request.Event, state, result.Record.State, err, cell)
			}
		case contract.Same:
			if err != nil || !cell.Same {
				t.Errorf("%s in %q: the same with error %v; the table says %v", request.Event, state, err, cell)
			}
		default:
			if errors.Is(err, contract.ErrTerms) { // of a contract that has other terms by now
				return
			}
			if !slices.ContainsFunc(cell.Errs, func(want error) bool { what = want.Error(); return errors.Is(err, want) }) {
				t.Errorf("%s in %q: refused by %v; the table says %v", request.Event, state, err, cell)
			}
		}
		happened[seen{state, request.Event, what}] = true
		stored := &result.Record
		if stored.Version == 0 {
			stored = nil
		}
		again, errAgain := theSeller.Apply(stored, request, now, result.After, theLimits())
		if again.Outcome == contract.Done || !reflect.DeepEqual(again.Record, result.Record) || !again.After.Equal(result.After) {
			t.Errorf("%s in %q twice: %s %v, then %s %v", request.Event, state, result.Outcome, err, again.Outcome, errAgain)
		}
	}
	for _, notice := range []time.Duration{time.Hour, 0} {
		terms := termsOf("buyer", 2, 2)
		terms.Notice = notice
		for state, records := range scenes(t, notice) {
			for _, s := range records {
				if s.record != nil && s.record.State != state {
					t.Fatalf("a record is %s, not %s", s.record.State, state)
				}
				// The time alone, and reservations that were lost because a clock had leaped.
				for _, now := range []time.Time{begin, begin.Add(-20 * day), begin.Add(reserveFor), begin.Add(decideFor), begin.Add(40 * day)} {
					walk(s, state, contract.Request{Event: contract.Tick, Key: theKey}, now)
				}
				if state == contract.Reserved || state == contract.Resizing {
					walk(scene{s.record, ledger.Ledger{Holds: []ledger.Hold{all}}}, state, contract.Request{Event: contract.Tick, Key: theKey}, begin)
				}
				for _, event := range contract.Events() {
					for _, request := range requests(event, s, terms) {
						walk(s, state, request, begin)
						walk(scene{s.record, s.books.Keep(others)}, state, request, begin)
						if state == contract.None || state == contract.Proposed {
							walk(scene{s.record, ledger.Ledger{Holds: []ledger.Hold{all}}}, state, request, begin)
						}
					}
				}
			}
		}
	}
	for _, state := range contract.States() {
		for _, event := range contract.Events() {
			cell := contract.Lookup(state, event)
			var want []string
			for _, to := range cell.To {
				want = append(want, string(to))
			}
			if cell.Same {
				want = append(want, string(contract.Same))
			}
			for _, err := range cell.Errs {
				want = append(want, err.Error())
			}
			if len(want) == 0 {
				t.Errorf("the table has nothing for %s in %q", event, state)
			}
			for _, what := range want {
				if !happened[seen{state, event, what}] {
					t.Errorf("%s in %q: %s never happens", event, state, what)
				}
			}
		}
	}
}

// TestRefusedTerms checks what every state compares.
func TestRefusedTerms(t *testing.T) {
	terms := termsOf("buyer", 2, 2)
	all := scenes(t, time.Hour)
	reserved, active, resizing := all[contract.Reserved][0], all[contract.Active][0], all[contract.Resizing][0]
	cheaper := terms
	cheaper.Price = offertest.Price("0")
	huge, stranger, past := terms, terms, terms
	huge.Resources = resourcesOf(1<<60, 2)
	stranger.Buyer = "stranger"
	past.StartsAt, past.EndsAt = begin.Add(-2*day), begin.Add(-day)
	longer := revised(terms, contract.Resize, 9, 3)
	longer.EndsAt = longer.EndsAt.Add(day)
	moved := revised(terms, contract.Resize, 9, 3)
	moved.Cluster.ID = "another-id"
	soon, sooner, otherOffer := revised(terms, contract.Resize, 9, 3), elsewhere(terms, 9), elsewhere(terms, 9)
	soon.Notice, sooner.Notice, otherOffer.Offer = 0, 0, "another"
	later := revised(terms, contract.Renew, 9, 3)
	later.Plan = "large"
	nowhere, nameless := terms, terms
	nowhere.Cluster.ID, nameless.Cluster.Name = "", "Not A Label"
	other := resizing.record.Change.Terms
	other.Price = offertest.Price("0")
	unsigned := signed(contract.Sign, terms)
	unsigned.Countersignature = ""
	cases := map[string]struct {
		reason  string
		scene   scene
		request contract.Request
	}{
		"other terms for the same ID": {
			"an ID is used once", reserved, contract.Request{Event: contract.Reserve, Terms: cheaper, Verdict: contract.Accept},
		},
		"more than can be": {
			"quantities are bounded", scene{}, contract.Request{Event: contract.Reserve, Terms: huge, Verdict: contract.Accept},
		},
		"terms of another buyer": {
			"a buyer buys for itself", scene{}, contract.Request{Event: contract.Reserve, Terms: stranger, Verdict: contract.Accept},
		},
		"terms of the past": {
			"a contract that has ended cannot begin", scene{}, contract.Request{Event: contract.Reserve, Terms: past, Verdict: contract.Accept},
		},
		"signature of other terms": {"only what is reserved can be signed", reserved, signed(contract.Sign, cheaper)},
		"one signature":            {"nothing is signed by one side", reserved, unsigned},
		"another signature later": {
			"a contract has one", active, contract.Request{Event: contract.Sign, Terms: terms, Signature: "x", Countersignature: "y"},
		},
		"resize that renews": {
			"a size is no end", active, contract.Request{Event: contract.Resize, Terms: longer, Verdict: contract.Accept},
		},
		"resize for another cluster": {
			"a contract stays with its cluster", active, contract.Request{Event: contract.Resize, Terms: moved, Verdict: contract.Accept},
		},
		"resize with another notice": {
			"both have signed it, of this plan", active, contract.Request{Event: contract.Resize, Terms: soon, Verdict: contract.Accept},
		},
		"move to a plan with a shorter notice": {
			"both have signed the longer one", active, contract.Request{Event: contract.Resize, Terms: sooner, Verdict: contract.Accept},
		},
		"move to another offer": {
			"that is another contract", active, contract.Request{Event: contract.Resize, Terms: otherOffer, Verdict: contract.Accept},
		},
		"renewal by another plan": {
			"an end is no plan", active, contract.Request{Event: contract.Renew, Terms: later, Verdict: contract.Accept},
		},
		"no cluster": {
			"a contract is for a cluster", scene{}, contract.Request{Event: contract.Reserve, Terms: nowhere, Verdict: contract.Accept},
		},
		"a name that is none": {
			"names become those of objects", scene{}, contract.Request{Event: contract.Reserve, Terms: nameless, Verdict: contract.Accept},
		},
		"confirmation of other terms": {"only what is proposed can be confirmed", resizing, signed(contract.Confirm, other)},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			c.request.Key = theKey
			result, err := theSeller.Apply(c.scene.record, c.request, begin, c.scene.books, theLimits())
			if !errors.Is(err, contract.ErrTerms) || result.Outcome != contract.No {
				t.Errorf("%s: got %s, %v", c.reason, result.Outcome, err)
			}
			if !result.After.Equal(c.scene.books) || c.scene.record != nil && result.Record.Version != c.scene.record.Version {
				t.Errorf("%s: something was written", c.reason)
			}
		})
	}
}

// TestDrainBeforeTheEnd checks that a buyer is warned for a whole drain, also by a seller that was away when the contract ended.
func TestDrainBeforeTheEnd(t *testing.T) {
	end := begin.Add(30 * day)
	cases := map[string]struct {
		reason string
		awake  time.Time
		want   time.Time
	}{
		"in time":   {"the drain is before the end", end.Add(-drainFor), end},
		"away":      {"the seller was away at the end, and the buyer was not told", end.Add(day), end.Add(day + drainFor)},
		"away once": {"it was away when the drain began", end.Add(-time.Minute), end.Add(drainFor - time.Minute)},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := scenes(t, time.Hour)[contract.Active][0]
			if s = s.after(t, end.Add(-drainFor-time.Second), contract.Request{Event: contract.Tick}); s.record.State != contract.Active {
				t.Errorf("%s: it is %s before the drain", c.reason, s.record.State)
			}
			s = s.after(t, c.awake, contract.Request{Event: contract.Tick})
			if s.record.State != contract.Terminating || !s.record.Ends.Equal(c.want) {
				t.Errorf("%s: %s until %s, want until %s", c.reason, s.record.State, s.record.Ends, c.want)
			}
			if s = s.after(t, c.want.Add(-time.Second), contract.Request{Event: contract.Tick}); s.record.State != contract.Terminating {
				t.Errorf("%s: withdrawn too early", c.reason)
			}
			if s = s.after(t, c.want, contract.Request{Event: contract.Tick}); s.record.State != contract.Ended {
				t.Errorf("%s: never withdrawn", c.reason)
			}
		})
	}
}

// TestObserveRefuses checks what a buyer does not believe.
func TestObserveRefuses(t *testing.T) {
	terms := termsOf("buyer", 2, 2)
	all := scenes(t, time.Hour)
	fresh, err := contract.NewPurchase(terms, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	bought := fresh
	bought.Signature = all[contract.Active][0].record.Signature
	if bought, err = bought.Observe(all[contract.Active][0].record.View, begin); err != nil || bought.State() != contract.Active {
		t.Fatal(bought.State(), err)
	}
	over, err := bought.Observe(all[contract.Ended][0].record.View, begin)
	if err != nil {
		t.Fatal(err)
	}
	ending, err := bought.Observe(all[contract.Terminating][0].record.View, begin)
	if err != nil {
		t.Fatal(err)
	}
	view := func(s scene, change func(*contract.View)) contract.View {
		v := s.record.View
		v.Version = 100
		change(&v)
		return v
	}
	cases := map[string]struct {
		reason   string
		purchase contract.Purchase
		view     contract.View
	}{
		"a contract that it did not sign": {"only its signature binds it", fresh, view(all[contract.Active][0], func(*contract.View) {})},
		"new terms": {
			"the terms in force are those it signed", bought, view(all[contract.Active][2], func(*contract.View) {}),
		},
		"a higher price": {"the price is part of the terms", bought,
			view(all[contract.Active][0], func(v *contract.View) { v.Terms.Price = offertest.Price("100") })},
		"a worse reservation": {"it would sign what it did not ask for", fresh,
			view(all[contract.Reserved][0], func(v *contract.View) { v.Terms.Price = offertest.Price("100") })},
		"no signature any more": {"both have signed", bought, view(all[contract.Active][0], func(v *contract.View) { v.Countersignature = "" })},
		"another contract":      {"it did not ask for that", bought, view(all[contract.Active][0], func(v *contract.View) { v.Key.ID = "c2" })},
		"a state of its own":    {"there is no such state", bought, view(all[contract.Active][0], func(v *contract.View) { v.State = "Free" })},
		"back from the end":     {"what is over stays over", over, view(all[contract.Active][0], func(*contract.View) {})},
		"back to the beginning": {"it has peered before", bought, view(all[contract.Provisioning][0], func(*contract.View) {})},
		"back from the drain":   {"what ends does not begin again", ending, view(all[contract.Active][0], func(*contract.View) {})},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			after, err := c.purchase.Observe(c.view, begin)
			if !errors.Is(err, contract.ErrTerms) || !reflect.DeepEqual(after, c.purchase) {
				t.Errorf("%s: got %s, %v", c.reason, after.State(), err)
			}
		})
	}
	older := view(all[contract.Provisioning][0], func(v *contract.View) { v.Version = 1 })
	if after, err := bought.Observe(older, begin); err != nil || after.State() != contract.Active {
		t.Errorf("an older view that arrives later: %s, %v", after.State(), err)
	}
}

// TestLedgerFollowsRecord checks what a process does that finds the ledger of another one, which was killed or is still at work, before a
// larger size came into force: it gives the rest back only behind a record that it has written, so that the other one's is refused.
func TestLedgerFollowsRecord(t *testing.T) {
	s := scenes(t, time.Hour)[contract.Resizing][0]
	books := s.books.Keep(ledger.Hold{Key: theKey, Offer: "o", Plan: "small", Resources: s.record.Change.Terms.Resources})
	result, err := theSeller.Apply(s.record, contract.Request{Event: contract.Tick, Key: theKey}, begin, books, theLimits())
	if err != nil || !result.Before.Equal(books) || result.Record.Version <= s.record.Version || !result.After.Equal(s.books) {
		t.Errorf("got %v: before %v, version %d, after %v", err, result.Before, result.Record.Version, result.After)
	}
}

// TestHistory checks that the audit trail is bounded, and keeps the newest.
func TestHistory(t *testing.T) {
	s := scenes(t, time.Hour)[contract.Active][0]
	for range 100 {
		s = s.after(t, begin, contract.Request{Event: contract.Suspend, Reason: "maintenance"})
		s = s.after(t, begin, contract.Request{Event: contract.Resume})
	}
	history := s.record.History
	if last := history[len(history)-1]; len(history) != 32 || last.Event != contract.Resume || history[30].Reason != "maintenance" {
		t.Errorf("got %d entries, the last of which is %v", len(history), last)
	}
}

// TestLapsed tells reservations that their buyer did not sign from what was never held, and from contracts.
func TestLapsed(t *testing.T) {
	terms := termsOf("buyer", 2, 2)
	reserve := func(verdict contract.Verdict) contract.Request {
		return contract.Request{Event: contract.Reserve, Terms: terms, Verdict: verdict}
	}
	for name, c := range map[string]struct {
		requests []contract.Request
		waits    time.Duration // Before the time is applied.
		want     bool
	}{
		"Reserved":       {requests: []contract.Request{reserve(contract.Accept)}},
		"Expired":        {requests: []contract.Request{reserve(contract.Accept)}, waits: reserveFor, want: true},
		"GivenUp":        {requests: []contract.Request{reserve(contract.Accept), {Event: contract.Terminate}}, want: true},
		"ApprovedInVain": {requests: []contract.Request{reserve(contract.Ask), {Event: contract.Approve}}, waits: reserveFor, want: true},
		"NotApproved":    {requests: []contract.Request{reserve(contract.Ask)}, waits: decideFor},
		"Refused":        {requests: []contract.Request{reserve(contract.Ask), {Event: contract.Refuse}}},
		"Denied":         {requests: []contract.Request{reserve(contract.Deny)}},
		"Signed": {requests: []contract.Request{
			reserve(contract.Accept), signed(contract.Sign, terms), {Event: contract.Terminate}, {Event: contract.Drained},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			var s scene
			for _, request := range c.requests {
				s = s.after(t, begin, request)
			}
			if s = s.after(t, begin.Add(c.waits), contract.Request{Event: contract.Tick}); s.record.Lapsed() != c.want {
				t.Errorf("%s has lapsed: %t", s.record.State, s.record.Lapsed())
			}
		})
	}
}

// TestPaidUntil checks until when a buyer pays: notice binds both sides, and a buyer can leave before that.
func TestPaidUntil(t *testing.T) {
	end := begin.Add(30 * day)
	const long = 3 * time.Hour
	do := func(event contract.Event) contract.Request { return contract.Request{Event: event, Reason: "because"} }
	type step struct {
		at      time.Time
		request contract.Request
	}
	early, late, later := begin.Add(contract.SetUpFor-time.Second), begin.Add(contract.SetUpFor), begin.Add(contract.SetUpAtMost)
	cases := map[string]struct {
		reason string
		from   contract.State
		notice time.Duration
		steps  []step
		state  contract.State
		want   time.Time
	}{
		"in force": {"it pays until the end", contract.Active, long, nil, contract.Active, end},
		"the buyer ends": {
			"it pays for the notice", contract.Active, long, []step{{later, do(contract.Terminate)}}, contract.Terminating, later.Add(long),
		},
		"the buyer ends and leaves": {
			"it can leave before", contract.Active, long, []step{{later, do(contract.Terminate)}, {later.Add(time.Minute), do(contract.Drained)}},
			contract.Ended, later.Add(long),
		},
		"no notice": {
			"it pays until it has left", contract.Active, 0, []step{{later, do(contract.Terminate)}, {later.Add(time.Minute), do(contract.Drained)}},
			contract.Ended, later.Add(time.Minute),
		},
		"near the end": {
			"it pays no longer than the terms say", contract.Active, long, []step{{end.Add(-time.Hour), do(contract.Terminate)}},
			contract.Terminating, end,
		},
		"the seller ends": {
			"it pays while it is given something", contract.Active, long, []step{{later, do(contract.Notice)}}, contract.Active, later.Add(long),
		},
		"it leaves after notice": {
			"the seller has ended it", contract.Active, long, []step{{later, do(contract.Notice)}, {later.Add(time.Minute), do(contract.Terminate)}},
			contract.Terminating, later.Add(time.Minute),
		},
		"it leaves a suspended one": {
			"it gets nothing", contract.Suspended, long, []step{{later, do(contract.Terminate)}}, contract.Terminating, later,
		},
		"before it is granted": {
			"it gets nothing", contract.Signed, long, []step{{early, do(contract.Terminate)}}, contract.Terminating, early,
		},
		"not granted in time": {
			"the seller had ten minutes", contract.Signed, long,
			[]step{{late, do(contract.Terminate)}, {late.Add(time.Minute), do(contract.Drained)}}, contract.Ended, time.Time{},
		},
		"about to peer": {
			"it waits for what it has signed", contract.Provisioning, long, []step{{early, do(contract.Terminate)}}, contract.Terminating,
			early.Add(long),
		},
		"never peered": {
			"it held the capacity until it has left", contract.Provisioning, long,
			[]step{{late, do(contract.Terminate)}, {late.Add(time.Minute), do(contract.Drained)}}, contract.Ended, late.Add(time.Minute),
		},
		"never peered, and nobody says so": {
			"the seller gives it to others", contract.Provisioning, long, []step{{later, do(contract.Tick)}}, contract.Terminating, later,
		},
		"a moment before": {
			"it can still peer", contract.Provisioning, long, []step{{later.Add(-time.Second), do(contract.Tick)}}, contract.Provisioning, end,
		},
		"peered at the last moment": {
			"it is in use", contract.Provisioning, long, []step{{later.Add(-time.Second), do(contract.Peered)}, {later, do(contract.Tick)}},
			contract.Active, end,
		},
		"never granted, and nobody says so": {
			"the seller had a day", contract.Signed, long, []step{{later, do(contract.Tick)}, {later.Add(drainFor), do(contract.Tick)}},
			contract.Ended, time.Time{},
		},
		"failed": {
			"it never got anything", contract.Signed, long, []step{{early, do(contract.Fail)}}, contract.Failed, time.Time{},
		},
		"the end of the terms": {
			"the last drain is paid for", contract.Active, long,
			[]step{{end.Add(-drainFor), do(contract.Tick)}, {end.Add(-time.Minute), do(contract.Drained)}}, contract.Ended, end,
		},
		"the seller was away": {
			"what comes after the terms costs nothing", contract.Active, long,
			[]step{{end.Add(day), do(contract.Tick)}, {end.Add(2 * day), do(contract.Tick)}}, contract.Ended, end,
		},
		"not signed": {
			"nothing was sold", contract.Reserved, long, []step{{begin, do(contract.Terminate)}}, contract.Ended, time.Time{},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := scenes(t, c.notice)[c.from][0]
			for _, step := range c.steps {
				s = s.after(t, step.at, step.request)
			}
			if s.record.State != c.state || !s.record.PaidUntil.Equal(c.want) {
				t.Errorf("%s: %s, paid until %s, want %s and %s", c.reason, s.record.State, s.record.PaidUntil, c.state, c.want)
			}
		})
	}
}
