// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package trade

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/contract"
	"github.com/capacitorset/liqo-broker/pkg/trade/party"
)

// Promises that hold when nothing is under way.
var (
	restOfSellers = []func(*seller) error{(*seller).grantsWhatIsPaid, (*seller).issuesForContracts, (*seller).holdsNothingElse}
	restOfBuyers  = []func(*buyer) error{
		(*buyer).agreesWithSellers, (*buyer).notAlone, (*buyer).isPeeredForContracts, (*buyer).fitsIntoContracts, (*buyer).servesRequests,
	}
)

// rested looks whether what holds at rest does.
func (w *world) rested() {
	for _, s := range w.sellers {
		for _, holds := range restOfSellers {
			w.note(holds(s), s.name)
		}
	}
	for _, b := range w.buyers {
		for _, holds := range restOfBuyers {
			w.note(holds(b), b.name)
		}
	}
}

// soothe ends what goes wrong.
func (w *world) soothe() {
	w.notef("the world is calm")
	w.stopSlow()
	w.calm = true
	for _, p := range w.parties {
		p.show()
	}
	for _, s := range w.sellers {
		s.skew, s.underway, s.closed, s.vanished = 0, nil, false, false
		s.lead()
	}
	for _, b := range w.buyers {
		b.skew = 0
		b.lead()
	}
}

// settle lets everybody look at everything, until nothing is written any more.
func (w *world) settle() {
	rounds, quiet := 400, 3 // A seller forgets what nobody has signed in an hour.
	if w.restored > 0 {
		rounds = 150 // A buyer goes on asking a restored seller for what it had, until the end.
	}
	for round, still := 0, 0; still < quiet && w.failure == nil; round++ {
		if round == rounds {
			if w.restored == 0 {
				w.failf("it does not come to rest in %d rounds of 20 s", rounds)
			}
			return
		}
		before := w.version()
		for _, b := range w.buyers {
			for _, s := range w.sellers {
				b.shrink(s)
			}
			b.everything()
		}
		for _, s := range w.sellers {
			s.rekey()
			for _, sale := range s.all() {
				s.reconcile(sale.Name)
			}
		}
		w.now = w.now.Add(20 * time.Second)
		if still++; w.version() != before {
			still = 0
		}
	}
}

func (b *buyer) everything() {
	for _, r := range b.wishes() {
		b.serve(r.Name)
	}
	b.collect()
	for _, p := range b.all() {
		b.reconcile(p.Name)
	}
}

// version grows with everything that is written.
func (w *world) version() int {
	sum := 0
	for _, s := range w.sellers {
		sum += s.server.Version()
	}
	for _, b := range w.buyers {
		sum += b.server.Version()
	}
	return sum
}

// purchase is what a Purchase has written down of itself.
type purchase struct {
	Purchase contract.Purchase
	Renewal  *struct{ Times int }
}

func (b *buyer) stored(p *connectorv1alpha1.Purchase) purchase {
	read, known := b.records[p.ResourceVersion]
	if !known {
		_ = json.Unmarshal([]byte(cmp.Or(p.Status.Record, "{}")), &read) //nolint:musttag // The names are those of the record, whatever the case.
		b.records[p.ResourceVersion] = read
	}
	return read
}

// reasonOf returns why something is ready or not.
func reasonOf(conditions []metav1.Condition) string {
	if ready := meta.FindStatusCondition(conditions, connectorv1alpha1.ConditionReady); ready != nil {
		return ready.Reason + ": " + ready.Message
	}
	return "nobody has looked"
}

// sellerOf returns the seller of a Purchase.
func (w *world) sellerOf(p *connectorv1alpha1.Purchase) *seller {
	for _, s := range w.sellers {
		if s.id == party.ID(p.Spec.Seller) {
			return s
		}
	}
	return nil
}

