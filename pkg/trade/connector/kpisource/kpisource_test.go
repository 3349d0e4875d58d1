// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package kpisource_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/kpi"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/kpisource"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/offer"
)

var now = time.Unix(1_800_000_000, 0)

// provider returns a provider of which some KPIs are known.
func provider(name string, kpis map[string]kpi.KPI) *v1alpha1.Provider {
	p := &v1alpha1.Provider{ObjectMeta: metav1.ObjectMeta{Name: name}}
	p.Status.Offered = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4")}
	for name, k := range kpis {
		p.Status.KPIs = append(p.Status.KPIs, v1alpha1.KPI{Name: name, KPIValue: v1alpha1.KPIValueOf(k)})
	}
	return p
}

// at returns a KPI that was measured some time ago, and counts for a minute.
func at(ago time.Duration, value float64, unit string) kpi.KPI {
	return kpi.KPI{Value: value, Unit: unit, Measured: now.Add(-ago), Expires: now.Add(-ago + time.Minute)}
}

func TestOfBroker(t *testing.T) {
	good := map[string]kpi.KPI{
		kpi.Availability30d: at(10*time.Second, 0.9999, "ratio"), kpi.RoundTripTime: at(0, 12.3, "ms"), kpi.PriceCPU: at(0, 1, "EUR/h"),
	}
	bad := map[string]kpi.KPI{
		kpi.Availability30d: at(0, 0.95, "ratio"), kpi.RoundTripTime: at(20*time.Second, 80, "ms"), kpi.Availability1h: at(0, 1, "ratio"),
	}
	drained := provider("drained", map[string]kpi.KPI{kpi.Availability30d: at(0, 0.1, "ratio")})
	drained.Spec.Scheduling = v1alpha1.SchedulingDrained
	away := provider("away", nil)
	away.Status.Offered = nil
	told := func(name string, value float64, unit string, ago time.Duration, samples int64) offer.KPI {
		return offer.KPI{Name: name, Value: value, Unit: unit, MeasuredAt: now.Add(-ago).UTC(), MeasuredBy: "broker", Samples: samples}
	}
	for name, tc := range map[string]struct {
		reason    string
		providers []*v1alpha1.Provider
		want      []offer.KPI
	}{
		"None": {reason: "Nobody was measured."},
		"One": {
			reason: "Its values are told, and no others.", providers: []*v1alpha1.Provider{provider("a", good)},
			want: []offer.KPI{told(kpi.Availability30d, 0.999, "ratio", 10*time.Second, 1), told(kpi.RoundTripTime, 13, "ms", 0, 1)},
		},
		"Worst": {
			reason:    "Of several the worst counts, and what is not known of all is not known.",
			providers: []*v1alpha1.Provider{provider("a", good), provider("b", bad)},
			want: []offer.KPI{
				told(kpi.Availability30d, 0.95, "ratio", 10*time.Second, 2), told(kpi.RoundTripTime, 80, "ms", 20*time.Second, 2),
			},
		},
		"NotUsed": {
			reason: "What nothing new goes to is not sold.", providers: []*v1alpha1.Provider{provider("a", good), drained, away},
			want: []offer.KPI{told(kpi.Availability30d, 0.999, "ratio", 10*time.Second, 1), told(kpi.RoundTripTime, 13, "ms", 0, 1)},
		},
		"Expired": {
			reason:    "What has expired is not known.",
			providers: []*v1alpha1.Provider{provider("a", map[string]kpi.KPI{kpi.RoundTripTime: at(time.Hour, 12, "ms")})},
		},
		"Units": {
			reason: "Different units are not compared.",
			providers: []*v1alpha1.Provider{
				provider("a", map[string]kpi.KPI{kpi.RoundTripTime: at(0, 12, "ms")}),
				provider("b", map[string]kpi.KPI{kpi.RoundTripTime: at(0, 1, "s")}),
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			scheme := runtime.NewScheme()
			if err := v1alpha1.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			builder := fake.NewClientBuilder().WithScheme(scheme)
			for _, p := range tc.providers {
				builder = builder.WithObjects(p)
			}
			got, err := kpisource.OfBroker(builder.Build(), "broker")(t.Context(), now)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want +got\n%s", tc.reason, diff)
			}
		})
	}
}
