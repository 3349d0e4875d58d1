// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"slices"
	"time"
)

const (
	// SetUpFor is for how long a buyer that has signed waits at least for what it has bought. One that ends a contract later, and has never
	// used it, gives no notice.
	SetUpFor = 10 * time.Minute
	// SetUpAtMost is after how long a seller ends a contract that was signed and never used: it holds what nobody needs, and its buyer could
	// leave it without notice at any time.
	SetUpAtMost = 24 * time.Hour
	// notSetUp is what the other side is told.
	notSetUp = "it was not in use in time after it was signed"
)

// unused returns since when both have signed a contract that was never used; false of every other one.
func (r Record) unused() (since time.Time, is bool) {
	if r.State != Signed && r.State != Provisioning {
		return time.Time{}, false
	}
	at := slices.IndexFunc(r.History, func(t Transition) bool { return t.Event == Sign })
	if at < 0 {
		return time.Time{}, false
	}
	return r.History[at].At, true
}

// unusedFor reports whether a contract that both have signed was not used for so long since.
func (r Record) unusedFor(now time.Time, long time.Duration) bool {
	since, is := r.unused()
	return is && !now.Before(since.Add(long))
}

// Due returns when the time alone changes a contract that both have signed and that is not over: a drain before its end, or earlier if
// nobody uses it.
func (r Record) Due() time.Time {
	ends := r.Ends.Add(-r.Terms.Drain)
	if since, is := r.unused(); is {
		return earliest(ends, since.Add(SetUpAtMost))
	}
	return ends
}

// settingUp reports whether the buyer waits for what it has signed and was never able to use. A seller that was restored shows less than
// there was.
func (p Purchase) settingUp() bool {
	before := p.State() == Reserved || p.State() == Signed || p.State() == Provisioning
	return p.Signature != "" && before && !p.Restored && !p.Ending && !p.Standing.Parts()
}

// Waits returns for how much longer a buyer waits, that waits for so long for what it has signed; false if it does not wait for it.
func (p Purchase) Waits(within time.Duration) (left time.Duration, is bool) {
	if !p.settingUp() {
		return 0, false
	}
	return max(within-p.Waited, 0), true
}

// SetUpWithin returns the purchase of a buyer that waits for so long for what it has signed: it ends what it has never used until then. The
// time counts as that of a doubt, by a clock that does not leap.
func (p Purchase) SetUpWithin(within time.Duration) Purchase {
	if left, is := p.Waits(within); !is || left > 0 {
		return p
	}
	p.NotSetUp = true
	return p.End(notSetUp)
}
