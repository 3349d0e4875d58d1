// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package choice

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/core/kpi"
	"github.com/capacitorset/liqo-broker/test/percentile"
)

var now = time.Unix(1_800_000_000, 0)

// provider returns a provider in a region, with KPIs in one unit.
func provider(id cluster.ID, region string, values map[string]float64) Provider {
	p := Provider{ID: id, Name: "name-" + string(id), Labels: map[string]string{"region": region}, KPIs: map[string]kpi.KPI{}}
	for name, value := range values {
		p.KPIs[name] = measured(value)
	}
	return p
}

func measured(value float64) kpi.KPI {
	return kpi.KPI{Value: value, Unit: "u", Measured: now, Expires: now.Add(time.Hour)}
}

func prices(values ...float64) []Provider {
	var providers []Provider
	for i, value := range values {
		id := cluster.ID(rune('a' + i))
		providers = append(providers, provider(id, "r", map[string]float64{"price": value}))
	}
	return providers
}

func with(p Provider, name string, f kpi.KPI) Provider {
	p.KPIs[name] = f
	return p
}

var cheapest = Criteria{Weights: map[string]int{"price": -1}, Max: 1}

func TestChoose(t *testing.T) {
	expired := measured(0)
	expired.Expires = now
	euro := measured(1)
	euro.Unit = "EUR/h"
	spread := Criteria{Weights: map[string]int{"price": -1}, Max: 2, Spread: []Spread{{Label: "region", Distinct: 2}}}
	cases := map[string]struct {
		reason    string
		criteria  Criteria
		providers []Provider
		want      []cluster.ID
		err       error
	}{
		"All": {
			reason: "Without criteria all are chosen.", providers: prices(1, 2), want: []cluster.ID{"a", "b"},
		},
		"Cheapest": {
			reason: "Less is better with a negative weight.", criteria: cheapest, providers: prices(3, 1, 2), want: []cluster.ID{"b"},
		},
		"Most": {
			reason: "More is better with a positive weight.", criteria: Criteria{Weights: map[string]int{"price": 2}, Max: 1},
			providers: prices(3, 1, 2), want: []cluster.ID{"a"},
		},
		"Unknown": {
			reason: "Who says no price is not cheap.", criteria: cheapest,
			providers: append([]Provider{provider("0", "r", nil)}, prices(5)...), want: []cluster.ID{"a"},
		},
		"Expired": {
			reason: "What has expired is unknown.", criteria: cheapest,
			providers: []Provider{with(provider("0", "r", nil), "price", expired), prices(5)[0]}, want: []cluster.ID{"a"},
		},
		"NaN": {
			reason: "What is no number is unknown.", criteria: cheapest,
			providers: []Provider{provider("0", "r", map[string]float64{"price": math.NaN()}), prices(5)[0]}, want: []cluster.ID{"a"},
		},
		"OtherUnit": {
			reason: "A price in the currency of few cannot be compared.", criteria: cheapest,
			providers: append(prices(5, 4), with(provider("z", "r", nil), "price", euro)), want: []cluster.ID{"b"},
		},
		"Huge": {
			reason: "The range of the values may be as large as numbers can be.", criteria: cheapest,
			providers: prices(math.MaxFloat64, -math.MaxFloat64, 0), want: []cluster.ID{"b"},
		},
		"HugeMost": {
			reason: "In the other direction, too.", criteria: Criteria{Weights: map[string]int{"price": 1}, Max: 1},
			providers: prices(0, -math.MaxFloat64, math.MaxFloat64), want: []cluster.ID{"c"},
		},
		"Tiny": {
			reason: "Or as small.", criteria: cheapest, providers: prices(math.SmallestNonzeroFloat64, 0), want: []cluster.ID{"b"},
		},
		"Filter": {
			reason:    "All filters must hold.",
			criteria:  Criteria{Filters: []string{`kpi.price < 3`, `labels["region"] == "r" && id != "a"`}},
			providers: append(prices(1, 2, 3), provider("s", "s", map[string]float64{"price": 1})), want: []cluster.ID{"b"},
		},
		"FilterUnknown": {
			reason:    "A filter does not hold for what is unknown.",
			criteria:  Criteria{Filters: []string{`kpi.price < 3`}},
			providers: []Provider{provider("0", "r", nil), with(provider("1", "r", nil), "price", expired)}, err: ErrNobody,
		},
		"FilterUnits": {
			reason:    "Nor for a value in the unit of few: the number of the filter is in that of most.",
			criteria:  Criteria{Filters: []string{`kpi.price < 9`}},
			providers: append(prices(5, 10, 6), with(provider("z", "r", nil), "price", euro)), want: []cluster.ID{"a", "c"},
		},
		"FilterUnitsOfRegion": {
			reason:    "Most of those that pass the filters before it.",
			criteria:  Criteria{Filters: []string{`labels["region"] == "s"`, `kpi.price < 9`}},
			providers: append(prices(5, 10, 6), with(provider("y", "s", nil), "price", euro), with(provider("z", "s", nil), "price", euro)),
			want:      []cluster.ID{"y", "z"},
		},
		"Nobody": {reason: "There is nobody to choose.", err: ErrNobody},
		"Spread": {
			reason: "The second region is dearer, but demanded.", criteria: spread,
			providers: append(prices(1, 2), provider("z", "s", map[string]float64{"price": 9})), want: []cluster.ID{"a", "z"},
		},
		"NoLabel": {reason: "No label is no region.", criteria: spread, providers: append(prices(1, 2), Provider{ID: "z"}), err: ErrSpread},
		"TooFew":  {reason: "One provider has one region.", criteria: spread, providers: prices(1), err: ErrSpread},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c, err := New(tc.criteria)
			if err != nil {
				t.Fatalf("New(): %v", err)
			}
			got, err := c.Choose(now, tc.providers, Memory{})
			if !errors.Is(err, tc.err) {
				t.Fatalf("%s\nerror %v, want %v", tc.reason, err, tc.err)
			}
			if diff := cmp.Diff(tc.want, got.Chosen, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s\n-want +got\n%s", tc.reason, diff)
			}
			for _, r := range got.Ranking {
				if math.IsNaN(r.Score) {
					t.Errorf("%s\nthe score of %s is no number", tc.reason, r.ID)
				}
			}
			if len(got.Ranking) != len(tc.providers) {
				t.Errorf("%d providers are explained, of %d", len(got.Ranking), len(tc.providers))
			}
		})
	}
}

