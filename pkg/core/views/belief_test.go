// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package views_test

import (
	"net/netip"
	"testing"

	"github.com/capacitorset/liqo-broker/pkg/core/views"
)

// TestBelief follows what a broker may believe by what it was told, or may have been.
func TestBelief(t *testing.T) {
	const a, b = "10.69.0.0/16", "10.65.0.0/16"
	// When a broker that cannot be told anything believes nothing any more: its clock may be as much behind as it believes for long.
	const end = 610
	for name, tc := range map[string]struct {
		reason string
		begun  bool // The program has begun at second 0, and another one may have told something.
		tell   func(*views.Belief)
		second int
		// Which of both the broker may believe to be there.
		a, b bool
	}{
		"Nothing":      {reason: "Nobody has told anything.", second: 1},
		"Begun":        {reason: "Who begins knows nothing.", begun: true, second: 1, a: true, b: true},
		"BegunForLong": {reason: "It knows nothing for as long as a report counts.", begun: true, second: end - 1, a: true, b: true},
		"BegunBefore":  {reason: "And no longer.", begun: true, second: end},
		"BegunSaid": {
			reason: "What it has said itself makes no difference before it has arrived.", begun: true, second: 20, a: true, b: true,
			tell: func(v *views.Belief) { v.Tell(granted("a="+a), at(1)) },
		},
		"BegunTold": {
			reason: "Once it has told something, that is known.", begun: true, second: 12, a: true,
			tell: func(v *views.Belief) { v.Tell(granted("a="+a), at(1)); v.Arrived(granted("a="+a), at(2)) },
		},
		"BegunTelling": {
			reason: "But the broker reads it with a delay.", begun: true, second: 11, a: true, b: true,
			tell: func(v *views.Belief) { v.Tell(granted("a="+a), at(1)); v.Arrived(granted("a="+a), at(2)) },
		},
		"BegunAndOver": {
			reason: "A report that arrives makes nothing count for longer.", begun: true, second: end, a: true,
			tell: func(v *views.Belief) { v.Tell(granted("a="+a), at(end-2)); v.Arrived(granted("a="+a), at(end-1)) },
		},
		"Said": {
			reason: "What is said may arrive.", second: 2, a: true, tell: func(v *views.Belief) { v.Tell(granted("a="+a), at(1)) },
		},
		"SaidForLong": {
			reason: "It counts for as long as a report does.", second: end, a: true,
			tell: func(v *views.Belief) { v.Tell(granted("a="+a), at(1)) },
		},
		"SaidBefore": {reason: "And no longer.", second: end + 1, tell: func(v *views.Belief) { v.Tell(granted("a="+a), at(1)) }},
		"SaidAgain": {
			reason: "Each report counts by itself.", second: end + 1, a: true,
			tell: func(v *views.Belief) { v.Tell(granted("a="+a), at(1)); v.Tell(granted("a="+a), at(2)) },
		},
		"SaidOther": {
			reason: "What is said without it may be lost.", second: 40, a: true, b: true,
			tell: func(v *views.Belief) { v.Tell(granted("a="+a), at(1)); v.Tell(granted("b="+b), at(2)) },
		},
		"Withdrawn": {
			reason: "What has arrived without it may not be read yet.", second: 13, a: true,
			tell: func(v *views.Belief) { v.Tell(granted("a="+a), at(1)); v.Tell(nil, at(2)); v.Arrived(nil, at(4)) },
		},
		"WithdrawnAndRead": {
			reason: "And is soon.", second: 14,
			tell: func(v *views.Belief) { v.Tell(granted("a="+a), at(1)); v.Tell(nil, at(2)); v.Arrived(nil, at(4)) },
		},
		"WithdrawnTwice": {
			reason: "What has arrived again changes nothing of that.", second: 14,
			tell: func(v *views.Belief) { v.Tell(granted("a="+a), at(1)); v.Arrived(nil, at(4)); v.Arrived(nil, at(12)) },
		},
		"WithdrawnLate": {
			reason: "Nor does it make anything count for longer.", second: end + 1,
			tell: func(v *views.Belief) { v.Tell(granted("a="+a), at(1)); v.Arrived(nil, at(end-1)) },
		},
		"Renamed": {
			reason: "A prefix that has another key is there.", second: 40, a: true,
			tell: func(v *views.Belief) {
				v.Tell(granted("a="+a), at(1))
				v.Tell(granted("b="+a), at(2))
				v.Arrived(granted("b="+a), at(4))
			},
		},
		"Cloned": {
			reason: "What is said in a copy is not said.", second: 2, b: true,
			tell: func(v *views.Belief) { v.Tell(granted("b="+b), at(1)); v.Clone().Tell(granted("a="+a), at(1)) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			v := &views.Belief{}
			if tc.begun {
				v = views.NewBelief(at(0))
			}
			if tc.tell != nil {
				tc.tell(v)
			}
			now := at(tc.second)
			for text, want := range map[string]bool{a: tc.a, b: tc.b} {
				if got := v.Has(netip.MustParsePrefix(text), now); got != want {
					t.Errorf("%s It may believe in %s: %t, want %t", tc.reason, text, got, want)
				}
			}
			if want := !tc.a && !tc.b; v.IsOver(now) != want {
				t.Errorf("%s It can believe nothing any more: %t, want %t", tc.reason, !want, want)
			}
		})
	}
	var none *views.Belief
	if !none.Has(netip.MustParsePrefix(a), at(1_000_000)) {
		t.Error("it is known what a broker believes of which nothing is known")
	}
}
