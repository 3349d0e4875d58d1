// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package offers

import (
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/resources"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/capacity"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/ledger"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/offer"
	"github.com/capacitorset/liqo-broker/pkg/trade/objects"
	"github.com/capacitorset/liqo-broker/pkg/trade/party"
)

// defaultValidity is for how long an offer is signed that does not say it.
const defaultValidity = time.Hour

// maxAvailable bounds how many more contracts an offer says that there could be.
const maxAvailable = 1_000_000

// left is what is left of a plan.
type left struct{ sold, available int64 }

// document returns what a spec offers, without revision and times, and what is left of its plans at a time. The error names the field that
// makes no sense; that the rest of the document does not is found when it is signed.
func document(
	seller party.ID, o *connectorv1alpha1.Offer, books ledger.Ledger, has corev1.ResourceList, now time.Time,
) (offer.Offer, map[string]left, error) {
	spec := &o.Spec
	d := offer.Offer{
		Party: string(seller), ID: o.Name, Kind: offer.Cluster, Name: spec.Title, Description: spec.Description, Type: spec.Type,
		Region: spec.Region, Zone: spec.Zone, Architectures: spec.Architectures, Labels: texts(spec.Labels), Properties: texts(spec.Properties),
	}
	if spec.Kind == connectorv1alpha1.KindBroker {
		d.Kind = offer.Broker
	}
	free := offer.FromList(resources.Subtract(has, books.Held(now)))
	rest := map[string]left{}
	for i := range spec.Plans {
		p, err := plan(&spec.Plans[i])
		if err != nil {
			return offer.Offer{}, nil, offer.In(fmt.Sprintf("spec.plans[%d]", i), err)
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
	var err error
	if p.Price, err = objects.ReadPrice(from.Price); err != nil {
		return offer.Plan{}, offer.In("price", err)
	}
	type amounts struct {
		field string
		from  v1alpha1.Quantities
		to    *offer.Resources
	}
	all := []amounts{{"resources", from.Resources, &p.Resources}}
	if from.Range != nil {
		p.Range = &offer.Range{}
		all = []amounts{
			{"range.min", from.Range.Min, &p.Range.Min}, {"range.max", from.Range.Max, &p.Range.Max}, {"range.step", from.Range.Step, &p.Range.Step},
		}
	}
	for _, each := range all {
		if *each.to, err = offer.ReadList(corev1.ResourceList(each.from)); err != nil {
			return offer.Plan{}, offer.In(each.field, err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(from.UnitPrices)) {
		unit, err := unitPrice(from.UnitPrices[name])
		if err != nil {
			return offer.Plan{}, offer.In(fmt.Sprintf("unitPrices[%.64q]", name), err)
		}
		if p.UnitPrices == nil {
			p.UnitPrices = map[string]offer.UnitPrice{}
		}
		p.UnitPrices[name] = unit
	}
	return p, nil
}

func unitPrice(from connectorv1alpha1.UnitPrice) (offer.UnitPrice, error) {
	amount, err := offer.ParseAmount(string(from.Amount))
	if err != nil {
		return offer.UnitPrice{}, offer.In("amount", err)
	}
	per, err := offer.ParseQuantity(from.Per)
	if err != nil {
		return offer.UnitPrice{}, offer.In("per", err)
	}
	return offer.UnitPrice{Amount: amount, Per: per}, nil
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

// described returns the labels of an offer, with the attributes of the devices that its plans sell. What people have written counts.
func described(labels map[string]string, plans []offer.Plan, of capacity.Attributes) map[string]string {
	var devices []corev1.ResourceName
	for i := range plans {
		for name := range largest(plans[i]) {
			if resources.IsDevice(corev1.ResourceName(name)) {
				devices = append(devices, corev1.ResourceName(name))
			}
		}
	}
	all := of.Of(devices...)
	if len(all) == 0 {
		return labels
	}
	maps.Copy(all, labels)
	return all
}

// smallest returns the least that a plan sells.
func smallest(p offer.Plan) offer.Resources {
	if p.Range == nil {
		return p.Resources
	}
	return p.Range.Min
}

// largest returns the most that a plan sells.
func largest(p offer.Plan) offer.Resources {
	if p.Range == nil {
		return p.Resources
	}
	return p.Range.Max
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
