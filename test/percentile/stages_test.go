// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package percentile

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestStages(t *testing.T) {
	s := Stages{Names: []string{"it is told", "it is done"}}
	if whole := s.Whole(99); whole != 0 {
		t.Errorf("before anything is noted, Whole(99) = %s", whole)
	}
	// The one that is told last is not the one that takes the longest afterwards.
	s.Add([]time.Duration{time.Second, 5 * time.Second})
	s.Add([]time.Duration{3 * time.Second, 4 * time.Second})
	s.Add([]time.Duration{2 * time.Second, 4500 * time.Millisecond})
	want := `| from the change until | p50 | p99 | since the line above, p50 | p99 |
|---|---|---|---|---|
| it is told | 2.00 s | 3.00 s | 2.00 s | 3.00 s |
| it is done | 4.50 s | 5.00 s | 2.50 s | 4.00 s |
`
	if diff := cmp.Diff(want, s.String()); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if half, all := s.Whole(50), s.Whole(99); half != 4500*time.Millisecond || all != 5*time.Second {
		t.Errorf("Whole(50), Whole(99) = %s, %s; want 4.5s, 5s", half, all)
	}
}
