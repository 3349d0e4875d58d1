// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"testing"
	"time"
)

func TestRest(t *testing.T) {
	for watchers, want := range map[int64]time.Duration{
		0: 25 * time.Millisecond, 1000: 75 * time.Millisecond, 1 << 20: 250 * time.Millisecond,
	} {
		s := &Server{}
		s.attached.Store(watchers)
		if got := newFollower(s).rest(); got != want {
			t.Errorf("with %d watchers changes are gathered for %s, want %s", watchers, got, want)
		}
	}
}
