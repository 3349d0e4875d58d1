// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package offer

import (
	"fmt"
	"testing"

	"github.com/capacitorset/liqo-broker/test/percentile"
)

// BenchmarkMatch looks for plans among 10,000 offers of two plans each, as a connector does; and, for Any, asks of which a plan passes and
// counts what that costs, as a registry does.
func BenchmarkMatch(b *testing.B) {
	offers := make([]Offer, 10_000)
	for i := range offers {
		offers[i] = parse(b, `"region": "eu-north"`, fmt.Sprintf(`"region": "region-%d"`, i%20))
	}
	compiler, err := NewCompiler()
	if err != nil {
		b.Fatal(err)
	}
	most := Price{Amount: money(b, "0.2"), Currency: "EUR", Period: Hour}
	for name, filter := range map[string]Filter{
		"Region":     {Regions: []string{"region-7"}},
		"Price":      {Resources: list(b, "cpu", "8", "memory", "16Gi"), MaxPrice: &most},
		"Expression": {Expression: `offer.region == "region-7" && plan.pricePerHour < 0.1`},
		"Costly":     {Expression: `offer.kpis.exists(k, k.name.startsWith("availability") && k.value > 0.99) && offer.properties["certificate"].matches("ISO")`},
	} {
		matcher, err := filter.Compile()
		if err != nil {
			b.Fatal(err)
		}
		counting := matcher
		if filter.Expression != "" {
			expression, err := compiler.Counting().Compile(filter.Expression)
			if err != nil {
				b.Fatal(err)
			}
			if counting, err = filter.CompileWith(expression); err != nil {
				b.Fatal(err)
			}
		}
		b.Run(name, func(b *testing.B) {
			percentile.Report(b, func() {
				for i := range offers {
					matcher.Match(offers[i])
				}
			})
		})
		b.Run(name+"Any", func(b *testing.B) {
			percentile.Report(b, func() {
				for i := range offers {
					counting.Matches(&offers[i])
				}
			})
		})
	}
}

// BenchmarkParse reads one offer.
func BenchmarkParse(b *testing.B) {
	data := changed(b, "", "")
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if _, err := Parse(data); err != nil {
			b.Fatal(err)
		}
	}
}
