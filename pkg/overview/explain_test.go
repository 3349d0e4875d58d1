// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package overview

import (
	"slices"
	"testing"

	"github.com/capacitorset/liqo-broker/pkg/core/binding"
)

// TestUnheeded has pods name policies: what they name in vain is said, and nothing else.
func TestUnheeded(t *testing.T) {
	rules := []binding.Policy{
		{Name: "cheapest", Scope: binding.OnRequest}, {Name: "ofrome", Scope: binding.OnRequest, Consumers: []string{"rome"}},
		{Name: "ofoslo", Scope: binding.OnRequest, Consumers: []string{"oslo"}}, {Name: "usual", Scope: binding.Default},
	}
	for wish, tc := range map[string]struct {
		reason string
		vain   bool
	}{
		"cheapest": {"It is for all.", false},
		"ofrome":   {"It is for this consumer.", false},
		"ofoslo":   {"It is for another one.", true},
		"usual":    {"It is followed, and not because somebody names it.", true},
		"cheapes":  {"There is none.", true},
	} {
		got := unheeded(rules, binding.Twin{Consumer: "rome", Wishes: map[string]bool{wish: true}})
		if slices.Contains(got, wish) != tc.vain || len(got) > 1 {
			t.Errorf("%s: %s unheeded() = %q", wish, tc.reason, got)
		}
	}
	if got := unheeded(rules, binding.Twin{Wishes: map[string]bool{"b": true, "a": true}}); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("unheeded() = %q", got)
	}
}
