// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package hysteresis

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/capacitorset/liqo-broker/pkg/core/kpi"
)

var begin = time.Unix(1_800_000_000, 0)

// delay is the band of the tests.
var delay = Band{Lower: 100, Upper: 200, Window: time.Minute, Min: 1, Max: 3}

// at returns a value that was measured so many seconds after the beginning.
func at(seconds int, value float64) kpi.KPI {
	measured := begin.Add(time.Duration(seconds) * time.Second)
	return kpi.KPI{Value: value, Unit: "ms", Measured: measured, Expires: measured.Add(time.Minute)}
}

// moment is one observation of a story.
type moment struct {
	value kpi.KPI
	now   int // In seconds; zero for when the value was measured.
	steps int
	state State
}

func TestStories(t *testing.T) {
	plenty := Supply{Available: 9}
	for name, tc := range map[string]struct {
		reason string
		supply Supply
		memory Memory
		story  []moment
	}{
		"Rise": {
			reason: "It is above for the window, and then has to be for another one.", supply: plenty,
			story: []moment{
				{at(0, 300), 0, 1, Waiting},
				{at(30, 201), 0, 1, Waiting},
				{at(59, 300), 0, 1, Waiting},
				{at(60, 300), 0, 2, Stepped},
				{at(75, 300), 0, 2, Waiting},
				{at(105, 300), 0, 2, Waiting},
				{at(134, 300), 0, 2, Waiting},
				{at(135, 300), 0, 3, Stepped},
				{at(150, 300), 0, 3, AtBound},
			},
		},
		"Fall": {
			reason: "It is below for the window.", supply: plenty, memory: Memory{Steps: 2},
			story: []moment{
				{at(0, 99), 0, 2, Waiting},
				{at(30, 0), 0, 2, Waiting},
				{at(60, -1), 0, 1, Stepped},
				{at(90, 0), 0, 1, AtBound},
			},
		},
		"Between": {
			reason: "The thresholds are inside, and inside holds.", supply: plenty, memory: Memory{Steps: 2},
			story: []moment{
				{at(0, 300), 0, 2, Waiting},
				{at(30, 200), 0, 2, Inside},
				{at(60, 300), 0, 2, Waiting},
				{at(61, 100), 0, 2, Inside},
			},
		},
		"Reversal": {
			reason: "The window of one direction is not that of the other.", supply: plenty, memory: Memory{Steps: 2},
			story: []moment{
				{at(0, 300), 0, 2, Waiting},
				{at(30, 50), 0, 2, Waiting},
				{at(60, 50), 0, 2, Waiting},
				{at(90, 50), 0, 1, Stepped},
			},
		},
		"NoData": {
			reason: "What is unknown is not low; the window goes on after a short time.", supply: plenty, memory: Memory{Steps: 2},
			story: []moment{
				{kpi.KPI{}, 0, 2, Unknown},
				{at(0, 300), 0, 2, Waiting},
				{at(10, math.NaN()), 0, 2, Unknown},
				{at(20, math.Inf(1)), 0, 2, Unknown},
				{at(25, math.Inf(-1)), 0, 2, Unknown},
				{at(30, 300), 0, 2, Waiting},
				{at(60, 300), 0, 3, Stepped},
			},
		},
		"LongNoData": {
			reason: "What nobody watched for half the window is not part of it.", supply: plenty,
			story: []moment{
				{at(0, 300), 0, 1, Waiting},
				{kpi.KPI{}, 20, 1, Unknown},
				{at(31, 300), 0, 1, Waiting},
				{at(61, 300), 0, 1, Waiting},
				{at(90, 300), 0, 1, Waiting},
				{at(91, 300), 0, 2, Stepped},
			},
		},
		"Stale": {
			reason: "One measurement fills no window, however often it is looked at, and then expires.", supply: plenty,
			story: []moment{
				{at(0, 300), 0, 1, Waiting},
				{at(0, 300), 30, 1, Waiting},
				{at(0, 300), 59, 1, Waiting},
				{at(0, 300), 60, 1, Unknown},
				{at(0, 300), 600, 1, Unknown},
			},
		},
		"LeapAhead": {
			reason: "A clock that leaps fills no window.", supply: plenty,
			story: []moment{
				{at(0, 300), 0, 1, Waiting},
				{at(3600, 300), 0, 1, Waiting},
				{at(3601, 300), 0, 1, Waiting},
			},
		},
		"LeapBack": {
			reason: "A clock that is set back begins the window again.", supply: plenty,
			story: []moment{
				{at(3600, 300), 0, 1, Waiting},
				{at(0, 300), 0, 1, Waiting},
				{at(30, 300), 0, 1, Waiting},
				{at(60, 300), 0, 2, Stepped},
			},
		},
		"OurClockLeaps": {
			reason: "Whose clock is wrong cannot tell what is old.", supply: plenty,
			story: []moment{
				{at(0, 300), 0, 1, Waiting},
				{at(30, 300), 3600, 1, Unknown},
				{at(60, 300), -3600, 1, Unknown},
			},
		},
		"Scarce": {
			reason: "There is no other one to step on.", supply: Supply{Used: 1, Available: 1},
			story: []moment{{at(0, 300), 0, 1, AtBound}, {at(30, 300), 0, 1, AtBound}, {at(60, 300), 0, 1, AtBound}},
		},
		"Lost": {
			reason: "One step less is less than there are.", supply: Supply{Used: 2, Available: 2}, memory: Memory{Steps: 3},
			story: []moment{{at(0, 0), 0, 3, Waiting}, {at(30, 0), 0, 3, Waiting}, {at(60, 0), 0, 1, Stepped}},
		},
		"Fewer": {
			reason: "Some of those that are used go in the moment of the step. It is one more than before all the same, as there are others.",
			supply: Supply{Used: 1, Available: 9}, memory: Memory{Steps: 2},
			story: []moment{{at(0, 250), 0, 2, Waiting}, {at(30, 250), 0, 2, Waiting}, {at(60, 250), 0, 3, Stepped}},
		},
		"Taken": {
			reason: "The first time, what is used counts.", supply: Supply{Used: 2, Available: 9},
			story: []moment{{at(0, 150), 0, 2, Inside}},
		},
		"Bounded": {
			reason: "Who lowers the bound does not wait.", supply: plenty, memory: Memory{Steps: 9},
			story: []moment{{kpi.KPI{}, 0, 3, Unknown}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := tc.memory
			for i, step := range tc.story {
				now := step.value.Measured
				if step.now != 0 {
					now = begin.Add(time.Duration(step.now) * time.Second)
				}
				var state State
				if m, state = delay.Observe(now, step.value, m, tc.supply); m.Steps != step.steps || state != step.state {
					t.Fatalf("%s\nmoment %d: %d steps, state %d: want %d, %d", tc.reason, i, m.Steps, state, step.steps, step.state)
				}
			}
		})
	}
}

