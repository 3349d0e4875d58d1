// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package negotiation

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/utils/clock"

	"github.com/capacitorset/liqo-broker/pkg/trade/core/contract"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/ledger"
)

// Applier lets things happen to the contracts of a seller: what buyers ask for, what the seller has decided or done, and the time. All
// fields but Audit must be there. It can be used concurrently.
type Applier struct {
	Store  Store
	Offers Offers
	// Seller is how long reservations last.
	Seller contract.Seller
	// Audit is nil if nobody is to be told.
	Audit Audit
	Clock clock.PassiveClock
}

// Choose returns what is to happen to a contract, from its record; nil if there is none. It can be called several times for one Apply.
type Choose func(record *contract.Record) contract.Request

// Apply writes what becomes of a contract by the request that choose returns, whose Key is set to key. It returns the record that is
// stored then, of version 0 if there is none, and the errors of contract.Seller.Apply, of the store and of the offers.
func (a Applier) Apply(ctx context.Context, key contract.Key, choose Choose) (contract.Record, error) {
	var before []contract.Transition
	record, err := a.Store.Update(ctx, key, func(record *contract.Record, books ledger.Ledger) (contract.Result, error) {
		request := choose(record)
		request.Key = key
		before = nil
		if record != nil {
			before = record.History
		}
		limits, err := a.limits(ctx, request.About(record))
		if err != nil {
			kept := contract.Result{Before: books, After: books, Outcome: contract.No}
			if record != nil {
				kept.Record = *record
			}
			return kept, err
		}
		return a.Seller.Apply(record, request, a.Clock.Now().UTC().Truncate(time.Second), books, limits)
	})
	if a.Audit != nil {
		for _, transition := range added(before, record.History) {
			a.Audit.Transition(ctx, key, transition)
		}
	}
	return record, err
}

// limits returns those of the plan of terms. What is not offered any more has no room for anything that grows.
func (a Applier) limits(ctx context.Context, terms contract.Terms) (ledger.Limits, error) {
	if terms.Plan == "" {
		return ledger.Limits{}, nil
	}
	limits, err := a.Offers.Limits(ctx, terms.Offer, terms.Plan)
	switch {
	case errors.Is(err, ErrNotOffered):
		none := int64(0)
		return ledger.Limits{Plan: terms.Plan, Stock: &none}, nil
	case err != nil:
		return ledger.Limits{}, fmt.Errorf("read what is left of plan %s of offer %s: %w", terms.Plan, terms.Offer, err)
	}
	limits.Plan = terms.Plan
	return limits, nil
}
