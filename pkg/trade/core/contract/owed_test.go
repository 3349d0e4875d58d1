// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"fmt"
	"testing"
	"time"

	"github.com/capacitorset/liqo-broker/pkg/trade/core/offer/offertest"
)

// TestRates holds that prices are known for as long as they are billed: a buyer cannot have its seller forget one by many changes.
func TestRates(t *testing.T) {
	start := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	record := Record{View: View{Terms: Terms{StartsAt: start, Price: offertest.Price("1")}}}
	change := func(after time.Duration, price string) string {
		terms := record.Terms
		terms.EffectiveAt, terms.Price = start.Add(after), offertest.Price(price)
		if why := crowded(record, terms, terms.EffectiveAt); why != "" {
			return why
		}
		record.Rates, record.Terms = outdated(record.Rates, record.Terms), terms
		return ""
	}
	made := 0
	for ; change(time.Duration(made+1)*time.Hour, fmt.Sprint(made+2)) == ""; made++ {
		if made > MaxRates {
			t.Fatalf("%d prices are taken, and only %d remembered", made, MaxRates)
		}
	}
	known := Rates(record.Rates, record.Terms)
	if made != MaxRates-1 || len(known) != MaxRates || !known[0].From.Equal(start) {
		t.Errorf("%d other prices are taken, %d are known, from %s on", made, len(known), known[0].From)
	}
	// The same price can go on, and another one is taken when the oldest is billed.
	if why := change(100*time.Hour, fmt.Sprint(made+1)); why != "" || !Rates(record.Rates, record.Terms)[0].From.Equal(start) {
		t.Errorf("at the same price: %q", why)
	}
	if why := change(rememberRates, "9"); why == "" {
		t.Error("a price is forgotten an hour too early")
	}
	if why := change(rememberRates+time.Hour, "9"); why != "" {
		t.Errorf("after all that time: %s", why)
	}
	// Terms that count from earlier on take the place of a later end that has not begun.
	rates := []Rate{{From: start, Price: offertest.Price("1")}, {From: start.Add(10 * time.Hour), Price: offertest.Price("2")}}
	got := Rates(rates, Terms{StartsAt: start, EffectiveAt: start.Add(5 * time.Hour), Price: offertest.Price("3")})
	if len(got) != 2 || !got[1].From.Equal(start.Add(5*time.Hour)) || rates[1].Price != offertest.Price("2") {
		t.Errorf("after a resize before the later end: %+v", got)
	}
	// Another plan is another rate, also at the same price.
	got = Rates(rates, Terms{StartsAt: start, EffectiveAt: start.Add(20 * time.Hour), Price: offertest.Price("2"), Plan: "large"})
	if len(got) != 3 || got[2].Plan != "large" || got[1].Plan != "" {
		t.Errorf("by another plan: %+v", got)
	}
	record.Rates = nil
	for i := range MaxRates {
		record.Rates = append(record.Rates, Rate{From: start.Add(time.Duration(i) * time.Hour), Price: offertest.Price(fmt.Sprint(i))})
	}
	record.Terms.Price, record.Terms.EffectiveAt = offertest.Price(fmt.Sprint(MaxRates-1)), start.Add(MaxRates*time.Hour)
	other := record.Terms
	other.Plan = "large"
	if crowded(record, record.Terms, record.Terms.EffectiveAt) != "" || crowded(record, other, record.Terms.EffectiveAt) == "" {
		t.Error("a rate is forgotten for another plan at the same price")
	}
}

// TestPauses holds that what is suspended is not paid, also beyond what is remembered: then the shortest time between two pauses is not
// paid either.
func TestPauses(t *testing.T) {
	start := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	var pauses []Pause
	for i := range MaxPauses + 1 {
		between := time.Hour
		if i == 7 {
			between = time.Minute
		}
		start = start.Add(between)
		pauses = resumed(paused(pauses, start), start.Add(time.Second))
		start = start.Add(time.Second)
	}
	total := time.Duration(0)
	for _, p := range pauses {
		total += p.To.Sub(p.From)
	}
	if len(pauses) != MaxPauses || total != (MaxPauses+1)*time.Second+time.Minute {
		t.Errorf("%d pauses of %s", len(pauses), total)
	}
	back := resumed([]Pause{{From: start}}, start.Add(-time.Hour))
	if !back[0].To.Equal(start) {
		t.Errorf("with a clock that was set back it ends at %s", back[0].To)
	}
}
