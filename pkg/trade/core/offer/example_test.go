// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package offer_test

import (
	"fmt"
	"log"
	"strings"

	"github.com/capacitorset/liqo-broker/pkg/trade/core/offer"
)

// Eight cores and 12 GiB are wanted for at most 0.1 EUR an hour. Oslo sells any amount and bills by the day, Rome
// sells nodes of one size and bills by the month, and Bonn is too expensive.
func ExampleMatcher_Match() {
	const document = `{
		"party": "%s", "id": "%s", "revision": 1, "kind": "Cluster", "name": "%[2]s",
		"issuedAt": "2024-05-01T12:00:00Z", "validUntil": "2024-05-02T12:00:00Z",
		"plans": [{"id": "plan", "available": 5, %[3]s}]
	}`
	const fixed = `"resources": {"cpu": "8", "memory": "16Gi", "pods": "100"}, "price": {"amount": "%s", "currency": "EUR", "period": "%s"}`
	const flexible = `"range": {
			"min": {"cpu": "1", "memory": "1Gi", "pods": "10"}, "max": {"cpu": "16", "memory": "61Gi", "pods": "10"}, "step": {"cpu": "1", "memory": "4Gi"}
		},
		"price": {"amount": "0", "currency": "EUR", "period": "P1D"},
		"unitPrices": {"cpu": {"amount": "0.2", "per": "1"}, "memory": {"amount": "0.05", "per": "1Gi"}}`

	filter := offer.Filter{Resources: offer.Resources{}, Currency: "EUR"}
	for name, text := range map[string]string{"cpu": "8", "memory": "12Gi"} {
		quantity, err := offer.ParseQuantity(text)
		if err != nil {
			log.Fatal(err)
		}
		filter.Resources[name] = quantity
	}
	most, err := offer.ParseAmount("0.1")
	if err != nil {
		log.Fatal(err)
	}
	filter.MaxPrice = &offer.Price{Amount: most, Period: offer.Hour}
	matcher, err := filter.Compile()
	if err != nil {
		log.Fatal(err)
	}

	party := strings.Repeat("a", 52)
	for _, seller := range []struct{ name, plan string }{
		{"oslo", flexible}, {"rome", fmt.Sprintf(fixed, "73", "P1M")}, {"bonn", fmt.Sprintf(fixed, "0.1001", "PT1H")},
	} {
		o, err := offer.Parse(fmt.Appendf(nil, document, party, seller.name, seller.plan))
		if err != nil {
			log.Fatal(err)
		}
		for _, match := range matcher.Match(o) {
			fmt.Printf("%s: %s for %s, which is %s EUR an hour\n", o.Name, match.Granted, match.Price, match.Price.PerHour().FloatString(4))
		}
	}
	// Output:
	// oslo: cpu 8, memory 13Gi, pods 10 for 2.25 EUR/d, which is 0.0938 EUR an hour
	// rome: cpu 8, memory 16Gi, pods 100 for 73 EUR/mo, which is 0.1000 EUR an hour
}
