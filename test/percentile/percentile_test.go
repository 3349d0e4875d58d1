// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package percentile

import (
	"slices"
	"testing"
	"time"
)

func TestOf(t *testing.T) {
	hundred := make([]time.Duration, 100)
	for i := range hundred {
		hundred[99-i] = time.Duration(i + 1) // The slowest come first.
	}
	cases := map[string]struct {
		reason  string
		of      []time.Duration
		percent int
		want    time.Duration
	}{
		"Nothing": {reason: "Nothing took no time.", percent: 99},
		"One":     {reason: "One run is all percentiles.", of: []time.Duration{7}, percent: 50, want: 7},
		"Half":    {reason: "Half of them took at most that.", of: hundred, percent: 50, want: 50},
		"P99":     {reason: "One in a hundred may take longer.", of: hundred, percent: 99, want: 99},
		"All":     {reason: "The slowest counts for all.", of: hundred, percent: 100, want: 100},
		"Few":     {reason: "Of few runs not even one may take longer.", of: hundred[:10], percent: 99, want: 100},
		"Odd":     {reason: "The median of an odd number is the one in the middle.", of: []time.Duration{9, 1, 5}, percent: 50, want: 5},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			before := slices.Clone(tc.of)
			if got := Of(tc.of, tc.percent); got != tc.want {
				t.Errorf("%s\nOf(..., %d) = %d, want %d", tc.reason, tc.percent, got, tc.want)
			}
			if !slices.Equal(before, tc.of) {
				t.Errorf("Of(..., %d) has put its argument into another order", tc.percent)
			}
		})
	}
}
