// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package trade

import (
	"fmt"
	"time"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/contract"
)

// A contract is stuck that is on its way, and of which nothing has become in so many looks of each side, and so much time.
const (
	stuckLooks = 5
	stuckFor   = reserveFor + drainFor + 2*time.Minute
)

// progress is what has become of a contract, and how often each side has looked at it since.
type progress struct {
	mark            string
	since           time.Duration
	buyers, sellers int
}

// lookedAt is called when one side has looked at a contract, nothing went wrong meanwhile, and each knows the key of the other: it is not
// stuck.
func (w *world) lookedAt(b *buyer, p *connectorv1alpha1.Purchase, s *seller, bySeller bool) {
	record, known := s.soldTo(contract.Key{Buyer: string(b.id), ID: p.Status.ContractID}), b.stored(p).Purchase
	if s.restored || s.vanished || !b.shows() || !s.shows() || (b.skew-s.skew).Abs() > time.Minute || !onItsWay(p, known, record) {
		delete(b.progress, string(p.UID))
		return
	}
	mark := fmt.Sprint(p.Status.ContractID, p.Spec.End != nil, p.DeletionTimestamp, known.State(), known.Seen.Version, known.Peering,
		known.Drained, known.Doubt, known.Standing,
		known.Doubted, known.Draining, // They grow up to a limit, however often somebody begins again to count.
		b.liqo.peered[s.identity.ID], b.liqo.cores[s.identity.ID], s.liqo.issued[b.identity.ID] != nil)
	if record != nil {
		mark += fmt.Sprint(record.Version, record.Withdrawn)
	}
	at := b.progress[string(p.UID)]
	if at == nil || at.mark != mark {
		at = &progress{mark: mark, since: w.elapsed()}
		b.progress[string(p.UID)] = at
	}
	if bySeller {
		at.sellers++
	} else {
		at.buyers++
	}
	if at.buyers >= stuckLooks && (record == nil || at.sellers >= stuckLooks) && w.elapsed()-at.since >= stuckFor {
		w.failf("purchase %s of %s is stuck since %s, in %d looks of the buyer and %d of the seller: %s, %s", p.Name, b.name,
			w.elapsed()-at.since, at.buyers, at.sellers, p.Status.State, reasonOf(p.Status.Conditions))
	}
}

// onItsWay reports whether something has to become of a contract, without people.
func onItsWay(p *connectorv1alpha1.Purchase, known contract.Purchase, record *contract.Record) bool {
	if p.Status.Record == "" {
		return false
	}
	state := known.State()
	if record != nil {
		state = record.State
		switch {
		case record.State == contract.Resizing && record.Change.Approval != contract.Pending, record.Duty() == contract.WithdrawDuty:
			return true
		}
	}
	switch over := known.State().Final() || known.Standing.Over(); {
	case over:
		return known.Peering != contract.Apart
	case p.Spec.End != nil || p.DeletionTimestamp != nil:
		return true
	}
	switch state { //nolint:exhaustive // The others can stay.
	case contract.Reserved, contract.Signed, contract.Provisioning, contract.Terminating:
		return true
	}
	return false
}
