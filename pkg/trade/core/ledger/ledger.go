// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ledger counts what a seller has promised: the holds that reservations and contracts have on the stock of plans and on the
// capacity of the cluster. A hold is granted only while stock and capacity cover it beside all others.
//
// It works on values: a ledger is never changed, a changed one is returned. It does not know what a contract is, whether its seller
// still has what it promised yesterday, nor how a ledger is stored; who stores it writes the whole of it, and only over the ledger that
// it was made from.
package ledger

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/capacitorset/liqo-broker/pkg/core/resources"
)

// The reasons for which a hold is refused.
var (
	// ErrSoldOut: as many contracts of the plan are held as there are for sale.
	ErrSoldOut = errors.New("sold out")
	// ErrCapacity: the cluster has too little of a resource left.
	ErrCapacity = errors.New("not enough capacity")
	// ErrHold: the hold itself makes no sense.
	ErrHold = errors.New("invalid hold")
)

const (
	// maxQuantity is the largest amount of one resource of one hold, as in offers.
	maxQuantity = int64(1) << 50
	// maxResources bounds the resources of one hold, as in offers.
	maxResources = 32
)

// Key names a contract: an ID belongs to the buyer that used it first, so that no buyer can take another's.
type Key struct {
	Buyer string `json:"buyer"`
	ID    string `json:"id"`
}

func (k Key) String() string { return k.Buyer + "/" + k.ID }

func (k Key) compare(other Key) int {
	return cmp.Or(cmp.Compare(k.Buyer, other.Buyer), cmp.Compare(k.ID, other.ID))
}

// Hold is what one reservation or contract takes: one of the stock of a plan, and resources.
type Hold struct {
	Key       Key                 `json:"key"`
	Offer     string              `json:"offer"`
	Plan      string              `json:"plan"`
	Resources corev1.ResourceList `json:"resources"`
	// Until is when the hold lapses. That of a contract is zero: it is released, and never lapses, because a clock that leaps must not
	// take what was sold.
	Until time.Time `json:"until,omitzero"`
	// Next is what is reserved for new terms, until NextUntil; nil is nothing. Until then the larger of both counts, resource by resource.
	Next corev1.ResourceList `json:"next,omitempty"`
	// NextPlans are plans besides Plan of which it takes one each until then: that of new terms, and others while a record is written.
	NextPlans []string `json:"nextPlans,omitempty"`
	// NextUntil is when that lapses; zero is never.
	NextUntil time.Time `json:"nextUntil,omitzero"`
}

// Limits are what a hold must fit into together with all others.
type Limits struct {
	// Plan is the plan whose Stock this is: of others nobody begins to hold anything. Empty is any plan.
	Plan string
	// Stock is how many contracts of the plan there are for sale, those that are held included; nil is any number.
	Stock *int64
	// Capacity is what the cluster has for sale, with what is held of it by all plans. A resource that it does not name is not for sale.
	Capacity corev1.ResourceList
}

// Ledger is all holds of a seller, ordered by key. The zero Ledger holds nothing.
type Ledger struct {
	Holds []Hold `json:"holds,omitempty"`
}

// New returns the ledger of some holds, in any order. Of several of the same contract the last one counts.
func New(holds []Hold) Ledger {
	if len(holds) == 0 {
		return Ledger{}
	}
	sorted := slices.Clone(holds)
	slices.Reverse(sorted)
	slices.SortStableFunc(sorted, func(a, b Hold) int { return a.Key.compare(b.Key) })
	return Ledger{Holds: slices.CompactFunc(sorted, func(a, b Hold) bool { return a.Key == b.Key })}
}

// Get returns the hold of a contract.
func (l Ledger) Get(key Key) (Hold, bool) {
	at, found := l.find(key)
	if !found {
		return Hold{}, false
	}
	return l.Holds[at], true
}

