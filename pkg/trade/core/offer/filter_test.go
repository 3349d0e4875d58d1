// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package offer

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestMatch(t *testing.T) {
	price := func(amount string, period Period) *Price {
		return &Price{Amount: money(t, amount), Currency: "EUR", Period: period}
	}
	nobodySold := parse(t, `"available": 4`, `"available": 0`)
	o := parse(t, "", "")
	other := parse(t, `"labels": {"topology.kubernetes.io/region": "eu-north"}`, `"labels": {}`)
	long := parse(t, "ISO 27001", strings.Repeat("a", maxString))
	cases := map[string]struct {
		reason string
		offer  Offer
		filter Filter
		want   []int
	}{
		"Everything": {reason: "What is empty does not count.", offer: o, want: []int{0, 1}},
		"Resources":  {reason: "Only the range has GPUs.", offer: o, filter: Filter{Resources: list(t, "nvidia.com/gpu", "1")}, want: []int{1}},
		"TooMuch":    {reason: "Neither has as much.", offer: o, filter: Filter{Resources: list(t, "cpu", "65")}},
		"Price": {
			reason: "The minimum of the range costs 1.88 a day.", offer: o, filter: Filter{MaxPrice: price("1.88", Day)}, want: []int{0, 1},
		},
		"PriceExact": {reason: "A billionth counts.", offer: o, filter: Filter{MaxPrice: price("1.879999999", Day)}, want: []int{0}},
		"PriceOfGrant": {
			reason: "The price is that of what is granted: 1 + 8 * 0.24 + 0.4 a day.", offer: o,
			filter: Filter{Resources: list(t, "cpu", "7.9"), MaxPrice: price("3.319999999", Day)},
		},
		"PriceOfGrant=": {
			reason: "The price is that of what is granted.", offer: o,
			filter: Filter{Resources: list(t, "cpu", "7.9"), MaxPrice: price("3.32", Day)}, want: []int{1},
		},
		"PerHour":  {reason: "Prices are compared by the hour.", offer: o, filter: Filter{MaxPrice: price("36.5", Month)}, want: []int{0}},
		"Currency": {reason: "Currencies are not compared.", offer: o, filter: Filter{Currency: "USD"}},
		"OtherCurrency": {
			reason: "Currencies are not compared.", offer: o,
			filter: Filter{MaxPrice: &Price{Amount: money(t, "99"), Period: Hour}, Currency: "USD"},
		},
		"Region": {
			reason: "One of several is enough.", offer: o, filter: Filter{Regions: []string{"eu-south", "eu-north"}}, want: []int{0, 1},
		},
		"OtherRegion": {reason: "It is elsewhere.", offer: o, filter: Filter{Regions: []string{"eu-south"}}},
		"Architecture": {
			reason: "One of several is enough.", offer: o, filter: Filter{Architectures: []string{"riscv64", "arm64"}}, want: []int{0, 1},
		},
		"NoArch":    {reason: "It has no such nodes.", offer: o, filter: Filter{Architectures: []string{"riscv64"}}},
		"Type":      {reason: "It is of another type.", offer: o, filter: Filter{Types: []string{"storage"}}},
		"Kind":      {reason: "It is of another kind.", offer: o, filter: Filter{Kinds: []Kind{Broker}}},
		"Party":     {reason: "It is of another party.", offer: o, filter: Filter{Parties: []string{partyB}}},
		"SameParty": {reason: "It is of this party.", offer: o, filter: Filter{Parties: []string{partyA}}, want: []int{0, 1}},
		"TooShort":  {reason: "The minimum counts.", offer: o, filter: Filter{Duration: Duration(time.Minute)}, want: []int{1}},
		"TooLong": {
			reason: "The maximum counts, and zero is none.", offer: o, filter: Filter{Duration: Duration(999 * time.Hour)}, want: []int{1},
		},
		"Between":     {reason: "Both are kept.", offer: o, filter: Filter{Duration: Duration(time.Hour)}, want: []int{0, 1}},
		"SoldOut":     {reason: "What is sold out cannot be bought.", offer: nobodySold, want: []int{1}},
		"WithSoldOut": {reason: "It can still be looked at.", offer: nobodySold, filter: Filter{SoldOut: true}, want: []int{0, 1}},
		"Expression": {
			reason: "It sees the offer.", offer: o, want: []int{0, 1},
			filter: Filter{Expression: `offer.labels["topology.kubernetes.io/region"] == "eu-north" && "arm64" in offer.architectures && offer.revision > 6 &&
				offer.id == "north" && offer.kind == "Cluster" && offer.zone.startsWith(offer.region) && offer.type != offer.name &&
				offer.properties["certificate"].matches("^ISO") && offer.party.size() == 52`},
		},
		"PlanInExpression": {
			reason: "It sees the plan.", offer: o, want: []int{0},
			filter: Filter{Expression: `plan.resources["cpu"] == 4.0 && plan.pricePerHour < 0.06 && plan.notice <= duration("1h") && plan.available == 4 &&
				plan.minDuration < plan.maxDuration && plan.currency == "EUR" && plan.id == "small" && plan.name == "Small"`},
		},
		"GrantInExpression": {
			reason: "It sees what would be granted.", offer: o, want: []int{1},
			filter: Filter{Resources: list(t, "cpu", "5"), Expression: `plan.resources.memory == 4.0 * 1073741824.0 && plan.resources.cpu >= 5`},
		},
		"KPI": {
			reason: "It sees who measured.", offer: o, want: []int{0, 1},
			filter: Filter{Expression: `offer.kpis.exists(k, k.name == "availability30d" && k.value > 0.99 && k.measuredBy == offer.party && k.samples > 100 && k.unit == "ratio")`},
		},
		"NoValue": {
			reason: "It has no value without the label.", offer: other,
			filter: Filter{Expression: `offer.labels["topology.kubernetes.io/region"] != "us"`},
		},
		"Absent": {
			reason: "It can ask whether there is a label.", offer: other, want: []int{0, 1},
			filter: Filter{Expression: `!("topology.kubernetes.io/region" in offer.labels)`},
		},
		"Costly": {
			reason: "Each plan has a bound, whatever its seller writes.", offer: long,
			filter: Filter{Expression: `["` + strings.Repeat(`a","`, 60) + `b"].all(x, offer.properties.certificate.matches("(a|" + x + ")*"))`},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			matcher, err := tc.filter.Compile()
			if err != nil {
				t.Fatalf("Compile(): %v", err)
			}
			var got []int
			passes, cost := matcher.Matches(&tc.offer)
			if expressed := tc.filter.Expression != ""; cost > 0 && !expressed || cost > 2*(maxCost+1) {
				t.Errorf("%s\nMatches() cost %d", tc.reason, cost)
			}
			if want := len(matcher.Match(tc.offer)) > 0; passes != want {
				t.Errorf("%s\nMatches() = %t, and Match() returns something: %t", tc.reason, passes, want)
			}
			for _, match := range matcher.Match(tc.offer) {
				got = append(got, match.Plan)
				if !match.Granted.Covers(tc.filter.Resources) {
					t.Errorf("plan %d grants %s, which does not cover %s", match.Plan, match.Granted, tc.filter.Resources)
				}
				if cost, err := tc.offer.Plans[match.Plan].Cost(match.Granted); err != nil || cost != match.Price {
					t.Errorf("the match of plan %d says %s, and its cost is %s, %v", match.Plan, match.Price, cost, err)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nMatch(): -want +got\n%s", tc.reason, diff)
			}
		})
	}
}

