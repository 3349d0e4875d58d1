// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package apiv1

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/kpi"
	"github.com/capacitorset/liqo-broker/pkg/core/period"
	"github.com/capacitorset/liqo-broker/pkg/overview"
)

// OfProvider is what other objects tell of a provider. The zero value is nothing.
type OfProvider struct {
	// Link is the broker's; nil if there is none.
	Link *overview.Link
	// Shown are the labels that Liqo shows of it.
	Shown map[string]string
	Seen  []kpi.Window
}

// ProviderOf returns a provider.
func ProviderOf(p *v1alpha1.Provider, of OfProvider) Provider {
	ready, reason := readiness(p.Status.Conditions)
	shown := Provider{
		Cluster: Cluster{p.Name, p.Status.ClusterName}, Scheduling: string(p.EffectiveScheduling()), Ready: ready, Reason: reason,
		Capacity: Capacity{
			Rule: string(p.Spec.Capacity.Rule), Declared: quantities(corev1.ResourceList(p.Spec.Capacity.Declared)),
			OvercommitPercent: p.Spec.Capacity.Overcommit(), Measured: quantities(p.Status.Measured), Offered: quantities(p.Status.Offered),
			Used: quantities(p.Status.Used), Free: quantities(p.Status.Free), LargestPod: quantities(p.Status.LargestPod),
		},
		KPIs:   slices.Concat(kpis(p.Status.KPIs, "Broker"), kpis(p.Status.QueriedKPIs, "Prometheus")),
		Labels: labels(p.Labels, of.Shown), Conditions: conditions(p.Status.Conditions), Created: p.CreationTimestamp.UTC(),
	}
	for _, w := range of.Seen {
		shown.History = append(shown.History, Window{w.Name, w.Slot.Seconds(), w.Slots, w.Up, w.Last.Seconds()})
	}
	if since := p.UnreachableSince(); since != nil {
		shown.UnreachableSince = since.UTC()
	}
	if price := p.Spec.Price; price != nil {
		shown.Price = &Price{Currency: price.Currency, PeriodSeconds: time.Hour.Seconds()}
		if length, err := period.Parse(string(price.Period)); err == nil {
			shown.Price.PeriodSeconds = length.Seconds()
		}
		if price.CPU != nil {
			shown.Price.CPU = price.CPU.String()
		}
		if price.Memory != nil {
			shown.Price.Memory = price.Memory.String()
		}
	}
	if of.Link != nil {
		shown.Link = new(LinkOf(of.Link))
	}
	return shown
}

// Bounds of the labels of a provider, and of the bytes of one. Kubernetes takes no longer values.
const maxLabels, maxKey, maxValue = 32, 253, 63

// labels returns the labels by which policies choose a provider. Of too many the first by name are left, of those that people gave to it
// before all others; those that are too long are left out.
func labels(given, seen map[string]string) Labels {
	if len(given)+len(seen) == 0 {
		return nil
	}
	kept := make(Labels, min(len(given)+len(seen), maxLabels))
	add := func(from map[string]string, known func(key string) bool) {
		for _, key := range slices.Sorted(maps.Keys(from)) {
			if len(kept) < maxLabels && len(key) <= maxKey && len(from[key]) <= maxValue && !known(key) {
				kept[key] = from[key]
			}
		}
	}
	add(given, func(string) bool { return false })
	add(seen, func(key string) bool { _, is := given[key]; return is })
	return kept
}
