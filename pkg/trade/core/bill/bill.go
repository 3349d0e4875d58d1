// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package bill says what is owed for a contract and a time: what its terms cost, from when each of them counts, until the buyer pays no
// more, and without the times for which the seller has suspended it. It computes with exact fractions, from what both sides have written of
// the contract, so that both come to the same.
//
// Each amount is the difference of two totals since the beginning of the contract, which are rounded half to even to billionths: so the
// amounts of days add up to that of their month, however a time is divided.
//
// It works on values, with all times as arguments. It does not know whether anybody has paid, nor taxes.
package bill

import (
	"math/big"
	"slices"
	"strings"
	"time"

	"github.com/capacitorset/liqo-broker/pkg/trade/core/contract"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/offer"
)

// Day is how long a line of a bill is at most.
const Day = 24 * time.Hour

// Contract is what a contract costs. The zero Contract costs nothing.
type Contract struct {
	// PaidUntil is until when the buyer pays; zero if it owes nothing.
	PaidUntil time.Time
	// Rates are its prices, the oldest first; it begins with the first. Pauses are when nothing is paid, in any order.
	Rates  []contract.Rate
	Pauses []contract.Pause
}

// OfSeller returns what a seller's contract costs.
func OfSeller(r contract.Record) Contract {
	return contractOf(r.View, contract.Rates(r.Rates, r.Terms))
}

// OfBuyer returns what a buyer's contract costs, by the prices that it has signed itself: until when it pays, and what was suspended, its
// seller has said last.
func OfBuyer(p contract.Purchase) Contract {
	return contractOf(p.Seen, contract.Rates(p.Rates, p.Terms))
}

func contractOf(view contract.View, rates []contract.Rate) Contract {
	if !view.Signed() {
		return Contract{}
	}
	return Contract{PaidUntil: view.PaidUntil, Rates: rates, Pauses: view.Pauses}
}

// Starts returns when it begins to cost something; zero if it never does.
func (c Contract) Starts() time.Time {
	if len(c.Rates) == 0 || !c.Rates[0].From.Before(c.PaidUntil) {
		return time.Time{}
	}
	return c.Rates[0].From
}

// All returns what is owed for all of the contract, if it goes on as it is until the buyer pays no more.
func (c Contract) All() Sums {
	if starts := c.Starts(); !starts.IsZero() {
		return c.Cost(starts, c.PaidUntil)
	}
	return nil
}

// With returns what the contract costs with new terms, or what a new one costs, until the end of the terms.
func (c Contract) With(terms contract.Terms) Contract {
	return Contract{PaidUntil: terms.EndsAt, Rates: contract.Rates(c.Rates, terms), Pauses: c.Pauses}
}

// Charge is what is owed for a time, of at most a day, for one plan in one currency.
type Charge struct {
	From, To time.Time
	// Rate is the last that counts in this time, and Paid how long of it is paid.
	Rate contract.Rate
	Paid time.Duration
	Cost Money
}

// Days returns a charge for each day in UTC between two times on which the contract is or was to be paid, in their order, also where it is
// suspended and nothing is owed; for each plan and currency, where these change. What is after until is not owed yet.
func (c Contract) Days(from, to, until time.Time) []Charge {
	from, to = from.UTC(), earliest(to, until, c.PaidUntil).UTC()
	if starts := c.Starts(); starts.IsZero() || from.Before(starts) {
		from = starts.UTC()
	}
	var charges []Charge
	if from.IsZero() {
		return nil
	}
	for begin := from; begin.Before(to); {
		end := earliest(begin.Truncate(Day).Add(Day), to)
		charges = append(charges, c.charges(begin, end)...)
		begin = end
	}
	return charges
}

// Cost returns what is owed for the time between two times, for each currency, in the order in which they began to count.
func (c Contract) Cost(from, to time.Time) Sums {
	var sums Sums
	for _, charge := range c.charges(from, earliest(to, c.PaidUntil)) {
		sums = sums.Add(charge.Rate.Price.Currency, charge.Cost)
	}
	return sums
}

// At returns the price that counts at a time; false if nothing is paid then.
func (c Contract) At(now time.Time) (contract.Rate, bool) {
	if !now.Before(c.PaidUntil) || len(c.Rates) == 0 || now.Before(c.Rates[0].From) {
		return contract.Rate{}, false
	}
	for _, p := range c.Pauses {
		if !now.Before(p.From) && (p.To.IsZero() || now.Before(p.To)) {
			return contract.Rate{}, false
		}
	}
	next := slices.IndexFunc(c.Rates, func(r contract.Rate) bool { return r.From.After(now) })
	if next < 0 {
		next = len(c.Rates)
	}
	return c.Rates[next-1], true
}

