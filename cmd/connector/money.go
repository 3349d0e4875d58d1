// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math/big"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/trade/account"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/books"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/bill"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/contract"
)

// money is what contracts of a side cost, by currency: an hour, as it is now, and since the month has begun.
type money struct {
	hourly map[string]*big.Rat
	month  bill.Sums
}

func newMoney() *money { return &money{hourly: map[string]*big.Rat{}} }

// begun reports whether a contract, which is paid until a time, can cost something in the month that it is.
func begun(paidUntil *metav1.Time, now time.Time) bool {
	from, _ := account.Now(now)
	return paidUntil != nil && paidUntil.After(from)
}

// add counts a contract.
func (m *money) add(entry account.Entry, now time.Time) {
	from, _ := account.Now(now)
	for _, sum := range entry.Bill.Cost(from, now) {
		m.month = m.month.Add(sum.Currency, sum.Cost)
		if m.hourly[sum.Currency] == nil {
			m.hourly[sum.Currency] = new(big.Rat)
		}
	}
	if rate, is := entry.Bill.At(now); is {
		currency := rate.Price.Currency
		if m.hourly[currency] == nil {
			m.hourly[currency] = new(big.Rat)
		}
		m.hourly[currency].Add(m.hourly[currency], rate.Price.PerHour())
	}
}

// waitsSince returns since when somebody is to approve terms of a sale; false if nobody is.
func waitsSince(s *connectorv1alpha1.Sale) (since time.Time, waits bool) {
	if s.Status.PendingRevision == 0 {
		return time.Time{}, false
	}
	if record, err := books.Record(s); err == nil && record != nil && record.State == contract.Resizing && len(record.History) > 0 {
		return record.History[len(record.History)-1].At, true
	}
	return s.CreationTimestamp.Time, true
}
