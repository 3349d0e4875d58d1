// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/capacitorset/liqo-broker/pkg/core/capacity"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
)

// Two providers serve three consumers: one with a reservation, one with a limit, and one without terms. What is free is offered to
// all of them at once, and whose pod comes first gets it; what is reserved is offered to one alone.
func ExampleSnapshot_Offered() {
	cores := func(n int64) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceCPU: *resource.NewQuantity(n, resource.DecimalSI)}
	}
	snapshot := capacity.NewSnapshot(
		map[cluster.ID]capacity.Account{
			"rome": {
				Capacity: capacity.Has(capacity.Measured, cores(10), nil, capacity.Whole),
				Offers:   capacity.OffersAll,
				Used:     map[cluster.ID]corev1.ResourceList{"bank": cores(1), "shop": cores(3)},
			},
			"oslo": { // Overcommitted: its 8 cores count as 12.
				Capacity: capacity.Has(capacity.Measured, cores(8), nil, 150),
				Offers:   capacity.OffersAll,
			},
		},
		map[cluster.ID]capacity.Terms{
			"bank": {Reserved: cores(5), Share: capacity.Whole},
			"shop": {Limit: cores(6), Share: capacity.Whole},
		},
		nil, nil,
	)
	for _, consumer := range []cluster.ID{"bank", "shop", "blog"} {
		used, offered := snapshot.Used(consumer), snapshot.Offered(consumer)
		fmt.Printf("%s uses %s CPU and is offered %s of the 22\n", consumer, used.Cpu(), offered.Cpu())
	}
	// Output:
	// bank uses 1 CPU and is offered 19 of the 22
	// shop uses 3 CPU and is offered 6 of the 22
	// blog uses 0 CPU and is offered 14 of the 22
}
