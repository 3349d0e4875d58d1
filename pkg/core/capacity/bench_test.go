// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/test/percentile"
)

// BenchmarkBooks counts what each of as many consumers is offered of some providers,
// each of which has the pods of ten of them.
func BenchmarkBooks(b *testing.B) {
	for _, clusters := range []int{100, 1000} {
		b.Run(fmt.Sprint(clusters), func(b *testing.B) { benchmarkBooks(b, clusters) })
	}
}

func benchmarkBooks(b *testing.B, clusters int) {
	b.Helper()
	const users = 10
	id := func(kind string, n int) cluster.ID { return cluster.ID(fmt.Sprint(kind, n%clusters)) }
	accounts, terms := map[cluster.ID]Account{}, map[cluster.ID]Terms{}
	for p := range clusters {
		used := map[cluster.ID]corev1.ResourceList{}
		for c := range users {
			used[id("c", p+c)] = list("cpu", "500m", "memory", "1Gi", "pods", "2")
		}
		accounts[id("p", p)] = Account{Capacity: list("cpu", "64", "memory", "256Gi", "pods", "110"), Offers: OffersAll, Used: used}
		terms[id("c", p)] = Terms{Reserved: list("cpu", "8"), Share: Whole}
	}
	b.Run("New", func(b *testing.B) {
		percentile.Report(b, func() { NewSnapshot(accounts, terms, nil, nil) })
	})
	snap := NewSnapshot(accounts, terms, nil, nil)
	b.Run("OfferedToOne", func(b *testing.B) {
		percentile.Report(b, func() { snap.Offered("c7") })
	})
}
