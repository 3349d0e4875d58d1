// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package overview

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/core/kpi"
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
	items, ids := pointers(providers), make([]string, 0, len(providers))
	for _, p := range items {
		ids = append(ids, p.Name)
	}
	short := shortener(ids)
	return table(items, []column[*v1alpha1.Provider]{
		{name: "Name", cell: func(p *v1alpha1.Provider) string { return p.Status.ClusterName }},
		{name: "ID", cell: func(p *v1alpha1.Provider) string { return short(p.Name) }},
		{name: "Scheduling", cell: func(p *v1alpha1.Provider) string { return string(p.EffectiveScheduling()) }},
		{name: "Ready", cell: func(p *v1alpha1.Provider) string { return state(p.Status.Conditions, v1alpha1.ConditionReady) }},
		{name: "Reason", cell: func(p *v1alpha1.Provider) string { return reason(p.Status.Conditions, v1alpha1.ConditionReady) }},
		{name: "Reachable", cell: func(p *v1alpha1.Provider) string { return state(p.Status.Conditions, v1alpha1.ConditionReachable) }},
		{name: "Offered", cell: func(p *v1alpha1.Provider) string { return amount(p.Status.Offered) }},
		{name: "Used", cell: func(p *v1alpha1.Provider) string { return amount(p.Status.Used) }},
		{name: "Free", cell: func(p *v1alpha1.Provider) string { return amount(p.Status.Free) }},
		{name: "Round trip", cell: kpiOf(now, kpi.RoundTripTime)},
		{name: "Up 24h", cell: kpiOf(now, kpi.Availability24h)},
		{name: "Age", cell: func(p *v1alpha1.Provider) string { return since(now, p.CreationTimestamp) }},
		{name: "Cluster ID", wide: true, cell: func(p *v1alpha1.Provider) string { return p.Name }},
		{name: "Largest pod", wide: true, cell: func(p *v1alpha1.Provider) string { return amount(p.Status.LargestPod) }},
		{name: "Draining", wide: true, cell: func(p *v1alpha1.Provider) string { return reason(p.Status.Conditions, v1alpha1.ConditionDraining) }},
		{name: "Start-up p90", wide: true, cell: kpiOf(now, kpi.StartupP90)},
		{name: "Failures", wide: true, cell: kpiOf(now, kpi.FailureRate)},
		{name: "CPU price", wide: true, cell: kpiOf(now, kpi.PriceCPU)},
		{name: "Carbon", wide: true, cell: kpiOf(now, kpi.Carbon)},
	})
}

func kpiOf(now time.Time, name string) func(*v1alpha1.Provider) string {
	return func(p *v1alpha1.Provider) string { return known(now, p.Status.KPIs, name) }
}

// Consumers returns a row for each consumer, in their order.
func Consumers(now time.Time, consumers []v1alpha1.Consumer) *metav1.Table {
	items, ids := pointers(consumers), make([]string, 0, len(consumers))
	for _, c := range items {
		ids = append(ids, c.Name)
	}
	short := shortener(ids)
	return table(items, []column[*v1alpha1.Consumer]{
		{name: "Name", cell: func(c *v1alpha1.Consumer) string { return c.Status.ClusterName }},
		{name: "ID", cell: func(c *v1alpha1.Consumer) string { return short(c.Name) }},
		{name: "Mode", cell: func(c *v1alpha1.Consumer) string { return string(c.Status.Mode) }},
		{name: "Scheduling", cell: consumerScheduling},
		{name: "Ready", cell: func(c *v1alpha1.Consumer) string { return state(c.Status.Conditions, v1alpha1.ConditionReady) }},
		{name: "Reason", cell: func(c *v1alpha1.Consumer) string { return reason(c.Status.Conditions, v1alpha1.ConditionReady) }},
		{name: "Offered", cell: func(c *v1alpha1.Consumer) string { return amount(c.Status.Offered) }},
		{name: "Used", cell: func(c *v1alpha1.Consumer) string { return amount(c.Status.Used) }},
		{name: "Nodes", cell: func(c *v1alpha1.Consumer) string { return string(c.Status.Nodes) }},
		{name: "Age", cell: func(c *v1alpha1.Consumer) string { return since(now, c.CreationTimestamp) }},
		{name: "Cluster ID", wide: true, cell: func(c *v1alpha1.Consumer) string { return c.Name }},
		{name: "Granted", wide: true, cell: func(c *v1alpha1.Consumer) string { return amount(c.Status.Granted) }},
		{name: "Share", wide: true, cell: func(c *v1alpha1.Consumer) string { return rounded(float64(c.Spec.Capacity.Share()), 0) + "%" }},
		{name: "Reservation", wide: true, cell: func(c *v1alpha1.Consumer) string {
			return reason(c.Status.Conditions, v1alpha1.ConditionReservationMet)
		}},
	})
}

func consumerScheduling(c *v1alpha1.Consumer) string {
	if c.IsSuspended() {
		return string(v1alpha1.ConsumerSuspended)
	}
	return string(v1alpha1.ConsumerActive)
}

// state returns whether a condition is true, false or unknown, which it also is without the condition.
func state(conditions []metav1.Condition, of string) string {
	if c := meta.FindStatusCondition(conditions, of); c != nil {
		return string(c.Status)
	}
	return string(metav1.ConditionUnknown)
}

// reason returns the reason of a condition; nothing without the condition.
func reason(conditions []metav1.Condition, of string) string {
	if c := meta.FindStatusCondition(conditions, of); c != nil {
		return c.Reason
	}
	return ""
}

func pointers[T any](items []T) []*T {
	all := make([]*T, len(items))
	for i := range items {
		all[i] = &items[i]
	}
	return all
}
