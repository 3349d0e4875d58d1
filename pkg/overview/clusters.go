// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package overview

import (
	"cmp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/core/kpi"
	"github.com/capacitorset/liqo-broker/pkg/sheet"
)

// ProviderIdentity returns what a provider is called.
func ProviderIdentity(p *v1alpha1.Provider) cluster.Identity {
	return cluster.Identity{ID: cluster.ID(p.Name), Name: p.Status.ClusterName}
}

// ConsumerIdentity returns what a consumer is called.
func ConsumerIdentity(c *v1alpha1.Consumer) cluster.Identity {
	return cluster.Identity{ID: cluster.ID(c.Name), Name: c.Status.ClusterName}
}

// SortProviders orders providers by name and then by ID, in place.
func SortProviders(providers []v1alpha1.Provider) {
	slices.SortFunc(providers, func(a, b v1alpha1.Provider) int {
		return cmp.Or(cmp.Compare(a.Status.ClusterName, b.Status.ClusterName), cmp.Compare(a.Name, b.Name))
	})
}

// SortConsumers orders consumers by name and then by ID, in place.
func SortConsumers(consumers []v1alpha1.Consumer) {
	slices.SortFunc(consumers, func(a, b v1alpha1.Consumer) int {
		return cmp.Or(cmp.Compare(a.Status.ClusterName, b.Status.ClusterName), cmp.Compare(a.Name, b.Name))
	})
}

// Providers returns a row for each provider, in their order.
func Providers(now time.Time, providers []v1alpha1.Provider) *metav1.Table {
	ids := make([]string, 0, len(providers))
	for i := range providers {
		ids = append(ids, providers[i].Name)
	}
	short := sheet.Shortener(ids)
	return sheet.Table(providers, []sheet.Column[v1alpha1.Provider]{
		{Name: "Name", Cell: func(p *v1alpha1.Provider) string { return p.Status.ClusterName }},
		{Name: "ID", Cell: func(p *v1alpha1.Provider) string { return short(p.Name) }},
		{Name: "Scheduling", Cell: func(p *v1alpha1.Provider) string { return string(p.EffectiveScheduling()) }},
		{Name: "Ready", Cell: func(p *v1alpha1.Provider) string { return sheet.State(p.Status.Conditions, v1alpha1.ConditionReady) }},
		{Name: "Reason", Cell: func(p *v1alpha1.Provider) string { return sheet.Reason(p.Status.Conditions, v1alpha1.ConditionReady) }},
		{Name: "Reachable", Cell: func(p *v1alpha1.Provider) string {
			return sheet.State(p.Status.Conditions, v1alpha1.ConditionReachable)
		}},
		{Name: "Offered", Cell: func(p *v1alpha1.Provider) string { return sheet.Amount(p.Status.Offered) }},
		{Name: "Used", Cell: func(p *v1alpha1.Provider) string { return sheet.Amount(p.Status.Used) }},
		{Name: "Free", Cell: func(p *v1alpha1.Provider) string { return sheet.Amount(p.Status.Free) }},
		{Name: "Round trip", Cell: kpiOf(now, kpi.RoundTripTime)},
		{Name: "Up 24h", Cell: kpiOf(now, kpi.Availability24h)},
		{Name: "Age", Cell: func(p *v1alpha1.Provider) string { return sheet.Since(now, p.CreationTimestamp) }},
		{Name: "Cluster ID", Wide: true, Cell: func(p *v1alpha1.Provider) string { return p.Name }},
		{Name: "Largest pod", Wide: true, Cell: func(p *v1alpha1.Provider) string { return sheet.Amount(p.Status.LargestPod) }},
		{Name: "Draining", Wide: true, Cell: func(p *v1alpha1.Provider) string {
			return sheet.Reason(p.Status.Conditions, v1alpha1.ConditionDraining)
		}},
		{Name: "Start-up p90", Wide: true, Cell: kpiOf(now, kpi.StartupP90)},
		{Name: "Failures", Wide: true, Cell: kpiOf(now, kpi.FailureRate)},
		{Name: "CPU price", Wide: true, Cell: kpiOf(now, kpi.PriceCPU)},
		{Name: "Carbon", Wide: true, Cell: kpiOf(now, kpi.Carbon)},
	})
}

func kpiOf(now time.Time, name string) func(*v1alpha1.Provider) string {
	return func(p *v1alpha1.Provider) string { return known(now, p.Status.KPIs, name) }
}

// Consumers returns a row for each consumer, in their order.
func Consumers(now time.Time, consumers []v1alpha1.Consumer) *metav1.Table {
	ids := make([]string, 0, len(consumers))
	for i := range consumers {
		ids = append(ids, consumers[i].Name)
	}
	short := sheet.Shortener(ids)
	return sheet.Table(consumers, []sheet.Column[v1alpha1.Consumer]{
		{Name: "Name", Cell: func(c *v1alpha1.Consumer) string { return c.Status.ClusterName }},
		{Name: "ID", Cell: func(c *v1alpha1.Consumer) string { return short(c.Name) }},
		{Name: "Mode", Cell: func(c *v1alpha1.Consumer) string { return string(c.Status.Mode) }},
		{Name: "Scheduling", Cell: consumerScheduling},
		{Name: "Ready", Cell: func(c *v1alpha1.Consumer) string { return sheet.State(c.Status.Conditions, v1alpha1.ConditionReady) }},
		{Name: "Reason", Cell: func(c *v1alpha1.Consumer) string { return sheet.Reason(c.Status.Conditions, v1alpha1.ConditionReady) }},
		{Name: "Offered", Cell: func(c *v1alpha1.Consumer) string { return sheet.Amount(c.Status.Offered) }},
		{Name: "Used", Cell: func(c *v1alpha1.Consumer) string { return sheet.Amount(c.Status.Used) }},
		{Name: "Nodes", Cell: func(c *v1alpha1.Consumer) string { return string(c.Status.Nodes) }},
		{Name: "Age", Cell: func(c *v1alpha1.Consumer) string { return sheet.Since(now, c.CreationTimestamp) }},
		{Name: "Cluster ID", Wide: true, Cell: func(c *v1alpha1.Consumer) string { return c.Name }},
		{Name: "Granted", Wide: true, Cell: func(c *v1alpha1.Consumer) string { return sheet.Amount(c.Status.Granted) }},
		{Name: "Share", Wide: true, Cell: func(c *v1alpha1.Consumer) string { return sheet.Rounded(float64(c.Spec.Capacity.Share()), 0) + "%" }},
		{Name: "Reservation", Wide: true, Cell: func(c *v1alpha1.Consumer) string {
			return sheet.Reason(c.Status.Conditions, v1alpha1.ConditionReservationMet)
		}},
	})
}

func consumerScheduling(c *v1alpha1.Consumer) string {
	if c.IsSuspended() {
		return string(v1alpha1.ConsumerSuspended)
	}
	return string(v1alpha1.ConsumerActive)
}

// known returns a KPI that counts at a time, with its unit; nothing if it is missing, no number or expired.
func known(now time.Time, kpis []v1alpha1.KPI, name string) string {
	for i := range kpis {
		if kpis[i].Name != name {
			continue
		}
		switch k := kpis[i].Decode(); {
		case !k.Known(now):
		case k.Unit == kpi.Ratio:
			return sheet.Rounded(100*k.Value, 2) + "%"
		default:
			return sheet.Rounded(k.Value, 3) + " " + k.Unit
		}
	}
	return ""
}