// item is what is summed up: what was paid for one plan in one currency.
type item struct{ plan, currency string }

func itemOf(r contract.Rate) item { return item{r.Plan, r.Price.Currency} }

// charges returns what is owed between two times, for each plan and currency.
func (c Contract) charges(from, to time.Time) []Charge {
	var charges []Charge
	for i, rate := range c.Rates {
		begin, end := latest(from, rate.From), to
		if i+1 < len(c.Rates) {
			end = earliest(to, c.Rates[i+1].From)
		}
		if !begin.Before(end) {
			continue
		}
		of := itemOf(rate)
		at := slices.IndexFunc(charges, func(known Charge) bool { return itemOf(known.Rate) == of })
		if at < 0 {
			at = len(charges)
			charges = append(charges, Charge{From: from, To: to, Cost: c.total(of, to).minus(c.total(of, from))})
		}
		charges[at].Rate = rate
		charges[at].Paid += c.unpaused(begin, end)
	}
	return charges
}

// total returns what was owed for a plan in a currency from the beginning of the contract until a time.
func (c Contract) total(of item, until time.Time) Money {
	exact := new(big.Rat)
	for i, rate := range c.Rates {
		end := until
		if i+1 < len(c.Rates) {
			end = earliest(until, c.Rates[i+1].From)
		}
		if itemOf(rate) == of && rate.From.Before(end) {
			hours := big.NewRat(int64(c.unpaused(rate.From, end)), int64(time.Hour))
			exact.Add(exact, hours.Mul(hours, rate.Price.PerHour()))
		}
	}
	return round(exact)
}

// unpaused returns how much of the time between two times is not in a pause. Pauses can overlap, where a clock was set back.
func (c Contract) unpaused(from, to time.Time) time.Duration {
	pauses := slices.SortedFunc(slices.Values(c.Pauses), func(a, b contract.Pause) int { return a.From.Compare(b.From) })
	paid := time.Duration(0)
	for _, p := range pauses {
		if p.From.After(from) {
			paid += max(0, earliest(p.From, to).Sub(from))
			from = p.From
		}
		if p.To.IsZero() {
			return paid
		}
		from = latest(from, p.To)
	}
	return paid + max(0, to.Sub(from))
}

// earliest returns the earliest of some times.
func earliest(first time.Time, others ...time.Time) time.Time {
	for _, t := range others {
		if t.Before(first) {
			first = t
		}
	}
	return first
}

// latest returns the later one of two times.
func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// Sum is money in a currency.
type Sum struct {
	Currency string `json:"currency"`
	Cost     Money  `json:"cost"`
}

// Sums are money in several currencies, each of which comes once.
type Sums []Sum

// Add returns the sums with some more money.
func (s Sums) Add(currency string, cost Money) Sums {
	s = slices.Clone(s)
	for i := range s {
		if s[i].Currency == currency {
			s[i].Cost = s[i].Cost.plus(cost)
			return s
		}
	}
	return append(s, Sum{Currency: currency, Cost: cost})
}

// Plus returns the sums of both.
func (s Sums) Plus(others Sums) Sums {
	for _, o := range others {
		s = s.Add(o.Currency, o.Cost)
	}
	return s
}

// Within reports whether the sums are in one currency, and no more than an amount of it.
func (s Sums) Within(most offer.Amount, currency string) bool {
	for _, sum := range s {
		if sum.Cost.Sign() > 0 && (sum.Currency != currency || sum.Cost.Compare(round(most.Rat())) > 0) {
			return false
		}
	}
	return true
}

// Less returns what is left of an amount of a currency after the sums; false if they are more, or in another currency too.
func (s Sums) Less(most offer.Amount, currency string) (offer.Amount, bool) {
	if !s.Within(most, currency) {
		return offer.Amount{}, false
	}
	left := round(most.Rat())
	for _, sum := range s {
		left = left.minus(sum.Cost)
	}
	amount, err := offer.ParseAmount(left.String())
	return amount, err == nil
}

// String returns the sums for people, such as "3.5 EUR, 1 USD"; it is empty if there are none.
func (s Sums) String() string {
	texts := make([]string, 0, len(s))
	for _, sum := range s {
		texts = append(texts, sum.Cost.String()+" "+sum.Currency)
	}
	return strings.Join(texts, ", ")
}