func TestExplanation(t *testing.T) {
	c, err := New(Criteria{Filters: []string{`id != "c"`}, Weights: map[string]int{"price": -3, "uptime": 1}, Max: 1})
	if err != nil {
		t.Fatalf("New(): %v", err)
	}
	providers := prices(1, 2, 3)
	providers[1] = with(providers[1], "uptime", measured(0.5))
	got, err := c.Choose(now, providers, Memory{})
	if err != nil {
		t.Fatalf("Choose(): %v", err)
	}
	want := []Ranked{
		{ID: "a", Name: "name-a", Chosen: true, Score: 75, Terms: []Term{
			{KPI: "price", Value: 1, Unit: "u", Normalized: 1, Weight: -3}, {KPI: "uptime", Unknown: "not measured", Weight: 1},
		}},
		{ID: "b", Name: "name-b", Score: 25, Terms: []Term{
			{KPI: "price", Value: 2, Unit: "u", Weight: -3}, {KPI: "uptime", Value: 0.5, Unit: "u", Normalized: 1, Weight: 1},
		}},
		{ID: "c", Name: "name-c", Excluded: `filter "id != \"c\""`},
	}
	if diff := cmp.Diff(want, got.Ranking, cmpopts.IgnoreUnexported(Ranked{})); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// TestExplainedUnit has a provider whose price is in another unit than those of the others.
func TestExplainedUnit(t *testing.T) {
	c, err := New(Criteria{Filters: []string{`kpi.price < 9`}})
	if err != nil {
		t.Fatalf("New(): %v", err)
	}
	euro := measured(1)
	euro.Unit = "EUR/h"
	got, err := c.Choose(now, append(prices(5, 6), with(provider("z", "r", nil), "price", euro)), Memory{})
	if err != nil {
		t.Fatalf("Choose(): %v", err)
	}
	const want = `filter "kpi.price < 9": no such key: price: price is in EUR/h, while others are in u`
	if last := got.Ranking[2]; last.ID != "z" || last.Excluded != want {
		t.Errorf("%s is excluded because of %q, want %q", last.ID, last.Excluded, want)
	}
}

func TestBadCriteria(t *testing.T) {
	for name, tc := range map[string]struct {
		criteria Criteria
		want     string
	}{
		"Syntax":   {Criteria{Filters: []string{`kpi.price <`}}, "does not compile"},
		"Variable": {Criteria{Filters: []string{`price < 3`}}, "undeclared reference to 'price'"},
		"NotBool":  {Criteria{Filters: []string{`kpi.price`}}, "is a double, not a bool"},
		"Builds":   {Criteria{Filters: []string{`[1].map(a, {a: a}).size() == 1`}}, "must not build"},
		"Weight":   {Criteria{Weights: map[string]int{"price": 11}}, "not from -10 to 10"},
	} {
		if _, err := New(tc.criteria); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: error %v, want one with %q", name, err, tc.want)
		}
	}
}

