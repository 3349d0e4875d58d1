// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"context"
	"slices"
	"testing"
)

// TestEnds has journeys take back what they did: from the last to the first, once each, and with a context that lasts.
func TestEnds(t *testing.T) {
	var did []string
	does := func(what string) func(context.Context) error {
		return func(ctx context.Context) error {
			did = append(did, what)
			return ctx.Err()
		}
	}
	begins := func(what string) func(context.Context) (func() error, error) {
		return func(ctx context.Context) (func() error, error) {
			return func() error { return does(what)(context.WithoutCancel(ctx)) }, nil
		}
	}
	t.Run("Journey", func(t *testing.T) {
		AtEnd(t, does("first"))
		UntilEnd(t, begins("until the end"))
		end := UntilEnd(t, begins("until called"))
		AtEnd(t, does("last"))
		end()
		did = append(did, "end of the journey")
	})
	want := []string{"until called", "end of the journey", "last", "until the end", "first"}
	if !slices.Equal(did, want) {
		t.Errorf("they end in the order %q, want %q", did, want)
	}
}
