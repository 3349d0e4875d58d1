// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"fmt"
	"slices"
	"time"

	"github.com/capacitorset/liqo-broker/pkg/trade/core/offer"
)

const (
	// MaxRates bounds the prices that a record remembers, and rememberRates is how long ago one counted at least that is forgotten: all of a
	// month is known in the month after it.
	MaxRates, rememberRates = 64, 62 * 24 * time.Hour
	// MaxPauses bounds the pauses that a record remembers.
	MaxPauses = 64
)

// Rate is a price, of which plan it is, and from when it counts: until the next one does.
type Rate struct {
	From  time.Time   `json:"from"`
	Price offer.Price `json:"price"`
	Plan  string      `json:"plan"`
}

// Pause is a time for which the seller has suspended a contract: it gives nothing, and the buyer pays nothing. One that has no end lasts.
type Pause struct {
	From time.Time `json:"from"`
	To   time.Time `json:"to,omitzero"`
}

// Rates returns what the terms cost from when on, after earlier prices; none is at the same time as another. Terms that count from earlier
// on than prices before them take their place.
func Rates(earlier []Rate, terms Terms) []Rate {
	from := terms.Counts()
	end := slices.IndexFunc(earlier, func(r Rate) bool { return !r.From.Before(from) })
	if end < 0 {
		end = len(earlier)
	}
	rates := slices.Clone(earlier[:end])
	if len(rates) > 0 && rates[len(rates)-1].ofTerms(terms) {
		return rates
	}
	return append(rates, Rate{From: from, Price: terms.Price, Plan: terms.Plan})
}

// ofTerms reports whether it is what terms cost.
func (r Rate) ofTerms(terms Terms) bool { return r.Price == terms.Price && r.Plan == terms.Plan }

// outdated returns the rates of a contract whose terms are replaced, as they are remembered.
func outdated(earlier []Rate, terms Terms) []Rate {
	rates := Rates(earlier, terms)
	return rates[max(0, len(rates)-MaxRates):]
}

// crowded returns why a contract cannot have the price of new terms now, if so: the oldest that it had would be forgotten before it is
// billed.
func crowded(r Record, terms Terms, now time.Time) string {
	rates := Rates(r.Rates, r.Terms)
	same := terms.Price == r.Terms.Price && terms.Plan == r.Terms.Plan
	if same || len(rates) < MaxRates || now.Sub(rates[1].From) >= rememberRates {
		return ""
	}
	return fmt.Sprintf("its price has changed %d times in %d days", MaxRates, rememberRates/(24*time.Hour))
}

// paused returns pauses with one that begins now. Beyond the bound, the two with the shortest time between them become one: nobody pays for
// what is between.
func paused(pauses []Pause, now time.Time) []Pause {
	pauses = append(slices.Clone(pauses), Pause{From: now})
	if len(pauses) <= MaxPauses {
		return pauses
	}
	best := 1
	gap := func(i int) time.Duration { return pauses[i].From.Sub(pauses[i-1].To) }
	for i := range pauses[1:] {
		if gap(i+1) < gap(best) {
			best = i + 1
		}
	}
	pauses[best-1].To = pauses[best].To
	return slices.Delete(pauses, best, best+1)
}

// resumed returns pauses of which the last one ends now.
func resumed(pauses []Pause, now time.Time) []Pause {
	pauses = slices.Clone(pauses)
	if last := len(pauses) - 1; last >= 0 && pauses[last].To.IsZero() {
		pauses[last].To = latest(now, pauses[last].From)
	}
	return pauses
}