// TestCostlyLabels has a filter that looks at all labels, and a provider that has many long ones.
func TestCostlyLabels(t *testing.T) {
	c, err := New(Criteria{Filters: []string{`!labels.exists(a, labels.exists(b, a != b && labels[a].matches("^(free|trial|beta).*$")))`}})
	if err != nil {
		t.Fatalf("New(): %v", err)
	}
	labelled := func(id cluster.ID, count int) Provider {
		p := provider(id, "r", nil)
		for i := range count - 1 {
			p.Labels[fmt.Sprintf("tier%d.%s/%s", i, strings.Repeat("x", 200), strings.Repeat("y", 60))] = strings.Repeat("z", 63)
		}
		return p
	}
	got, err := c.Choose(now, []Provider{labelled("costly", maxLabels), labelled("good", 2), labelled("many", maxLabels+1)}, Memory{})
	if err != nil || !slices.Equal(got.Chosen, []cluster.ID{"good"}) {
		t.Fatalf("Choose(): %v, %v: the labels of one provider must not keep the others from being chosen", got.Chosen, err)
	}
	for i, want := range map[int]string{1: "its labels cost too much", 2: "more than 64 labels"} {
		if why := got.Ranking[i].Excluded; !strings.Contains(why, want) {
			t.Errorf("%s is excluded because %s, want %s", got.Ranking[i].ID, why, want)
		}
	}
	if _, err := c.Choose(now, []Provider{labelled("costly", maxLabels)}, Memory{}); err == nil || errors.Is(err, ErrNobody) {
		t.Errorf("Choose() of nothing else: %v, want that the filter takes too long", err)
	}
}

// longFilter returns a filter that would take for ever, and a provider for it.
func longFilter(tb testing.TB) (*Chooser, []Provider) {
	tb.Helper()
	const all = `labels.all(%s, `
	expression, end := "", ""
	for i := range 12 {
		expression += fmt.Sprintf(all, string(rune('a'+i)))
		end += ")"
	}
	c, err := New(Criteria{Filters: []string{expression + "true" + end}})
	if err != nil {
		tb.Fatalf("New(): %v", err)
	}
	p := provider("a", "r", nil)
	for i := range 20 {
		p.Labels[fmt.Sprint(i)] = "x"
	}
	return c, []Provider{p}
}

// TestLongFilter evaluates a filter that would take for ever.
func TestLongFilter(t *testing.T) {
	c, providers := longFilter(t)
	memory := Memory{Chosen: []cluster.ID{"b"}}
	got, err := c.Choose(now, providers, memory)
	if err == nil || !strings.Contains(err.Error(), "takes too long") {
		t.Errorf("error %v, want that it takes too long", err)
	}
	if diff := cmp.Diff(memory, got.Memory); diff != "" {
		t.Errorf("the decision before it is not kept: -want +got\n%s", diff)
	}
}

