// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package trade

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/contract"
)

// told is all that a seller has ever written of a contract.
type told struct {
	// last is what it wrote last; nil if it has no such contract, any more.
	last *contract.Record
	// views are those of each version. A restored seller can write a version twice.
	views map[int64][]contract.View
	// again is whether it has written the contract again: people have deleted its Sale, and an old message was answered when that was gone.
	again bool
}

// keepsToTheTable: a contract moves along the table alone, from the state in which it was, and says why; a version says one thing; what
// both have signed stays so; what is over stays over; and none is forgotten while it binds.
func (s *seller) keepsToTheTable() error {
	there := map[contract.Key]bool{}
	for _, r := range s.sold() {
		there[r.Key] = true
		past := s.told[r.Key]
		if past == nil {
			past = &told{views: map[int64][]contract.View{}}
			s.told[r.Key] = past
		}
		if past.last == r {
			continue
		}
		past.again = past.again || past.last == nil && len(past.views) > 0
		if err := follows(past.last, r); err != nil {
			return fmt.Errorf("contract %s, %s v%d: %w", r.Key, r.State, r.Version, err)
		}
		if past.last == nil || past.last.Version != r.Version {
			past.views[r.Version] = append(past.views[r.Version], r.View)
		}
		s.shrinksLate(past.last, r)
		past.last = r
	}
	for key, past := range s.told {
		if past.last == nil || there[key] {
			continue
		}
		if binds(past.last) {
			return fmt.Errorf("contract %s is forgotten in state %s", key, past.last.State)
		}
		past.last = nil
	}
	return nil
}

// follows returns why a record cannot come after another one, which is nil if there was none.
func follows(was, is *contract.Record) error {
	for i, e := range is.History {
		if i > 0 && is.History[i-1].To != e.From {
			return fmt.Errorf("its history goes from %s to %s", is.History[i-1].To, e.From)
		}
		if !slices.Contains(contract.Lookup(e.From, e.Event).To, e.To) {
			return fmt.Errorf("its history has %s from %s to %s, and the table has not", e.Event, e.From, e.To)
		}
	}
	switch {
	case len(is.History) == 0 || is.History[len(is.History)-1].To != is.State:
		return fmt.Errorf("its history does not end there: %+v", is.History)
	case was == nil:
		return nil
	case is.Version < was.Version:
		return fmt.Errorf("it was v%d before", was.Version)
	case is.Version == was.Version && textOf(was.View) != textOf(is.View):
		return fmt.Errorf("it said something else before: %+v, and now %+v", was.View, is.View)
	case !slices.Contains(is.History, was.History[len(was.History)-1]):
		return fmt.Errorf("its history has lost %+v", was.History[len(was.History)-1])
	case was.State.Final() && is.State != was.State:
		return fmt.Errorf("it was over before, %s", was.State)
	case was.Signed() && (!is.Signed() || is.Terms.Revision < was.Terms.Revision):
		return fmt.Errorf("both have signed revision %d", was.Terms.Revision)
	case was.Signed() && is.Terms.Revision == was.Terms.Revision &&
		(!is.Terms.Equal(was.Terms) || is.Signature != was.Signature || is.Countersignature != was.Countersignature):
		return fmt.Errorf("both have signed other terms of revision %d", was.Terms.Revision)
	}
	return nil
}

func textOf(v contract.View) string {
	text, _ := json.Marshal(v) //nolint:errchkjson // It is of texts, numbers, quantities and times.
	return string(text)
}

// forgetPast is called when a copy of the seller comes back: what it wrote since it does not know, though others may.
func (s *seller) forgetPast() {
	for _, past := range s.told {
		past.last = nil
	}
}

// grantsNoMoreThanIsPaid: at any moment a cluster is granted what its contracts in use say; besides, at most what those say that end, until
// they have.
func (s *seller) grantsNoMoreThanIsPaid() error {
	book := s.book()
	least, most := map[cluster.ID]int64{}, map[cluster.ID]int64{}
	for _, r := range s.sold() {
		id, size := r.Terms.Cluster.ID, r.Terms.Resources.Cpu().Value()
		switch r.State { //nolint:exhaustive // Nothing is granted in the others.
		case contract.Provisioning, contract.Active, contract.Resizing:
			least[id] += size
			most[id] += size
		case contract.Terminating:
			most[id] += size
		}
	}
	for _, b := range s.w.buyers {
		granted := book.Granted(b.identity.ID)
		if is, id := granted.Cpu().Value(), b.identity.ID; is < least[id] || is > most[id] {
			return fmt.Errorf("it grants %d cores to %s, and contracts say %d, and %d with those that end", is, id, least[id], most[id])
		}
	}
	return nil
}

// opensForContracts: what is issued to a cluster is for a contract, unless an old leader has issued it just now, which takes it back when
// it goes on, or does not go on.
func (s *seller) opensForContracts() error {
	for id, issued := range s.liqo.issued {
		if !s.entitled(id) && !s.w.isUnderway(issued.by) && !issued.left() {
			return fmt.Errorf("%s has issued something to %s, which has no contract", issued.by.name, id)
		}
	}
	return nil
}

