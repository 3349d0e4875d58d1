// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package trade

import (
	"context"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/peering"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/contract"
)

// sellerLiqo is the Liqo of a cluster that sells: to which clusters something is issued that opens it.
type sellerLiqo struct{ issued map[cluster.ID]*issued }

// issued is who has issued something last, and whether it has come too late for that: it was an old leader, and there was no contract any
// more.
type issued struct {
	by   *process
	late bool
}

// left reports whether nobody takes it back, as the document says: the old leader that has issued it comes no further.
func (i *issued) left() bool { return i.late && (i.by.dead || i.by.failed) }

func (l sellerLiqo) clone() sellerLiqo { return sellerLiqo{maps.Clone(l.issued)} }

// liqoOfSeller is how a process of a seller uses it.
type liqoOfSeller struct {
	p *process
	s *seller
}

var _ peering.Seller = liqoOfSeller{}

// Issue implements peering.Seller.
func (l liqoOfSeller) Issue(_ context.Context, buyer cluster.Identity) (peering.Credentials, error) {
	err := l.p.call("issue", func() error {
		l.p.w.notef("  %s issues to %s, before: %t", l.p.name, buyer.ID, l.s.liqo.issued[buyer.ID] != nil)
		l.s.liqo.issued[buyer.ID] = &issued{l.p, l.p.pause != nil && !l.s.entitled(buyer.ID)}
		return nil
	})
	if err != nil {
		return peering.Credentials{}, err
	}
	return peering.NewCredentials(l.s.identity, "https://"+authHost, "token")
}

// Withdraw implements peering.Seller. What was issued opens nothing from the first call on; a cluster that is peered is seen to leave at
// the next.
func (l liqoOfSeller) Withdraw(_ context.Context, buyer cluster.ID) (done bool, err error) {
	err = l.p.call("withdraw", func() error {
		l.p.w.notef("  %s withdraws from %s, before: %t", l.p.name, buyer, l.s.liqo.issued[buyer] != nil)
		done = l.s.liqo.issued[buyer] == nil || !l.s.isPeered(buyer)
		delete(l.s.liqo.issued, buyer)
		return nil
	})
	return done && err == nil, err
}

// isPeered reports whether a cluster is peered with that of the seller.
func (s *seller) isPeered(id cluster.ID) bool {
	return slices.ContainsFunc(s.w.buyers, func(b *buyer) bool { return b.identity.ID == id && b.liqo.peered[s.identity.ID] > 0 })
}

// buyerLiqo is the Liqo of a cluster that buys.
type buyerLiqo struct {
	// peered is how far its peerings are: 2 can be used.
	peered map[cluster.ID]int
	// cores are those that its pods request at other clusters, and closed those clusters where nothing new runs.
	cores  map[cluster.ID]int64
	closed map[cluster.ID]bool
	// late are cores that the nodes of a cluster still have, though what gave them is over or suspended: its Liqo takes them away later.
	late map[cluster.ID]int64
	// disturbed are clusters where an old leader has done something since they were left last. The document says what can be wrong with them
	// then: a peering stays, a contract has no node, or its nodes are closed, or open for more than is paid. It is gone when the peering ends.
	disturbed map[cluster.ID]bool
}

func newBuyerLiqo() buyerLiqo {
	return buyerLiqo{map[cluster.ID]int{}, map[cluster.ID]int64{}, map[cluster.ID]bool{}, map[cluster.ID]int64{}, map[cluster.ID]bool{}}
}

// liqoOfBuyer is how a process of a buyer uses it.
type liqoOfBuyer struct {
	p *process
	b *buyer
}

var _ peering.Buyer = liqoOfBuyer{}

// do does something to it. What an old leader writes is kept by versions from what others have written, but from what it does to Liqo it is
// kept by its lease alone: nobody takes that back.
func (l liqoOfBuyer) do(what string, id cluster.ID, deed func() error) error {
	return l.p.call(what, func() error {
		if l.p.pause != nil {
			l.b.liqo.disturbed[id] = true
			l.p.w.deeds++
			l.p.w.notef("  %s is an old leader, and does late: %s, %s", l.p.name, what, id)
		}
		return deed()
	})
}

// Peer implements peering.Buyer.
func (l liqoOfBuyer) Peer(_ context.Context, with peering.Credentials) error {
	id := with.Cluster().ID
	return l.do("peer", id, func() error {
		l.b.liqo.peered[id] = min(l.b.liqo.peered[id]+1, 2)
		l.p.w.notef("  %s peers with %s", l.p.name, id)
		return nil
	})
}

// State implements peering.Buyer. A peering can be used while the seller's cluster lets it.
func (l liqoOfBuyer) State(_ context.Context, id cluster.ID) (peering.State, error) {
	if err := l.p.before(false, "state"); err != nil {
		return peering.State{}, err
	}
	state := peering.State{Exists: l.b.liqo.peered[id] > 0, Established: l.b.usable(id)}
	if state.Established {
		state.Nodes = []peering.Node{{Name: "node-" + string(id), Ready: true, Closed: l.b.liqo.closed[id]}}
	}
	return state, nil
}

// usable reports whether pods can run at a cluster.
func (b *buyer) usable(id cluster.ID) bool {
	for _, s := range b.w.sellers {
		if s.identity.ID == id {
			return b.liqo.peered[id] > 1 && s.liqo.issued[b.identity.ID] != nil
		}
	}
	return false
}

