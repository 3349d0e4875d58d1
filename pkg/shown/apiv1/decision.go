// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package apiv1

import (
	"math"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/choice"
	"github.com/capacitorset/liqo-broker/pkg/overview"
)

// DecisionOf returns what a policy has decided, explained for a time.
func DecisionOf(now time.Time, policy *v1alpha1.PlacementPolicy, d *v1alpha1.PlacementDecision) Decision {
	decided := overview.Decided(now, &d.ConsumerDecision)
	shown := Decision{
		Policy: d.Policy, Consumer: Cluster(decided.Consumer), Complete: decided.Complete,
		Providers: make([]Candidate, 0, len(decided.Providers)), Scaling: scalingOf(policy.Spec.Scaling, d.Scaling),
	}
	explained := make(map[string]*v1alpha1.ExplainedProvider, len(d.Explained))
	for i := range d.Explained {
		explained[d.Explained[i].ID] = &d.Explained[i]
	}
	for i := range decided.Providers {
		c := &decided.Providers[i]
		candidate := Candidate{Cluster: Cluster(c.Cluster), Chosen: c.Chosen, Why: c.Why, Score: number(v1alpha1.Number(c.Score))}
		if x := explained[c.ID]; x != nil {
			candidate.Excluded, candidate.Terms = x.Excluded, terms(x.Terms)
		}
		shown.Providers = append(shown.Providers, candidate)
	}
	for _, b := range d.Better {
		better := Better{Cluster: Cluster{ID: b.ID}, Since: b.SinceTime.UTC(), Due: b.SinceTime.UTC()}
		if x := explained[b.ID]; x != nil {
			better.Name = x.Name
		}
		if lasting := policy.Spec.Steady.Duration; lasting != nil {
			better.Due = better.Due.Add(lasting.Duration)
		}
		shown.Better = append(shown.Better, better)
	}
	return shown
}

// terms returns what a score is made of, as numbers.
func terms(all []v1alpha1.ExplainedTerm) []Term {
	weights := 0.0
	for i := range all {
		weights += math.Abs(float64(all[i].Weight))
	}
	var shown []Term
	for i := range all {
		t := &all[i]
		normalized := number(t.Normalized)
		if normalized == nil || weights == 0 {
			continue
		}
		shown = append(shown, Term{
			Name: t.KPI, Value: number(t.Value), Unit: t.Unit, Unknown: t.Unknown, Weight: t.Weight, Normalized: *normalized,
			Points: math.Round(100*choice.FullScore**normalized*math.Abs(float64(t.Weight))/weights) / 100,
		})
	}
	return shown
}

// scalingOf returns where a KPI stands that a policy keeps; nil if it keeps none, or the thresholds are no numbers. The status may be nil.
func scalingOf(spec *v1alpha1.Scaling, is *v1alpha1.ScalingStatus) *Scaling {
	if spec == nil {
		return nil
	}
	above, below := number(spec.OffloadAbove), number(spec.UnoffloadBelow)
	if above == nil || below == nil {
		return nil
	}
	shown := &Scaling{Unit: spec.Unit, OffloadAbove: *above, UnoffloadBelow: *below, GroupBy: spec.GroupBy, Min: spec.Min}
	if spec.Max != nil {
		shown.Max = *spec.Max
	}
	if spec.Window != nil {
		shown.WindowSeconds = spec.Window.Seconds()
	}
	if is == nil {
		return shown
	}
	shown.Count, shown.Unknown, shown.Direction = is.Count, is.Unknown, string(is.Direction)
	shown.Measured, shown.Since = timeOf(is.MeasuredTime), timeOf(is.SinceTime)
	if is.Unit == spec.Unit { // Else it was measured for an earlier spec.
		shown.Value = number(is.Value)
	}
	return shown
}

// timeOf returns a time that may be missing.
func timeOf(t *metav1.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.UTC()
}

// number returns a number of an object; nil if it is none, or not finite.
func number(text v1alpha1.Number) *float64 {
	value, err := text.Float()
	if err != nil || !finite(value) {
		return nil
	}
	return &value
}
