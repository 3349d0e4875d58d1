// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package views

import (
	"maps"
	"net/netip"
	"time"
)

// lasting is how long a plan counts that is not made again: who plans does so more often, unless the networks are gone or cannot be
// written, and then nobody knows any more what is installed.
const lasting = 90 * time.Second

// Telling is what a broker is to be told of the views that are installed, and what it may believe by that. It is told one thing at a time:
// who tells it says when that begins, and how it ends.
type Telling struct {
	acknowledged map[string]netip.Prefix
	planned      time.Time // Zero if nothing was.
	belief       *Belief
	// due tells that it is to be told something new, and telling that it is being told what told has.
	due, telling bool
	told         map[string]netip.Prefix
}

// NewTelling returns the Telling of a program that begins at a time, and does not know what was told before.
func NewTelling(now time.Time) *Telling { return &Telling{belief: NewBelief(now)} }

// Plan notes what a plan acknowledges, and reports whether that is new. The broker is told it for as long as plans are made. What
// acknowledges nothing is told, too: silence would let what was told last count for minutes.
func (t *Telling) Plan(acknowledged map[string]netip.Prefix, now time.Time) bool {
	isNew := t.planned.IsZero() || !maps.Equal(t.acknowledged, acknowledged)
	t.due = t.due || isNew
	t.acknowledged, t.planned = acknowledged, now
	return isNew
}

// Begin returns what the broker is told from now on, and may believe: what is new, or also what is not if it is to be told again. Until End
// is called there is nothing else.
func (t *Telling) Begin(again bool, now time.Time) (acknowledged map[string]netip.Prefix, begins bool) {
	if t.telling || t.isOld(now) || !t.due && !again {
		return nil, false
	}
	t.due, t.telling, t.told = false, true, t.acknowledged
	t.belief.Tell(t.told, now)
	return t.told, true
}

// End notes that what was begun has arrived, or that nobody knows whether it has, and reports whether something new is to be told.
func (t *Telling) End(arrived bool, now time.Time) bool {
	if t.telling = false; arrived {
		t.belief.Arrived(t.told, now)
	}
	return t.due
}

// Believed returns what the broker may believe until another plan is noted: what it was told, may have been told, or is about to be.
func (t *Telling) Believed(now time.Time) *Belief {
	b := t.belief.Clone()
	b.Tell(t.acknowledged, now)
	return b
}

// IsOver reports whether the broker is told nothing any more, and can believe nothing.
func (t *Telling) IsOver(now time.Time) bool {
	return !t.telling && t.isOld(now) && t.belief.IsOver(now)
}

// isOld reports whether nobody plans any more.
func (t *Telling) isOld(now time.Time) bool { return now.Sub(t.planned) > lasting }
