// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"fmt"
	"testing"
	"time"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/test/percentile"
)

// BenchmarkDecide plans for a namespace that uses all of some providers, with one
// copy of a workload on each, while one of them is drained.
func BenchmarkDecide(b *testing.B) {
	for _, n := range []int{100, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s := Snapshot{Effective: true}
			for i := range n {
				id := cluster.ID(fmt.Sprintf("p%04d", i))
				scheduling := Active
				if i == 0 {
					scheduling = Drained
				}
				s.Providers = append(s.Providers, Provider{ID: id, Health: Ready, Scheduling: scheduling, Namespace: Present, Room: cores(9)})
				s.Selected = append(s.Selected, id)
				s.Copies = append(s.Copies, Copy{Pod: string(id), Workload: "web", Spot: OnProvider, Provider: id, Ready: true, Requests: cores(1)})
			}
			now := time.Unix(1_800_000_000, 0)
			if plan := Decide(now, s); len(plan.Recreate) != 1 {
				b.Fatalf("Decide(): %d pods to recreate, want that of the drained provider", len(plan.Recreate))
			}
			percentile.Report(b, func() { Decide(now, s) })
		})
	}
}
