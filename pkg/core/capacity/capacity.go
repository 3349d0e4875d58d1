// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package capacity is the rule by which the broker counts: what a provider has,
// what a pod takes of it, and what a consumer is offered.
//
// It decides on values and has no memory: a Snapshot is one moment. It knows neither
// where the values come from nor how offers are told, and it places nothing. What
// is offered to several consumers is bound for one of them by the broker's
// scheduler. The arithmetic is that of package resources; what is unknown is zero.
package capacity

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/core/resources"
)

// Rule says whom to believe about what a provider has.
type Rule string

// The rules.
const (
	// Measured believes what the provider offers to the broker. It is the default.
	Measured Rule = "Measured"
	// Declared believes what people wrote, and nothing about other resources.
	Declared Rule = "Declared"
	// Min is what the provider offers, and no more than people wrote.
	Min Rule = "Min"
)

// Whole is the percentage that changes nothing.
const Whole = 100

// Has returns what a provider has by a rule, times the percentage by which it is
// overcommitted.
func Has(rule Rule, measured, declared corev1.ResourceList, overcommit int32) corev1.ResourceList {
	has := measured
	switch rule {
	case Declared:
		has = declared
	case Min:
		has = resources.AtMost(measured, declared)
	case Measured:
	}
	return resources.Scale(has, overcommit)
}

// Terms are what people agreed on with a consumer.
type Terms struct {
	// Reserved is kept for the consumer. What it does not use of it is offered to
	// nobody else.
	Reserved corev1.ResourceList
	// Limit is the most that the consumer is offered of the resources that it names.
	Limit corev1.ResourceList
	// Share is the percentage of what is free, and reserved for nobody, that the
	// consumer is offered.
	Share int32
}

// Offers is what of a provider counts in what is offered.
type Offers int

// What of a provider counts.
const (
	// OffersNothing: pods have to leave the provider, or nobody knows of it.
	OffersNothing Offers = iota
	// OffersUsed: no new pods come. What the pods there use is offered to their consumers.
	OffersUsed
	// OffersAll: new pods may come.
	OffersAll
)

// Account is who uses what of a provider.
type Account struct {
	// Capacity is what the provider has, by its rule.
	Capacity corev1.ResourceList
	// Offers is what of that counts.
	Offers Offers
	// Used is what each consumer uses of the provider, and under an empty ID what
	// nobody knows the consumer of.
	Used map[cluster.ID]corev1.ResourceList
}

// total returns what all use of the provider.
func (a Account) total() corev1.ResourceList {
	total := corev1.ResourceList{}
	for _, used := range a.Used {
		resources.Add(total, used)
	}
	return total
}

// counted returns what of the provider counts, of which all use so much together.
func (a Account) counted(used corev1.ResourceList) corev1.ResourceList {
	switch a.Offers {
	case OffersAll:
		return a.Capacity
	case OffersUsed:
		return resources.Min(a.Capacity, used)
	case OffersNothing:
	}
	return nil
}

// Snapshot are the accounts of all providers, and the terms and nodes of all consumers,
// at one moment. They are not changed, and may be used concurrently.
type Snapshot struct {
	accounts map[cluster.ID]Account
	terms    map[cluster.ID]Terms
	nodes    map[cluster.ID][]Node // Of each consumer that has more than one.
	told     map[cluster.ID][]corev1.ResourceName

	usedOf map[cluster.ID]corev1.ResourceList // Of each provider.
	free   map[cluster.ID]corev1.ResourceList // Of each usable provider, for new pods.
	used   map[cluster.ID]corev1.ResourceList // By each consumer.
	places map[cluster.ID][]cluster.ID        // The providers that count, of each consumer's pods.
	// pool is the sum of what is free, and kept what all consumers together have
	// reserved and do not use.
	pool, kept corev1.ResourceList
}

// NewSnapshot returns the snapshot of the given accounts, terms and nodes. A consumer
// without terms has no reservation and no limit, and its share is Whole; one without
// nodes has one, without a name, for all providers. told are the resources that each
// consumer was told of.
func NewSnapshot(
	accounts map[cluster.ID]Account, terms map[cluster.ID]Terms, nodes map[cluster.ID][]Node, told map[cluster.ID][]corev1.ResourceName,
) *Snapshot {
	s := &Snapshot{
		accounts: accounts,
		terms:    terms,
		nodes:    nodes,
		told:     told,
		usedOf:   make(map[cluster.ID]corev1.ResourceList, len(accounts)),
		free:     make(map[cluster.ID]corev1.ResourceList, len(accounts)),
		used:     map[cluster.ID]corev1.ResourceList{},
		places:   map[cluster.ID][]cluster.ID{},
		pool:     resources.Sum(),
		kept:     corev1.ResourceList{},
	}
	for id, account := range accounts {
		s.usedOf[id] = account.total()
		if account.Offers != OffersNothing {
			s.free[id] = resources.Subtract(account.counted(s.usedOf[id]), s.usedOf[id])
			resources.Add(s.pool, s.free[id])
		}
		for consumer, used := range account.Used {
			if s.used[consumer] == nil {
				s.used[consumer] = corev1.ResourceList{}
			}
			resources.Add(s.used[consumer], used)
			if account.Offers != OffersNothing {
				s.places[consumer] = append(s.places[consumer], id)
			}
		}
	}
	for id := range terms {
		resources.Add(s.kept, s.unused(id))
	}
	return s
}

// unused is what a consumer has reserved and does not use.
func (s *Snapshot) unused(consumer cluster.ID) corev1.ResourceList {
	return resources.Subtract(s.terms[consumer].Reserved, s.used[consumer])
}

// Used returns what a consumer uses, of all providers; with an empty ID, what nobody knows the consumer of.
func (s *Snapshot) Used(consumer cluster.ID) corev1.ResourceList {
	return resources.Max(s.used[consumer], nil)
}

// Obtainable returns what a consumer uses, and what it could use if it came before all
// others: what counts of the providers except itself, less what others use of
// them and what is reserved for others. It is what the consumer is offered unless
// its terms say less.
func (s *Snapshot) Obtainable(consumer cluster.ID) corev1.ResourceList {
	obtainable := resources.Sum(resources.Subtract(s.pool, s.free[consumer]))
	for _, provider := range s.places[consumer] {
		if provider == consumer {
			continue
		}
		// What the consumer itself uses is no loss to it, as far as the provider has it.
		account := s.accounts[provider]
		others := resources.Subtract(s.usedOf[provider], account.Used[consumer])
		resources.Add(obtainable, resources.Subtract(resources.Subtract(account.counted(s.usedOf[provider]), others), s.free[provider]))
	}
	return resources.Subtract(obtainable, resources.Subtract(s.kept, s.unused(consumer)))
}

// Offered returns what a consumer is offered: what it may obtain, of which only its
// share where that is neither used by it nor reserved for it; at least what it
// uses, and at most its limit. cpu, memory and pods are there in any case.
func (s *Snapshot) Offered(consumer cluster.ID) corev1.ResourceList {
	terms, agreed := s.terms[consumer]
	if !agreed {
		terms.Share = Whole
	}
	used := s.used[consumer]
	obtainable := s.Obtainable(consumer)
	sure := resources.Min(obtainable, resources.Max(used, terms.Reserved))
	offered := resources.Sum(sure, resources.Scale(resources.Subtract(obtainable, sure), terms.Share))
	return resources.AtMost(resources.Max(offered, used), terms.Limit)
}