// Reserve returns the ledger with a hold in the place of that with the same key, if there is one: so a reservation is made, confirmed
// (without Until), resized (with Next) and made again. Holds of others that have lapsed are gone in it. Only what grows is compared with
// the limits, so that what is held can be kept, and made smaller, when a cluster has shrunk below what it sold.
//
// Its errors are ErrSoldOut, ErrCapacity and ErrHold; the ledger is then returned as it was.
func (l Ledger) Reserve(hold Hold, limits Limits, now time.Time) (Ledger, error) {
	if err := hold.validate(); err != nil {
		return l, err
	}
	// What is new: another plan, as the last one that it names, and what it takes beyond what it has.
	rest := l.Lapse(now, 0)
	wanted, had, again := hold.Counts(), corev1.ResourceList(nil), false
	plans := hold.Plans()
	plan := plans[len(plans)-1]
	if before, found := rest.Get(hold.Key); found && before.Offer == hold.Offer {
		had, again = before.Counts(), slices.Contains(before.Plans(), plan)
	}
	// One more of a plan, of the stock.
	rest = rest.Release(hold.Key)
	if limits.Plan != "" && limits.Plan != plan && !again {
		return l, fmt.Errorf("hold one of plan %s of offer %s: it is not known how many are left: %w", plan, hold.Offer, ErrSoldOut)
	}
	if limits.Stock != nil && !again {
		if sold := rest.Sold(hold.Offer, plan, now); sold >= *limits.Stock {
			return l, fmt.Errorf("hold one of plan %s of offer %s: %d of %d are held: %w", plan, hold.Offer, sold,
				max(*limits.Stock, 0), ErrSoldOut)
		}
	}
	// More of a resource, of the capacity.
	taken := rest.Held(now)
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		quantity := wanted[name]
		if quantity.Cmp(had[name]) <= 0 {
			continue
		}
		left := limits.Capacity[name].DeepCopy()
		left.Sub(taken[name])
		if quantity.Cmp(left) > 0 {
			if left.Sign() < 0 {
				left = resource.Quantity{}
			}
			return l, fmt.Errorf("hold %s of %s: %s left: %w", quantity.String(), name, left.String(), ErrCapacity)
		}
	}
	return rest.Keep(hold), nil
}

// Keep returns the ledger with a hold, without comparing it with any limit: for what both have signed, and what becomes smaller.
func (l Ledger) Keep(hold Hold) Ledger {
	rest := l.Release(hold.Key)
	at, _ := rest.find(hold.Key)
	return Ledger{Holds: slices.Insert(slices.Clone(rest.Holds), at, hold)}
}

// Release returns the ledger without the hold of a contract. It is no error that there is none.
func (l Ledger) Release(key Key) Ledger {
	at, found := l.find(key)
	if !found {
		return l
	}
	return Ledger{Holds: slices.Concat(l.Holds[:at], l.Holds[at+1:])}
}

// Lapse returns the ledger without what was reserved until now or earlier. Longest is how long a reservation can be: one that lasts
// longer was made by a clock that has been set back since, and is cut to that; zero cuts nothing.
func (l Ledger) Lapse(now time.Time, longest time.Duration) Ledger {
	kept := make([]Hold, 0, len(l.Holds))
	changed := false
	for _, hold := range l.Holds {
		if !hold.Until.IsZero() && !now.Before(hold.Until) {
			changed = true
			continue
		}
		if !hold.NextUntil.IsZero() && !now.Before(hold.NextUntil) {
			hold.Next, hold.NextPlans, hold.NextUntil, changed = nil, nil, time.Time{}, true
		}
		if last := now.Add(longest); longest > 0 {
			if !hold.Until.IsZero() && hold.Until.After(last) {
				hold.Until, changed = last, true
			}
			if hold.NextUntil.After(last) {
				hold.NextUntil, changed = last, true
			}
		}
		kept = append(kept, hold)
	}
	if !changed {
		return l
	}
	return Ledger{Holds: kept}
}

// Prune returns the ledger without the confirmed holds of contracts that are not known, for example because somebody has deleted them.
// Reservations stay: their contract may be about to be written, and they lapse.
func (l Ledger) Prune(known func(Key) bool) Ledger {
	return Ledger{Holds: slices.DeleteFunc(slices.Clone(l.Holds), func(hold Hold) bool { return hold.Until.IsZero() && !known(hold.Key) })}
}

