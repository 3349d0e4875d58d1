// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package kpi

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

var start = time.Unix(1_800_000_000, 0)

func TestKnown(t *testing.T) {
	good := KPI{Value: 1, Measured: start, Expires: start.Add(time.Minute)}
	nan, infinite := good, good
	nan.Value, infinite.Value = math.NaN(), math.Inf(1)
	cases := map[string]struct {
		reason string
		kpi    KPI
		now    time.Time
		want   bool
	}{
		"Fresh":    {reason: "It was measured and has not expired.", kpi: good, now: start, want: true},
		"Expired":  {reason: "It counts until it expires.", kpi: good, now: start.Add(time.Minute)},
		"SetBack":  {reason: "The clock was set back: nobody knows how old it is.", kpi: good, now: start.Add(-time.Hour)},
		"Skewed":   {reason: "Clocks differ a little.", kpi: good, now: start.Add(-time.Second), want: true},
		"Zero":     {reason: "The zero KPI is unknown.", now: start},
		"NaN":      {reason: "It is no number.", kpi: nan, now: start},
		"Infinite": {reason: "Nothing is infinite.", kpi: infinite, now: start},
	}
	for name, tc := range cases {
		if got := tc.kpi.Known(tc.now); got != tc.want {
			t.Errorf("%s: Known() = %t, want %t\n%s", name, got, tc.want, tc.reason)
		}
	}
}

// stretch is a time in which a provider was observed once a minute.
type stretch struct {
	minutes int
	up      bool
	// after is how far the clock leaps before it.
	after time.Duration
}

func watch(stretches ...stretch) History {
	var h History
	now := start
	for _, s := range stretches {
		now = now.Add(s.after)
		for range s.minutes {
			h = h.Observe(now, s.up)
			now = now.Add(time.Minute)
		}
		h = h.Observe(now, s.up)
	}
	return h
}

func TestAvailability(t *testing.T) {
	const day = 24 * 60
	cases := map[string]struct {
		reason    string
		stretches []stretch
		want      map[string]float64
	}{
		"Nothing": {reason: "Nothing was seen."},
		"Short":   {reason: "Five minutes say nothing about an hour.", stretches: []stretch{{minutes: 5, up: true}}},
		"Hour": {
			reason:    "The hour is known, the day not.",
			stretches: []stretch{{minutes: 45, up: true}, {minutes: 15}},
			want:      map[string]float64{Availability1h: 0.75},
		},
		"Slides": {
			reason:    "The hour has forgotten what the day and the month remember.",
			stretches: []stretch{{minutes: 4 * day}, {minutes: 6 * 60, up: true}},
			want:      map[string]float64{Availability1h: 1, Availability24h: 0.25, Availability30d: 6. / (4*24 + 6)},
		},
		"Gap": {
			reason:    "What passes while nobody watches counts as neither.",
			stretches: []stretch{{minutes: 30, up: true}, {minutes: 30, after: 10 * time.Hour}},
			want:      map[string]float64{Availability1h: 0.5},
		},
		"LeapsForward": {
			reason:    "A clock that is wrong by years, and is set right, changes nothing.",
			stretches: []stretch{{minutes: 30, up: true}, {minutes: 15, up: true, after: 1e5 * time.Hour}, {minutes: 15, after: -1e5 * time.Hour}},
			want:      map[string]float64{Availability1h: 0.75},
		},
		"SetBack": {
			reason:    "A clock that is set back changes nothing.",
			stretches: []stretch{{minutes: 30, up: true}, {minutes: 30, after: -time.Hour}},
			want:      map[string]float64{Availability1h: 0.5},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			h := watch(tc.stretches...)
			got := h.Availability()
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty(), cmpopts.EquateApprox(0, 1e-3)); diff != "" {
				t.Errorf("%s\n-want +got\n%s", tc.reason, diff)
			}
			again, err := Parse(h.String())
			if err != nil {
				t.Fatalf("Parse(): %v", err)
			}
			if diff := cmp.Diff(h, again); diff != "" {
				t.Errorf("after a restart: -want +got\n%s", diff)
			}
		})
	}
}

// TestHistoryIsSmall keeps a History that watched for months.
func TestHistoryIsSmall(t *testing.T) {
	text := watch(stretch{minutes: 90 * 24 * 60, up: true}).String()
	if len(text) > 600 {
		t.Errorf("it takes %d bytes: %s", len(text), text)
	}
}

// FuzzParse reads any text: what it accepts stays acceptable, and gives shares.
func FuzzParse(f *testing.F) {
	f.Add(watch(stretch{minutes: 100, up: true}).String(), int64(60), true)
	f.Add(`{"at":-1,"rings":[{"up":[300],"filled":300},{},{}]}`, int64(1)<<62, false)
	f.Add(strings.Repeat("[", 100), int64(0), false)
	f.Fuzz(func(t *testing.T, text string, seconds int64, up bool) {
		h, err := Parse(text)
		if err != nil {
			return
		}
		h = h.Observe(time.Unix(seconds, 0), up)
		for name, share := range h.Availability() {
			if share < 0 || share > 1 {
				t.Errorf("%s = %v", name, share)
			}
		}
		if _, err := Parse(h.String()); err != nil {
			t.Errorf("Parse(String()): %v", err)
		}
	})
}
