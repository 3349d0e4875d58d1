// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/capacitorset/liqo-broker/pkg/cluster"
)

// BenchmarkBooks counts what each of 1,000 consumers is offered of 1,000 providers,
// each of which has the pods of ten of them.
func BenchmarkBooks(b *testing.B) {
	const clusters, users = 1000, 10
	id := func(kind string, n int) cluster.ID { return cluster.ID(fmt.Sprint(kind, n%clusters)) }
	accounts, terms := map[cluster.ID]Account{}, map[cluster.ID]Terms{}
	for p := range clusters {
		used := map[cluster.ID]corev1.ResourceList{}
		for c := range users {
			used[id("c", p+c)] = list("cpu", "500m", "memory", "1Gi", "pods", "2")
		}
		accounts[id("p", p)] = Account{Has: list("cpu", "64", "memory", "256Gi", "pods", "110"), Usable: true, Used: used}
		terms[id("c", p)] = Terms{Reserved: list("cpu", "8"), Share: Whole}
	}
	b.Run("New", func(b *testing.B) {
		for b.Loop() {
			NewBooks(accounts, terms, nil)
		}
	})
	books := NewBooks(accounts, terms, nil)
	b.Run("OfferedToAll", func(b *testing.B) {
		for b.Loop() {
			for c := range clusters {
				books.Offered(id("c", c))
			}
		}
	})
}
