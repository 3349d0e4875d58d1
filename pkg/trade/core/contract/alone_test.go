// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package contract_test

import (
	"slices"
	"testing"
	"time"

	"github.com/capacitorset/liqo-broker/pkg/trade/core/contract"
)

// joined is a purchase that is active and peered, and the view by which it is.
func joined(t *testing.T) (contract.Purchase, contract.View) {
	t.Helper()
	terms := termsOf("buyer", 1, 1)
	purchase, err := contract.NewPurchase(terms, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	purchase.Signature, purchase.Peering = "buyer", contract.Joined
	view := contract.View{
		Key: terms.Key(), Version: 9, State: contract.Active, Terms: terms, Signature: "buyer", Countersignature: "seller", Ends: terms.EndsAt,
	}
	if purchase, err = purchase.Observe(view, begin); err != nil {
		t.Fatal(err)
	}
	return purchase, view
}

// TestHear asks for one answer, again and again, when the buyer goes on alone.
func TestHear(t *testing.T) {
	ends := begin.Add(30 * day)
	at := func(now, seller time.Time) contract.Clocks { return contract.Clocks{Now: now, Seller: seller} }
	middle := at(begin.Add(day), begin.Add(day))
	for name, c := range map[string]struct {
		answer contract.Answer
		ending bool
		clocks contract.Clocks
		// after is for how long the answer must come; never if it is negative.
		after time.Duration
	}{
		"a silent seller":                        {contract.Silent, false, middle, -1},
		"a silent seller at the end":             {contract.Silent, false, at(ends.Add(-drainFor), ends.Add(-drainFor)), drainFor},
		"a silent seller, the own clock leaps":   {contract.Silent, false, at(ends.Add(day), begin.Add(day)), -1},
		"a silent seller whose clock was wrong":  {contract.Silent, false, at(begin.Add(day), ends.Add(day)), -1},
		"ended, and nobody answers":              {contract.Silent, true, middle, drainFor},
		"an unknown contract":                    {contract.Unknown, false, middle, 5 * time.Minute},
		"an unknown contract that has ended":     {contract.Unknown, true, middle, 5 * time.Minute},
		"a seller that answers":                  {contract.Answered, false, middle, -1},
		"a seller that answers, at the end":      {contract.Answered, false, at(ends, ends), -1},
		"a seller that answers, the clock leaps": {contract.Answered, false, at(ends.Add(day), begin.Add(day)), -1},
		"a seller that does not end what is over": {
			contract.Answered, false, at(ends.Add(drainFor), ends.Add(drainFor)), drainFor,
		},
		"a seller that does not end what the buyer ends": {contract.Answered, true, middle, drainFor},
		"nonsense":                          {contract.Wrong, false, middle, -1},
		"nonsense, ended":                   {contract.Wrong, true, middle, drainFor},
		"nonsense about what has been over": {contract.Wrong, false, at(ends.Add(day), ends.Add(day)), drainFor},
	} {
		t.Run(name, func(t *testing.T) {
			purchase, view := joined(t)
			if c.ending {
				purchase = purchase.End("enough")
			}
			purchase = purchase.Hear(c.answer, view, c.clocks)
			if purchase.Standing.Parts() {
				t.Fatal("it leaves at the first answer")
			}
			passed := time.Duration(0)
			for ; passed < day && !purchase.Standing.Parts(); passed += time.Second {
				purchase = purchase.Pass(time.Second).Hear(c.answer, view, c.clocks)
			}
			switch {
			case c.after < 0:
				if purchase.Standing.Parts() {
					t.Errorf("it leaves after %s", passed)
				}
				return
			case purchase.Standing != contract.Alone || passed != c.after:
				t.Fatalf("it stands %q after %s", purchase.Standing, passed)
			}
			if deed := purchase.Next(c.clocks.Now).Deed; deed != contract.Drain || purchase.DrainIsOver() {
				t.Errorf("alone it does %s; the drain is over: %t", deed, purchase.DrainIsOver())
			}
			if !purchase.Pass(drainFor).DrainIsOver() || purchase.Pass(drainFor-time.Second).DrainIsOver() {
				t.Error("it does not wait for a drain")
			}
			// A seller that answers as it should undoes it, before and after the clusters have parted, and after the buyer has left.
			undone := func(purchase contract.Purchase) {
				purchase.Ending = false
				if purchase = purchase.Hear(contract.Answered, view, middle); purchase.Standing != contract.Heard ||
					purchase.Next(middle.Now).Deed != contract.Peer {
					t.Errorf("after an answer it stands %q, and does %s", purchase.Standing, purchase.Next(middle.Now).Deed)
				}
			}
			for _, deed := range []contract.Deed{contract.Drain, contract.Unpeer} {
				purchase = purchase.Finish(contract.Action{Deed: deed}, "")
				undone(purchase)
			}
			purchase = purchase.Hear(c.answer, view, c.clocks)
			want := contract.Left
			switch {
			case !c.clocks.Now.Before(ends.Add(drainFor)) && !c.clocks.Seller.Before(ends.Add(drainFor)):
				want = contract.Closed
			case c.answer == contract.Silent:
				want = contract.Alone
			}
			if purchase.Standing != want || (purchase.Next(c.clocks.Now).Deed == contract.Over) != (want == contract.Closed) {
				t.Errorf("alone and apart it stands %q, and does %s", purchase.Standing, purchase.Next(c.clocks.Now).Deed)
			}
			if want != contract.Closed {
				undone(purchase)
			}
			if want == contract.Left && purchase.Hear(contract.Silent, view, c.clocks).Standing != want {
				t.Error("silence undoes what it has left")
			}
			if purchase = purchase.Hear(c.answer, view, at(ends.Add(drainFor), ends.Add(drainFor))); purchase.Standing != contract.Closed {
				t.Error("it asks for ever")
			}
			if purchase = purchase.Hear(contract.Answered, view, middle); purchase.Standing != contract.Closed {
				t.Error("what is closed is opened")
			}
		})
	}
}

// TestEndedUnsaid has a seller end a contract without a word of when that was, or with a wrong one: it ended when its buyer saw it. What
// ends in the drain before its end, or by clocks that differ a little, ends as agreed.
func TestEndedUnsaid(t *testing.T) {
	ends := begin.Add(30 * day)
	for name, c := range map[string]struct {
		at, says, want time.Time
	}{
		"at once":               {at: begin.Add(time.Hour), says: ends, want: begin.Add(time.Hour)},
		"nothing is said":       {at: begin.Add(time.Hour), want: begin.Add(time.Hour)},
		"it ends later":         {at: begin.Add(time.Hour), says: ends.Add(day), want: begin.Add(time.Hour)},
		"said":                  {at: begin.Add(time.Hour), says: begin.Add(2 * time.Hour), want: begin.Add(2 * time.Hour)},
		"in the drain":          {at: ends.Add(-drainFor), says: ends, want: ends},
		"by clocks that differ": {at: ends.Add(-drainFor - 5*time.Minute), says: ends, want: ends},
		"a second before": {
			at: ends.Add(-drainFor - 5*time.Minute - time.Second), says: ends, want: ends.Add(-drainFor - 5*time.Minute - time.Second),
		},
		"at the end": {at: ends, says: ends, want: ends},
	} {
		for _, restored := range []bool{false, true} {
			purchase, view := joined(t)
			view.State, view.Ends = contract.Ended, c.says
			if restored { // It shows an older version, until it is believed.
				view.Version--
				for range 61 {
					purchase = purchase.Hear(contract.Older, view, contract.Clocks{Now: c.at, Seller: c.at}).Pass(time.Second)
				}
			} else {
				view.Version++
				var err error
				if purchase, err = purchase.Observe(view, c.at); err != nil {
					t.Fatal(err)
				}
			}
			if !purchase.State().Final() || !purchase.Ends().Equal(c.want) {
				t.Errorf("%s (restored %t): %s at %s, want %s", name, restored, purchase.State(), purchase.Ends(), c.want)
			}
		}
	}
}

// TestTurns walks the table of how a buyer stands to its seller: Hear does what is in it, all that is in it happens, and it keeps what was
// promised.
func TestTurns(t *testing.T) {
	ends := begin.Add(30 * day)
	happened := map[contract.Standing]map[contract.Doubt][]bool{}
	for _, standing := range contract.Standings() {
		happened[standing] = map[contract.Doubt][]bool{}
		for _, heard := range contract.Doubts() {
			happened[standing][heard] = make([]bool, len(contract.Turns(standing, heard)))
			for bits := range 1 << 5 {
				is := func(bit int) bool { return bits>>bit&1 == 1 }
				for _, now := range []time.Time{begin.Add(day), ends.Add(-drainFor), ends.Add(drainFor)} {
					purchase, view := joined(t)
					if purchase.Peering = contract.Joined; is(0) {
						purchase.Peering = contract.Apart
					}
					if is(1) {
						purchase.Signature = ""
					}
					if is(2) {
						purchase = purchase.End("enough")
					}
					if is(3) {
						purchase.SignBy = begin
					}
					past := !now.Before(ends.Add(drainFor))
					holds := map[contract.Condition]bool{
						contract.Unbound: is(0) && is(1), contract.Unwanted: is(2) || is(3), contract.Ending: is(2), contract.Lasts: is(4),
						contract.Parted: is(0), contract.Near: !now.Before(ends.Add(-drainFor)),
						contract.Past: past, contract.PastAll: past,
					}
					if heard == contract.NoDoubt && (holds[contract.Ending] || holds[contract.Past]) {
						continue // A seller that does not end it is wrong.
					}
					if purchase.Standing, purchase.Doubt = standing, heard; is(4) {
						purchase.Doubted = 5 * time.Minute
					}
					answer := map[contract.Doubt]contract.Answer{
						contract.NoDoubt: contract.Answered, contract.SilentDoubt: contract.Silent, contract.WrongDoubt: contract.Wrong,
						contract.UnknownDoubt: contract.Unknown, contract.OlderDoubt: contract.Older,
					}[heard]
					after := purchase.Hear(answer, view, contract.Clocks{Now: now, Seller: now}).Standing
					all := contract.Turns(standing, heard)
					at := slices.IndexFunc(all, func(turn contract.Turn) bool {
						return !slices.ContainsFunc(turn.If, func(c contract.Condition) bool { return !holds[c] })
					})
					if at < 0 || all[at].To != after {
						t.Fatalf("%q, %q, %v: it stands %q, by turn %d", standing, heard, holds, after, at)
					}
					happened[standing][heard][at] = true
					var promised string
					switch {
					case heard == contract.NoDoubt && standing != contract.Closed && after != contract.Heard:
						promised = "is undone when the seller answers"
					case after == contract.Alone && standing != after &&
						(!holds[contract.Lasts] || holds[contract.Unbound] || standing != contract.Doubting):
						promised = "begins when it lasts, for what is signed"
					case after == contract.Left && standing != after &&
						(standing != contract.Alone || !holds[contract.Parted] || heard == contract.SilentDoubt):
						promised = "comes after the clusters have parted, and not by silence"
					case after == contract.Closed && standing != after && !holds[contract.PastAll] && !holds[contract.Unbound]:
						promised = "comes after the end"
					default:
						continue
					}
					t.Errorf("%q, %q, %v: it stands %q, which %s", standing, heard, holds, after, promised)
				}
			}
		}
	}
	for standing, heards := range happened {
		for heard, turns := range heards {
			for i, happens := range turns {
				if !happens {
					t.Errorf("%q, %q: %v never happens", standing, heard, contract.Turns(standing, heard)[i])
				}
			}
		}
	}
}

// TestHearUnsigned asks once for what nobody has signed and nobody wants.
func TestHearUnsigned(t *testing.T) {
	for _, answer := range []contract.Answer{contract.Silent, contract.Unknown, contract.Wrong, contract.Answered} {
		purchase, err := contract.NewPurchase(termsOf("buyer", 1, 1), begin.Add(time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		clocks := contract.Clocks{Now: begin, Seller: begin}
		if purchase.Hear(answer, contract.View{}, clocks).Standing == contract.Closed {
			t.Errorf("%s: what is wanted is left", answer)
		}
		if left := purchase.End("").Hear(answer, contract.View{}, clocks); left.Standing != contract.Closed ||
			left.Next(begin).Deed != contract.Over {
			t.Errorf("%s: what is not wanted is kept: %s", answer, left.Next(begin).Deed)
		}
	}
}

// TestAhead remembers how far the seller's clock is ahead, for when it does not answer.
func TestAhead(t *testing.T) {
	purchase, view := joined(t)
	purchase = purchase.Hear(contract.Answered, view, purchase.ClocksAt(begin, begin.Add(time.Hour)))
	if got := purchase.ClocksAt(begin.Add(day), time.Time{}); !got.Seller.Equal(begin.Add(day + time.Hour)) {
		t.Errorf("a day later it is %s for its seller", got.Seller)
	}
	if again := purchase.Hear(contract.Answered, view,
		purchase.ClocksAt(begin, begin.Add(time.Hour+time.Second))); again.Ahead != purchase.Ahead {
		t.Error("it is written again for a second")
	}
}

// TestGuessed restarts a buyer whose seller is silent, with its clock after the end: that is one clock, and follows it only in what can be
// undone. It asks no more when the time until the end has been counted as well.
func TestGuessed(t *testing.T) {
	ends := begin.Add(30 * day)
	for name, c := range map[string]struct {
		said time.Time // when the seller has said the time last; zero if that was not noted
		left time.Duration
	}{
		"said a day before the end": {ends.Add(-day), day + drainFor},
		"said after the end":        {ends.Add(drainFor), 0},
		"never noted":               {time.Time{}, 30*day + drainFor},
	} {
		t.Run(name, func(t *testing.T) {
			purchase, view := joined(t)
			if !c.said.IsZero() {
				purchase = purchase.Hear(contract.Answered, view, purchase.ClocksAt(c.said, c.said))
			}
			silent := func(after time.Duration) {
				purchase = purchase.Pass(after).Hear(contract.Silent, view, purchase.ClocksAt(ends.Add(day), time.Time{}))
			}
			silent(0)
			if purchase.Told.After(c.said) {
				t.Errorf("it takes its own clock for that of its seller: %s", purchase.Told)
			}
			begun := purchase.Told
			if silent(drainFor); purchase.Standing != contract.Alone {
				t.Fatalf("at the end by its own clock it stands %q", purchase.Standing)
			}
			purchase.Peering = contract.Apart
			if c.left > 0 {
				if silent(c.left - drainFor - time.Second); purchase.Standing != contract.Alone {
					t.Fatalf("a second too early it stands %q", purchase.Standing)
				}
				if heard := purchase.Hear(contract.Answered, view, purchase.ClocksAt(begin, begin)); heard.Standing != contract.Heard {
					t.Errorf("an answer undoes nothing: it stands %q", heard.Standing)
				}
				silent(time.Second)
			} else if silent(0); !purchase.Told.Equal(begun) {
				t.Error("it counts what is not needed")
			}
			if purchase.Standing != contract.Closed {
				t.Errorf("after all has been counted it stands %q", purchase.Standing)
			}
		})
	}
}

// TestTold notes its seller's clock once a day, and when there is a doubt; not what is guessed.
func TestTold(t *testing.T) {
	purchase, view := joined(t)
	hear := func(answer contract.Answer, at time.Time, want time.Time) {
		t.Helper()
		if purchase = purchase.Hear(answer, view, contract.Clocks{Now: begin, Seller: at}); !purchase.Told.Equal(want) {
			t.Errorf("at %s: %s is noted, want %s", at, purchase.Told, want)
		}
	}
	hear(contract.Answered, begin, begin)
	hear(contract.Answered, begin.Add(day), begin)
	hear(contract.Answered, begin.Add(day+time.Second), begin.Add(day+time.Second))
	hear(contract.Answered, begin, begin)
	hear(contract.Silent, begin.Add(time.Hour), begin.Add(time.Hour))
	if fine := purchase.Grain(); fine != drainFor/20 {
		t.Errorf("a doubt is counted each %s", fine)
	}
	purchase = purchase.Pass(drainFor)
	if coarse := purchase.Grain(); coarse != time.Hour {
		t.Errorf("a month is counted each %s", coarse)
	}
	if want := begin.Add(time.Hour + drainFor); !purchase.Told.Equal(want) {
		t.Errorf("%s is counted, want %s", purchase.Told, want)
	}
	if late := purchase.Pass(30*day - 12*time.Hour).Grain(); late != (12*time.Hour-time.Hour)/20 {
		t.Errorf("half a day is counted each %s", late)
	}
	if over := purchase.Pass(90 * day); !over.Told.Equal(purchase.Last()) || over.Grain() != drainFor/20 {
		t.Errorf("%s is counted, each %s", over.Told, over.Grain())
	}
	left := purchase
	left.Standing = contract.Left
	clocks := contract.Clocks{Now: begin, Seller: begin.Add(3 * time.Hour)}
	if again := left.Hear(contract.Unknown, view, clocks); !again.Told.Equal(left.Told) {
		t.Error("it is noted at each answer to a buyer that has left")
	}
	purchase.Signature, purchase.Peering = "", contract.Apart
	if passed := purchase.Pass(day); !passed.Told.Equal(purchase.Told) {
		t.Error("what is not signed is counted")
	}
}

// TestOlder follows a seller that shows an older version for a minute, and not one that does so once.
func TestOlder(t *testing.T) {
	clocks := contract.Clocks{Now: begin, Seller: begin}
	for name, c := range map[string]struct {
		change   func(*contract.View)
		follows  bool
		restored bool
		deed     contract.Deed
	}{
		"the same state": {func(*contract.View) {}, true, false, contract.Watch},
		"the reservation": {
			func(v *contract.View) { v.State, v.Signature, v.Countersignature = contract.Reserved, "", "" }, true, true, contract.Send,
		},
		"the reservation of other terms": {func(v *contract.View) {
			v.State, v.Signature, v.Countersignature, v.Terms.Revision = contract.Reserved, "", "", 7
		}, true, true, contract.Watch},
		"what is being set up": {func(v *contract.View) { v.State = contract.Provisioning }, true, true, contract.Send},
		"other terms":          {func(v *contract.View) { v.Terms.Revision = 7 }, true, true, contract.Watch},
		"the end":              {func(v *contract.View) { v.State = contract.Terminating }, true, true, contract.Drain},
		"what is over":         {func(v *contract.View) { v.State = contract.Ended }, true, true, contract.Drain},
		"what never was": {
			func(v *contract.View) { v.State, v.Signature, v.Countersignature = contract.Expired, "", "" }, true, true, contract.Drain,
		},
		"active, and unsigned": {func(v *contract.View) { v.Signature, v.Countersignature = "", "" }, false, false, contract.Watch},
		"another contract":     {func(v *contract.View) { v.Key.ID = "c2" }, false, false, contract.Watch},
		"no state":             {func(v *contract.View) { v.State = "Free" }, false, false, contract.Watch},
	} {
		t.Run(name, func(t *testing.T) {
			purchase, view := joined(t)
			view.Version = 3
			c.change(&view)
			once := purchase.Hear(contract.Older, view, clocks)
			if once.Seen.Version != 9 || once.Next(begin).Deed != contract.Watch {
				t.Fatalf("after one look it does %s", once.Next(begin).Deed)
			}
			if same := once.Hear(contract.Answered, purchase.Seen, clocks); same.Doubt != contract.NoDoubt {
				t.Errorf("there is a doubt after a right answer: %s", same.Doubt)
			}
			after := once.Pass(time.Minute).Hear(contract.Older, view, clocks)
			if follows := after.Seen.Version == 3; follows != c.follows || after.Restored != c.restored || after.Next(begin).Deed != c.deed {
				t.Errorf("it follows: %t, restored: %t, does %s", follows, after.Restored, after.Next(begin).Deed)
			}
			if ended := purchase.End("enough").Hear(contract.Older, view, clocks).Pass(drainFor).Hear(contract.Older, view, clocks); !c.follows &&
				ended.Standing != contract.Alone {
				t.Errorf("what cannot be believed keeps the buyer: it stands %q", ended.Standing)
			}
			if c.deed == contract.Drain && view.State.Final() && (after.DrainIsOver() || !after.Pass(drainFor).DrainIsOver()) {
				t.Error("it does not wait for a drain")
			}
		})
	}
}

// TestForks tells another view of the same number from the same one again.
func TestForks(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*contract.View)
		forks  bool
	}{
		"the same":          {func(*contract.View) {}, false},
		"another state":     {func(v *contract.View) { v.State = contract.Terminating }, true},
		"another end":       {func(v *contract.View) { v.Ends = v.Ends.Add(-time.Minute) }, true},
		"other terms":       {func(v *contract.View) { v.Terms.EndsAt = v.Terms.EndsAt.Add(time.Hour) }, true},
		"another signature": {func(v *contract.View) { v.Countersignature += "s" }, true},
		"an older one":      {func(v *contract.View) { v.Version--; v.State = contract.Provisioning }, false},
		"a newer one":       {func(v *contract.View) { v.Version++; v.State = contract.Suspended }, false},
	} {
		t.Run(name, func(t *testing.T) {
			purchase, view := joined(t)
			c.change(&view)
			if forks := purchase.Forks(view); forks != c.forks {
				t.Errorf("it forks: %t", forks)
			}
		})
	}
}
