// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package trade

import (
	"context"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/clocktest"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/purchases"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/requests"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/offer"
	"github.com/capacitorset/liqo-broker/pkg/trade/party"
)

// buyer is a cluster that buys.
type buyer struct {
	host
	*somebody

	identity cluster.Identity
	liqo     buyerLiqo
	leader   *shopper
	// bought and asked count what people have made.
	bought, asked int
	// knew is what Purchases said, and progress what has become of those that are on their way, by UID.
	knew     map[string]knew
	progress map[string]*progress
	// records are what Purchases have written down, by the versions of these.
	records map[string]purchase
}

// shopper is one run of a buyer's connector.
type shopper struct {
	*process

	purchases *purchases.Reconciler
	requests  *requests.Reconciler
}

func (w *world) newBuyer(name string, id cluster.Identity) *buyer {
	b := &buyer{
		host: w.newHost(name), somebody: w.newParty(name, id.ID, ""), identity: id,
		liqo: newBuyerLiqo(), knew: map[string]knew{}, progress: map[string]*progress{}, records: map[string]purchase{},
	}
	w.buyers = append(w.buyers, b)
	b.lead()
	return b
}

// lead has a new process lead.
func (b *buyer) lead() { b.leader = b.newShopper() }

func (b *buyer) newShopper() *shopper {
	p := b.newProcess()
	s := &shopper{process: p}
	var err error
	if s.requests, err = requests.New(requests.Config{
		Client: p.client(), Reader: p.reader(), Offers: b.w.offers, Clock: clocktest.Func(b.clock),
	}); err != nil {
		b.w.t.Fatal(err)
	}
	if s.purchases, err = purchases.New(purchases.Config{
		Client: p.client(), Reader: p.reader(), Parties: b.w, Peering: liqoOfBuyer{p, b}, Reach: roads{b}, Cluster: b.identity,
		Fits: s.requests.Fits, Keys: func() party.Keys { return b.keys }, Key: func() party.Key { return b.key }, Clock: clocktest.Func(b.clock),
		Elapsed: b.w.elapsed,
	}); err != nil {
		b.w.t.Fatal(err)
	}
	return s
}

// leading returns a process that leads, and is alive.
func (b *buyer) leading() *shopper {
	if b.leader.dead {
		b.lead()
	}
	return b.leader
}

// offers returns what is for sale and fits, the cheapest first.
func (w *world) offers(filter offer.Filter) ([]requests.Candidate, error) {
	var found []requests.Candidate
	for _, s := range w.sellers {
		plan := s.offer.Plans[0]
		granted, err := plan.Grant(filter.Resources)
		if err != nil {
			continue
		}
		price, err := plan.Cost(granted)
		if err != nil {
			return nil, err
		}
		found = append(found, requests.Candidate{
			Offer: s.offer.Key(), Plan: plan.ID, Digest: s.offer.Fingerprint(), Price: price, Notice: time.Duration(plan.Notice),
		})
	}
	slices.SortStableFunc(found, func(a, b requests.Candidate) int { return a.Price.Compare(b.Price) })
	return found, nil
}

// all returns the Purchases, and wishes the CapacityRequests.
func (b *buyer) all() []*connectorv1alpha1.Purchase {
	return all(b.live, &connectorv1alpha1.Purchase{})
}

func (b *buyer) wishes() []*connectorv1alpha1.CapacityRequest {
	return all(b.live, &connectorv1alpha1.CapacityRequest{})
}

// reconcile has the leader look at a Purchase.
func (b *buyer) reconcile(name string) {
	s, wrong := b.leading(), b.w.wrong
	s.behind()
	err := s.reconcile(name)
	if err != nil && b.w.calm {
		b.w.failf("without any fault, purchase %s of %s: %v", name, b.name, err)
	}
	p, is := b.server.Stored(&connectorv1alpha1.Purchase{ObjectMeta: metav1.ObjectMeta{Name: name}}).(*connectorv1alpha1.Purchase)
	if err == nil && is && b.w.wrong == wrong {
		b.w.lookedAt(b, p, b.w.sellerOf(p), false)
	}
}

func (s *shopper) reconcile(name string) error {
	result, err := s.purchases.Reconcile(context.Background(), requestOf(name))
	s.w.notef("%s looks at %s: again after %s, %v", s.name, name, result.RequeueAfter, err)
	return err
}

// serve has the leader look at a CapacityRequest.
func (b *buyer) serve(name string) {
	s := b.leading()
	s.behind()
	result, err := s.requests.Reconcile(context.Background(), requestOf(name))
	b.w.notef("%s looks at request %s: again after %s, %v", s.name, name, result.RequeueAfter, err)
	if err != nil && b.w.calm {
		b.w.failf("without any fault, request %s of %s: %v", name, b.name, err)
	}
}

// collect does what the garbage collector of Kubernetes does: it deletes what is owned by something that is not there any more.
func (b *buyer) collect() {
	owners := map[types.UID]bool{}
	for _, r := range b.wishes() {
		owners[r.UID] = true
	}
	for _, p := range b.all() {
		if owner := metav1.GetControllerOf(p); owner != nil && !owners[owner.UID] {
			b.remove(p)
		}
	}
}

// remove deletes an object, as people do.
func (h *host) remove(o client.Object) {
	if err := h.server.Delete(o, false, &client.DeleteOptions{}); err != nil {
		h.w.failf("delete %s: %v", o.GetName(), err)
	}
}
