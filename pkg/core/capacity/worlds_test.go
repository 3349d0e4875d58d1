// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/core/resources"
	"github.com/capacitorset/liqo-broker/test/worlds"
)

var resourceNames = []corev1.ResourceName{"cpu", "memory", "pods", "ephemeral-storage", "hugepages-2Mi", "nvidia.com/gpu"}

// anyAmount returns an amount of a resource, of which some have fractions.
func anyAmount(r *rand.Rand, name corev1.ResourceName) resource.Quantity {
	switch n := r.IntN(8); {
	case n == 0:
		return resource.Quantity{}
	case n == 1:
		return *resource.NewQuantity(1<<60, resource.BinarySI) // Of many it is more than a number can be.
	case n == 2:
		return resource.MustParse(fmt.Sprintf("%dn", r.Int64N(20_000_000_000)))
	case n == 3:
		return *resource.NewMilliQuantity(r.Int64N(20_000), resource.DecimalSI)
	case name == corev1.ResourceMemory:
		return *resource.NewQuantity(r.Int64N(1<<40), resource.BinarySI)
	default:
		return *resource.NewQuantity(r.Int64N(20), resource.DecimalSI)
	}
}

func anyList(r *rand.Rand) corev1.ResourceList {
	list := corev1.ResourceList{}
	for _, name := range resourceNames {
		if r.IntN(4) > 0 {
			list[name] = anyAmount(r, name)
		}
	}
	return list
}

func anyTerms(r *rand.Rand, share int32) Terms {
	terms := Terms{Share: share}
	if r.IntN(3) == 0 {
		terms.Reserved = anyList(r)
	}
	if r.IntN(3) == 0 {
		terms.Limit = anyList(r)
		terms.Reserved = resources.AtMost(terms.Reserved, terms.Limit)
	}
	return terms
}

func anyAccount(r *rand.Rand, consumers []cluster.ID) Account {
	account := Account{
		Capacity: anyList(r), Offers: []Offers{OffersAll, OffersAll, OffersAll, OffersUsed, OffersNothing}[r.IntN(5)],
		Used: map[cluster.ID]corev1.ResourceList{},
	}
	for _, c := range consumers {
		if r.IntN(2) == 0 {
			account.Used[c] = resources.Scale(anyList(r), 30)
		}
	}
	if r.IntN(4) == 0 {
		account.Used[""] = resources.Scale(anyList(r), 10) // Nobody knows whose.
	}
	return account
}

// anyNodes returns some of the nodes that a consumer may have.
func anyNodes(r *rand.Rand, consumer cluster.ID, accounts map[cluster.ID]Account, order []cluster.ID) (nodes []Node) {
	if r.IntN(2) == 0 {
		return nil
	}
	if r.IntN(2) == 0 {
		nodes = append(nodes, Node{Open: r.IntN(2) == 0})
	}
	for _, id := range order {
		if r.IntN(3) == 0 {
			continue
		}
		node := Node{Name: string(id), Provider: id, Open: r.IntN(3) > 0}
		if r.IntN(2) == 0 {
			node.Used = accounts[id].Used[consumer]
		}
		nodes = append(nodes, node)
	}
	return nodes
}

// anySnapshot counts for any providers and consumers, and checks what is promised of every snapshot.
func anySnapshot(t *testing.T, r *rand.Rand) {
	shares := [][]int32{{100}, {50, 50}, {30, 30, 40}, {100, 100, 100}, {0, 100}, {33, 33, 33}}[r.IntN(6)]
	accounts, terms, nodes := map[cluster.ID]Account{}, map[cluster.ID]Terms{}, map[cluster.ID][]Node{}
	var consumers, providers []cluster.ID
	whole := int32(0)
	for i, share := range shares {
		id := cluster.ID(fmt.Sprint("c", i))
		consumers, terms[id] = append(consumers, id), anyTerms(r, share)
		whole += share
	}
	for i := range 1 + r.IntN(4) {
		id := cluster.ID(fmt.Sprint("p", i))
		if r.IntN(5) == 0 {
			id = consumers[r.IntN(len(consumers))] // One that is both.
		}
		if _, known := accounts[id]; !known {
			providers, accounts[id] = append(providers, id), anyAccount(r, consumers)
		}
	}
	slices.Sort(providers)
	told := map[cluster.ID][]corev1.ResourceName{}
	for _, c := range consumers {
		nodes[c] = anyNodes(r, c, accounts, providers)
		told[c] = resourceNames[:r.IntN(len(resourceNames))]
	}
	snap := NewSnapshot(accounts, terms, nodes, told)

	free, given := resources.Sum(), resources.Sum()
	for _, id := range providers {
		resources.Add(free, snap.free[id])
	}
	for _, c := range consumers {
		offered, used := snap.Offered(c), snap.Used(c)
		sum := resources.Sum()
		for _, pool := range snap.NodeOffers(c) {
			resources.Add(sum, pool.Offered)
			for _, name := range told[c] {
				if _, named := pool.Offered[name]; !named {
					t.Errorf("%s keeps %s of node %q", c, name, pool.Node)
				}
			}
		}
		for what, wrong := range map[string]bool{
			"more than its limit":                !resources.Covers(resources.AtMost(offered, terms[c].Limit), offered),
			"less than it uses":                  !resources.Covers(offered, resources.AtMost(used, terms[c].Limit)),
			"more than it uses and what is free": !resources.Covers(resources.Sum(used, free), offered),
			"less than nothing":                  !resources.Covers(offered, nil) || !resources.Covers(sum, resources.Subtract(sum, nil)),
			"more on its nodes than in all":      !resources.Covers(offered, sum),
		} {
			if wrong {
				t.Errorf("%s is offered %s: %v, on its nodes %v; it uses %v of %+v, terms %+v", c, what, offered, sum, used, accounts, terms[c])
			}
		}
		resources.Add(given, resources.Subtract(offered, used))
	}
	if whole <= 100 && !resources.Covers(free, given) {
		t.Errorf("consumers with shares of %v are offered %v, and %v is free: %+v, terms %+v", shares, given, free, accounts, terms)
	}
}

// TestAnySnapshot counts in random worlds.
func TestAnySnapshot(t *testing.T) {
	worlds.Run(t, func(t *testing.T, seed uint64) { anySnapshot(t, rand.New(rand.NewPCG(seed, 1))) })
}