// Requested implements peering.Buyer.
func (l liqoOfBuyer) Requested(_ context.Context, id cluster.ID) (corev1.ResourceList, error) {
	return corev1.ResourceList{"cpu": *resource.NewQuantity(l.b.liqo.cores[id], resource.DecimalSI)}, l.p.before(false, "requested")
}

// Drain implements peering.Buyer. A core is left each time.
func (l liqoOfBuyer) Drain(_ context.Context, id cluster.ID) (left int, err error) {
	err = l.do("drain", id, func() error {
		l.b.liqo.closed[id] = true
		left = l.evict(id, 0)
		return nil
	})
	return left, err
}

// Fit implements peering.Buyer. A core is left each time.
func (l liqoOfBuyer) Fit(_ context.Context, id cluster.ID, room corev1.ResourceList) (left int, err error) {
	err = l.do("fit", id, func() error {
		most, counts := room["cpu"]
		if !counts {
			return nil
		}
		if left = l.evict(id, most.Value()); left == 0 && l.b.size(id) <= most.Value() {
			delete(l.b.liqo.closed, id)
			return nil
		}
		l.b.liqo.closed[id] = true
		return nil
	})
	return left, err
}

// evict has a core leave, if more are requested than may be. It returns how many are too many.
func (l liqoOfBuyer) evict(id cluster.ID, most int64) (left int) {
	left = int(max(l.b.liqo.cores[id]-most, 0))
	l.b.liqo.cores[id] -= min(int64(left), 1)
	return left
}

// Open implements peering.Buyer.
func (l liqoOfBuyer) Open(_ context.Context, id cluster.ID, room corev1.ResourceList) error {
	return l.do("open nodes", id, func() error {
		if most := room["cpu"]; l.b.size(id) <= most.Value() {
			delete(l.b.liqo.closed, id)
		}
		return nil
	})
}

// size is how many cores the nodes of a cluster have.
func (b *buyer) size(id cluster.ID) int64 { return b.given(id) + b.liqo.late[id] }

// given is how many cores the seller's Liqo gives.
func (b *buyer) given(id cluster.ID) int64 {
	for _, s := range b.w.sellers {
		if s.identity.ID != id {
			continue
		}
		granted := s.book().Granted(b.identity.ID)
		return granted.Cpu().Value()
	}
	return 0
}

// shrinksLate notes that nodes keep for a while what a contract gave. What is given next, or again, they have already.
func (s *seller) shrinksLate(was, is *contract.Record) {
	gave := was != nil && was.State != contract.Signed && was.Granted() != nil
	gives := is.State != contract.Signed && is.Granted() != nil
	if gave == gives {
		return
	}
	change := is.Terms.Resources.Cpu().Value()
	if gives {
		change = -change
	}
	// Pods come to nothing for which a buyer has never begun to peer: see work.
	if b, p := s.w.purchaseOf(s, is.Key); p != nil && p.Status.Cluster.ID != "" && b.liqo.peered[s.identity.ID] > 0 {
		b.liqo.late[s.identity.ID] = max(b.liqo.late[s.identity.ID]+change, 0)
	}
}

// shrink has the nodes of a seller become as small as its Liqo says.
func (b *buyer) shrink(s *seller) {
	if b.liqo.late[s.identity.ID] > 0 {
		delete(b.liqo.late, s.identity.ID)
		b.w.notef("the nodes of %s at %s have %d cores now", s.name, b.name, b.size(s.identity.ID))
	}
}

// work has pods come and go at a cluster, where they find room on its nodes. Nobody has more come than will fit when a contract becomes
// smaller, nor to what a contract gives before its buyer has begun to peer for it.
func (b *buyer) work(s *seller) {
	id := s.identity.ID
	if !b.usable(id) || b.liqo.closed[id] {
		return
	}
	room := b.size(id)
	for _, p := range b.all() {
		if b.w.sellerOf(p) != s {
			continue
		}
		if r := s.soldTo(contract.Key{Buyer: string(b.id), ID: p.Status.ContractID}); b.stored(p).Purchase.Peering == contract.Apart &&
			r != nil &&
			r.State != contract.Signed && r.Granted() != nil {
			room -= r.Terms.Resources.Cpu().Value()
		}
		if contract.State(p.Status.State).InUse() {
			wanted, given := p.Spec.Resources["cpu"], p.Status.Resources["cpu"]
			least := wanted.Value()
			if proposed := b.stored(p).Purchase.Proposal; proposed != nil {
				least = min(least, proposed.Terms.Resources.Cpu().Value())
			}
			room -= max(given.Value()-least, 0)
		}
	}
	most := max(room, b.liqo.cores[id])
	if most > 0 {
		b.liqo.cores[id] = b.w.r.Int64N(most + 1)
		b.w.notef("pods of %s request %d cores of %s", b.name, b.liqo.cores[id], id)
	}
}

// Unpeer implements peering.Buyer.
func (l liqoOfBuyer) Unpeer(_ context.Context, id cluster.ID) (done bool, err error) {
	err = l.do("unpeer", id, func() error {
		if l.b.liqo.peered[id]--; l.b.liqo.peered[id] > 0 {
			return nil
		}
		done = true
		l.p.w.notef("  %s parts from %s", l.p.name, id)
		delete(l.b.liqo.peered, id)
		delete(l.b.liqo.cores, id)
		delete(l.b.liqo.late, id)
		delete(l.b.liqo.closed, id)
		l.b.liqo.disturbed[id] = l.p.pause != nil
		return nil
	})
	return done && err == nil, err
}