// TestRestart writes the memory down in whole seconds, and goes on.
func TestRestart(t *testing.T) {
	m, _ := delay.Observe(begin, at(0, 300), Memory{}, Supply{Available: 2})
	m, _ = delay.Observe(at(30, 0).Measured, at(30, 300), m, Supply{Available: 2})
	m.Since, m.Seen = time.Unix(m.Since.Unix(), 0).UTC(), time.Unix(m.Seen.Unix(), 0).UTC()
	got, state := delay.Observe(at(60, 0).Measured, at(60, 300), m, Supply{Used: 1, Available: 2})
	if diff := cmp.Diff(Memory{Steps: 2}, got); diff != "" || state != Stepped {
		t.Errorf("state %d, -want +got\n%s", state, diff)
	}
}

// FuzzObserve lets values, clocks and supplies wander, and judges each step by all
// that was measured before it.
func FuzzObserve(f *testing.F) {
	for seed := range uint64(300) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		r := rand.New(rand.NewPCG(seed, 0))
		b := Band{Lower: 100, Upper: 100 + float64(r.IntN(2)*100), Window: time.Duration(1+r.IntN(60)) * time.Second}
		b.Min = r.IntN(3)
		b.Max = []int{0, 3, 5}[r.IntN(3)]
		var m Memory
		var known []kpi.KPI // Since the last step.
		s := Supply{Available: 1 + r.IntN(6)}
		seconds, level := 0, 0.0
		for range 400 {
			if r.IntN(20) == 0 {
				level = float64(r.IntN(300))
			}
			seconds += r.IntN(int(b.Window/time.Second)/3 + 2)
			if r.IntN(50) == 0 {
				seconds += r.IntN(4000) - 2000
			}
			value := at(seconds, level+float64(r.IntN(20)))
			now := value.Measured.Add(time.Duration(r.IntN(50)) * time.Second)
			switch r.IntN(30) {
			case 0:
				value.Value = math.NaN()
			case 1:
				value.Value = math.Inf(1 - 2*r.IntN(2))
			case 2:
				value = kpi.KPI{}
			case 3:
				now = now.Add(time.Duration(r.IntN(7200)-3600) * time.Second)
			}
			if r.IntN(40) == 0 {
				s.Available = 1 + r.IntN(6)
			}
			if m.Steps > 0 {
				s.Used = r.IntN(min(m.Steps, s.Available) + 1)
			}
			before := b.Begin(m, s)
			next, state := b.Observe(now, value, m, s)
			if value.Known(now) {
				known = append(known, value)
			}
			if next.Steps < 1 || next.Steps < b.Min || b.Max > 0 && next.Steps > b.Max {
				t.Fatalf("%d steps: the bounds are %d and %d", next.Steps, b.Min, b.Max)
			}
			if state != Stepped {
				if next.Steps != before.Steps {
					t.Fatalf("state %d, but %d steps after %d", state, next.Steps, before.Steps)
				}
				m = next
				continue
			}
			if !value.Known(now) {
				t.Fatal("a step for what is unknown")
			}
			if next.Steps-min(before.Steps, s.Available) != int(b.wants(value.Value)) {
				t.Fatalf("from %d steps, of which %d are available, to %d", before.Steps, s.Available, next.Steps)
			}
			if !filled(b, known) {
				t.Fatalf("a step after %v, with a window of %s", known, b.Window)
			}
			m, known = next, nil
		}
	})
}

// filled reports whether the last of some measurements were outside the band on one
// side for the window, with no longer pause than half of it.
func filled(b Band, known []kpi.KPI) bool {
	last := known[len(known)-1]
	for i := len(known) - 1; i >= 0; i-- {
		if b.wants(known[i].Value) != b.wants(last.Value) || b.wants(last.Value) == Stay {
			return false
		}
		if i < len(known)-1 {
			if pause := known[i+1].Measured.Sub(known[i].Measured); pause < 0 || pause > b.Window/2 {
				return false
			}
		}
		if last.Measured.Sub(known[i].Measured) >= b.Window {
			return true
		}
	}
	return false
}
