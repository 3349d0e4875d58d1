// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package offer is what parties sell to each other: offers with plans, their prices and
// amounts, and what a buyer looks for.
//
// Everything is read strictly and counted exactly: amounts are thousandths of a unit, money
// is billionths of a currency, and neither is ever a float. It does not know how a
// document is signed, where it came from or what time it is, and it sells nothing: that is the
// business of a contract.
package offer

import (
	"cmp"
	"time"
)

// Type is the type of a signed document that holds an offer.
const Type = "offer+jws"

// Offer is what a party sells. An offer that Parse returns is complete and within all bounds.
// It is a value that nobody changes: copies share slices and maps.
type Offer struct {
	// Party is the seller: the ID of its first key, as 52 characters of lower-case base32.
	Party string `json:"party"`
	// ID is a DNS label that the seller chooses. Party and ID together name the offer.
	ID string `json:"id"`
	// Revision is positive and grows with each change. Of two revisions the larger counts.
	Revision int64 `json:"revision"`
	// IssuedAt and ValidUntil are when the offer was made, and from when it no longer counts.
	IssuedAt   time.Time `json:"issuedAt"`
	ValidUntil time.Time `json:"validUntil"`
	// Kind tells a cluster of nodes from a broker that sells what others have.
	Kind Kind `json:"kind"`
	// Name, Description and Type are for people; only Name must be there.
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	Type        string `json:"type,omitempty"`
	// Region and Zone are where the resources are, in the words of the seller.
	Region string `json:"region,omitempty"`
	Zone   string `json:"zone,omitempty"`
	// Architectures are those of the nodes, as in the label kubernetes.io/arch.
	Architectures []string `json:"architectures,omitempty"`
	// Properties say more about what is sold, such as certificates of the data centre.
	Properties map[string]string `json:"properties,omitempty"`
	// Labels are valid as labels of Kubernetes, so that a node can have them.
	Labels map[string]string `json:"labels,omitempty"`
	// Plans are what can be bought: at least one.
	Plans []Plan `json:"plans"`
	// KPIs are what the seller has measured: a broker, of those that it buys from. They are as true as the seller is honest.
	KPIs []KPI `json:"kpis,omitempty"`
}

// Key names an offer of a party in all its revisions. Without Offer it names the party itself, which comes before its offers.
type Key struct{ Party, Offer string }

// Compare orders keys, as cmp.Compare does.
func (k Key) Compare(other Key) int {
	return cmp.Or(cmp.Compare(k.Party, other.Party), cmp.Compare(k.Offer, other.Offer))
}

// String is the key as text. Neither part has a slash.
func (k Key) String() string { return k.Party + "/" + k.Offer }

// Key returns the name of the offer.
func (o Offer) Key() Key { return Key{Party: o.Party, Offer: o.ID} }

// Plan returns the plan of an ID.
func (o Offer) Plan(id string) (Plan, bool) {
	for _, plan := range o.Plans {
		if plan.ID == id {
			return plan, true
		}
	}
	return Plan{}, false
}

// Kind is what stands behind an offer.
type Kind string

// Kinds of offers.
const (
	// Cluster sells what its nodes have.
	Cluster Kind = "Cluster"
	// Broker sells what it buys from others.
	Broker Kind = "Broker"
)

// KPI is a value that the party has measured that signs the offer.
type KPI struct {
	// Name and Unit are as in package kpi.
	Name       string    `json:"name"`
	Value      float64   `json:"value"`
	Unit       string    `json:"unit,omitempty"`
	MeasuredAt time.Time `json:"measuredAt"`
	// MeasuredBy is the party that measured. It is the one that signs: nobody is believed to have measured what it has not signed.
	MeasuredBy string `json:"measuredBy"`
	// Samples is from how many measurements the value comes.
	Samples int64 `json:"samples"`
}

// Plan is one way to buy: either fixed resources, or any amount of a range.
type Plan struct {
	// ID is a DNS label, unique in the offer.
	ID   string `json:"id"`
	Name string `json:"name,omitempty"`
	// Resources are what a buyer gets; empty if Range is set. What can be bought has cpu, memory and pods.
	Resources Resources `json:"resources,omitempty"`
	Range     *Range    `json:"range,omitempty"`
	// Price is for the resources, and of a range the part that does not depend on the amount.
	Price Price `json:"price"`
	// UnitPrices are what the resources of a range cost besides, in the currency and for the period
	// of the price. A resource without a unit price costs nothing.
	UnitPrices map[string]UnitPrice `json:"unitPrices,omitempty"`
	// Stock is how many contracts the seller makes at a time at most; nil if only its capacity counts.
	Stock *int64 `json:"stock,omitempty"`
	// Available is how many more contracts there could be when the offer was issued, of the smallest
	// amount of a range. The plan is sold out at zero.
	Available int64 `json:"available"`
	// MinDuration and MaxDuration bound a contract; zero does not.
	MinDuration Duration `json:"minDuration,omitempty"`
	MaxDuration Duration `json:"maxDuration,omitempty"`
	// Notice is for how long a seller that ends a contract early goes on giving, and a buyer that ends one goes on paying.
	Notice Duration `json:"notice,omitempty"`
}

// Range is what a buyer may choose: of each resource the minimum and a whole number of steps,
// up to the maximum. All three are in the same unit. A resource without a minimum can be left out.
type Range struct {
	Min  Resources `json:"min"`
	Max  Resources `json:"max"`
	Step Resources `json:"step"`
}

// UnitPrice is the price of some of a resource, such as 0.004 per 1Gi of memory.
type UnitPrice struct {
	Amount Amount   `json:"amount"`
	Per    Quantity `json:"per"`
}
