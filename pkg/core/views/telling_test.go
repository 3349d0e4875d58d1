// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package views_test

import (
	"maps"
	"net/netip"
	"testing"

	"github.com/capacitorset/liqo-broker/pkg/core/views"
)

// TestTelling follows what a broker is told and when, and what it may believe by that.
func TestTelling(t *testing.T) {
	const a = "10.69.0.0/16"
	with, without := granted("a="+a), granted()
	// A plan lasts so long, and what may have been told so much longer that a broker that cannot be told anything believes it for so long.
	const lasts, end = 90, 610
	// told has it told something once, and been answered.
	told := func(v *views.Telling, acknowledged map[string]netip.Prefix, from int, arrived bool) {
		v.Plan(acknowledged, at(from))
		v.Begin(true, at(from))
		v.End(arrived, at(from+1))
	}
	for name, tc := range map[string]struct {
		reason string
		do     func(*views.Telling)
		second int
		again  bool // It is time to tell again what is not new.
		// What it is told then, nil if nothing is; whether it may believe until then that the view is there; and whether that is the end.
		told           map[string]netip.Prefix
		believed, over bool
	}{
		"Unplanned": {reason: "Nobody knows what is installed.", second: 1, again: true, believed: true},
		"Over":      {reason: "Nor what it was told.", second: end, again: true, over: true},
		"New": {
			reason: "What is new is told at once.", do: func(v *views.Telling) { v.Plan(with, at(1)) }, second: 1,
			told: with, believed: true,
		},
		"Nothing": {
			reason: "That nothing is there is new, too.", do: func(v *views.Telling) { v.Plan(without, at(1)) }, second: 1,
			told: without, believed: true,
		},
		"Same": {
			reason: "What is as it was is not.", second: 60, believed: true,
			do: func(v *views.Telling) { told(v, with, 1, true); v.Plan(with, at(60)) },
		},
		"Again": {
			reason: "It is told again when it is time to.", second: 60, again: true, told: with, believed: true,
			do: func(v *views.Telling) { told(v, with, 1, true); v.Plan(with, at(60)) },
		},
		"Lost": {
			reason: "What nobody knows the end of is not new either.", second: 12, believed: true,
			do: func(v *views.Telling) { told(v, with, 1, false); v.Plan(with, at(12)) },
		},
		"Other": {
			reason: "It is about to be told.", second: 60, told: with, believed: true,
			do: func(v *views.Telling) { told(v, without, 1, true); v.Plan(with, at(60)) },
		},
		"NotAnyMore": {
			reason: "It is not any more.", second: 60, told: without,
			do: func(v *views.Telling) {
				told(v, without, 1, true)
				v.Plan(with, at(59))
				v.Believed(at(59)) // To ask tells nothing.
				v.Plan(without, at(60))
			},
		},
		"Withdrawn": {
			reason: "It may have been told that the view is there.", second: 20, told: without, believed: true,
			do: func(v *views.Telling) { told(v, with, 1, true); v.Plan(without, at(8)) },
		},
		"Told": {
			reason: "It was told that nothing is there.", second: 20,
			do: func(v *views.Telling) { told(v, with, 1, true); told(v, without, 8, true) },
		},
		"MaybeTold": {
			reason: "Nobody knows whether it was.", second: 20, believed: true,
			do: func(v *views.Telling) { told(v, with, 1, true); told(v, without, 8, false) },
		},
		"OneAtATime": {
			reason: "Nothing else is told meanwhile, and what is told may arrive.", second: 20, again: true, believed: true,
			do: func(v *views.Telling) {
				told(v, without, 1, true)
				v.Plan(with, at(2))
				v.Begin(false, at(2))
				v.Plan(without, at(3))
			},
		},
		"Meanwhile": {
			reason: "Then it is told what is new since.", second: 20, told: without, believed: true,
			do: func(v *views.Telling) {
				told(v, without, 1, true)
				v.Plan(with, at(2))
				v.Begin(false, at(2))
				v.Plan(without, at(3))
				v.End(true, at(4)) // With the view.
			},
		},
		"Lasting": {
			reason: "It is told what is so.", do: func(v *views.Telling) { v.Plan(with, at(1)) }, second: 1 + lasts, again: true,
			told: with, believed: true,
		},
		"Lasted": {
			reason: "What nobody plans any more may not be so.", do: func(v *views.Telling) { v.Plan(with, at(1)) }, second: 2 + lasts, again: true,
			believed: true,
		},
		"Late": {
			reason: "What it was never told is new still.", second: 200, told: with, believed: true,
			do: func(v *views.Telling) { v.Plan(with, at(1)); v.Begin(false, at(100)); v.Plan(with, at(200)) },
		},
		"Planned": {
			reason: "Somebody plans.", second: end + 1, do: func(v *views.Telling) { told(v, without, 1, true); v.Plan(without, at(600)) },
		},
		"Silent": {
			reason: "It is told nothing any more, and knows that nothing is there.", second: 12 + lasts, over: true,
			do: func(v *views.Telling) { told(v, without, 1, true) },
		},
		"Telling": {
			reason: "It is being told for long.", second: 2 * end, do: func(v *views.Telling) { v.Plan(without, at(1)); v.Begin(false, at(1)) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			v := views.NewTelling(at(0))
			if tc.do != nil {
				tc.do(v)
			}
			now := at(tc.second)
			if got := v.Believed(now).Has(netip.MustParsePrefix(a), now); got != tc.believed {
				t.Errorf("%s It may believe that the view is there: %t, want %t", tc.reason, got, tc.believed)
			}
			if got := v.IsOver(now); got != tc.over {
				t.Errorf("%s That is the end: %t, want %t", tc.reason, got, tc.over)
			}
			got, begins := v.Begin(tc.again, now)
			if begins != (tc.told != nil) || !maps.Equal(got, tc.told) {
				t.Errorf("%s It is told %v (%t), want %v", tc.reason, got, begins, tc.told)
			}
		})
	}
}

// TestNew tells who tells a broker when to look for what is new.
func TestNew(t *testing.T) {
	v, with := views.NewTelling(at(0)), granted("a=10.69.0.0/16")
	for i, step := range []struct {
		reason    string
		got, want bool
	}{
		{"Nothing was planned before.", v.Plan(nil, at(1)), true},
		{"It is as it was.", v.Plan(granted(), at(2)), false},
		{"It is not.", v.Plan(with, at(3)), true},
	} {
		if step.got != step.want {
			t.Errorf("%d: %s It is new: %t, want %t", i, step.reason, step.got, step.want)
		}
	}
	v.Begin(false, at(4))
	if v.End(false, at(5)) {
		t.Error("what was begun is new once it has ended")
	}
	v.Begin(true, at(6))
	v.Plan(nil, at(7))
	if !v.End(true, at(8)) {
		t.Error("what was planned meanwhile is not new")
	}
}
