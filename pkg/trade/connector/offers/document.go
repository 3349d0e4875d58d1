// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package offers

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/resources"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/ledger"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/offer"
	"github.com/capacitorset/liqo-broker/pkg/trade/party"
)

// defaultValidity is for how long an offer is signed that does not say it.
const defaultValidity = time.Hour

// maxAvailable bounds how many more contracts an offer says that there could be.
const maxAvailable = 1_000_000

// left is what is left of a plan.
type left struct{ sold, available int64 }

// document returns what a spec offers, without revision and times, and what is left of its plans at a time. The error names the field that makes no
// sense; that the rest of the document does not is found when it is signed.
func document(
	seller party.ID, o *connectorv1alpha1.Offer, books ledger.Ledger, has corev1.ResourceList, now time.Time,
) (offer.Offer, map[string]left, error) {
	spec := &o.Spec
	d := offer.Offer{
		Party: string(seller), ID: o.Name, Kind: offer.Cluster, Name: spec.Title, Description: spec.Description, Type: spec.Type, Region: spec.Region,
		Zone: spec.Zone, Architectures: spec.Architectures, Labels: texts(spec.Labels), Properties: texts(spec.Properties),
	}
	if spec.Kind == connectorv1alpha1.KindBroker {
		d.Kind = offer.Broker
	}
	free := offer.FromList(resources.Subtract(has, books.Held(now)))
	rest := map[string]left{}
	for i := range spec.Plans {
		p, err := plan(&spec.Plans[i])
		if err != nil {
			return offer.Offer{}, nil, fmt.Errorf("spec.plans[%d].%w", i, err)
		}
		of := left{sold: books.Sold(o.Name, p.ID, now)}
		of.available = min(times(smallest(p), free), maxAvailable)
		if p.Stock != nil {
			of.available = max(min(of.available, *p.Stock-of.sold), 0)
		}
		p.Available, rest[p.ID] = of.available, of
		d.Plans = append(d.Plans, p)
	}
	return d, rest, nil
}

// plan returns a plan.
func plan(from *connectorv1alpha1.OfferPlan) (offer.Plan, error) {
	p := offer.Plan{
		ID: string(from.ID), Name: from.Title, Stock: from.Stock,
		MinDuration: duration(from.MinDuration), MaxDuration: duration(from.MaxDuration), Notice: duration(from.Notice),
	}
	amount, err := offer.ParseAmount(string(from.Price.Amount))
	if err != nil {
		return offer.Plan{}, fmt.Errorf("price.amount: %w", err)
	}
	p.Price = offer.Price{Amount: amount, Currency: from.Price.Currency, Period: offer.Period(from.Price.Period)}
	if from.Range == nil {
		p.Resources, err = quantities("resources", from.Resources)
	} else {
		p.Range = &offer.Range{}
		for _, each := range []struct {
			field string
			from  v1alpha1.Quantities
			to    *offer.Resources
		}{{"range.min", from.Range.Min, &p.Range.Min}, {"range.max", from.Range.Max, &p.Range.Max}, {"range.step", from.Range.Step, &p.Range.Step}} {
			var failed error
			*each.to, failed = quantities(each.field, each.from)
			err = errors.Join(err, failed)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(from.UnitPrices)) {
		unit, failed := unitPrice(from.UnitPrices[name])
		if failed != nil {
			err = errors.Join(err, fmt.Errorf("unitPrices[%.64s].%w", name, failed))
		}
		if p.UnitPrices == nil {
			p.UnitPrices = map[string]offer.UnitPrice{}
		}
		p.UnitPrices[name] = unit
	}
	return p, err
}

func unitPrice(from connectorv1alpha1.UnitPrice) (offer.UnitPrice, error) {
	amount, err := offer.ParseAmount(string(from.Amount))
	if err != nil {
		return offer.UnitPrice{}, fmt.Errorf("amount: %w", err)
	}
	per, err := offer.ParseQuantity(from.Per)
	if err != nil {
		return offer.UnitPrice{}, fmt.Errorf("per: %w", err)
	}
	return offer.UnitPrice{Amount: amount, Per: per}, nil
}

func quantities(field string, from v1alpha1.Quantities) (offer.Resources, error) {
	read := offer.Resources{}
	for _, name := range slices.Sorted(maps.Keys(from)) {
		quantity := from[name]
		q, err := offer.ParseQuantity(quantity.String())
		if err != nil {
			return nil, fmt.Errorf("%s[%.64s]: %w", field, name, err)
		}
		read[string(name)] = q
	}
	return read, nil
}

func duration(d *metav1.Duration) offer.Duration {
	if d == nil {
		return 0
	}
	return offer.Duration(d.Duration)
}

func texts[T ~string](from map[string]T) map[string]string {
	if len(from) == 0 {
		return nil
	}
	to := make(map[string]string, len(from))
	for name, text := range from {
		to[name] = string(text)
	}
	return to
}

// smallest returns the least that a plan sells.
func smallest(p offer.Plan) offer.Resources {
	if p.Range == nil {
		return p.Resources
	}
	return p.Range.Min
}

// times returns how many times an amount is in what is free: of the resource of which there is the least.
func times(amount, free offer.Resources) int64 {
	n := int64(maxAvailable)
	for name, each := range amount {
		if each.Milli() > 0 {
			n = min(n, free[name].Milli()/each.Milli())
		}
	}
	return n
}