// TestSteady tells a story of prices, minute by minute.
func TestSteady(t *testing.T) {
	criteria := cheapest
	criteria.Margin, criteria.Lasting = 20, 2*time.Minute
	c, err := New(criteria)
	if err != nil {
		t.Fatalf("New(): %v", err)
	}
	var memory Memory
	for minute, step := range []struct {
		reason string
		prices []float64 // The third is always the worst, so that 10 of 100 in price are 10 of 100 in score.
		want   cluster.ID
		wait   time.Duration
	}{
		{"The first decision takes the best.", []float64{10, 20, 100, 0}, "a", 0},
		{"A little better is not better.", []float64{20, 10, 100, 0}, "a", 0},
		{"Much better has to last.", []float64{60, 10, 100, 0}, "a", 2 * time.Minute},
		{"It lasts.", []float64{60, 10, 100, 0}, "a", time.Minute},
		{"It did not last.", []float64{10, 10, 100, 0}, "a", 0},
		{"It begins again.", []float64{60, 10, 100, 0}, "a", 2 * time.Minute},
		{"It lasts, with another value.", []float64{50, 10, 100, 0}, "a", time.Minute},
		{"It has lasted.", []float64{60, 10, 100, 0}, "b", 0},
		{"Who is chosen has the advantage.", []float64{10, 20, 100, 0}, "b", 0},
	} {
		// Providers a, b, and two that may not be chosen but keep the scale.
		providers := prices(step.prices...)
		providers[3].ID, providers[3].KPIs["price"] = "z", measured(100)
		got, err := c.Choose(now.Add(time.Duration(minute)*time.Minute), append(providers[:3:3], providers[3]), memory)
		if err != nil {
			t.Fatalf("Choose(): %v", err)
		}
		memory = got.Memory
		if !slices.Equal(memory.Chosen, []cluster.ID{step.want}) || got.Wait != step.wait {
			t.Errorf("minute %d: chosen %v, wait %s: want %s, %s\n%s", minute, memory.Chosen, got.Wait, step.want, step.wait, step.reason)
		}
	}

	gone := prices(60, 10, 100)[1:]
	gone[0].ID = "c"
	got, err := c.Choose(now.Add(time.Hour), gone, memory)
	if err != nil || !slices.Equal(got.Chosen, []cluster.ID{"c"}) {
		t.Errorf("the chosen one is gone: chosen %v, %v, want another at once", got.Chosen, err)
	}
}

// TestAway lets the chosen provider go, and come back before and after its time.
func TestAway(t *testing.T) {
	criteria := cheapest
	criteria.Lasting = 2 * time.Minute
	all := criteria
	all.Max = 0
	type step struct {
		minute int
		away   bool
		want   []cluster.ID
	}
	for name, tc := range map[string]struct {
		reason   string
		criteria Criteria
		steps    []step
	}{
		"Returns": {
			reason: "It keeps its place and has a substitute, which goes when it is back.", criteria: criteria,
			steps: []step{
				{0, false, []cluster.ID{"a"}}, {1, true, []cluster.ID{"a", "b"}}, {2, true, []cluster.ID{"a", "b"}}, {2, false, []cluster.ID{"a"}},
			},
		},
		"StaysAway": {
			reason: "It loses its place.", criteria: criteria,
			steps: []step{
				{0, false, []cluster.ID{"a"}}, {1, true, []cluster.ID{"a", "b"}}, {3, true, []cluster.ID{"b"}}, {4, false, []cluster.ID{"b"}},
			},
		},
		"AwayAgain": {
			reason: "Its time begins again.", criteria: criteria,
			steps: []step{
				{0, false, []cluster.ID{"a"}}, {1, true, []cluster.ID{"a", "b"}}, {2, false, []cluster.ID{"a"}}, {4, true, []cluster.ID{"a", "b"}},
			},
		},
		"Newcomer": {
			reason: "Who is away is not chosen.", criteria: criteria,
			steps: []step{{0, true, []cluster.ID{"b"}}, {9, true, []cluster.ID{"b"}}},
		},
		"All": {
			reason: "Where all are chosen, nobody takes its place.", criteria: all,
			steps: []step{{0, false, []cluster.ID{"a", "b"}}, {1, true, []cluster.ID{"a", "b"}}, {99, true, []cluster.ID{"a", "b"}}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := New(tc.criteria)
			if err != nil {
				t.Fatalf("New(): %v", err)
			}
			var memory Memory
			for i, step := range tc.steps {
				providers := prices(1, 2)
				if step.away {
					providers[0].Away = "out of reach"
				}
				got, err := c.Choose(now.Add(time.Duration(step.minute)*time.Minute), providers, memory)
				if err != nil {
					t.Fatalf("Choose(): %v", err)
				}
				if memory = got.Memory; !slices.Equal(memory.Chosen, step.want) || len(got.Ranking) != 2 {
					t.Fatalf("%s\nstep %d: chosen %v, want %v", tc.reason, i, memory.Chosen, step.want)
				}
			}
		})
	}
}

