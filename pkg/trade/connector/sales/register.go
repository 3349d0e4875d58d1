// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package sales

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/contract"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/grant"
)

// newRegister returns the contracts of some Sales.
func newRegister(sales []connectorv1alpha1.Sale, read func(*connectorv1alpha1.Sale) (*contract.Record, error)) register {
	all := make(register, 0, len(sales))
	for i := range sales {
		record, err := read(&sales[i])
		if err != nil || record == nil {
			continue
		}
		all = append(all, sold{record: *record, name: sales[i].Name, created: sales[i].CreationTimestamp.Time})
	}
	return all.sorted()
}

// sorted sorts the contracts by when they were made.
func (r register) sorted() register {
	slices.SortFunc(r, func(a, b sold) int { return cmp.Or(a.created.Compare(b.created), cmp.Compare(a.name, b.name)) })
	return r
}

// granted reports whether a contract has ever been granted, and may still give something, or have something to take back. A contract that
// ended before it was granted never did: otherwise one that was made in time and ended at once would keep its cluster from its owner.
func granted(record contract.Record) bool {
	switch record.State { //nolint:exhaustive // The others never granted, or have withdrawn.
	case contract.Provisioning, contract.Active, contract.Resizing, contract.Suspended:
		return true
	case contract.Terminating:
		return !endedUngranted(record)
	case contract.Ended:
		return record.Duty() == contract.WithdrawDuty && !endedUngranted(record)
	}
	return false
}

// endedUngranted reports whether a contract began to end before it was granted. Few entries can follow that one in its history.
func endedUngranted(record contract.Record) bool {
	return slices.ContainsFunc(record.History, func(entry contract.Transition) bool {
		return entry.From == contract.Signed && entry.To == contract.Terminating
	})
}

// owner returns the first contract that was granted for a cluster.
func (r register) owner(id cluster.ID) (sold, bool) {
	for _, each := range r {
		if each.record.Terms.Cluster.ID == id && granted(each.record) {
			return each, true
		}
	}
	return sold{}, false
}

// taken returns grant.ErrTaken if another party than the buyer has a contract that was granted for a cluster.
func (r register) taken(record contract.Record, id cluster.ID) error {
	if owner, owned := r.owner(id); owned && owner.record.Key.Buyer != record.Key.Buyer {
		return fmt.Errorf("contract %s for cluster %s: %w", record.Key, id, grant.ErrTaken)
	}
	return nil
}

// needs reports whether a contract needs a cluster's peering.
func needs(record contract.Record, id cluster.ID) bool {
	return record.Terms.Cluster.ID == id && (record.State == contract.Signed || granted(record) && !record.State.Final())
}

// book returns what clusters are given. A cluster that has lost all its contracts is given zero of what it had.
func (r register) book() *grant.Book {
	var grants []grant.Grant
	owned := map[cluster.ID]bool{} // A contract was granted for it.
	for _, each := range r {
		if granted(each.record) {
			owned[each.record.Terms.Cluster.ID] = true
			grants = append(grants, given(each, each.record.Granted() != nil))
		}
	}
	for _, each := range r {
		if each.record.State == contract.Ended && !owned[each.record.Terms.Cluster.ID] && !endedUngranted(each.record) && each.record.Signed() {
			nothing := given(each, false)
			nothing.Buyer = "" // Zeros of several buyers add up.
			grants = append(grants, nothing)
		}
	}
	book, _ := grant.NewBook(grants) // What comes too late for a cluster gives nothing.
	return book
}

// given returns what a contract gives.
func given(each sold, inForce bool) grant.Grant {
	return grant.Grant{
		Contract: each.name, Buyer: each.record.Key.Buyer, Cluster: each.record.Terms.Cluster.ID, Resources: each.record.Terms.Resources,
		InForce: inForce,
	}
}
