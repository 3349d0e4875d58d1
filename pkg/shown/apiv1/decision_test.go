// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package apiv1

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
)

var noon = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

// TestDecisionInNumbers holds that what a score is made of adds up to it, and when a better provider takes a place.
func TestDecisionInNumbers(t *testing.T) {
	policy := &v1alpha1.PlacementPolicy{}
	policy.Spec.Steady.Duration = &metav1.Duration{Duration: 5 * time.Minute}
	d := &v1alpha1.PlacementDecision{Policy: "cheap"}
	d.Chosen = []v1alpha1.ChosenProvider{{ID: "a", Name: "ann"}}
	d.Better = []v1alpha1.BetterProvider{{ID: "b", SinceTime: metav1.NewTime(noon)}, {ID: "far", SinceTime: metav1.NewTime(noon)}}
	d.Explained = []v1alpha1.ExplainedProvider{
		{ID: "b", Name: "bob", Score: "77.5", Terms: []v1alpha1.ExplainedTerm{
			{KPI: "cpuPrice", Value: "0.01", Unit: "EUR/h", Normalized: "1", Weight: -3},
			{KPI: "roundTripTime", Value: "12", Unit: "ms", Normalized: "0.1", Weight: -1},
		}},
		{ID: "a", Name: "ann", Chosen: true, Score: "25", Terms: []v1alpha1.ExplainedTerm{
			{KPI: "cpuPrice", Unknown: "not measured", Normalized: "0", Weight: -3},
			{KPI: "roundTripTime", Value: "1", Unit: "ms", Normalized: "1", Weight: -1},
		}},
		{ID: "c", Name: "cat", Score: "no number", Terms: []v1alpha1.ExplainedTerm{
			{KPI: "cpuPrice", Value: "Inf", Normalized: "0.5", Weight: -3}, {KPI: "roundTripTime", Normalized: "NaN", Weight: -1},
		}},
		{ID: "d", Name: "dan", Excluded: "it costs too much"},
	}
	got := DecisionOf(noon, policy, d)
	want := Decision{
		Policy: "cheap", Complete: true,
		Providers: []Candidate{
			{Cluster: Cluster{"b", "bob"}, Score: new(77.5), Terms: []Term{
				{Name: "cpuPrice", Value: new(0.01), Unit: "EUR/h", Normalized: 1, Weight: -3, Points: 75},
				{Name: "roundTripTime", Value: new(12.0), Unit: "ms", Normalized: 0.1, Weight: -1, Points: 2.5},
			}},
			{Cluster: Cluster{"a", "ann"}, Chosen: true, Score: new(25.0), Terms: []Term{
				{Name: "cpuPrice", Unknown: "not measured", Weight: -3},
				{Name: "roundTripTime", Value: new(1.0), Unit: "ms", Normalized: 1, Weight: -1, Points: 25},
			}},
			{Cluster: Cluster{"c", "cat"}, Terms: []Term{{Name: "cpuPrice", Normalized: 0.5, Weight: -3, Points: 37.5}}},
			{Cluster: Cluster{"d", "dan"}, Excluded: "it costs too much"},
		},
		Better: []Better{
			{Cluster: Cluster{"b", "bob"}, Since: noon, Due: noon.Add(5 * time.Minute)},
			{Cluster: Cluster{ID: "far"}, Since: noon, Due: noon.Add(5 * time.Minute)},
		},
	}
	for i := range got.Providers {
		got.Providers[i].Why = nil // Other tests are about the sentences.
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for _, c := range got.Providers {
		points := 0.0
		for _, term := range c.Terms {
			points += term.Points
		}
		if c.Score != nil && math.Abs(points-*c.Score) > 0.1 {
			t.Errorf("the points of %s are %g, and its score is %g", c.Name, points, *c.Score)
		}
	}
}

func TestScaling(t *testing.T) {
	spec := &v1alpha1.Scaling{
		Unit: "ms", OffloadAbove: "200", UnoffloadBelow: "50.5", Window: &metav1.Duration{Duration: 2 * time.Minute}, Min: 1, Max: new(int32(4)),
		GroupBy: "zone",
	}
	without := *spec
	without.UnoffloadBelow = "little"
	at := metav1.NewTime(noon)
	band := Scaling{Unit: "ms", OffloadAbove: 200, UnoffloadBelow: 50.5, WindowSeconds: 120, Min: 1, Max: 4, GroupBy: "zone"}
	with := func(change func(*Scaling)) *Scaling {
		of := band
		change(&of)
		return &of
	}
	for name, tc := range map[string]struct {
		reason string
		spec   *v1alpha1.Scaling
		is     *v1alpha1.ScalingStatus
		want   *Scaling
	}{
		"None":    {reason: "The policy has none any more.", is: &v1alpha1.ScalingStatus{Count: 2}},
		"New":     {"Nothing was measured yet.", spec, nil, &band},
		"Invalid": {reason: "A band without an end is none.", spec: &without, is: &v1alpha1.ScalingStatus{Count: 2}},
		"Above": {
			"More are about to be used.", spec,
			&v1alpha1.ScalingStatus{Count: 2, Value: "250", Unit: "ms", MeasuredTime: &at, Direction: v1alpha1.ScalingUp, SinceTime: &at},
			with(func(s *Scaling) { s.Count, s.Value, s.Measured, s.Direction, s.Since = 2, new(250.0), noon, "Up", noon }),
		},
		"Unknown": {
			"The count holds.", spec, &v1alpha1.ScalingStatus{Count: 2, Unknown: "no answer"},
			with(func(s *Scaling) { s.Count, s.Unknown = 2, "no answer" }),
		},
		"OtherUnit": {
			"What was measured in another unit says nothing beside the thresholds.", spec,
			&v1alpha1.ScalingStatus{Count: 2, Value: "0.25", Unit: "s"},
			with(func(s *Scaling) { s.Count = 2 }),
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, scalingOf(tc.spec, tc.is)); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
