// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package choice

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/core/kpi"
	"github.com/capacitorset/liqo-broker/test/worlds"
)

// anyProviders returns providers with KPIs and labels of which some are of no use, and some that are away.
func anyProviders(r *rand.Rand, n int) []Provider {
	providers := make([]Provider, n)
	for i := range providers {
		p := Provider{ID: cluster.ID(fmt.Sprintf("p%02d", i)), Labels: map[string]string{}, KPIs: map[string]kpi.KPI{}}
		for _, label := range []string{"region", "zone"} {
			if r.IntN(6) > 0 {
				p.Labels[label] = fmt.Sprint(r.IntN(4))
			}
		}
		for _, name := range []string{"price", "rtt", "up"} {
			f := measured(float64(r.IntN(12)))
			switch r.IntN(14) {
			case 0:
				continue
			case 1:
				f.Value = math.NaN()
			case 2:
				f.Value = math.Inf(1 - 2*r.IntN(2))
			case 3:
				f.Expires = now
			case 4:
				f.Measured = now.Add(time.Hour)
			case 5:
				f.Unit = "v"
			case 6:
				f.Value = -f.Value
			case 7:
				f.Value *= 1e300
			case 8:
				f.Value *= math.SmallestNonzeroFloat64
			}
			p.KPIs[name] = f
		}
		if r.IntN(8) == 0 {
			p.Away = "away"
		}
		providers[i] = p
	}
	return providers
}

func anyWeights(r *rand.Rand) map[string]int {
	return map[string]int{"price": r.IntN(21) - 10, "rtt": r.IntN(21) - 10, "up": r.IntN(21) - 10}
}

// known is what docs/placement/kpis.md calls a known value.
func known(f kpi.KPI) bool {
	return !f.Measured.IsZero() && !math.IsNaN(f.Value) && !math.IsInf(f.Value, 0) && now.Before(f.Expires) &&
		!f.Measured.After(now.Add(time.Minute))
}

// documented returns the scores as docs/placement/policies.md defines them.
func documented(weights map[string]int, providers []Provider) map[cluster.ID]float64 {
	scores, total := map[cluster.ID]float64{}, 0.0
	for _, weight := range weights {
		total += math.Abs(float64(weight))
	}
	for name, weight := range weights {
		units := map[string]int{}
		for _, p := range providers {
			if f := p.KPIs[name]; known(f) {
				units[f.Unit]++
			}
		}
		unit := slices.MaxFunc(append(slices.Sorted(maps.Keys(units)), ""), func(a, b string) int { return cmp.Compare(units[a], units[b]) })
		least, most := math.Inf(1), math.Inf(-1)
		for _, p := range providers {
			if f := p.KPIs[name]; known(f) && f.Unit == unit {
				least, most = min(least, f.Value), max(most, f.Value)
			}
		}
		for _, p := range providers {
			f := p.KPIs[name]
			if weight == 0 || !known(f) || f.Unit != unit {
				continue
			}
			normalized := 1.0
			switch {
			case least == most:
			case weight > 0:
				normalized = (f.Value - least) / (most - least)
			default:
				normalized = (most - f.Value) / (most - least)
			}
			scores[p.ID] += 100 * normalized * math.Abs(float64(weight)) / total
		}
	}
	return scores
}

// TestScoresAreTheDocumentedOnes compares with what the documentation says.
func TestScoresAreTheDocumentedOnes(t *testing.T) {
	worlds.Run(t, func(t *testing.T, seed uint64) {
		r := rand.New(rand.NewPCG(seed, 10))
		weights, providers := anyWeights(r), anyProviders(r, 1+r.IntN(8))
		here := slices.DeleteFunc(slices.Clone(providers), func(p Provider) bool { return p.Away != "" })
		c, err := New(Criteria{Weights: weights})
		if err != nil {
			t.Fatalf("New(): %v", err)
		}
		got, err := c.Choose(now, providers, Memory{})
		if len(here) == 0 && !errors.Is(err, ErrNobody) || len(here) > 0 && err != nil {
			t.Fatalf("Choose() of %d providers: %v", len(here), err)
		}
		want := documented(weights, here)
		for _, ranked := range got.Ranking {
			if ranked.Excluded == "" && !(math.Abs(ranked.Score-want[ranked.ID]) < 1e-6) {
				t.Fatalf("%s has %v, want %v; weights %v, %+v", ranked.ID, ranked.Score, want[ranked.ID], weights, providers)
			}
		}
	})
}

// TestDearerNeverClimbs makes one provider dearer: it passes no other one.
func TestDearerNeverClimbs(t *testing.T) {
	worlds.Run(t, func(t *testing.T, seed uint64) {
		r := rand.New(rand.NewPCG(seed, 11))
		weights, providers := anyWeights(r), anyProviders(r, 2+r.IntN(7))
		weights["price"] = -1 - r.IntN(10)
		for i := range providers {
			providers[i].Away = ""
		}
		c, err := New(Criteria{Weights: weights})
		if err != nil {
			t.Fatalf("New(): %v", err)
		}
		before, err := c.Choose(now, providers, Memory{})
		if err != nil {
			t.Fatalf("Choose(): %v", err)
		}
		dearer := &providers[r.IntN(len(providers))]
		f := dearer.KPIs["price"]
		if !known(f) || math.Abs(f.Value) > 1e200 {
			return
		}
		f.Value += float64(1 + r.IntN(20))
		dearer.KPIs["price"] = f
		after, err := c.Choose(now, providers, Memory{})
		if err != nil {
			t.Fatalf("Choose(): %v", err)
		}
		score := func(d Decision, id cluster.ID) float64 {
			return d.Ranking[slices.IndexFunc(d.Ranking, func(r Ranked) bool { return r.ID == id })].Score
		}
		for _, p := range providers {
			// What differs by less is how numbers are rounded.
			if behind, ahead := score(before, p.ID)-score(before, dearer.ID), score(after, dearer.ID)-score(after, p.ID); behind > 0 &&
				ahead > 1e-9 {
				t.Fatalf("%s became dearer and passed %s; weights %v, %+v", dearer.ID, p.ID, weights, providers)
			}
		}
	})
}

