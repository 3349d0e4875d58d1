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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/conditions"
	"github.com/capacitorset/liqo-broker/pkg/core/binding"
	"github.com/capacitorset/liqo-broker/pkg/core/kpi"
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
		Message: "Other policies of the same scope go before this one, by priority or else by name: " + strings.Join(by, "; "),
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
			Type: v1alpha1.ConditionKPIsKnown, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonKPIsKnown,
			Message: "Some provider has each KPI with a weight",
		}, true
	}
	return metav1.Condition{
		Type: v1alpha1.ConditionKPIsKnown, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonUnknownKPI,
		Message: fmt.Sprintf("No provider has %s, which has a weight and counts as the worst for all. There are %s",
			strings.Join(unknown, ", "), strings.Join(slices.Sorted(maps.Keys(known)), ", ")),
	}, true
}

// kind returns the type of the event of a condition that has changed. One that is as usual from the beginning has none.
func kind(change conditions.Change) string {
	is := change.Is
	switch usual := is.Reason == v1alpha1.ReasonNotShadowed || is.Reason == v1alpha1.ReasonKPIsKnown; {
	case change.Was == nil && usual:
		return ""
	case (is.Status == metav1.ConditionTrue) == (is.Type == v1alpha1.ConditionShadowed):
		return corev1.EventTypeWarning
	}
	return corev1.EventTypeNormal
}
