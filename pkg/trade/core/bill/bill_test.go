// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package bill_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/capacitorset/liqo-broker/pkg/trade/core/bill"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/contract"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/offer"
)

var begin = time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)

const (
	hour = time.Hour
	day  = 24 * time.Hour
)

func price(t *testing.T, amount, currency string, period offer.Period) offer.Price {
	t.Helper()
	p, err := offer.ParsePrice(amount, currency, string(period))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestCost says what is owed for November, for each thing that can happen to a contract.
func TestCost(t *testing.T) {
	at := begin.Add
	rate := func(after time.Duration, amount, currency string) contract.Rate {
		return contract.Rate{From: at(after), Price: price(t, amount, currency, offer.Hour)}
	}
	pause := func(from, to time.Duration) contract.Pause {
		p := contract.Pause{From: at(from)}
		if to > 0 {
			p.To = at(to)
		}
		return p
	}
	for name, tc := range map[string]struct {
		reason string
		rates  []contract.Rate
		paid   time.Duration
		pauses []contract.Pause
		want   string
		days   int
	}{
		"whole": {reason: "each hour of a month", rates: []contract.Rate{rate(-day, "0.5", "EUR")}, paid: 60 * day, want: "360 EUR", days: 30},
		"began": {
			reason: "from its beginning", rates: []contract.Rate{rate(36*hour, "0.5", "EUR")}, paid: 60 * day, want: "342 EUR", days: 29,
		},
		"ended": {
			reason: "until its end, or that of a notice", rates: []contract.Rate{rate(0, "0.5", "EUR")}, paid: 36 * hour, want: "18 EUR", days: 2,
		},
		"nothing": {reason: "nothing where it was not granted", rates: []contract.Rate{rate(0, "0.5", "EUR")}, paid: -100 * day, want: ""},
		"earlier": {reason: "nothing of what was over before", rates: []contract.Rate{rate(-9*day, "0.5", "EUR")}, paid: -day, want: ""},
		"resized": {
			reason: "each price for its time",
			rates:  []contract.Rate{rate(0, "1", "EUR"), rate(day, "2", "EUR")}, paid: 2 * day, want: "72 EUR", days: 2,
		},
		"currency": {
			reason: "each currency for itself",
			rates:  []contract.Rate{rate(0, "1", "EUR"), rate(12*hour, "2", "USD")}, paid: day, want: "12 EUR, 24 USD", days: 2,
		},
		"suspended": {
			reason: "nothing while it is suspended", rates: []contract.Rate{rate(0, "1", "EUR")}, paid: 3 * day,
			pauses: []contract.Pause{pause(6*hour, 12*hour), pause(day, 2*day)}, want: "42 EUR", days: 3,
		},
		"ends suspended": {
			reason: "nothing more if it is not resumed", rates: []contract.Rate{rate(0, "1", "EUR")}, paid: 3 * day,
			pauses: []contract.Pause{pause(6*hour, 0)}, want: "6 EUR", days: 3,
		},
		"set back": {
			reason: "pauses that overlap count once", rates: []contract.Rate{rate(0, "1", "EUR")}, paid: day,
			pauses: []contract.Pause{pause(6*hour, 12*hour), pause(4*hour, 8*hour)}, want: "16 EUR", days: 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := bill.Contract{PaidUntil: at(tc.paid), Rates: tc.rates, Pauses: tc.pauses}
			month := begin.AddDate(0, 1, 0)
			if got := c.Cost(begin, month).String(); got != tc.want {
				t.Errorf("owed for %s is %q, not %q", tc.reason, got, tc.want)
			}
			charges := c.Days(begin, month, month)
			var sums bill.Sums
			for _, charge := range charges {
				sums = sums.Add(charge.Rate.Price.Currency, charge.Cost)
				if charge.From.Truncate(day).Add(day).Before(charge.To) {
					t.Errorf("a charge from %s to %s", charge.From, charge.To)
				}
			}
			if sums.String() != tc.want || len(charges) != tc.days {
				t.Errorf("%d days with %q, not %d with %q", len(charges), sums, tc.days, tc.want)
			}
		})
	}
}

// TestOpen holds that what has not passed yet is not owed.
func TestOpen(t *testing.T) {
	c := bill.Contract{PaidUntil: begin.Add(30 * day), Rates: []contract.Rate{{From: begin, Price: price(t, "24", "EUR", offer.Day)}}}
	now := begin.Add(36 * hour)
	charges := c.Days(begin, begin.AddDate(0, 1, 0), now)
	if len(charges) != 2 || charges[1].Cost.String() != "12" || charges[1].Paid != 12*hour || !charges[1].To.Equal(now) {
		t.Errorf("owed by %s: %+v", now, charges)
	}
	if rate, is := c.At(now); !is || rate.Price.Amount.String() != "24" {
		t.Errorf("it costs %v, %t", rate, is)
	}
	c.Pauses = []contract.Pause{{From: now}}
	for name, when := range map[string]time.Time{"before": begin.Add(-1), "suspended": now, "over": c.PaidUntil} {
		if rate, is := c.At(when); is {
			t.Errorf("%s: it costs %v", name, rate)
		}
	}
}

// TestMoney rounds to billionths, half to even, once for what was owed until then: no part of a billionth is lost or paid twice.
func TestMoney(t *testing.T) {
	third := bill.Contract{ // 1/3 of a billionth in a minute.
		PaidUntil: begin.Add(hour), Rates: []contract.Rate{{From: begin, Price: price(t, "0.00000002", "EUR", offer.Hour)}},
	}
	for minutes, want := range map[int]string{
		1: "0", 2: "0.000000001", 3: "0.000000001", 4: "0.000000001", 5: "0.000000002", 60: "0.00000002",
	} {
		if got := third.Cost(begin, begin.Add(time.Duration(minutes)*time.Minute))[0].Cost.String(); got != want {
			t.Errorf("%d minutes cost %s, not %s", minutes, got, want)
		}
	}
	half := bill.Contract{
		PaidUntil: begin.Add(hour), Rates: []contract.Rate{{From: begin, Price: price(t, "0.00000003", "EUR", offer.Hour)}},
	}
	for minutes, want := range map[int]string{1: "0", 3: "0.000000002"} { // 0.5 and 1.5 billionths.
		if got := half.Cost(begin, begin.Add(time.Duration(minutes)*time.Minute))[0].Cost.String(); got != want {
			t.Errorf("%d minutes cost %s, not %s", minutes, got, want)
		}
	}
	large := bill.Contract{
		PaidUntil: begin.AddDate(1, 0, 0),
		Rates:     []contract.Rate{{From: begin, Price: price(t, "999999999.999999999", "EUR", offer.Minute)}},
	}
	sums := large.Cost(begin, begin.AddDate(1, 0, 0))
	if text, err := json.Marshal(sums); err != nil || string(text) != `[{"currency":"EUR","cost":525599999999999.9994744}]` {
		t.Errorf("a year of the highest price: %s, %v", text, err)
	}
	var none bill.Money
	if none.String() != "0" || none.Sign() != 0 || none.Float() != 0 || none.Compare(sums[0].Cost) != -1 {
		t.Errorf("no money is %s", none)
	}
}
