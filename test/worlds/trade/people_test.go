// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package trade

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/contract"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/offer"
)

// mostBought bounds what people make in a world, and mostAsked what they ask for at a buyer, so that a world comes to its end.
const mostBought, mostAsked = 32, 4

// create and change write what people want. What somebody else has changed meanwhile they look at again some time.
func (h *host) create(o client.Object, what string) {
	if err := h.server.Create(o); err != nil {
		h.w.failf("create %s: %v", o.GetName(), err)
	}
	h.w.notef("%s %s %s: %s", h.name, what, o.GetName(), h.thing(o))
}

func (h *host) change(o client.Object, what string) {
	if err := h.server.Update(o, false); err == nil {
		h.w.notef("%s %s %s: %s", h.name, what, o.GetName(), h.thing(o))
	}
}

func (w *world) cpus(most int64) v1alpha1.Quantities {
	return v1alpha1.Quantities{"cpu": *resource.NewQuantity(1+w.r.Int64N(most), resource.DecimalSI)}
}

func (w *world) hours(most int) metav1.Duration {
	return metav1.Duration{Duration: time.Duration(1+w.r.IntN(most)) * time.Hour}
}

// buy makes a Purchase.
func (b *buyer) buy() {
	w := b.w
	if b.bought++; b.bought > mostBought/len(w.buyers) {
		return
	}
	s := w.sellers[w.r.IntN(len(w.sellers))]
	var within *metav1.Duration
	if w.r.IntN(2) == 0 {
		within = &metav1.Duration{Duration: time.Duration(10+w.r.IntN(50)) * time.Minute}
	}
	b.create(&connectorv1alpha1.Purchase{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("p", b.bought)},
		Spec: connectorv1alpha1.PurchaseSpec{
			Seller: connectorv1alpha1.PartyID(s.id), Offer: offerID, Plan: planID,
			Resources: w.cpus(min(s.most, 5)), Duration: new(w.hours(10)), ReadyWithin: within, Renew: w.r.IntN(4) == 0,
			MaxPrice: &connectorv1alpha1.Price{Amount: connectorv1alpha1.Amount(fmt.Sprint(1 + w.r.IntN(3))), Currency: "EUR", Period: "PT1H"},
		},
	}, "wants")
}

// open picks a Purchase that people can change; nil if there is none.
func (b *buyer) open() *connectorv1alpha1.Purchase {
	open := slices.DeleteFunc(b.all(), func(p *connectorv1alpha1.Purchase) bool {
		return len(p.OwnerReferences) > 0 || contract.State(p.Status.State).Final() || p.Spec.End != nil
	})
	if len(open) < 2 || len(open) < 4 && b.w.r.IntN(4) == 0 {
		b.buy()
	}
	if len(open) == 0 {
		return nil
	}
	return open[b.w.r.IntN(len(open))].DeepCopy()
}

// resize, move, renew, leave and regret are what people do with what they have bought.
func (b *buyer) resize() {
	if p := b.open(); p != nil {
		p.Spec.Resources = b.w.cpus(6)
		b.change(p, "resizes")
	}
}

func (b *buyer) move() {
	if p := b.open(); p != nil {
		p.Spec.Plan = map[connectorv1alpha1.Label]connectorv1alpha1.Label{planID: otherPlan, otherPlan: planID}[p.Spec.Plan]
		b.change(p, "moves to plan "+string(p.Spec.Plan))
	}
}

func (b *buyer) renew() {
	if p := b.open(); p != nil {
		p.Spec.Duration.Duration += time.Duration(b.w.r.IntN(4)) * time.Hour
		b.change(p, "renews")
	}
}

func (b *buyer) leave() {
	if p := b.open(); p != nil {
		p.Spec.End = &connectorv1alpha1.ContractEnd{Reason: "enough"}
		b.change(p, "ends")
	}
}

func (b *buyer) regret() {
	if p := b.open(); p != nil {
		b.w.notef("%s deletes %s", b.name, p.Name)
		b.remove(p)
	}
}

// ask makes a CapacityRequest.
func (b *buyer) ask() {
	if b.asked++; b.asked > mostAsked {
		return
	}
	b.create(&connectorv1alpha1.CapacityRequest{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("r", b.asked)},
		Spec:       connectorv1alpha1.CapacityRequestSpec{Resources: b.w.cpus(3), Duration: b.w.hours(5), Renew: b.w.r.IntN(3) == 0},
	}, "requests")
}

// askNoMore deletes a CapacityRequest.
func (b *buyer) askNoMore() {
	if wishes := b.wishes(); len(wishes) > 0 {
		r := wishes[b.w.r.IntN(len(wishes))]
		b.w.notef("%s deletes request %s", b.name, r.Name)
		b.remove(r)
		b.collect()
	}
}

// sale picks a Sale; nil if there is none.
func (s *seller) sale() *connectorv1alpha1.Sale {
	sales := s.all()
	if len(sales) == 0 {
		return nil
	}
	return sales[s.w.r.IntN(len(sales))].DeepCopy()
}

// decide approves or refuses what waits for somebody at the seller.
func (s *seller) decide() {
	for _, sale := range s.all() {
		if pending := sale.Status.PendingRevision; pending > 0 {
			sale = sale.DeepCopy()
			sale.Spec.DecisionRevision, sale.Spec.Decision = pending, connectorv1alpha1.DecisionApprove
			if s.w.r.IntN(4) == 0 {
				sale.Spec.Decision = connectorv1alpha1.DecisionRefuse
			}
			s.change(sale, "decides about")
			return
		}
	}
}

// notice ends a contract for the seller, suspend suspends or resumes it, and evict deletes its Sale.
func (s *seller) notice() {
	if sale := s.sale(); sale != nil && sale.Spec.End == nil {
		sale.Spec.End = &connectorv1alpha1.ContractEnd{Reason: "the rack moves"}
		s.change(sale, "gives notice of")
	}
}

func (s *seller) suspend() {
	if sale := s.sale(); sale != nil {
		sale.Spec.Suspended = !sale.Spec.Suspended
		s.change(sale, "suspends or resumes")
	}
}

func (s *seller) evict() {
	if sale := s.sale(); sale != nil {
		s.w.notef("%s deletes sale %s", s.name, sale.Name)
		s.remove(sale)
	}
}

// reprice changes what the seller offers.
func (s *seller) reprice() {
	s.offer.Revision++
	s.offer.Plans = slices.Clone(s.offer.Plans)
	s.offer.Plans[s.w.r.IntN(2)].Price.Amount, _ = offer.ParseAmount(fmt.Sprintf("0.%d", 1+s.w.r.IntN(8)))
	s.w.notef("%s has another price", s.name)
}

// shut closes or opens the sale. Open contracts go on.
func (s *seller) shut() {
	s.closed = !s.closed
	s.w.notef("%s sells nothing new: %t", s.name, s.closed)
}
