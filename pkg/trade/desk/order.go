// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package desk

import (
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/offer"
	"github.com/capacitorset/liqo-broker/pkg/trade/objects"
	"github.com/capacitorset/liqo-broker/pkg/trade/show"
)

// Order is what people want to buy.
type Order struct {
	// Name is that of the object.
	Name string
	// Need says how much, for how long and for how much money at most; and what it may be, where no plan is named.
	Need offer.Filter
	// Plan is what is bought; nil for whatever is the best choice.
	Plan *Plan
	// MaxTotal is the most that it may cost in all; nil for anything.
	MaxTotal *connectorv1alpha1.Money
	// Renew is whether it is renewed before it ends.
	Renew bool
}

// Kind is what the order is written as.
func (o *Order) Kind() string {
	if o.Plan != nil {
		return "Purchase"
	}
	return "CapacityRequest"
}

// Object returns the order as it is written.
func (o *Order) Object() client.Object {
	var most *connectorv1alpha1.Price
	if o.Need.MaxPrice != nil {
		most = new(objects.Price(*o.Need.MaxPrice))
	}
	duration := metav1.Duration{Duration: time.Duration(o.Need.Duration)}
	if o.Plan == nil {
		r := &connectorv1alpha1.CapacityRequest{ObjectMeta: metav1.ObjectMeta{Name: o.Name}}
		r.Spec.Resources, r.Spec.Duration, r.Spec.MaxPrice = v1alpha1.Quantities(o.Need.Resources.List()), duration, most
		r.Spec.Renew, r.Spec.MaxTotal = o.Renew, o.MaxTotal
		r.Spec.Regions, r.Spec.Architectures, r.Spec.Expression = o.Need.Regions, o.Need.Architectures, o.Need.Expression
		for _, id := range o.Need.Parties {
			r.Spec.Sellers = append(r.Spec.Sellers, connectorv1alpha1.PartyID(id))
		}
		return r
	}
	p := &connectorv1alpha1.Purchase{ObjectMeta: metav1.ObjectMeta{Name: o.Name}}
	p.Spec.Seller, p.Spec.Offer = connectorv1alpha1.PartyID(o.Plan.Offer.Party), connectorv1alpha1.Label(o.Plan.Offer.Offer)
	p.Spec.Plan, p.Spec.Duration, p.Spec.MaxPrice = connectorv1alpha1.Label(o.Plan.ID), &duration, most
	p.Spec.Renew, p.Spec.MaxTotal = o.Renew, o.MaxTotal
	if len(o.Need.Resources) > 0 {
		p.Spec.Resources = v1alpha1.Quantities(o.Need.Resources.List())
	}
	return p
}

// Would returns which plans fit an order now, the one first that is bought. The error is about the need.
func (c *Catalog) Would(o *Order, now time.Time) ([]show.ForSale, error) {
	need := o.Need
	if o.Plan != nil {
		need.Parties = []string{o.Plan.Offer.Party}
	}
	matcher, err := need.Compile()
	if err != nil {
		return nil, err
	}
	plans := c.Find(matcher, now)
	if o.Plan != nil {
		plans = slices.DeleteFunc(plans, func(f show.ForSale) bool { return f.Offer.Key() != o.Plan.Offer || f.Plan.ID != o.Plan.ID })
	}
	return plans, nil
}

// ParseMoney reads money such as "100 EUR".
func ParseMoney(text string) (*connectorv1alpha1.Money, error) {
	sum, currency, _ := strings.Cut(strings.TrimSpace(text), " ")
	amount, err := offer.ParseAmount(sum)
	if err != nil || len(currency) != 3 || currency != strings.ToUpper(currency) {
		return nil, unclearf("%.40q is not money such as \"100 EUR\"", text)
	}
	return &connectorv1alpha1.Money{Amount: connectorv1alpha1.Amount(amount.String()), Currency: currency}, nil
}
