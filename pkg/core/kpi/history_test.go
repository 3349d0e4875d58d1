// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package kpi

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestWindows watches a provider for seven minutes, in the last of which it is down: what the windows have makes up its availability.
func TestWindows(t *testing.T) {
	var h History
	if got := h.Windows(); got != nil {
		t.Errorf("nothing was seen, and there is %v", got)
	}
	at := time.Unix(1_800_000_000, 0)
	for minute := range 8 {
		h = h.Observe(at.Add(time.Duration(minute)*time.Minute), minute < 6)
	}
	want := []Window{
		{Name: Availability1h, Slot: 5 * time.Minute, Slots: 12, Up: []int64{300, 60}, Last: 2 * time.Minute},
		{Name: Availability24h, Slot: time.Hour, Slots: 24, Up: []int64{360}, Last: 7 * time.Minute},
		{Name: Availability30d, Slot: 24 * time.Hour, Slots: 30, Up: []int64{360}, Last: 7 * time.Minute},
	}
	if diff := cmp.Diff(want, h.Windows()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if share := h.Availability()[Availability1h]; share != 360.0/420 {
		t.Errorf("it was available for %g of the hour", share)
	}
}
