// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package placementpolicy

import (
	"context"
	"errors"
	"testing"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
)

// TestRedecideEnds decides again for who still waits for it, and for nobody else.
func TestRedecideEnds(t *testing.T) {
	h := begin(t, cheapest(), consumer("rome"), provider("a", "1"))
	ended, end := context.WithCancel(t.Context())
	end()
	rome := map[cluster.ID]bool{"rome": true}
	if got, err := Redecide(t.Context(), h.r.reader, h.client, now, rome); err != nil || len(got) != 1 {
		t.Errorf("%d decisions, %v", len(got), err)
	}
	if got, err := Redecide(ended, h.r.reader, h.client, now, rome); !errors.Is(err, context.Canceled) || len(got) > 0 {
		t.Errorf("once nobody waits for them, %d decisions, %v", len(got), err)
	}
}
