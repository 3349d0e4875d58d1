// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/capacity"
)

var begin = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// TestCover compares what is there, and until when, with what is sold, and for how long.
func TestCover(t *testing.T) {
	sold := func(name, cpu string, hours int) capacity.Sold {
		return capacity.Sold{Sale: name, Offer: "o", Resources: list(cpu, "1Gi", "1"), Ends: begin.Add(time.Duration(hours) * time.Hour)}
	}
	loss := func(name, cpu string, hours int) capacity.Loss {
		return capacity.Loss{Purchase: name, Resources: list(cpu, "1Gi", "1"), At: begin.Add(time.Duration(hours) * time.Hour)}
	}
	has := list("10", "100Gi", "100")
	for name, tc := range map[string]struct {
		sold     []capacity.Sold
		losses   []capacity.Loss
		short    string
		from     int // hours; 0 is now
		purchase string
		concerns int
	}{
		"Nothing is sold.":          {losses: []capacity.Loss{loss("p", "10", 1)}},
		"All is sold.":              {sold: []capacity.Sold{sold("a", "6", 1), sold("b", "4", 1)}},
		"Own pods have come.":       {sold: []capacity.Sold{sold("a", "6", 1), sold("b", "6", 1)}, short: "2", concerns: 2},
		"What is sold ends before.": {sold: []capacity.Sold{sold("a", "10", 1)}, losses: []capacity.Loss{loss("p", "5", 1)}},
		"What is sold lasts longer.": {
			sold:   []capacity.Sold{sold("a", "10", 2), sold("b", "0", 1)},
			losses: []capacity.Loss{loss("p", "5", 1)},
			short:  "5", from: 1, purchase: "p", concerns: 1,
		},
		"What is left is enough.": {sold: []capacity.Sold{sold("a", "5", 9)}, losses: []capacity.Loss{loss("p", "5", 1)}},
		"The first that is missed.": {
			sold:   []capacity.Sold{sold("a", "4", 9)},
			losses: []capacity.Loss{loss("r", "2", 3), loss("p", "5", 1), loss("q", "2", 2)},
			short:  "1", from: 2, purchase: "q", concerns: 1,
		},
		"Those that end together.": {
			sold:   []capacity.Sold{sold("a", "6", 9)},
			losses: []capacity.Loss{loss("p", "5", 1), loss("q", "3", 1)},
			short:  "4", from: 1, purchase: "q", concerns: 1,
		},
		"What is lacking now comes first.": {
			sold:   []capacity.Sold{sold("a", "11", 9)},
			losses: []capacity.Loss{loss("p", "5", 1)},
			short:  "1", concerns: 1,
		},
		"What ends is sold for no longer time.": {
			sold:   []capacity.Sold{sold("a", "8", 1), sold("b", "2", 9)},
			losses: []capacity.Loss{loss("p", "8", 1)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			gap := capacity.Cover(has, tc.sold, tc.losses, begin)
			from := time.Time{}
			if tc.from > 0 {
				from = begin.Add(time.Duration(tc.from) * time.Hour)
			}
			short := gap.Short[corev1.ResourceCPU]
			if gap.Exists() != (tc.short != "") || gap.Exists() && short.String() != tc.short || !gap.From.Equal(from) ||
				gap.Purchase != tc.purchase || gap.Exists() && len(gap.Sold) != tc.concerns {
				t.Errorf("got %+v", gap)
			}
			if gap.Concerns("o") != gap.Exists() || gap.Concerns("other") {
				t.Error("it is not of the offer that was sold")
			}
		})
	}
}