// TestOneIsReplaced has two chosen providers that others are better than, since a minute of the hour that it has to last.
func TestOneIsReplaced(t *testing.T) {
	c, err := New(Criteria{
		Filters: []string{`id != "a" || kpi.price < 50`}, Weights: map[string]int{"price": -1}, Max: 2, Margin: 10, Lasting: time.Hour,
	})
	if err != nil {
		t.Fatalf("New(): %v", err)
	}
	var memory Memory
	for minute, step := range []struct {
		reason string
		prices []float64
		want   []cluster.ID
		wait   time.Duration
	}{
		{"The best are chosen.", []float64{1, 2, 30, 40, 100}, []cluster.ID{"a", "b"}, 0},
		{"One of them is not any more.", []float64{1, 60, 5, 6, 100}, []cluster.ID{"a", "b"}, time.Hour},
		{"The other fails the filter, and is replaced alone.", []float64{60, 60, 5, 6, 100}, []cluster.ID{"b", "c"}, 59 * time.Minute},
		{"Its place is taken.", []float64{1, 60, 5, 6, 100}, []cluster.ID{"b", "c"}, 58 * time.Minute},
	} {
		got, err := c.Choose(now.Add(time.Duration(minute)*time.Minute), prices(step.prices...), memory)
		if err != nil {
			t.Fatalf("Choose(): %v", err)
		}
		if memory = got.Memory; !slices.Equal(memory.Chosen, step.want) || got.Wait != step.wait {
			t.Errorf("minute %d: chosen %v, wait %s: want %v, %s\n%s", minute, memory.Chosen, got.Wait, step.want, step.wait, step.reason)
		}
	}
}

// TestLasting has others that are better than the chosen provider for a while, one after the other, by turns, or one beside another.
func TestLasting(t *testing.T) {
	criteria := cheapest
	criteria.Margin, criteria.Lasting = 10, 30*time.Minute
	type phase struct {
		minutes int // From which minute on.
		prices  [][]float64
	}
	for name, tc := range map[string]struct {
		reason string
		phases []phase
		want   map[cluster.ID]int // The first minute in which it is chosen.
	}{
		"Alone": {
			reason: "It has lasted.", phases: []phase{{0, [][]float64{{50, 60, 60}}}, {1, [][]float64{{50, 10, 60}}}},
			want: map[cluster.ID]int{"a": 0, "b": 31},
		},
		"OneAfterTheOther": {
			reason: "What one lasted, the next one has not.",
			phases: []phase{{0, [][]float64{{50, 60, 60}}}, {1, [][]float64{{50, 10, 60}}}, {20, [][]float64{{50, 50, 10}}}},
			want:   map[cluster.ID]int{"a": 0, "c": 50},
		},
		"ByTurns": {
			reason: "Both are better all the time, whichever of them is the best.",
			phases: []phase{{0, [][]float64{{50, 60, 60}}}, {1, [][]float64{{50, 10, 11}, {50, 11, 10}}}},
			want:   map[cluster.ID]int{"a": 0, "c": 31},
		},
		"Beside": {
			reason: "One that has lasted does not wait for a better one, which follows when it is better than that by the margin.",
			phases: []phase{{0, [][]float64{{50, 60, 60}}}, {1, [][]float64{{50, 20, 60}}}, {20, [][]float64{{50, 20, 1}}}},
			want:   map[cluster.ID]int{"a": 0, "b": 31, "c": 50},
		},
		"Interrupted": {
			reason: "It begins again.",
			phases: []phase{
				{0, [][]float64{{50, 60, 60}}}, {1, [][]float64{{50, 10, 60}}}, {20, [][]float64{{50, 45, 60}}}, {21, [][]float64{{50, 10, 60}}},
			},
			want: map[cluster.ID]int{"a": 0, "b": 51},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := New(criteria)
			if err != nil {
				t.Fatalf("New(): %v", err)
			}
			var memory Memory
			got := map[cluster.ID]int{}
			for minute := range 90 {
				var at []float64
				for _, p := range tc.phases {
					if minute >= p.minutes {
						at = p.prices[minute%len(p.prices)]
					}
				}
				decision, err := c.Choose(now.Add(time.Duration(minute)*time.Minute),
					append(prices(at...), provider("z", "r", map[string]float64{"price": 100})), memory)
				if err != nil {
					t.Fatalf("Choose(): %v", err)
				}
				memory = decision.Memory
				if _, known := got[memory.Chosen[0]]; !known {
					got[memory.Chosen[0]] = minute
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want +got\n%s", tc.reason, diff)
			}
		})
	}
}

