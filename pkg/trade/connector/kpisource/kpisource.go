// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kpisource is what a broker tells those who might buy of it: how available and how far away what it aggregates is, as it has
// measured itself.
//
// It measures nothing, and does not know how an offer is signed: that the broker signs it is what says where a value comes from.
package kpisource

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/kpi"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/offer"
	"github.com/capacitorset/liqo-broker/pkg/trade/party"
)

// Source returns what was measured, in the order of the names; nothing of what is not known now.
type Source func(ctx context.Context, now time.Time) ([]offer.KPI, error)

// summary is how a KPI of several providers becomes one.
type summary struct {
	name  string
	worse func(a, b float64) float64
	round func(float64) float64
}

// shown are the KPIs that are told, in the order of their names: the worst counts.
var shown = []summary{
	{kpi.Availability1h, math.Min, thousandths},
	{kpi.Availability24h, math.Min, thousandths},
	{kpi.Availability30d, math.Min, thousandths},
	{kpi.RoundTripTime, math.Max, math.Ceil},
}

// thousandths rounds down: nobody is told of more than there was.
func thousandths(value float64) float64 { return math.Floor(value*1000) / 1000 }

// OfBroker returns what the broker of this cluster has measured of the providers to which new pods may go. A KPI that is not known of one
// of them is not known of all.
func OfBroker(reader client.Reader, by party.ID) Source {
	return func(ctx context.Context, now time.Time) ([]offer.KPI, error) {
		var all v1alpha1.ProviderList
		if err := reader.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("list providers: %w", err)
		}
		used := slices.DeleteFunc(all.Items, func(p v1alpha1.Provider) bool {
			return len(p.Status.Offered) == 0 || p.Spec.Scheduling != "" && p.Spec.Scheduling != v1alpha1.SchedulingActive
		})
		var told []offer.KPI
		for _, s := range shown {
			if k, known := s.of(used, now); known {
				k.MeasuredBy = string(by)
				told = append(told, k)
			}
		}
		return told, nil
	}
}

// of returns the KPI of several providers, if it is known of all, and there is one.
func (s summary) of(providers []v1alpha1.Provider, now time.Time) (offer.KPI, bool) {
	all := offer.KPI{Name: s.name}
	for i := range providers {
		k := find(&providers[i], s.name)
		first := i == 0
		if !k.Known(now) || !first && k.Unit != all.Unit {
			return offer.KPI{}, false
		}
		if first {
			all.Value, all.Unit, all.MeasuredAt = k.Value, k.Unit, k.Measured
		}
		if all.Value = s.worse(all.Value, k.Value); k.Measured.Before(all.MeasuredAt) {
			all.MeasuredAt = k.Measured
		}
		all.Samples++
	}
	all.Value, all.MeasuredAt = s.round(all.Value), all.MeasuredAt.UTC().Truncate(time.Second)
	return all, all.Samples > 0
}

// find returns a KPI of a provider; the zero one, which is unknown, if it has none.
func find(p *v1alpha1.Provider, name string) kpi.KPI {
	for i := range p.Status.KPIs {
		if k := &p.Status.KPIs[i]; k.Name == name {
			return k.Decode()
		}
	}
	return kpi.KPI{}
}
