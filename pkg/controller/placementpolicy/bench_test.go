// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package placementpolicy

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/test/percentile"
)

// many returns providers that are ready, and the state of a policy that takes the cheapest.
func many(tb testing.TB, n int) ([]v1alpha1.Provider, *state) {
	tb.Helper()
	providers := make([]v1alpha1.Provider, n)
	for i := range providers {
		providers[i] = *provider(fmt.Sprintf("p%04d", i), fmt.Sprint(1+i%97))
	}
	s := &state{}
	if s.chooser, s.scaler, s.err = rules(cheapest()); s.err != nil {
		tb.Fatal(s.err)
	}
	return providers, s
}

// BenchmarkDecide decides for as many consumers as there are providers.
func BenchmarkDecide(b *testing.B) {
	for _, n := range []int{100, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			providers, state := many(b, n)
			percentile.Report(b, func() {
				s := newRoster(providers, nil)
				for i := range n {
					if _, _, err := s.decide(now, state, consumer(fmt.Sprintf("c%04d", i)), v1alpha1.ConsumerDecision{},
						i < explainedConsumers); err != nil {
						b.Fatal(err)
					}
				}
			})
		})
	}
}

// TestSharedDecisions decides for consumers that can share a decision and for some that
// cannot, in one snapshot, and for each of them alone.
func TestSharedDecisions(t *testing.T) {
	providers, state := many(t, 20)
	chose := func(id string) v1alpha1.ConsumerDecision {
		return v1alpha1.ConsumerDecision{Chosen: []v1alpha1.ChosenProvider{{ID: id}}}
	}
	type wish struct {
		consumer string
		before   v1alpha1.ConsumerDecision
	}
	shared := newRoster(providers, nil)
	for _, w := range []wish{{"c1", chose("p0007")}, {"c2", chose("p0007")}, {"c3", chose("p0001")}, {"p0000", chose("p0000")},
		{"c4", chose("gone")}, {"c5", v1alpha1.ConsumerDecision{}}} {
		together, _, err := shared.decide(now, state, consumer(w.consumer), w.before, true)
		if err != nil {
			t.Fatal(err)
		}
		alone, _, err := newRoster(providers, nil).decide(now, state, consumer(w.consumer), w.before, true)
		if diff := cmp.Diff(alone, together); diff != "" || err != nil {
			t.Errorf("%s: %v, -alone +together\n%s", w.consumer, err, diff)
		}
	}
	if len(shared.decided) != 4 {
		t.Errorf("%d decisions for 5 consumers that provide nothing, of which two have the same memory", len(shared.decided))
	}
}