// TestCovered reads what a cluster and a broker have sold and bought.
func TestCovered(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, v1alpha1.AddToScheme, connectorv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	at := func(hours int) *metav1.Time { return &metav1.Time{Time: begin.Add(time.Duration(hours) * time.Hour)} }
	sale := func(state, cpu string) *connectorv1alpha1.Sale {
		s := &connectorv1alpha1.Sale{ObjectMeta: metav1.ObjectMeta{Name: "sale"}}
		s.Status.State, s.Status.Offer, s.Status.Resources, s.Status.EndTime = state, "o", list(cpu, "1Gi", "1"), at(9)
		return s
	}
	bought := func(state, of string, change func(*connectorv1alpha1.Purchase)) *connectorv1alpha1.Purchase {
		p := &connectorv1alpha1.Purchase{ObjectMeta: metav1.ObjectMeta{Name: "bought"}}
		p.Status.State, p.Status.Cluster.ID, p.Status.Resources, p.Status.EndTime = state, of, list("6", "6Gi", "6"), at(5)
		if change != nil {
			change(p)
		}
		return p
	}
	renews := func(reason string) func(*connectorv1alpha1.Purchase) {
		return func(p *connectorv1alpha1.Purchase) {
			p.Spec.Renew = true
			p.Status.Conditions = []metav1.Condition{{Type: connectorv1alpha1.ConditionRenewal, Reason: reason}}
		}
	}
	own, busy := node("a", nil), pod("a", func(p *corev1.Pod) { p.Name, p.Namespace = "p", "n" })
	offered := &v1alpha1.Provider{ObjectMeta: metav1.ObjectMeta{Name: "x"}, Status: v1alpha1.ProviderStatus{Offered: list("8", "8Gi", "8")}}
	closed := offered.DeepCopy()
	closed.Spec.Scheduling = v1alpha1.SchedulingCordoned
	for name, tc := range map[string]struct {
		objects []client.Object
		broker  bool
		short   string
		later   bool
	}{
		"a cluster with all that it has sold":  {objects: []client.Object{&own, &busy, sale("Active", "3")}},
		"a cluster whose own pods take of it":  {objects: []client.Object{&own, &busy, sale("Active", "4")}, short: "1"},
		"a cluster at which somebody reserves": {objects: []client.Object{&own, &busy, sale("Reserved", "4")}},
		"a cluster whose contract is over":     {objects: []client.Object{&own, &busy, sale("Ended", "4")}},
		"a broker that has bought for less time": {
			objects: []client.Object{offered, sale("Active", "4"), bought("Active", "x", nil)},
			broker:  true, short: "2", later: true,
		},
		"a broker that has enough besides": {
			objects: []client.Object{offered, sale("Active", "2"), bought("Active", "x", nil)},
			broker:  true,
		},
		"a broker that has bought it for itself": {
			objects: []client.Object{offered, sale("Active", "4"), bought("Active", "y", nil)},
			broker:  true,
		},
		"a broker that never got it": {
			objects: []client.Object{offered, sale("Active", "4"), bought("Proposed", "x", nil)},
			broker:  true,
		},
		"a broker whose contract renews": {
			objects: []client.Object{offered, sale("Active", "4"), bought("Active", "x", renews(connectorv1alpha1.ReasonRenews))},
			broker:  true,
		},
		"a broker whose contract is not renewed": {
			objects: []client.Object{offered, sale("Active", "4"), bought("Active", "x", renews(connectorv1alpha1.ReasonNotRenewed))},
			broker:  true, short: "2", later: true,
		},
		"a broker whose provider is cordoned": {
			objects: []client.Object{closed, sale("Active", "4"), bought("Active", "x", nil)},
			broker:  true, short: "4",
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(tc.objects...).Build()
			covered := capacity.CoveredByCluster(c)
			if tc.broker {
				covered = capacity.CoveredByBroker(c)
			}
			gap, err := covered(t.Context(), begin)
			short := gap.Short[corev1.ResourceCPU]
			if err != nil || gap.Exists() != (tc.short != "") || gap.Exists() && short.String() != tc.short || gap.From.IsZero() == tc.later {
				t.Errorf("%+v, %v", gap, err)
			}
		})
	}
}
