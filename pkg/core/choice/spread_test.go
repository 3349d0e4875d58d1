// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package choice

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
)

// TestSpreadsTogether has constraints that only a set without the cheapest provider meets together.
func TestSpreadsTogether(t *testing.T) {
	at := func(id cluster.ID, price float64, labels map[string]string) Provider {
		p := provider(id, "", map[string]float64{"price": price})
		p.Labels = labels
		return p
	}
	providers := []Provider{
		at("a", 1, map[string]string{"zone": "1"}), at("b", 2, map[string]string{"region": "1", "zone": "1"}),
		at("c", 3, map[string]string{"region": "3"}), at("d", 4, map[string]string{"zone": "0"}),
	}
	c, err := New(Criteria{Weights: map[string]int{"price": -1}, Max: 3, Spread: []Spread{{"region", 2}, {"zone", 2}}})
	if err != nil {
		t.Fatalf("New(): %v", err)
	}
	got, err := c.Choose(now, providers, Memory{})
	if err != nil || !slices.Equal(got.Chosen, []cluster.ID{"b", "c", "d"}) {
		t.Errorf("chosen %v, %v: want all but the cheapest", got.Chosen, err)
	}
}

// TestSpreadIsTheBestSet compares with all sets of providers: the chosen one is the first by rank that meets the constraints.
func TestSpreadIsTheBestSet(t *testing.T) {
	refused := 0
	for seed := range uint64(4000) {
		r := rand.New(rand.NewPCG(seed, 12))
		criteria := Criteria{Weights: map[string]int{"price": -1, "rtt": -1}, Max: r.IntN(5)}
		for _, label := range []string{"region", "zone", "owner"}[:1+r.IntN(3)] {
			criteria.Spread = append(criteria.Spread, Spread{Label: label, Distinct: 1 + r.IntN(3)})
		}
		providers := make([]Provider, 1+r.IntN(7))
		for i := range providers {
			p := provider(cluster.ID(rune('a'+i)), "", map[string]float64{"price": float64(r.IntN(9)), "rtt": float64(r.IntN(9))})
			delete(p.Labels, "region")
			for _, label := range []string{"region", "zone", "owner"} {
				if r.IntN(6) > 0 {
					p.Labels[label] = fmt.Sprint(r.IntN(4))
				}
			}
			providers[i] = p
		}
		c, err := New(criteria)
		if err != nil {
			t.Fatalf("New(): %v", err)
		}
		got, err := c.Choose(now, providers, Memory{})
		want := firstSet(criteria, got.Ranking)
		if want == nil {
			refused++
		}
		if want == nil && !errors.Is(err, ErrSpread) || want != nil && (err != nil || !slices.Equal(got.Chosen, want)) {
			t.Fatalf("seed %d: chosen %v, %v: want %v of %+v by %+v", seed, got.Chosen, err, want, got.Ranking, criteria)
		}
	}
	if refused < 500 {
		t.Errorf("only %d choices cannot be made: they test little", refused)
	}
}

// firstSet returns the first set of as many providers as are allowed that meets the constraints; nil if there is none.
func firstSet(criteria Criteria, ranking []Ranked) []cluster.ID {
	size := criteria.Max
	if size == 0 || size > len(ranking) {
		size = len(ranking)
	}
	var best []int
	for set := range 1 << len(ranking) {
		var members []int
		for i := range ranking {
			if set>>i&1 == 1 {
				members = append(members, i)
			}
		}
		meets := len(members) == size
		for _, s := range criteria.Spread {
			values := map[string]bool{}
			for _, i := range members {
				if value, ok := ranking[i].labels[s.Label]; ok {
					values[value] = true
				}
			}
			meets = meets && len(values) >= s.Distinct
		}
		if meets && (best == nil || slices.Compare(members, best) < 0) {
			best = members
		}
	}
	if best == nil {
		return nil
	}
	var ids []cluster.ID
	for _, i := range best {
		ids = append(ids, ranking[i].ID)
	}
	slices.Sort(ids)
	return ids
}

// hardSpread returns constraints that each can be met, and hardly together, and many providers.
func hardSpread(tb testing.TB) (*Chooser, []Provider) {
	tb.Helper()
	labels := []string{"a", "b", "c", "d"}
	criteria := Criteria{Weights: map[string]int{"price": -1}, Max: 8}
	for _, label := range labels {
		criteria.Spread = append(criteria.Spread, Spread{Label: label, Distinct: 8})
	}
	c, err := New(criteria)
	if err != nil {
		tb.Fatalf("New(): %v", err)
	}
	r := rand.New(rand.NewPCG(1, 1))
	var providers []Provider
	for i := range 1000 {
		p := provider(cluster.ID(fmt.Sprint(i)), "", map[string]float64{"price": r.Float64()})
		for _, label := range labels {
			p.Labels[label] = fmt.Sprint(r.IntN(9))
		}
		p.Labels[labels[r.IntN(len(labels))]] = "0"
		providers = append(providers, p)
	}
	return c, providers
}

// TestSpreadEnds gives up constraints that would take for ever.
func TestSpreadEnds(t *testing.T) {
	c, providers := hardSpread(t)
	if _, err := c.Choose(now, providers, Memory{}); !errors.Is(err, ErrSpread) {
		t.Errorf("error %v, want %v", err, ErrSpread)
	}
}