// agreesWithSellers: buyer and seller see a contract in the same state, and it is in one in which it can stay: used, suspended, waiting for
// somebody's approval, or over.
func (b *buyer) agreesWithSellers() error {
	for _, p := range b.all() {
		if err := b.agrees(p); err != nil {
			return fmt.Errorf("purchase %s, %s, %s: %w", p.Name, p.Status.State, reasonOf(p.Status.Conditions), err)
		}
	}
	return nil
}

func (b *buyer) agrees(p *connectorv1alpha1.Purchase) error {
	s, known := b.w.sellerOf(p), b.stored(p)
	record := s.soldTo(contract.Key{Buyer: string(b.id), ID: cmp.Or(p.Status.ContractID, string(p.UID))})
	at, is := contract.None, contract.State(p.Status.State)
	if record != nil {
		at = record.State
	}
	switch {
	case s.restored: // They need not agree about what was done since the backup.
	case p.Status.Record == "" && at != contract.None && !at.Final():
		return fmt.Errorf("it has not begun, and the seller's contract is %s", at)
	case p.Status.Record == "":
	case known.Purchase.Standing.Over() && at != contract.None && at != contract.Terminating && !at.Final():
		// The seller ends one that terminates.
		return fmt.Errorf("the buyer has left, and the seller's contract is %s", at)
	case known.Purchase.Standing.Over(), is.Final() && record == nil:
	case is.Final() && at.Final() && !record.Signed(): // It was never signed, and a reservation that came late was another one.
	case is != at:
		return fmt.Errorf("the seller's contract is %q", at)
	case is == contract.Active:
		if id := s.identity.ID; !b.usable(id) {
			if b.liqo.disturbed[id] && strings.HasPrefix(reasonOf(p.Status.Conditions), connectorv1alpha1.ReasonNodeNotReady) {
				return nil
			}
			return fmt.Errorf("pods cannot run at %s: peered to %d of 2, issued: %t", id, b.liqo.peered[id], s.liqo.issued[b.identity.ID] != nil)
		}
	case !is.Final() && is != contract.Suspended && is != contract.Proposed:
		return fmt.Errorf("it is stuck on both sides")
	}
	return nil
}

// isPeeredForContracts: no peering stays without a contract.
func (b *buyer) isPeeredForContracts() error {
	for id := range b.liqo.peered {
		needed := false
		for _, p := range b.all() {
			state := contract.State(p.Status.State)
			needed = needed || b.w.sellerOf(p).identity.ID == id && !b.stored(p).Purchase.Standing.Over() &&
				(state.InUse() || state == contract.Suspended)
		}
		if !needed && !b.liqo.disturbed[id] {
			return fmt.Errorf("it is peered with %s without a contract", id)
		}
	}
	return nil
}

// fitsIntoContracts: pods request no more than contracts give, and may be made where those give something.
func (b *buyer) fitsIntoContracts() error {
	for _, s := range b.w.sellers {
		given := int64(0)
		for _, p := range b.all() {
			if b.w.sellerOf(p) == s && contract.State(p.Status.State).InUse() && !b.stored(p).Purchase.Standing.Over() {
				cpu := p.Status.Resources["cpu"]
				given += cpu.Value()
			}
		}
		size := b.mayGet(s, given)
		if cores := b.liqo.cores[s.identity.ID]; cores > size && !b.liqo.disturbed[s.identity.ID] {
			return fmt.Errorf("its pods request %d cores of %s, and contracts give %d", cores, s.name, given)
		}
		if given > 0 && size == given && b.liqo.closed[s.identity.ID] && !b.liqo.disturbed[s.identity.ID] {
			return fmt.Errorf("the nodes of %s are closed, and contracts give %d cores", s.name, given)
		}
	}
	return nil
}

// mayGet returns how many cores a buyer may have of a seller whose contracts give so many: one that was restored may give by terms that are
// not in force any more, and nodes that are larger than the contracts stay as they are.
func (b *buyer) mayGet(s *seller, cores int64) int64 {
	if s.restored || b.hasLeftOf(s) {
		return max(cores, b.size(s.identity.ID))
	}
	return cores
}

