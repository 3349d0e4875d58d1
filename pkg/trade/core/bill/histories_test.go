// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package bill_test

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/bill"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/contract"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/ledger"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/offer"
)

// step is how far apart things happen in a history: at each, what is owed from then to the next is written down.
const step = 10 * time.Minute

// moment is what a history was in from a time to the next step.
type moment struct {
	at        time.Time
	suspended bool
}

// history is a contract that a seller and its buyer have, and what a stranger has seen of it.
type history struct {
	t      *testing.T
	random *rand.Rand
	now    time.Time
	seller contract.Seller
	books  ledger.Ledger

	record   *contract.Record
	purchase contract.Purchase

	moments []moment
	signed  []contract.Terms
}

func newHistory(t *testing.T, seed uint64) *history {
	t.Helper()
	h := &history{
		t: t, random: rand.New(rand.NewPCG(seed, 1)), now: begin.Add(time.Duration(seed%200) * 7 * step),
		seller: contract.Seller{ReserveFor: hour, DecideFor: hour},
	}
	purchase, err := contract.NewPurchase(contract.Terms{
		ID: "c", Buyer: "buyer", Seller: "seller", Cluster: cluster.Identity{ID: "edge-id", Name: "edge"}, Offer: "o", OfferRevision: 1,
		OfferDigest: "d", Plan: "p", Resources: h.size(), Price: h.price(), StartsAt: h.now, EndsAt: h.now.Add(h.steps(2000)),
		Notice: h.steps(300), Drain: step,
	}, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	h.purchase = purchase
	return h
}

// steps returns some steps, at least two.
func (h *history) steps(most int) time.Duration { return time.Duration(2+h.random.IntN(most)) * step }

func (h *history) size() corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: *resource.NewQuantity(int64(1+h.random.IntN(8)), resource.DecimalSI)}
}

func (h *history) price() offer.Price {
	periods := []offer.Period{offer.Minute, offer.Hour, offer.Day, offer.Week, offer.Month, offer.Year}
	currency := "EUR"
	if h.random.IntN(10) == 0 {
		currency = "USD"
	}
	return price(h.t, fmt.Sprintf("%d.%09d", h.random.IntN(3), h.random.IntN(1e9)), currency, periods[h.random.IntN(len(periods))])
}

