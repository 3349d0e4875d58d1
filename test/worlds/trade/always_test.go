// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package trade

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/resources"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/books"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/sales"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/contract"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/grant"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/ledger"
)

// Promises that hold at any time: they are looked at after each write and each deed in a cluster.
var (
	alwaysOfSellers = []func(*seller) error{
		(*seller).notOversold, (*seller).holdsWhatIsSigned, (*seller).keepsToTheTable, (*seller).grantsNoMoreThanIsPaid,
		(*seller).opensForContracts,
	}
	alwaysOfBuyers = []func(*buyer) error{(*buyer).knowsItsPeerings, (*buyer).knowsWhatSellersWrote, (*buyer).runsWhatIsPaid}
)

// judge looks whether what always holds does in a cluster.
func (w *world) judge(h *host) {
	for _, s := range w.sellers {
		for _, holds := range alwaysOfSellers {
			if &s.host == h {
				w.note(holds(s), s.name)
			}
		}
	}
	for _, b := range w.buyers {
		for _, holds := range alwaysOfBuyers {
			if &b.host == h {
				w.note(holds(b), b.name)
			}
		}
	}
}

func (w *world) note(broken error, who string) {
	if broken != nil {
		w.failf("%s: %w", who, broken)
	}
}

// readRecords are the records of Sales by the versions of these.
type readRecords map[string]*contract.Record

// sold returns the records of the seller's contracts.
func (s *seller) sold() []*contract.Record {
	var found []*contract.Record
	for _, sale := range s.all() {
		record, known := s.records[sale.ResourceVersion]
		if !known {
			var err error
			if record, err = books.Record(sale); err != nil {
				s.w.failf("%s: %v", s.name, err)
			}
			s.records[sale.ResourceVersion] = record
		}
		if record != nil {
			found = append(found, record)
		}
	}
	return found
}

// soldTo returns the record of a contract; nil if there is none.
func (s *seller) soldTo(key contract.Key) *contract.Record {
	for _, r := range s.sold() {
		if r.Key == key {
			return r
		}
	}
	return nil
}

// readableOf says what a record is.
func readableOf(sale *connectorv1alpha1.Sale) string {
	r, err := books.Record(sale)
	if err != nil || r == nil {
		return fmt.Sprint(err)
	}
	return fmt.Sprintf("%s v%d %s rev %d of %s %s until %s ends %s", r.Key.ID, r.Version, r.State, r.Terms.Revision, r.Terms.Plan,
		r.Terms.Resources.Cpu(), r.Until.Format("15:04:05"), r.Ends.Format("02 15:04:05"))
}

// stored returns the books as they are stored.
func (s *seller) stored() *books.Store {
	store, err := books.New(books.Config{Client: nothing{}, Reader: s.live})
	if err != nil {
		panic(err) // It is not always the test that calls.
	}
	return store
}

// book returns what is granted.
func (s *seller) book() *grant.Book {
	if version := s.server.Version(); s.granted == nil || version != s.grantedAt {
		book, err := sales.NewGrants(s.stored()).Book(context.Background())
		if err != nil {
			panic(err) // It is not always the test that calls.
		}
		s.granted, s.grantedAt = book, version
	}
	return s.granted
}

// held returns the ledger.
func (s *seller) held() ledger.Ledger {
	held, err := s.stored().Ledger(context.Background())
	if err != nil {
		s.w.failf("%s: %v", s.name, err)
	}
	return held
}

// binds reports whether a contract takes something from the seller: it is signed, and not over, or not withdrawn.
func binds(r *contract.Record) bool {
	return r.Signed() && (!r.State.Final() || r.Duty() == contract.WithdrawDuty)
}

// notOversold: a seller promises no more than it has, neither in its ledger nor in its contracts. What
// has lapsed counts as well: who reserves removes it.
func (s *seller) notOversold() error {
	held, sum, ever := s.held(), int64(0), time.Time{}
	for plan, stock := range s.stock {
		if sold := held.Sold(offerID, plan, ever); sold > stock {
			return fmt.Errorf("it holds %d units of a stock of %d of plan %s: %+v", sold, stock, plan, held)
		}
	}
	total := held.Held(ever)
	if total.Cpu().CmpInt64(s.cores) > 0 {
		return fmt.Errorf("it holds %s of %d cores: %+v", total.Cpu(), s.cores, held)
	}
	for _, r := range s.sold() {
		if binds(r) {
			sum += r.Terms.Resources.Cpu().Value()
		}
	}
	if sum > s.cores {
		return fmt.Errorf("its contracts are of %d cores, and it has %d", sum, s.cores)
	}
	return nil
}

// holdsWhatIsSigned: the ledger holds, without a limit of time, what is signed.
func (s *seller) holdsWhatIsSigned() error {
	held := s.held()
	for _, r := range s.sold() {
		if !binds(r) {
			continue
		}
		hold, found := held.Get(r.Key)
		lasting := hold.Plans()
		if !hold.NextUntil.IsZero() {
			lasting = lasting[:1]
		}
		needs := r.Terms.Resources
		if !found || !hold.Until.IsZero() || !resources.Covers(hold.Resources, needs) || !slices.Contains(lasting, r.Terms.Plan) {
			return fmt.Errorf("contract %s in state %s is of %s cores of plan %s, and its hold (%t) is %+v", r.Key, r.State, needs.Cpu(),
				r.Terms.Plan, found, hold)
		}
	}
	return nil
}

// knowsItsPeerings: a peering is that of a Purchase which says so.
func (b *buyer) knowsItsPeerings() error {
	for id := range b.liqo.peered {
		known := false
		for _, p := range b.all() {
			known = known || p.Status.Cluster.ID == string(id) && b.stored(p).Purchase.Peering != contract.Apart
		}
		if !known && !b.liqo.disturbed[id] {
			return fmt.Errorf("it is peered with %s, and no purchase knows", id)
		}
	}
	return nil
}
