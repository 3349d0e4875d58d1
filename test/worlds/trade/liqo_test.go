// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package trade

import (
	"context"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/capacitorset/liqo-broker/pkg/connector/peering"
	"github.com/capacitorset/liqo-broker/pkg/connector/sales"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/core/contract"
)

// sellerLiqo is the Liqo of a cluster that sells: to which clusters something is issued that opens it.
type sellerLiqo struct{ issued map[cluster.ID]bool }

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
		l.p.w.notef("  %s issues to %s, before: %t", l.p.name, buyer.ID, l.s.liqo.issued[buyer.ID])
		l.s.liqo.issued[buyer.ID] = true
		return nil
	})
	if err != nil {
		return peering.Credentials{}, err
	}
	return peering.NewCredentials(l.s.identity, "https://"+authHost, "token")
}

// Withdraw implements peering.Seller. What was issued opens nothing from the first call on; a cluster that is peered is seen to leave at the next.
func (l liqoOfSeller) Withdraw(_ context.Context, buyer cluster.ID) (done bool, err error) {
	err = l.p.call("withdraw", func() error {
		l.p.w.notef("  %s withdraws from %s, before: %t", l.p.name, buyer, l.s.liqo.issued[buyer])
		done = !l.s.liqo.issued[buyer] || !l.s.isPeered(buyer)
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
	// cores are those that its pods request at other clusters, and closed are clusters where nothing new runs.
	cores  map[cluster.ID]int64
	closed map[cluster.ID]bool
}

func newBuyerLiqo() buyerLiqo {
	return buyerLiqo{map[cluster.ID]int{}, map[cluster.ID]int64{}, map[cluster.ID]bool{}}
}

// liqoOfBuyer is how a process of a buyer uses it.
type liqoOfBuyer struct {
	p *process
	b *buyer
}

var _ peering.Buyer = liqoOfBuyer{}

// do does something to it. An old leader that is slow dies instead: what it writes is kept by versions from what others have written, but from
// what it does to Liqo it is kept by its lease alone.
func (l liqoOfBuyer) do(what string, deed func() error) error {
	if l.p.pause != nil {
		l.p.dead = true
	}
	return l.p.call(what, deed)
}

// Peer implements peering.Buyer.
func (l liqoOfBuyer) Peer(_ context.Context, with peering.Credentials) error {
	return l.do("peer", func() error {
		id := with.Cluster().ID
		l.b.liqo.peered[id] = min(l.b.liqo.peered[id]+1, 2)
		l.b.liqo.closed[id] = false
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
			return b.liqo.peered[id] > 1 && s.liqo.issued[b.identity.ID]
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
	return l.leave(id, 0, true)
}

// Fit implements peering.Buyer. A core is left each time.
func (l liqoOfBuyer) Fit(_ context.Context, id cluster.ID, room corev1.ResourceList) (left int, err error) {
	most, counts := room["cpu"]
	if !counts {
		most = *resource.NewQuantity(l.b.liqo.cores[id], resource.DecimalSI)
	}
	return l.leave(id, most.Value(), l.b.given(id) > most.Value())
}

// Open implements peering.Buyer.
func (l liqoOfBuyer) Open(_ context.Context, id cluster.ID, room corev1.ResourceList) error {
	return l.do("open nodes", func() error {
		if most := room["cpu"]; l.b.liqo.closed[id] && l.b.given(id) <= most.Value() {
			l.b.liqo.closed[id] = false
		}
		return nil
	})
}

// given is how many cores the nodes of a cluster have: what the seller's Liqo gives.
func (b *buyer) given(id cluster.ID) int64 {
	for _, s := range b.w.sellers {
		if s.identity.ID != id {
			continue
		}
		book, err := sales.NewGrants(s.stored()).Book(context.Background())
		if err != nil {
			b.w.t.Fatal(err)
		}
		granted := book.Granted(b.identity.ID)
		return granted.Cpu().Value()
	}
	return 0
}

// leave has pods leave a cluster until they request no more cores than most, and no others come meanwhile, or at all.
func (l liqoOfBuyer) leave(id cluster.ID, most int64, closes bool) (left int, err error) {
	err = l.do("have pods leave", func() error {
		l.b.liqo.cores[id] = max(l.b.liqo.cores[id]-1, min(l.b.liqo.cores[id], most))
		left = int(max(l.b.liqo.cores[id]-most, 0))
		l.b.liqo.closed[id] = closes || left > 0
		return nil
	})
	return left, err
}

// work has pods come and go at a cluster, where they find room on its nodes. Nobody has more come than will fit when a contract becomes smaller.
func (b *buyer) work(s *seller) {
	id := s.identity.ID
	if !b.usable(id) || b.liqo.closed[id] {
		return
	}
	room := b.given(id)
	for _, p := range b.all() {
		if b.w.sellerOf(p) == s && contract.State(p.Status.State).InUse() {
			wanted, given := p.Spec.Resources["cpu"], p.Status.Resources["cpu"]
			room -= max(given.Value()-wanted.Value(), 0)
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
	err = l.do("unpeer", func() error {
		if l.b.liqo.peered[id]--; l.b.liqo.peered[id] > 0 {
			return nil
		}
		done = true
		l.p.w.notef("  %s parts from %s", l.p.name, id)
		delete(l.b.liqo.peered, id)
		delete(l.b.liqo.cores, id)
		delete(l.b.liqo.closed, id)
		return nil
	})
	return done && err == nil, err
}