// TestManyAreBetter has more providers that are better than are remembered, in another order each time.
func TestManyAreBetter(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	criteria := cheapest
	criteria.Margin, criteria.Lasting = 10, 30*time.Minute
	c, err := New(criteria)
	if err != nil {
		t.Fatalf("New(): %v", err)
	}
	memory := Memory{Chosen: []cluster.ID{"a"}}
	for minute := range 31 {
		providers := prices(90, 100)
		for i := range 100 {
			providers = append(providers, provider(cluster.ID(fmt.Sprint("p", i)), "r", map[string]float64{"price": 10 + 5*r.Float64()}))
		}
		got, err := c.Choose(now.Add(time.Duration(minute)*time.Minute), providers, memory)
		if err != nil || len(got.Better) > maxContenders || (got.Chosen[0] != "a") != (minute == 30) {
			t.Fatalf("minute %d: chosen %v, %v; %d are remembered", minute, got.Chosen, err, len(got.Better))
		}
		memory = got.Memory
	}
}

// TestSubstitute loses links to chosen providers for a moment. The margin is ten of a hundred, and the prices are out of a hundred.
func TestSubstitute(t *testing.T) {
	weigh := Criteria{Weights: map[string]int{"price": -1}, Margin: 10, Lasting: 5 * time.Minute}
	type step struct {
		seconds int
		prices  []float64
		away    string // Their IDs.
		want    string
	}
	grouped := weigh
	grouped.Group = "region"
	for name, tc := range map[string]struct {
		reason   string
		criteria Criteria
		most     int
		steps    []step
	}{
		"Better": {
			reason: "A substitute that is better, by less than the margin, goes when the first is back.", criteria: weigh, most: 1,
			steps: []step{
				{0, []float64{10, 20}, "", "a"}, {30, []float64{15, 12}, "", "a"}, {60, []float64{15, 12}, "a", "ab"}, {65, []float64{15, 12}, "", "a"},
			},
		},
		"Equal": {
			reason: "So does one that is as good, and first by its ID.", criteria: weigh, most: 1,
			steps: []step{{0, []float64{20, 10}, "", "b"}, {1, []float64{10, 10}, "b", "ab"}, {2, []float64{10, 10}, "", "b"}},
		},
		"MuchBetter": {
			reason: "One that is better by the margin has to last like any other.", criteria: weigh, most: 1,
			steps: []step{
				{0, []float64{50, 60}, "", "a"}, {1, []float64{50, 10}, "a", "ab"}, {2, []float64{50, 10}, "", "a"},
				{301, []float64{50, 10}, "", "a"}, {302, []float64{50, 10}, "", "b"},
			},
		},
		"ForGood": {
			reason: "When the first loses its place, the substitute has it.", criteria: weigh, most: 1,
			steps: []step{
				{0, []float64{10, 20}, "", "a"}, {1, []float64{10, 20}, "a", "ab"}, {301, []float64{10, 20}, "a", "b"},
				{302, []float64{10, 20}, "", "b"},
			},
		},
		"OneOfTwoIsBack": {
			reason: "One of two substitutes goes, the worse one.", criteria: weigh, most: 2,
			steps: []step{
				{0, []float64{10, 20, 30, 40}, "", "ab"}, {1, []float64{10, 20, 30, 40}, "ab", "abcd"},
				{2, []float64{10, 20, 30, 40}, "a", "abc"}, {3, []float64{10, 20, 30, 40}, "", "ab"},
			},
		},
		"SubstituteIsAway": {
			reason: "A substitute has a substitute, and both go.", criteria: weigh, most: 1,
			steps: []step{
				{0, []float64{10, 20, 30}, "", "a"}, {1, []float64{10, 20, 30}, "a", "ab"}, {2, []float64{10, 20, 30}, "ab", "abc"},
				{3, []float64{10, 20, 30}, "", "a"},
			},
		},
		"SubstituteIsBack": {
			reason: "It is one still.", criteria: weigh, most: 1,
			steps: []step{
				{0, []float64{20, 30, 40}, "", "a"}, {1, []float64{20, 10, 40}, "a", "ab"}, {2, []float64{20, 10, 40}, "ab", "abc"},
				{3, []float64{20, 10, 40}, "a", "ab"}, {4, []float64{20, 10, 40}, "", "a"},
			},
		},
		"InTurn": {
			reason: "A substitute that is lost when the first is back is none any more.", criteria: weigh, most: 1,
			steps: []step{
				{0, []float64{20, 30}, "", "a"}, {1, []float64{20, 15}, "a", "ab"}, {2, []float64{20, 15}, "b", "a"}, {3, []float64{20, 15}, "", "a"},
			},
		},
		"Newcomer": {
			reason: "Who joins at the same time because there is one place more is none.", criteria: weigh, most: 3,
			steps: []step{
				{0, []float64{10}, "", "az"}, {1, []float64{10, 20, 30}, "a", "abcz"}, {2, []float64{10, 20, 30}, "", "abz"},
			},
		},
		"Group": {
			reason: "A region stands in for a region, each of which has one provider.", criteria: grouped, most: 1,
			steps: []step{{0, []float64{20, 10}, "", "b"}, {1, []float64{10, 10}, "b", "ab"}, {2, []float64{10, 10}, "", "b"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := New(tc.criteria)
			if err != nil {
				t.Fatalf("New(): %v", err)
			}
			var memory Memory
			for _, step := range tc.steps {
				providers := append(prices(step.prices...), provider("z", "", map[string]float64{"price": 100}))
				for i := range providers {
					providers[i].Labels["region"] = string(providers[i].ID)
					if strings.Contains(step.away, string(providers[i].ID)) {
						providers[i].Away = "out of reach"
					}
				}
				got, err := c.Limited(tc.most).Choose(now.Add(time.Duration(step.seconds)*time.Second), providers, memory)
				if err != nil {
					t.Fatalf("Choose(): %v", err)
				}
				memory = got.Memory
				var chosen strings.Builder
				for _, id := range memory.Chosen {
					chosen.WriteString(string(id))
				}
				if chosen.String() != step.want {
					t.Fatalf("%s\nafter %d s: chosen %s, want %s; substitutes %v", tc.reason, step.seconds, chosen.String(), step.want, memory.Substitutes)
				}
			}
		})
	}
}

// TestClockSetBack keeps a Chooser from waiting for a time that was never.
func TestClockSetBack(t *testing.T) {
	criteria := cheapest
	criteria.Lasting = time.Minute
	c, err := New(criteria)
	if err != nil {
		t.Fatalf("New(): %v", err)
	}
	memory := Memory{Chosen: []cluster.ID{"a"}, Better: map[cluster.ID]time.Time{"b": now.Add(24 * time.Hour)}}
	got, err := c.Choose(now, prices(2, 1), memory)
	if err != nil || got.Wait != time.Minute {
		t.Errorf("wait %s, %v: want a minute", got.Wait, err)
	}
}

// random returns criteria and providers.
func random(r *rand.Rand, providers int) (Criteria, []Provider) {
	c := Criteria{
		Filters: []string{`kpi.price < 90`, `labels["region"] != "r0"`},
		Weights: map[string]int{"price": r.IntN(21) - 10, "uptime": r.IntN(21) - 10},
		Max:     r.IntN(4), Margin: float64(r.IntN(30)), Lasting: time.Duration(r.IntN(3)) * time.Minute,
	}
	if r.IntN(2) == 0 {
		c.Spread = []Spread{{Label: "region", Distinct: 1 + r.IntN(2)}}
	}
	list := make([]Provider, providers)
	for i := range list {
		list[i] = provider(cluster.ID(fmt.Sprintf("id-%04d", i)), fmt.Sprintf("r%d", r.IntN(6)), nil)
		for _, name := range []string{"price", "uptime"} {
			if r.IntN(5) > 0 {
				list[i].KPIs[name] = measured(float64(r.IntN(100)))
			}
		}
	}
	return c, list
}

// FuzzChoose decides about random providers, in two orders, again and again.
func FuzzChoose(f *testing.F) {
	for seed := range uint64(200) {
		f.Add(seed, uint8(seed%23))
	}
	f.Fuzz(func(t *testing.T, seed uint64, n uint8) {
		r := rand.New(rand.NewPCG(seed, 0))
		criteria, providers := random(r, int(n))
		c, err := New(criteria)
		if err != nil {
			t.Fatalf("New(): %v", err)
		}
		first, err := c.Choose(now, providers, Memory{})
		r.Shuffle(len(providers), func(i, j int) { providers[i], providers[j] = providers[j], providers[i] })
		again, errAgain := c.Choose(now, providers, Memory{})
		if diff := cmp.Diff(first, again, cmp.AllowUnexported(Ranked{})); diff != "" || !errors.Is(errAgain, err) {
			t.Fatalf("the order matters: %v, %v, -first +again\n%s", err, errAgain, diff)
		}
		if err != nil {
			return
		}
		if criteria.Max > 0 && len(first.Chosen) > criteria.Max || len(first.Chosen) == 0 {
			t.Errorf("chosen: %v, at most %d", first.Chosen, criteria.Max)
		}
		regions := map[string]bool{}
		for _, p := range providers {
			if slices.Contains(first.Chosen, p.ID) {
				regions[p.Labels["region"]] = true
				if price := p.KPIs["price"]; !price.Known(now) || price.Value >= 90 || p.Labels["region"] == "r0" {
					t.Errorf("chosen: %v, which a filter excludes", p)
				}
			}
		}
		if len(criteria.Spread) > 0 && len(regions) < criteria.Spread[0].Distinct {
			t.Errorf("chosen in %d regions, want %d", len(regions), criteria.Spread[0].Distinct)
		}
		same, err := c.Choose(now.Add(time.Minute), providers, first.Memory)
		if diff := cmp.Diff(first.Memory, same.Memory); diff != "" || err != nil || same.Wait != 0 {
			t.Errorf("nothing has changed, but the choice: %v, -before +after\n%s", err, diff)
		}
	})
}

// TestUnknownNeverWins decides by one KPI among providers of which some have none.
func TestUnknownNeverWins(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		_, providers := random(r, 1+r.IntN(10))
		weight := []int{-1, 1}[r.IntN(2)]
		c, err := New(Criteria{Weights: map[string]int{"price": weight}, Max: 1})
		if err != nil {
			t.Fatalf("New(): %v", err)
		}
		got, err := c.Choose(now, providers, Memory{})
		if err != nil {
			t.Fatalf("Choose(): %v", err)
		}
		unknown := false
		for _, ranked := range got.Ranking {
			if known := ranked.Terms[0].Unknown == ""; known && unknown {
				t.Fatalf("%+v is behind one that is unknown", ranked)
			} else if !known {
				unknown = true
			}
		}
	}
}

