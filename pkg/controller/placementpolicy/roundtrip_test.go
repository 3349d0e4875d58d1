// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package placementpolicy

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/choice"
	"github.com/capacitorset/liqo-broker/pkg/core/kpi"
)

// TestEachConsumerHasItsOwnRoundTrips lets consumers tell how far two providers are.
func TestEachConsumerHasItsOwnRoundTrips(t *testing.T) {
	trip := func(provider, value string, expires time.Duration) v1alpha1.RoundTrip {
		return v1alpha1.RoundTrip{Provider: provider, KPIValue: v1alpha1.KPIValue{
			Value: v1alpha1.Number(value), Unit: "ms", MeasuredTime: metav1.NewTime(now), ExpirationTime: metav1.NewTime(now.Add(expires)),
		}}
	}
	of := func(id string, trips ...v1alpha1.RoundTrip) *v1alpha1.Consumer {
		c := consumer(id)
		c.Status.RoundTrips = trips
		return c
	}
	forged := *provider("c", "")
	forged.Status.KPIs = append(forged.Status.KPIs, v1alpha1.KPI{
		Name: "consumerRoundTripTime", KPIValue: v1alpha1.KPIValueOf(kpi.KPI{
			Value: 0.001, Unit: "ms", Measured: now, Expires: now.Add(time.Hour),
		}),
	})
	s := newRoster([]v1alpha1.Provider{*provider("a", ""), *provider("b", ""), forged}, nil)
	chooser, err := choice.New(choice.Criteria{
		Filters: []string{"kpi.consumerRoundTripTime < 50"}, Weights: map[string]int{"consumerRoundTripTime": -10}, Max: 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		reason   string
		consumer *v1alpha1.Consumer
		want     string
	}{
		{"Its nearest is chosen.", of("near-a", trip("a", "1", time.Minute), trip("b", "2", time.Minute)), "a"},
		{"What another one told does not count for it.", of("near-b", trip("a", "20", time.Minute), trip("b", "2", time.Minute)), "b"},
		{"What has expired is unknown.", of("old", trip("a", "1", 0), trip("b", "2", time.Minute)), "b"},
		{"What nobody can mean is unknown.", of("hostile", trip("a", "-1", time.Minute), trip("b", "2", time.Minute)), "b"},
		{"What is no number is unknown.", of("nan", trip("a", "NaN", time.Minute), trip("b", "2", time.Minute)), "b"},
		{"Who told nothing has none, whatever somebody writes into a Provider.", of("silent"), ""},
	} {
		decision, _, _ := s.decide(now, &state{chooser: chooser}, tc.consumer, v1alpha1.ConsumerDecision{}, false)
		var got []string
		for _, c := range decision.Chosen {
			got = append(got, c.ID)
		}
		if diff := cmp.Diff(tc.want, strings.Join(got, "")); diff != "" {
			t.Errorf("%s\n%s: -want +got\n%s", tc.reason, tc.consumer.Name, diff)
		}
	}
}
