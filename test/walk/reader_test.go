// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"context"
	"slices"
	"testing"

	"github.com/capacitorset/liqo-broker/test/docs"
	"github.com/capacitorset/liqo-broker/test/federation"
)

// TestReader follows two pages, which say one thing both.
func TestReader(t *testing.T) {
	var ran []string
	page := func(commands ...string) *federation.Reader {
		r := &docs.Reader{Inline: []docs.Block{{Text: "kubectl said"}}, Run: func(_ context.Context, b docs.Block, _ string) (string, error) {
			ran = append(ran, b.Text)
			return "of " + b.Text, nil
		}}
		for _, command := range commands {
			r.Blocks = append(r.Blocks, docs.Block{Text: command})
		}
		return &federation.Reader{Reader: r}
	}
	one, other := Follow(t, page("next", "skipped", "both", "last")), Follow(t, page("both"))
	if out := one.Next("next"); out != "of next" {
		t.Errorf("the next block prints %q", out)
	}
	one.Skip("skipped")
	if out := other.InsteadOf(one, "both"); out != "of both" {
		t.Errorf("the block of both pages prints %q", out)
	}
	if out := one.Said("broker", "kubectl said"); out != "of kubectl said" {
		t.Errorf("the text prints %q", out)
	}
	one.Begin("last")()
	one.End()
	other.End()
	if want := []string{"next", "both", "kubectl said", "last"}; !slices.Equal(ran, want) {
		t.Errorf("the commands %q ran, want %q", ran, want)
	}
}