// TestCounting compares what an expression has cost with what it costs at most: those of a compiler that counts are told apart by what they
// went through.
func TestCounting(t *testing.T) {
	compiler, err := NewCompiler()
	if err != nil {
		t.Fatal(err)
	}
	costOf := func(c *Compiler, o Offer) int {
		expression, err := c.Compile(`offer.kpis.exists(k, k.name.startsWith("availability") && k.value > 2.0)`)
		if err != nil {
			t.Fatal(err)
		}
		matcher, err := Filter{}.CompileWith(expression)
		if err != nil {
			t.Fatal(err)
		}
		passes, cost := matcher.Matches(&o)
		if passes {
			t.Error("no KPI is above 2, and a plan passes")
		}
		return cost
	}
	measured := parse(t, "", "")
	bare := measured
	bare.KPIs = nil
	counted, least, most := costOf(compiler.Counting(), measured), costOf(compiler.Counting(), bare), costOf(compiler, bare)
	if least <= 0 || counted <= least || most <= counted || most != costOf(compiler, measured) {
		t.Errorf("it costs %d counted, %d counted without KPIs, and %d at most, or else %d", counted, least, most, costOf(compiler, measured))
	}
}

func TestCompileRefuses(t *testing.T) {
	items := `[` + strings.TrimSuffix(strings.Repeat("1,", 40), ",") + `]`
	cases := map[string]struct {
		reason string
		filter Filter
		err    string
	}{
		"Syntax": {reason: "It is CEL.", filter: Filter{Expression: `offer.region =`}, err: "expression: "},
		"WrongName": {
			reason: "A typing error is not a filter that nothing passes.", filter: Filter{Expression: `offer.regoin == "eu"`},
			err: "undeclared reference",
		},
		"NotABool":  {reason: "It is true or not.", filter: Filter{Expression: `offer.region`}, err: "is a string, not a bool"},
		"WrongType": {reason: "Types are checked.", filter: Filter{Expression: `offer.region > 3`}, err: "no matching overload"},
		"Long": {
			reason: "It is bounded.", filter: Filter{Expression: strings.Repeat("(", MaxExpression+1)}, err: "more than 1024 characters",
		},
		"NotText": {reason: "It is text.", filter: Filter{Expression: "\xff"}, err: "not text"},
		"Deep": {
			reason: "The parser has a bound.", filter: Filter{Expression: strings.Repeat("(", 500) + "true" + strings.Repeat(")", 500)},
			err: "recursion",
		},
		"Nested": {
			reason: "The bound is near what people write.", filter: Filter{Expression: strings.Repeat("(", 40) + "true" + strings.Repeat(")", 40)},
			err: "recursion",
		},
		"AlwaysCostly": {
			reason: "It cannot be evaluated for any plan.",
			filter: Filter{Expression: items + `.exists_one(a, ` + items + `.exists_one(b, ` + items + `.exists_one(c, a * b * c > 0)))`},
			err:    "costs too much",
		},
		"Builds": {
			reason: "What it builds can double with each few characters.",
			filter: Filter{Expression: `[1]` + strings.Repeat(`.map(a, {a: a})`, 28) + `.size() == 1`}, err: "must not build",
		},
		"Resource":   {reason: "No node has it.", filter: Filter{Resources: Resources{"gpu": {milli: 1000}}}, err: `resources["gpu"]: `},
		"NoPeriod":   {reason: "A price is for some time.", filter: Filter{MaxPrice: &Price{Currency: "EUR"}}, err: "maxPrice.period"},
		"NoCurrency": {reason: "A price has a currency.", filter: Filter{MaxPrice: &Price{Period: Hour}}, err: "maxPrice.currency"},
		"TwoCurrencies": {
			reason: "There is one.", filter: Filter{MaxPrice: &Price{Period: Hour, Currency: "EUR"}, Currency: "USD"}, err: "currency: ",
		},
		"Currency": {reason: "It has a code.", filter: Filter{Currency: "euro"}, err: "currency: "},
		"Duration": {reason: "It is not negative.", filter: Filter{Duration: -1}, err: "duration: "},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if _, err := tc.filter.Compile(); err == nil || !strings.Contains(err.Error(), tc.err) {
				t.Errorf("%s\nCompile() error = %v, want one with %q", tc.reason, err, tc.err)
			}
		})
	}
}