// hasLeftOf reports whether a seller gives by a contract that it did not know when its buyer left, which has forgotten it.
func (b *buyer) hasLeftOf(s *seller) bool {
	return s.hid && slices.ContainsFunc(s.sold(), func(r *contract.Record) bool {
		_, p := b.w.purchaseOf(s, r.Key)
		return p == nil && r.Key.Buyer == string(b.id) && r.Granted() != nil
	})
}

// servesRequests: a CapacityRequest has at most one Purchase, and at most one more that is not renewed and lasts until its end. It is ready
// if one of them is.
func (b *buyer) servesRequests() error {
	for _, r := range b.wishes() {
		active, leaving, disturbed := 0, 0, false
		for _, p := range b.all() {
			is := contract.State(p.Status.State) == contract.Active && !b.stored(p).Purchase.Standing.Over()
			switch {
			case !metav1.IsControlledBy(p, r):
			case p.Name != r.Status.Purchase && p.Name != r.Status.Leaving && p.DeletionTimestamp.IsZero():
				return fmt.Errorf("purchase %s is of request %s, which means %q, and leaves %q", p.Name, r.Name, r.Status.Purchase, r.Status.Leaving)
			case b.liqo.disturbed[b.w.sellerOf(p).identity.ID]:
				disturbed = true // It may have no node.
			case is && p.Name == r.Status.Leaving:
				leaving++
			case is:
				active++
			}
		}
		if ready := meta.IsStatusConditionTrue(r.Status.Conditions, connectorv1alpha1.ConditionReady); active > 1 || leaving > 1 ||
			!disturbed && (active+leaving > 0) != ready {
			return fmt.Errorf("request %s has %d active purchases and %d that it leaves, and is ready: %t, %s",
				r.Name, active, leaving, ready, reasonOf(r.Status.Conditions))
		}
	}
	return nil
}

// grantsWhatIsPaid: clusters are granted what their contracts say, and nothing else.
func (s *seller) grantsWhatIsPaid() error {
	book := s.book()
	paid := map[cluster.ID]int64{}
	for _, r := range s.sold() {
		switch r.State { //nolint:exhaustive // Nothing is granted in the others.
		case contract.Provisioning, contract.Active, contract.Resizing, contract.Terminating:
			paid[r.Terms.Cluster.ID] += r.Terms.Resources.Cpu().Value()
		}
	}
	for _, b := range s.w.buyers {
		granted := book.Granted(b.identity.ID)
		if granted.Cpu().Value() != paid[b.identity.ID] {
			return fmt.Errorf("it grants %s cores to %s, and contracts say %d", granted.Cpu(), b.identity.ID, paid[b.identity.ID])
		}
	}
	return nil
}

// issuesForContracts: what was issued to a cluster is withdrawn when it has no contract any more.
func (s *seller) issuesForContracts() error {
	for id, issued := range s.liqo.issued {
		if !s.entitled(id) && !issued.left() {
			return fmt.Errorf("credentials that were issued to %s stay without a contract", id)
		}
	}
	return nil
}

// entitled reports whether a cluster has a contract.
func (s *seller) entitled(id cluster.ID) bool {
	return slices.ContainsFunc(s.sold(), func(r *contract.Record) bool { return r.Terms.Cluster.ID == id && binds(r) })
}

// holdsNothingElse: what the ledger holds, and has not lapsed, is of contracts that need it. The others cannot be sold.
func (s *seller) holdsNothingElse() error {
	for _, hold := range s.held().Lapse(s.clock(), 0).Holds {
		if r := s.soldTo(hold.Key); r == nil || !binds(r) {
			return fmt.Errorf("it holds %+v for %s, which needs nothing", hold, hold.Key)
		}
	}
	return nil
}
