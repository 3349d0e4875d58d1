// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package choice

import (
	"slices"
	"testing"
	"time"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
)

// TestChooseWithin has room for two of the providers a, b, c and d, of which the first is the cheapest.
func TestChooseWithin(t *testing.T) {
	price := func(id cluster.ID, value float64) Provider {
		return provider(id, "north", map[string]float64{"price": value})
	}
	all := []Provider{price("d", 40), price("c", 30), price("b", 20), price("a", 10)}
	awayB := slices.Clone(all)
	awayB[2].Away = "it is not ready"
	cheapestD := slices.Clone(all)
	cheapestD[0] = price("d", 1)
	cases := map[string]struct {
		reason    string
		criteria  Criteria
		providers []Provider
		memory    Memory
		want      []cluster.ID
		steady    bool // Others do better, and wait for their place.
	}{
		"Fits": {reason: "Nothing is to be cut.", criteria: Criteria{Max: 1}, providers: all, want: []cluster.ID{"a"}},
		"All":  {reason: "Of all that pass, the best are kept.", providers: all, want: []cluster.ID{"a", "b"}},
		"Most": {reason: "So are they of a number that is too large.", criteria: Criteria{Max: 3}, providers: all, want: []cluster.ID{"a", "b"}},
		"Steady": {
			reason: "Another one has to be better for a while.", providers: cheapestD, memory: Memory{Chosen: []cluster.ID{"a", "b"}},
			want: []cluster.ID{"a", "b"}, steady: true,
		},
		"Away": {
			reason: "There is no room for the substitute of one that is away.", providers: awayB, memory: Memory{Chosen: []cluster.ID{"a", "b"}},
			want: []cluster.ID{"a", "b"},
		},
		"Group": {
			reason: "A group that is too large is cut, and its best are kept.", criteria: Criteria{Group: "region", Max: 1}, providers: all,
			want: []cluster.ID{"a", "b"},
		},
		"Before": {
			reason: "Who was chosen of it stays.", criteria: Criteria{Group: "region", Max: 1}, providers: all,
			memory: Memory{Chosen: []cluster.ID{"b", "c"}}, want: []cluster.ID{"b", "c"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.criteria.Weights, tc.criteria.Margin, tc.criteria.Lasting = map[string]int{"price": -1}, 1, time.Minute
			c, err := New(tc.criteria)
			if err != nil {
				t.Fatal(err)
			}
			for range 2 { // The same providers in another order are the same.
				made, err := c.ChooseWithin(2, now, tc.providers, tc.memory)
				if err != nil || !slices.Equal(made.Chosen, tc.want) || len(made.Substitutes) > 0 || (made.Wait > 0) != tc.steady {
					t.Errorf("%s\nchosen %v, substitutes %v, again after %s, %v: want %v", tc.reason, made.Chosen, made.Substitutes, made.Wait,
						err, tc.want)
				}
				for _, r := range made.Ranking {
					if r.Chosen != slices.Contains(tc.want, r.ID) {
						t.Errorf("%s\n%s is explained as chosen: %t", tc.reason, r.ID, r.Chosen)
					}
				}
				slices.Reverse(tc.providers)
			}
		})
	}
}
