// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package placementpolicy

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/kpi"
)

// TestShadowed has another policy come that goes before, and go behind.
func TestShadowed(t *testing.T) {
	first := cheapest()
	first.Name, first.Spec.AppliesTo = "a", v1alpha1.AppliesTo{Scope: v1alpha1.ScopeConsumers, Consumers: []string{"c"}}
	own := cheapest()
	own.Spec.AppliesTo = v1alpha1.AppliesTo{Scope: v1alpha1.ScopeConsumers, Consumers: []string{"b", "c"}}
	h := begin(t, own, first, consumer("b"), consumer("c"), provider("p", "1"))
	p, _ := h.decide(0)
	says := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionShadowed)
	if says == nil || says.Reason != v1alpha1.ReasonOtherPolicy || !strings.HasSuffix(says.Message, ": a for the consumers c") {
		t.Fatalf("another one goes before: %+v", says)
	}
	if got := h.chosen(); got["b"] != "p" || got["c"] != "" {
		t.Errorf("chosen %v", got)
	}
	if events := h.events(); !strings.Contains(events, "Warning OtherPolicy") {
		t.Errorf("events %q", events)
	}
	h.change(own, func() { own.Spec.Priority, own.Generation = 1, 2 })
	if p, _ = h.decide(time.Minute); !meta.IsStatusConditionFalse(p.Status.Conditions, v1alpha1.ConditionShadowed) || h.chosen()["c"] != "p" {
		t.Errorf("with a higher priority: %+v, chosen %v", p.Status.Conditions, h.chosen())
	}
}

// TestUnknownKPI weighs a KPI that no provider has, then one more, and then none of them.
func TestUnknownKPI(t *testing.T) {
	policy := cheapest()
	policy.Spec.Weights["priceCPUs"] = 3
	h := begin(t, policy, consumer("c"), provider("p", "1"))
	p, _ := h.decide(0)
	says := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionKPIsKnown)
	if says == nil || says.Reason != v1alpha1.ReasonUnknownKPI || !strings.HasPrefix(says.Message, "No provider has priceCPUs,") ||
		!strings.Contains(says.Message, kpi.PriceCPU) {
		t.Fatalf("the condition is %+v", says)
	}
	if h.chosen()["c"] != "p" {
		t.Errorf("a KPI that nobody has excludes nobody: chosen %v", h.chosen())
	}
	h.change(policy, func() {
		policy.Spec.Weights, policy.Generation = map[string]v1alpha1.Weight{kpi.ConsumerRoundTripTime: -1}, 2
	})
	if p, _ = h.decide(time.Minute); !meta.IsStatusConditionTrue(p.Status.Conditions, v1alpha1.ConditionKPIsKnown) {
		t.Errorf("consumers measure that one: %+v", p.Status.Conditions)
	}
	h.change(policy, func() { policy.Spec.Weights, policy.Generation = nil, 3 })
	if p, _ = h.decide(time.Minute); meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionKPIsKnown) != nil {
		t.Errorf("nothing counts: %+v", p.Status.Conditions)
	}
}