// Sold returns how many contracts of a plan are held at a time. What has lapsed by then counts for nothing.
func (l Ledger) Sold(offer, plan string, now time.Time) int64 {
	sold := int64(0)
	for _, hold := range l.Lapse(now, 0).Holds {
		if hold.Offer == offer && slices.Contains(hold.Plans(), plan) {
			sold++
		}
	}
	return sold
}

// Held returns which resources are held at a time, by all plans together. What has lapsed by then counts for nothing.
func (l Ledger) Held(now time.Time) corev1.ResourceList {
	sum := corev1.ResourceList{}
	for _, hold := range l.Lapse(now, 0).Holds {
		resources.Add(sum, hold.Counts())
	}
	return sum
}

// Of returns what is held at a time for all contracts of a buyer but one.
func (l Ledger) Of(buyer, butID string, now time.Time) corev1.ResourceList {
	return Ledger{Holds: slices.DeleteFunc(slices.Clone(l.Holds), func(hold Hold) bool {
		return hold.Key.Buyer != buyer || hold.Key.ID == butID
	})}.Held(now)
}

// Lapses returns when the first of what is held lapses that has not by now; zero if nothing will.
func (l Ledger) Lapses(now time.Time) time.Time {
	first := time.Time{}
	for _, hold := range l.Holds {
		for _, at := range []time.Time{hold.Until, hold.NextUntil} {
			if at.After(now) && (first.IsZero() || at.Before(first)) {
				first = at
			}
		}
	}
	return first
}

// Equal reports whether two ledgers hold the same.
func (l Ledger) Equal(other Ledger) bool { return slices.EqualFunc(l.Holds, other.Holds, Hold.Equal) }

// Equal reports whether two holds are the same.
func (h Hold) Equal(other Hold) bool {
	return h.Key == other.Key && h.Offer == other.Offer && h.Plan == other.Plan && resources.Same(h.Resources, other.Resources) &&
		h.Until.Equal(other.Until) &&
		resources.Same(h.Next, other.Next) && slices.Equal(h.NextPlans, other.NextPlans) && h.NextUntil.Equal(other.NextUntil)
}

// Plans returns the plans of which the hold takes one each: that which it has, and those that are next.
func (h Hold) Plans() []string { return slices.Concat([]string{h.Plan}, h.NextPlans) }

// Counts returns which resources the hold takes: the larger of what it has and what is next, resource by resource.
func (h Hold) Counts() corev1.ResourceList {
	if h.Next == nil {
		return h.Resources
	}
	return resources.Max(h.Resources, h.Next)
}

// Validate returns an error that is ErrHold if resources are not what can be held: something, in positive amounts within the bounds of
// offers.
func Validate(held corev1.ResourceList) error {
	if len(held) < 1 || len(held) > maxResources {
		return fmt.Errorf("%d resources, not 1 to %d: %w", len(held), maxResources, ErrHold)
	}
	for name, quantity := range held {
		if quantity.Sign() <= 0 || quantity.CmpInt64(maxQuantity) > 0 {
			return fmt.Errorf("%s of %s, not above 0 and up to %d: %w", quantity.String(), name, maxQuantity, ErrHold)
		}
	}
	return nil
}

func (h Hold) validate() error {
	if h.Key.Buyer == "" || h.Key.ID == "" || h.Offer == "" || slices.Contains(h.Plans(), "") {
		return fmt.Errorf("hold %s of plans %q of offer %q has an empty name: %w", h.Key, h.Plans(), h.Offer, ErrHold)
	}
	if err := Validate(h.Resources); err != nil {
		return fmt.Errorf("hold %s: %w", h.Key, err)
	}
	if h.Next == nil {
		return nil
	}
	if err := Validate(h.Next); err != nil {
		return fmt.Errorf("what is next of hold %s: %w", h.Key, err)
	}
	return nil
}

func (l Ledger) find(key Key) (at int, found bool) {
	return slices.BinarySearchFunc(l.Holds, key, func(hold Hold, key Key) int { return hold.Key.compare(key) })
}
