// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package federation

import (
	"slices"
	"testing"
	"time"
)

func TestPassed(t *testing.T) {
	changed := time.Unix(100, 0)
	at := func(second int64, memory int64) sighting { return sighting{time.Unix(second, 0), memory} }
	cases := map[string]struct {
		reason string
		seen   [][]sighting
		less   bool
		want   []time.Duration
	}{
		"Less": {
			reason: "Each station has its own time.",
			seen:   [][]sighting{{at(90, 8), at(101, 4)}, {at(90, 8), at(103, 4)}}, less: true, want: []time.Duration{time.Second, 3 * time.Second},
		},
		"More": {
			reason: "What grows is seen when it is more.", seen: [][]sighting{{at(90, 8), at(102, 9)}}, want: []time.Duration{2 * time.Second},
		},
		"OtherWay": {
			reason: "What goes the other way is another change.", seen: [][]sighting{{at(90, 8), at(102, 9)}}, less: true,
		},
		"Steps": {
			reason: "The first step counts, or none would: nobody knows where it ends.",
			seen:   [][]sighting{{at(90, 8), at(101, 6), at(104, 4)}}, less: true, want: []time.Duration{time.Second},
		},
		"Back": {
			reason: "A station that had the change and lost it has had it.",
			seen:   [][]sighting{{at(101, 4), at(102, 8)}}, less: true, want: []time.Duration{time.Second},
		},
		"Earlier": {reason: "What was before the change is not of it.", seen: [][]sighting{{at(99, 4), at(101, 8)}}, less: true},
		"Waits": {
			reason: "Stations behind one that waits have not passed.",
			seen:   [][]sighting{{at(101, 4)}, {at(90, 8)}, {at(102, 4)}}, less: true, want: []time.Duration{time.Second},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := passed(tc.seen, changed, 8, tc.less); !slices.Equal(got, tc.want) {
				t.Errorf("%s\npassed(...) = %v, want %v", tc.reason, got, tc.want)
			}
		})
	}
}

// TestSettled waits for stations that lag behind.
func TestSettled(t *testing.T) {
	w := &GrantWatch{stations: make([]station, 2), seen: make([][]sighting, 2)}
	w.note(0, sighting{memory: 4})
	w.note(1, sighting{memory: 8})
	time.AfterFunc(time.Millisecond, func() { w.note(1, sighting{memory: 4}) })
	if memory, err := w.Settled(t.Context()); err != nil || memory != 4 || len(w.seen[1]) < 2 {
		t.Errorf("Settled() = %d, %v, when the other station has had %+v; want 4, when it has that, too", memory, err, w.seen[1])
	}
	w.note(1, sighting{memory: 4})
	if len(w.seen[1]) != 2 {
		t.Errorf("a station that says the same again has %d sightings, want 2", len(w.seen[1]))
	}
}