// isInTime: a contract that was just looked at is not past its end, or the beginning of its drain.
func (s *seller) isInTime(r *contract.Record) error {
	now, ends := s.clock(), r.Ends
	switch r.State { //nolint:exhaustive // The others do not end by the time.
	case contract.Signed, contract.Provisioning, contract.Active, contract.Resizing, contract.Suspended:
		ends = ends.Add(-r.Terms.Drain)
	case contract.Terminating:
	default:
		return nil
	}
	if now.Truncate(time.Second).Before(ends) {
		return nil
	}
	return fmt.Errorf("contract %s is still %s when somebody looks at %s, and it ended at %s", r.Key, r.State, now, ends)
}

// knew is what a Purchase said before, in which version.
type knew struct {
	version, id string
	said        contract.Purchase
}

// knowsWhatSellersWrote: of a contract a buyer knows what its seller has written under that version, with the same terms and signatures,
// and never goes back; what is over stays over; and it leaves alone for a reason.
func (b *buyer) knowsWhatSellersWrote() error {
	for _, p := range b.all() {
		is, was := knew{p.ResourceVersion, p.Status.ContractID, b.stored(p).Purchase}, b.knew[string(p.UID)]
		if is.version == was.version {
			continue
		}
		b.knew[string(p.UID)] = is
		if is.id != was.id {
			was = knew{}
		}
		if err := b.follows(b.w.sellerOf(p), was.said, is.said); err != nil {
			return fmt.Errorf("purchase %s, %s v%d: %w", p.Name, p.Status.State, is.said.Seen.Version, err)
		}
	}
	return nil
}

// follows returns why a buyer cannot know something of a contract after what it knew.
func (b *buyer) follows(s *seller, was, is contract.Purchase) error {
	seen := is.Seen
	if past := s.told[seen.Key]; seen.Version > 0 &&
		(past == nil || !slices.ContainsFunc(past.views[seen.Version], func(v contract.View) bool {
			return v.State == seen.State && v.Terms.Equal(seen.Terms) && v.Signature == seen.Signature &&
				v.Countersignature == seen.Countersignature &&
				(v.Ends.Equal(seen.Ends) || seen.State == contract.Ended) // Of one that ended early a buyer may know better when that was.
		})) {
		return fmt.Errorf("its seller has never written this: %+v", seen)
	}
	switch {
	case s.restored, s.told[seen.Key] != nil && s.told[seen.Key].again: // What was written since the backup is lost, or was deleted.
		return nil
	case seen.Version < was.Seen.Version:
		return fmt.Errorf("it has seen v%d before", was.Seen.Version)
	case !reaches(was.State(), is.State()):
		return fmt.Errorf("it was %q before, and nothing leads from there to %q", was.State(), is.State())
	case seen.Signed() && !is.Terms.Equal(seen.Terms):
		return fmt.Errorf("its terms are not those that both have signed: %+v and %+v", is.Terms, seen.Terms)
	case s.soldTo(seen.Key) == nil && is.Doubt == contract.UnknownDoubt: // People at the seller have deleted it.
	case is.Standing.Parts() && !was.Standing.Parts() && !s.hid && is.Committed() && !is.Ending &&
		b.clock().Before(is.Ends().Add(-is.Terms.Drain)):
		return fmt.Errorf("it leaves its seller before the end, at %s, and people want it: %s", is.Ends(), is.Doubt)
	}
	return nil
}

// reaches reports whether the table leads from one state to another, over any number of steps.
func reaches(from, to contract.State) bool {
	reached := map[contract.State]bool{from: true}
	for before := -1; before < len(reached); {
		before = len(reached)
		for _, state := range slices.Collect(maps.Keys(reached)) {
			for _, event := range contract.Events() {
				for _, next := range contract.Lookup(state, event).To {
					reached[next] = true
				}
			}
		}
	}
	return reached[to]
}

// runsWhatIsPaid: where something of a seller goes on, the pods there request no more than is paid, with what is being left, and by new
// terms that the seller has signed and the buyer has not seen, or than a seller gives that was restored.
func (b *buyer) runsWhatIsPaid() error {
	for _, s := range b.w.sellers {
		id, paid, goesOn := s.identity.ID, int64(0), false
		for _, p := range b.all() {
			known := b.stored(p).Purchase
			if b.w.sellerOf(p) != s || known.Peering == contract.Apart {
				continue
			}
			cpu := p.Status.Resources["cpu"]
			now := cpu.Value()
			if r := s.soldTo(contract.Key{Buyer: string(b.id), ID: p.Status.ContractID}); r != nil && r.Signed() &&
				r.Terms.Revision > known.Terms.Revision {
				now = max(now, r.Terms.Resources.Cpu().Value())
			}
			paid += now
			goesOn = goesOn || known.State().InUse() && !known.Ending && !known.Standing.Parts()
		}
		paid = b.mayGet(s, paid)
		if cores := b.liqo.cores[id]; goesOn && cores > paid && !b.liqo.disturbed[id] {
			return fmt.Errorf("its pods request %d cores of %s, and contracts give %d", cores, s.name, paid)
		}
	}
	return nil
}

// purchaseOf returns the Purchase of a contract, and whose it is; nil if there is none.
func (w *world) purchaseOf(s *seller, key contract.Key) (*buyer, *connectorv1alpha1.Purchase) {
	for _, b := range w.buyers {
		if string(b.id) != key.Buyer {
			continue
		}
		for _, p := range b.all() {
			if w.sellerOf(p) == s && p.Status.ContractID == key.ID {
				return b, p
			}
		}
	}
	return nil, nil
}