// TestStories decides again and again while KPIs, links and the clock do what they like.
func TestStories(t *testing.T) {
	worlds.Run(t, func(t *testing.T, seed uint64) {
		r := rand.New(rand.NewPCG(seed, 14))
		criteria := Criteria{
			Filters: []string{`kpi.up < 9`}, Weights: map[string]int{"price": r.IntN(21) - 10, "rtt": r.IntN(21) - 10},
			Max: r.IntN(4), Margin: float64(r.IntN(30)), Lasting: time.Duration(r.IntN(5)) * time.Minute,
		}
		switch r.IntN(4) {
		case 0:
			criteria.Group = "region"
		case 1:
			criteria.Spread = []Spread{{"region", 1 + r.IntN(2)}, {"zone", 1 + r.IntN(2)}}
		case 2:
			criteria.Spread = []Spread{{"region", 1 + r.IntN(2)}}
		}
		c, err := New(criteria)
		if err != nil {
			t.Fatalf("New(): %v", err)
		}
		var memory Memory
		at := now
		for range 15 {
			providers := anyProviders(r, 1+r.IntN(6))
			at = at.Add(time.Duration(r.IntN(120)-20) * time.Second)
			got, err := c.Choose(at, providers, memory)
			if err != nil {
				if !slices.Equal(got.Chosen, memory.Chosen) {
					t.Fatalf("with %v the choice changed from %v to %v", err, memory.Chosen, got.Chosen)
				}
				continue
			}
			checkChoice(t, criteria, providers, memory, got)
			again, err := c.Choose(at, providers, got.Memory)
			if err != nil || !slices.Equal(again.Chosen, got.Chosen) {
				t.Errorf("at the same moment %v and then %v, %v", got.Chosen, again.Chosen, err)
			}
			if t.Failed() {
				t.Fatalf("%+v\n%+v\nbefore %+v\nafter %+v", criteria, providers, memory, got.Memory)
			}
			memory = got.Memory
		}
	})
}

// checkChoice fails unless a decision keeps what every decision promises.
func checkChoice(t *testing.T, criteria Criteria, providers []Provider, before Memory, got Decision) {
	t.Helper()
	seats := map[string]bool{}
	for _, id := range got.Chosen {
		i := slices.IndexFunc(providers, func(p Provider) bool { return p.ID == id })
		switch {
		case i < 0:
			t.Fatalf("%s is chosen and gone", id)
		case providers[i].Away != "" && !slices.Contains(before.Chosen, id):
			t.Errorf("%s is away and newly chosen", id)
		case providers[i].Away != "":
		case criteria.Group != "":
			seats[providers[i].Labels[criteria.Group]] = true
		default:
			seats[string(id)] = true
		}
	}
	if len(seats) == 0 || criteria.Max > 0 && len(seats) > criteria.Max {
		t.Errorf("chosen %v, at most %d", got.Chosen, criteria.Max)
	}
	for _, ranked := range got.Ranking {
		if ranked.Chosen != slices.Contains(got.Chosen, ranked.ID) {
			t.Errorf("explained is another choice than %v", got.Chosen)
		}
	}
	for _, id := range got.Substitutes {
		if !slices.Contains(got.Chosen, id) || len(got.Away) == 0 {
			t.Errorf("%s stands in for nobody: chosen %v, away %v", id, got.Chosen, got.Away)
		}
	}
	for id := range got.Better {
		if slices.Contains(got.Chosen, id) {
			t.Errorf("%s is chosen, and better than the chosen ones", id)
		}
	}
}

// TestLostLinksMoveNothing has two providers that are as good but for noise below the margin. Their links are lost for a moment now
// and then, one after the other.
func TestLostLinksMoveNothing(t *testing.T) {
	worlds.Run(t, func(t *testing.T, seed uint64) {
		r := rand.New(rand.NewPCG(seed, 15))
		c, err := New(Criteria{Weights: map[string]int{"price": -1}, Max: 1, Margin: 10, Lasting: 5 * time.Minute})
		if err != nil {
			t.Fatalf("New(): %v", err)
		}
		var memory Memory
		var home []cluster.ID
		for second := range 2000 {
			providers := prices(50+4*r.Float64(), 50+4*r.Float64(), 100, 150)
			lost := second%600 < 5
			if lost {
				providers[r.IntN(2)].Away = "a lost link"
			}
			got, err := c.Choose(now.Add(time.Duration(second)*time.Second), providers, memory)
			if err != nil {
				t.Fatalf("Choose(): %v", err)
			}
			if memory = got.Memory; lost {
				continue
			}
			if home == nil {
				home = memory.Chosen
			}
			if !slices.Equal(memory.Chosen, home) {
				t.Fatalf("second %d: chosen %v after %v", second, memory.Chosen, home)
			}
		}
	})
}