// TestNoFlapping lets the prices wander, by less than the margin in all, and then
// one be better by more.
func TestNoFlapping(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	criteria := cheapest
	criteria.Margin = 10
	c, err := New(criteria)
	if err != nil {
		t.Fatalf("New(): %v", err)
	}
	noise := func() float64 { return 50 + 9*r.Float64() }
	var memory Memory
	for second := range 1000 {
		providers := prices(noise(), noise(), noise(), 0, 100)
		if second < 999 {
			providers[3].KPIs["price"] = measured(60)
			providers[4].KPIs["price"] = measured(150)
		}
		got, err := c.Choose(now.Add(time.Duration(second)*time.Second), providers, memory)
		if err != nil {
			t.Fatalf("Choose(): %v", err)
		}
		changed := !slices.Equal(got.Chosen, memory.Chosen)
		if want := second == 0 || second == 999; changed != want {
			t.Fatalf("second %d: chosen %v after %v", second, got.Chosen, memory.Chosen)
		}
		memory = got.Memory
	}
}

func BenchmarkChoose(b *testing.B) {
	for _, n := range []int{100, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			criteria, providers := random(rand.New(rand.NewPCG(5, 6)), n)
			criteria.Weights, criteria.Max = map[string]int{"price": -5, "uptime": 10}, 10
			criteria.Spread = []Spread{{Label: "region", Distinct: 3}}
			c, err := New(criteria)
			if err != nil {
				b.Fatalf("New(): %v", err)
			}
			var memory Memory
			percentile.Report(b, func() {
				decision, err := c.Choose(now, providers, memory)
				if err != nil {
					b.Fatalf("Choose(): %v", err)
				}
				memory = decision.Memory
			})
		})
	}
}

// BenchmarkGivenUp has criteria that nobody can decide by in time. The goal is that they hold up the others for a second at most.
func BenchmarkGivenUp(b *testing.B) {
	for name, criteria := range map[string]func(testing.TB) (*Chooser, []Provider){"Filter": longFilter, "Spread": hardSpread} {
		b.Run(name, func(b *testing.B) {
			c, providers := criteria(b)
			percentile.Report(b, func() {
				began := time.Now()
				if _, err := c.Choose(now, providers, Memory{}); err == nil {
					b.Fatal("it is decided")
				}
				if took := time.Since(began); took > time.Second {
					b.Errorf("it took %s", took)
				}
			})
		})
	}
}
