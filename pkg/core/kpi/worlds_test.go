// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package kpi

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/capacitorset/liqo-broker/test/worlds"
)

// piece is a time in which a provider was watched, in seconds.
type piece struct {
	seconds int64
	up      bool
}

// shareOf returns the share of the last watched seconds in which a provider was up.
func shareOf(watched []piece, seconds int64) float64 {
	up, left := int64(0), seconds
	for i := len(watched) - 1; i >= 0 && left > 0; i-- {
		part := min(watched[i].seconds, left)
		if watched[i].up {
			up += part
		}
		left -= part
	}
	return float64(up) / float64(seconds)
}

// anyHistory watches a provider with any gaps, restarts and leaps of the clock, and adds up itself what was seen.
func anyHistory(t *testing.T, r *rand.Rand) {
	var h History
	var watched []piece
	total, at, up := int64(0), start.Unix(), false
	pace := []int64{20, 60, 280, 299}[r.IntN(4)]
	for range 1 + r.IntN(2000) {
		passed := 1 + r.Int64N(pace)
		switch r.IntN(100) {
		case 0:
			passed += int64(MaxGap / time.Second) // Nobody watched.
		case 1:
			passed = -r.Int64N(1_000_000) // The clock was set back.
		case 2:
			h = parsed(t, h)
		}
		at += passed
		if r.IntN(100) == 3 {
			h = h.Resume(time.Unix(at, 0), up) // The broker did not run until now.
			passed = 0
		}
		if h.At != 0 && passed > 0 && passed <= int64(MaxGap/time.Second) {
			watched = append(watched, piece{passed, up})
			total += passed
		}
		up = r.IntN(10) > 0
		h = h.Observe(time.Unix(at, 0), up)
	}
	shares := h.Availability()
	for _, w := range windows {
		// A window is made of whole slots, and of one that is not full yet.
		size := min(total, int64(w.size)*w.slot)
		if total > size && total%w.slot != 0 {
			size += total%w.slot - w.slot
		}
		got, known := shares[w.name]
		if want := size >= w.slot*int64(w.size)/enough && size > 0; known != want {
			t.Errorf("%s is known: %t, after %d s", w.name, known, total)
			continue
		}
		if want := shareOf(watched, size); known && math.Abs(got-want) > 1e-9 {
			t.Errorf("%s is %v, want %v", w.name, got, want)
		}
	}
}

// parsed returns a history as a daemon reads it that has just started.
func parsed(t *testing.T, h History) History {
	t.Helper()
	again, err := Parse(h.String())
	if err != nil {
		t.Fatal(err)
	}
	return again
}

// TestAnyHistory watches random providers.
func TestAnyHistory(t *testing.T) {
	worlds.Run(t, func(t *testing.T, seed uint64) { anyHistory(t, rand.New(rand.NewPCG(seed, 1))) })
}
