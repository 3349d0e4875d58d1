// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/capacitorset/liqo-broker/pkg/trade/core/offer"
)

// TestExpressionsAreCompiledOnce asks for expressions in an order, and holds which ones are compiled, and how many are kept.
func TestExpressionsAreCompiledOnce(t *testing.T) {
	long := strings.Repeat("x", 100)
	each := (&compiled{text: "a"}).bytes()
	for name, tc := range map[string]struct {
		reason       string
		count, bytes int
		ask          []string
		want         []string
	}{
		"Again": {
			reason: "What is kept is not compiled again.", count: 2, bytes: 10 * each, ask: []string{"a", "b", "a", "b"}, want: []string{"a", "b"},
		},
		"Oldest": {
			reason: "What was not asked for longest goes.", count: 2, bytes: 10 * each, ask: []string{"a", "b", "a", "c", "a", "b"},
			want: []string{"a", "b", "c", "b"},
		},
		"Bytes": {
			reason: "Their bytes are bounded too.", count: 10, bytes: 2 * each, ask: []string{"a", "b", "c", "a"},
			want: []string{"a", "b", "c", "a"},
		},
		"Long": {
			reason: "A long one takes more.", count: 10, bytes: 2*each + 1, ask: []string{"a", long, "a"}, want: []string{"a", long, "a"},
		},
		"OneAlways": {reason: "One is kept in any case.", count: 10, bytes: 1, ask: []string{"a", "a"}, want: []string{"a"}},
		"Wrong": {
			reason: "What does not compile is not kept.", count: 2, bytes: 10 * each, ask: []string{"a", "wrong", "wrong", "a"},
			want: []string{"a", "wrong", "wrong"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			x := newExpressions(tc.count, tc.bytes, func(text string) (*offer.Expression, error) {
				got = append(got, text)
				if text == "wrong" {
					return nil, errors.New("wrong")
				}
				return &offer.Expression{}, nil
			})
			for _, text := range tc.ask {
				if e, _, err := x.get(text); (e == nil) != (text == "wrong") || (err == nil) != (text != "wrong") {
					t.Errorf("%s: %v, %v", text, e, err)
				}
				if x.kept.Len() > tc.count || x.held > tc.bytes && x.kept.Len() > 1 {
					t.Errorf("after %s, %d and %d of %d bytes are kept", text, x.kept.Len(), x.held, tc.bytes)
				}
			}
			if x.kept.Clear(); x.held != 0 {
				t.Errorf("%d bytes count as kept of nothing", x.held)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\ncompiled: -want +got\n%s", tc.reason, diff)
			}
		})
	}
}

// TestExpressionsCount asks what an expression has cost that has nothing to go through, and might cost more.
func TestExpressionsCount(t *testing.T) {
	r := run(t, newFileDSN(t), nil)
	expression, _, err := r.expressions.get(`offer.kpis.exists(k, k.name.startsWith("availability") && k.value > 2.0)`)
	if err != nil {
		t.Fatal(err)
	}
	matcher, err := offer.Filter{}.CompileWith(expression)
	if err != nil {
		t.Fatal(err)
	}
	if passes, cost := matcher.Matches(&offer.Offer{Plans: []offer.Plan{{Available: 1}}}); passes || cost > 10 {
		t.Errorf("it has cost %d, or passes: %t", cost, passes)
	}
}

// TestExpressionsTogether asks for the same expressions from many sides at the same time.
func TestExpressionsTogether(t *testing.T) {
	var mu sync.Mutex
	var asked []string
	compiler, err := offer.NewCompiler()
	if err != nil {
		t.Fatal(err)
	}
	x := newExpressions(8, 1<<20, func(text string) (*offer.Expression, error) {
		mu.Lock()
		asked = append(asked, text)
		mu.Unlock()
		return compiler.Compile(text)
	})
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for i := range 16 {
				e, _, err := x.get(fmt.Sprintf("plan.available > %d", i%4))
				if e == nil || err != nil {
					t.Errorf("%v, %v", e, err)
				}
			}
		})
	}
	all.Wait()
	slices.Sort(asked)
	if want := []string{"plan.available > 0", "plan.available > 1", "plan.available > 2", "plan.available > 3"}; !slices.Equal(asked, want) {
		t.Errorf("compiled %v, want each once", asked)
	}
}
