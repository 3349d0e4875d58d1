// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package placementpolicy

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/binding"
	"github.com/capacitorset/liqo-broker/pkg/core/kpi"
	"github.com/capacitorset/liqo-broker/pkg/excerpt"
)

// shadowed reports which other policies go before one.
func shadowed(shadows []binding.Shadow) metav1.Condition {
	if len(shadows) == 0 {
		return metav1.Condition{
			Type: v1alpha1.ConditionShadowed, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonNotShadowed,
			Message: "No other policy of the same scope goes before this one",
		}
	}
	by := make([]string, len(shadows))
	for i, s := range shadows {
		by[i] = s.By
		if len(s.Namespaces) > 0 {
			by[i] += " for the namespaces " + strings.Join(s.Namespaces, ", ")
		}
		if len(s.Consumers) > 0 {
			by[i] += " for the consumers " + strings.Join(s.Consumers, ", ")
		}
	}
	return metav1.Condition{
		Type: v1alpha1.ConditionShadowed, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonOtherPolicy,
		Message: excerpt.Of("Other policies of the same scope go before this one, by priority or else by name: "+strings.Join(by, "; "), v1alpha1.MaxMessage),
	}
}

// kpisKnown reports whether some provider has each KPI that counts. It is false where that
// cannot be said: nothing counts, or there is no provider.
func (s *roster) kpisKnown(now time.Time, weights map[string]v1alpha1.Weight) (c metav1.Condition, said bool) {
	if len(weights) == 0 || len(s.candidates) == 0 {
		return c, false
	}
	known := map[string]bool{kpi.ConsumerRoundTripTime: true} // It is a KPI of each consumer.
	for _, p := range s.candidates {
		for name, k := range p.KPIs {
			if k.Known(now) {
				known[name] = true
			}
		}
	}
	unknown := slices.DeleteFunc(slices.Sorted(maps.Keys(weights)), func(name string) bool { return known[name] || weights[name] == 0 })
	if len(unknown) == 0 {
		return metav1.Condition{
			Type: v1alpha1.ConditionKPIsKnown, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonKPIsKnown, Message: "Some provider has each KPI with a weight",
		}, true
	}
	return metav1.Condition{
		Type: v1alpha1.ConditionKPIsKnown, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonUnknownKPI,
		Message: excerpt.Of(fmt.Sprintf("No provider has %s, which has a weight and counts as the worst for all. There are %s",
			strings.Join(unknown, ", "), strings.Join(slices.Sorted(maps.Keys(known)), ", ")), v1alpha1.MaxMessage),
	}, true
}

// announce says which conditions of a policy have changed.
func (r *Reconciler) announce(before, after *v1alpha1.PlacementPolicy) {
	for _, is := range after.Status.Conditions {
		was := meta.FindStatusCondition(before.Status.Conditions, is.Type)
		usual := is.Reason == v1alpha1.ReasonNotShadowed || is.Reason == v1alpha1.ReasonKPIsKnown
		if was != nil && was.Status == is.Status && was.Reason == is.Reason || was == nil && usual {
			continue
		}
		kind := corev1.EventTypeNormal
		if good := is.Status == metav1.ConditionTrue; good == (is.Type == v1alpha1.ConditionShadowed) {
			kind = corev1.EventTypeWarning
		}
		r.recorder.Event(after, kind, is.Reason, is.Message)
	}
}
