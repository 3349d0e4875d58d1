// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package views

import (
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/capacitorset/liqo-broker/pkg/core/grant"
)

const (
	// lag is for how long a broker may act by the report of before: it reads reports with a delay, and what it has placed just then is shown
	// here later.
	lag = 10 * time.Second
	// believed is for how long a report may count after it was written: for as long as brokers believe one, by their own clock, which may be
	// behind by as much.
	believed = 2*grant.MaxSilence + lag
)

// Belief is which views a broker may take for installed, as far as the program knows that tells it so. Reports get lost, and so do the
// answers to those that arrive: what may have been told counts. The zero Belief is of a broker that believes nothing. A nil Belief knows
// nothing, so that the broker may believe anything.
type Belief struct {
	// anything is until when the broker may believe whatever was told by the program that ran before this one.
	anything time.Time
	// until is until when it may believe in networks that this program has told, or may have.
	until map[netip.Prefix]time.Time
}

// NewBelief returns the Belief of a program that begins to tell a broker at a time, and does not know what was told before.
func NewBelief(now time.Time) *Belief {
	return &Belief{anything: now.Add(believed)}
}

// Tell notes that a report of a time with some views may arrive from now on.
func (b *Belief) Tell(acknowledged map[string]netip.Prefix, now time.Time) {
	maps.DeleteFunc(b.until, func(_ netip.Prefix, until time.Time) bool { return !now.Before(until) })
	if b.until == nil {
		b.until = map[netip.Prefix]time.Time{}
	}
	for _, prefix := range acknowledged {
		b.until[prefix] = now.Add(believed)
	}
}

// Arrived notes that a report with some views has arrived, after all that may have been told before: what it does not have is not believed
// any more shortly.
func (b *Belief) Arrived(acknowledged map[string]netip.Prefix, now time.Time) {
	told := slices.Collect(maps.Values(acknowledged))
	soon := now.Add(lag)
	for prefix, until := range b.until {
		if until.After(soon) && !slices.Contains(told, prefix) {
			b.until[prefix] = soon
		}
	}
	if b.anything.After(soon) {
		b.anything = soon
	}
}

// Has reports whether the broker may believe that a network is reached here.
func (b *Belief) Has(network netip.Prefix, now time.Time) bool {
	return b == nil || now.Before(b.anything) || now.Before(b.until[network])
}

// IsOver reports whether the broker can believe nothing any more.
func (b *Belief) IsOver(now time.Time) bool {
	for _, until := range b.until {
		if now.Before(until) {
			return false
		}
	}
	return !now.Before(b.anything)
}

// Clone returns a Belief of the same.
func (b *Belief) Clone() *Belief { return &Belief{anything: b.anything, until: maps.Clone(b.until)} }