func TestZeroMatcher(t *testing.T) {
	if got := (Matcher{}).Match(parse(t, "", "")); len(got) != 2 {
		t.Errorf("Match() of the zero Matcher = %v, want both plans", got)
	}
}

// TestMatchConcurrently asks one expression about different plans at the same time: none sees what is another's.
func TestMatchConcurrently(t *testing.T) {
	matcher, err := Filter{Expression: `plan.resources["cpu"] >= 4.0 && "memory" in plan.resources && offer.name == "seen"`}.Compile()
	if err != nil {
		t.Fatal(err)
	}
	seen := Offer{Name: "seen", Plans: []Plan{
		{ID: "large", Resources: list(t, "cpu", "8", "memory", "16Gi"), Available: 1},
		{ID: "bare", Resources: list(t, "cpu", "8"), Available: 1}, // What the plan before has is not its own.
		{ID: "small", Resources: list(t, "cpu", "2", "memory", "16Gi"), Available: 1},
	}}
	other := Offer{Name: "other", Plans: seen.Plans}
	var askers sync.WaitGroup
	for range 4 {
		askers.Go(func() {
			for range 1000 {
				if found := matcher.Match(seen); len(found) != 1 || found[0].Plan != 0 {
					t.Errorf("found %v, want the first plan", found)
					return
				}
				if found := matcher.Match(other); len(found) != 0 {
					t.Errorf("found %v of another offer", found)
					return
				}
			}
		})
	}
	askers.Wait()
}
