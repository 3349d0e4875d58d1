// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package choice_test

import (
	"fmt"
	"log"
	"time"

	"github.com/capacitorset/liqo-broker/pkg/core/choice"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/core/kpi"
)

// Two providers in the EU are wanted. Price counts most, and the round-trip time a little; less is better of both.
func ExampleChooser_Choose() {
	chooser, err := choice.New(choice.Criteria{
		Filters: []string{`labels["region"] == "eu"`},
		Weights: map[string]int{"price": -3, "latency": -1},
		Max:     2,
	})
	if err != nil {
		log.Fatal(err)
	}
	now := time.Date(2024, 5, 1, 12, 0, 0, 0, time.UTC)
	provider := func(id cluster.ID, region string, price, latency float64) choice.Provider {
		known := func(value float64, unit string) kpi.KPI {
			return kpi.KPI{Value: value, Unit: unit, Measured: now, Expires: now.Add(time.Hour)}
		}
		return choice.Provider{
			ID: id, Name: string(id), Labels: map[string]string{"region": region},
			KPIs: map[string]kpi.KPI{"price": known(price, "EUR"), "latency": known(latency, "ms")},
		}
	}
	decision, err := chooser.Choose(now, []choice.Provider{
		provider("rome", "eu", 10, 40),
		provider("oslo", "eu", 20, 10),
		provider("bonn", "eu", 12, 20),
		provider("lima", "sa", 5, 90),
	}, choice.Memory{})
	if err != nil {
		log.Fatal(err)
	}
	for _, ranked := range decision.Ranking {
		switch {
		case ranked.Excluded != "":
			fmt.Printf("%s: excluded by %s\n", ranked.Name, ranked.Excluded)
		case ranked.Chosen:
			fmt.Printf("%s: chosen with a score of %.0f\n", ranked.Name, ranked.Score)
		default:
			fmt.Printf("%s: not chosen with a score of %.0f\n", ranked.Name, ranked.Score)
		}
	}
	// Output:
	// bonn: chosen with a score of 77
	// rome: chosen with a score of 75
	// oslo: not chosen with a score of 25
	// lima: excluded by filter "labels[\"region\"] == \"eu\""
}
