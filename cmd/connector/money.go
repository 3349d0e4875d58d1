// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math/big"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

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
func (m *money) add(of bill.Contract, now time.Time) {
	from, _ := account.Now(now)
	for _, sum := range of.Cost(from, now) {
		m.month = m.month.Add(sum.Currency, sum.Cost)
		if m.hourly[sum.Currency] == nil {
			m.hourly[sum.Currency] = new(big.Rat)
		}
	}
	if rate, is := of.At(now); is {
		currency := rate.Price.Currency
		if m.hourly[currency] == nil {
			m.hourly[currency] = new(big.Rat)
		}
		m.hourly[currency].Add(m.hourly[currency], rate.Price.PerHour())
	}
}

// bills are what contracts cost. A record is read once for each version of its object: most contracts do not change between two scrapes.
// They may be used concurrently.
type bills struct {
	ofPurchase func(*connectorv1alpha1.Purchase) (account.Entry, error)
	ofSale     func(*connectorv1alpha1.Sale) (account.Entry, error)

	lock sync.Mutex
	// known are those of the scrape before.
	known map[billed]bill.Contract
}

// billed is a version of a Purchase or Sale.
type billed struct {
	uid     types.UID
	version string
}

func newBills() *bills { return &bills{ofPurchase: account.OfPurchase, ofSale: account.OfSale} }

// running returns the bills of contracts that can cost something in the month that it is: most are over. One whose record cannot be read
// has none.
func (b *bills) running(
	now time.Time, purchases []connectorv1alpha1.Purchase, sales []connectorv1alpha1.Sale,
) (bought, sold []bill.Contract) {
	b.lock.Lock()
	defer b.lock.Unlock()
	known := map[billed]bill.Contract{} // What is gone is forgotten.
	keep := func(o client.Object, read func() (account.Entry, error)) (of bill.Contract, err error) {
		key := billed{uid: o.GetUID(), version: o.GetResourceVersion()}
		of, is := b.known[key]
		if !is {
			var entry account.Entry
			entry, err = read()
			of = entry.Bill
		}
		if err == nil {
			known[key] = of
		}
		return of, err
	}
	// Both sides of the trade.
	for i := range purchases {
		p := &purchases[i]
		if !begun(p.Status.PaidUntilTime, now) {
			continue
		}
		if of, err := keep(p, func() (account.Entry, error) { return b.ofPurchase(p) }); err == nil {
			bought = append(bought, of)
		}
	}
	for i := range sales {
		s := &sales[i]
		if !begun(s.Status.PaidUntilTime, now) {
			continue
		}
		if of, err := keep(s, func() (account.Entry, error) { return b.ofSale(s) }); err == nil {
			sold = append(sold, of)
		}
	}
	b.known = known
	return bought, sold
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
