// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package account reads from Sales and Purchases what is owed for them, and writes it as rows in the columns of FOCUS, a format for what
// clouds cost.
//
// It does not know where the objects come from, nor who has paid.
package account

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/bill"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/contract"
)

var (
	// ErrUnreadable means that a contract has a record that cannot be read, so that nobody knows what is owed for it.
	ErrUnreadable = errors.New("unreadable record")
	// ErrForgotten means that prices of the time are not known any more.
	ErrForgotten = errors.New("prices are forgotten")
)

// Entry is a contract, and what it costs.
type Entry struct {
	// Sold is which side this cluster is on, Name the name of the Sale or Purchase, and Other what the other party calls itself.
	Sold        bool
	Name, Other string
	// Terms are those in force, and Bill what the contract costs: nothing if both have not signed.
	Terms contract.Terms
	Bill  bill.Contract

	// countersignature is of the terms in force; superseded are the terms before them.
	countersignature string
	superseded       []contract.Superseded
}

// OfSale returns what is owed for a Sale. The error is ErrUnreadable.
func OfSale(s *connectorv1alpha1.Sale) (Entry, error) {
	var record contract.Record
	if err := decode(s.Status.Record, &record); err != nil {
		return Entry{}, fmt.Errorf("sale %s: %w", s.Name, err)
	}
	return Entry{
		Sold: true, Name: s.Name, Other: s.Status.Buyer.Name, Terms: record.Terms, Bill: bill.OfSeller(record),
		countersignature: record.Countersignature, superseded: record.Superseded,
	}, nil
}

// OfPurchase returns what is owed for a Purchase. The error is ErrUnreadable.
func OfPurchase(p *connectorv1alpha1.Purchase) (Entry, error) {
	var record struct {
		Purchase contract.Purchase `json:"purchase"`
	}
	if err := decode(p.Status.Record, &record); err != nil {
		return Entry{}, fmt.Errorf("purchase %s: %w", p.Name, err)
	}
	bought := record.Purchase
	return Entry{
		Name: p.Name, Other: p.Status.Seller.Name, Terms: bought.Terms, Bill: bill.OfBuyer(bought),
		countersignature: bought.Seen.Countersignature, superseded: bought.Superseded,
	}, nil
}

// decode reads a record; the zero one if there is none yet.
func decode(text string, into any) error {
	if text == "" {
		return nil
	}
	if err := json.Unmarshal([]byte(text), into); err != nil {
		return fmt.Errorf("%w: %w", ErrUnreadable, err)
	}
	return nil
}

// Knows returns ErrForgotten if the contract has cost something from a time on that is not known any more.
func (e *Entry) Knows(from time.Time) error {
	starts := e.Bill.Starts()
	if starts.IsZero() || !starts.After(e.Terms.StartsAt) || !from.Before(starts) {
		return nil
	}
	return fmt.Errorf("contract %s has had too many prices before %s: %w", e.Name, starts.Format(time.RFC3339), ErrForgotten)
}

// at returns the newest terms of a plan that count before a time, with the signature of both sides; empty if they are forgotten.
func (e *Entry) at(before time.Time, plan string) (contract.Terms, string) {
	counts := func(terms contract.Terms) bool { return terms.Plan == plan && terms.Counts().Before(before) }
	if counts(e.Terms) {
		return e.Terms, e.countersignature
	}
	for _, old := range slices.Backward(e.superseded) {
		if counts(old.Terms) {
			return old.Terms, old.Countersignature
		}
	}
	return contract.Terms{}, ""
}

// Month returns when a month such as 2026-11 begins and ends, in UTC.
func Month(text string) (from, to time.Time, err error) {
	from, err = time.Parse("2006-01", text)
	if err != nil {
		return time.Time{}, time.Time{}, fmt.Errorf("%.20q is not a month such as 2026-11", text)
	}
	return from, from.AddDate(0, 1, 0), nil
}

// Now returns the month that a time is in.
func Now(now time.Time) (from, to time.Time) {
	year, month, _ := now.UTC().Date()
	from = time.Date(year, month, 1, 0, 0, 0, 0, time.UTC)
	return from, from.AddDate(0, 1, 0)
}