// apply has the seller hear something.
func (h *history) apply(request contract.Request) {
	request.Key = h.purchase.Terms.Key()
	limits := ledger.Limits{Capacity: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100")}}
	result, _ := h.seller.Apply(h.record, request, h.now, h.books, limits)
	h.books, h.record = result.After, &result.Record
}

// tell has the seller hear something, and its buyer what came of it.
func (h *history) tell(request contract.Request) {
	h.t.Helper()
	h.apply(request)
	purchase, err := h.purchase.Observe(h.record.View, h.now)
	if err != nil {
		h.t.Fatal(err)
	}
	h.purchase = purchase
	if terms := h.record.Terms; h.record.Signed() && !slices.ContainsFunc(h.signed, terms.Equal) {
		h.signed = append(h.signed, terms)
	}
}

// buy has the buyer do what it does next, until it waits.
func (h *history) buy() {
	h.t.Helper()
	for range 20 {
		action := h.purchase.Next(h.now)
		h.purchase = h.purchase.Begin(action)
		signature := ""
		switch action.Deed { //nolint:exhaustive // The others need nothing from outside.
		case contract.Over, contract.Watch:
			return
		case contract.SignTerms:
			signature = fmt.Sprint("signed ", action.Request.Terms.Revision)
		case contract.Send:
			request := action.Request
			request.Verdict = contract.Accept
			if request.Signature != "" {
				request.Countersignature = "counter" + request.Signature
			}
			h.tell(request)
		}
		h.purchase = h.purchase.Finish(action, signature)
	}
}

// happen has something happen, or nothing.
func (h *history) happen() {
	h.t.Helper()
	switch h.random.IntN(60) {
	case 0:
		h.tell(contract.Request{Event: contract.Suspend})
	case 1, 2, 3:
		h.tell(contract.Request{Event: contract.Resume})
	case 4, 5, 6:
		h.propose(contract.Resize)
	case 7:
		h.propose(contract.Renew)
	case 8:
		if h.random.IntN(20) == 0 {
			h.tell(contract.Request{Event: contract.Notice})
		}
	case 9:
		if h.random.IntN(20) == 0 {
			h.purchase = h.purchase.End("enough")
		}
	case 10:
		h.tell(contract.Request{Event: contract.Fail})
	default:
		h.tell(contract.Request{Event: contract.Tick})
	}
	if h.record.State == contract.Signed && h.random.IntN(3) == 0 {
		h.tell(contract.Request{Event: contract.Grant})
	}
}

// propose has the buyer ask for another size, or another plan, or a later end, at another price or the same.
func (h *history) propose(event contract.Event) {
	h.t.Helper()
	terms := h.purchase.Terms
	if h.random.IntN(4) > 0 {
		terms.Price = h.price()
	}
	if event == contract.Resize {
		terms.Resources = h.size()
		if h.random.IntN(3) == 0 {
			terms.Plan = map[string]string{"p": "q", "q": "p"}[terms.Plan]
		}
	} else {
		terms.EndsAt = terms.EndsAt.Add(h.steps(500))
	}
	if purchase, err := h.purchase.Propose(event, terms); err == nil {
		h.purchase = purchase
	}
}

// run plays the history to its end.
func (h *history) run() {
	h.t.Helper()
	for range 20000 {
		h.buy()
		if h.record != nil {
			h.happen()
		}
		h.buy()
		// A contract that ends suspended stays so for the bill.
		suspended := h.record.State == contract.Suspended
		if h.record.State == contract.Terminating || h.record.State == contract.Ended {
			suspended = len(h.moments) > 0 && h.moments[len(h.moments)-1].suspended
		}
		h.moments = append(h.moments, moment{h.now, suspended})
		if h.record.State.Final() && h.now.After(h.record.PaidUntil) {
			return
		}
		h.now = h.now.Add(step)
	}
	h.t.Fatalf("it has no end: %s", h.record.State)
}

// owed is what a stranger comes to who has looked each time: exact, for each currency.
func (h *history) owed(from, to time.Time) map[string]*big.Rat {
	owed := map[string]*big.Rat{}
	for _, m := range h.moments {
		if m.suspended || m.at.Before(from) || !m.at.Before(to) || !m.at.Before(h.record.PaidUntil) {
			continue
		}
		for _, terms := range slices.Backward(h.signed) { // The newest terms that count.
			if terms.Counts().After(m.at) {
				continue
			}
			cost := new(big.Rat).Mul(terms.Price.PerHour(), big.NewRat(int64(step), int64(hour)))
			if owed[terms.Price.Currency] == nil {
				owed[terms.Price.Currency] = new(big.Rat)
			}
			owed[terms.Price.Currency].Add(owed[terms.Price.Currency], cost)
			break
		}
	}
	return owed
}

// TestHistories plays contracts at random: what is owed is what somebody comes to who has looked at each moment, it is the same for buyer
// and seller, never less than nothing, and the days add up to their months, and the months to all of it.
func TestHistories(t *testing.T) {
	seen := map[string]int{}
	for seed := range uint64(150) {
		h := newHistory(t, seed)
		h.run()
		sold, bought := bill.OfSeller(*h.record), bill.OfBuyer(h.purchase)
		forever := begin.AddDate(10, 0, 0)
		total := sold.Cost(begin, forever)
		// Both sides say the same, and what a stranger says, to a billionth.
		if other := bought.Cost(begin, forever); other.String() != total.String() {
			t.Fatalf("seed %d: the seller is owed %s, and its buyer owes %s", seed, total, other)
		}
		exact := h.owed(begin, forever)
		for currency, want := range exact {
			if want.Sign() > 0 && !slices.ContainsFunc(total, func(s bill.Sum) bool { return s.Currency == currency }) {
				t.Fatalf("seed %d: nothing is owed in %s", seed, currency)
			}
		}
		for _, sum := range total {
			got, _ := new(big.Rat).SetString(sum.Cost.String())
			want := exact[sum.Currency]
			if want == nil {
				want = new(big.Rat)
			}
			if off := got.Sub(got, want); off.Abs(off).Cmp(big.NewRat(1, 1e9)) > 0 { // Half of it for each of two plans.
				t.Fatalf("seed %d: %s %s is owed, not %s", seed, sum.Cost, sum.Currency, want.FloatString(12))
			}
		}
		// However the time is divided, it is the same money.
		var days, months bill.Sums
		for month := begin; month.Before(forever); month = month.AddDate(0, 1, 0) {
			next := month.AddDate(0, 1, 0)
			var ofMonth bill.Sums
			for _, charge := range sold.Days(month, next, forever) {
				if charge.Cost.Sign() < 0 || charge.Paid < 0 || charge.Paid > charge.To.Sub(charge.From) || !charge.From.Before(charge.To) {
					t.Fatalf("seed %d: %+v", seed, charge)
				}
				ofMonth = ofMonth.Add(charge.Rate.Price.Currency, charge.Cost)
			}
			if whole := sold.Cost(month, next); whole.String() != ofMonth.String() {
				t.Fatalf("seed %d: the days of %s cost %s, and all of it %s", seed, month.Format("2006-01"), ofMonth, whole)
			}
			months, days = months.Plus(sold.Cost(month, next)), days.Plus(ofMonth)
		}
		if months.String() != total.String() || days.String() != total.String() {
			t.Fatalf("seed %d: %s in all, %s by months, %s by days", seed, total, months, days)
		}
		// What the histories have come to, so that this sees all that can happen.
		seen[string(h.record.State)]++
		for what, is := range map[string]bool{
			"another price": len(h.record.Rates) > 0, "suspended": len(h.record.Pauses) > 0, "notice": h.record.Notified,
			"many prices": len(h.record.Rates) >= contract.MaxRates-1, "another plan": h.record.Terms.Plan != "p",
			"early": h.record.PaidUntil.Before(h.record.Terms.EndsAt), "two currencies": len(total) > 1,
			"ends suspended": slices.ContainsFunc(h.record.Pauses, func(p contract.Pause) bool { return p.To.IsZero() }),
		} {
			if is {
				seen[what]++
			}
		}
	}
	for _, what := range []string{
		"Ended", "Failed", "another price", "another plan", "suspended", "notice", "early", "two currencies", "ends suspended", "many prices",
	} {
		if seen[what] < 3 {
			t.Errorf("only %d of the histories have %q: %v", seen[what], what, seen)
		}
	}
}
