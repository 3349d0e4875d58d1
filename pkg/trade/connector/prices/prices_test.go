// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package prices_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/core/kpi"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v09/liqotest"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/prices"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/contract"
)

var (
	seller = cluster.Identity{ID: "00000000-0000-4000-8000-000000000001", Name: "seller"}
	other  = cluster.Identity{ID: "00000000-0000-4000-8000-000000000002", Name: "other"}
)

// bought returns a purchase of some cores of a cluster.
func bought(name string, of cluster.Identity, state contract.State, cores, amount, currency, period string) *connectorv1alpha1.Purchase {
	p := &connectorv1alpha1.Purchase{ObjectMeta: metav1.ObjectMeta{Name: name}}
	p.Status.Cluster = connectorv1alpha1.ClusterStatus{ID: string(of.ID), Name: of.Name}
	p.Status.State = string(state)
	p.Status.Resources = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cores), corev1.ResourceMemory: resource.MustParse("8Gi")}
	p.Status.Price = &connectorv1alpha1.Price{
		Amount: connectorv1alpha1.Amount(amount), Currency: currency, Period: connectorv1alpha1.Period(period),
	}
	return p
}

func TestPrices(t *testing.T) {
	unpriced := bought("x", seller, contract.Active, "2", "1", "EUR", "PT1H")
	unpriced.Status.Price = nil
	for name, tc := range map[string]struct {
		purchases []*connectorv1alpha1.Purchase
		// before is what was noted before.
		before, want string
	}{
		"Bought": {
			purchases: []*connectorv1alpha1.Purchase{bought("a", seller, contract.Active, "4", "0.1", "EUR", "PT1H")}, want: "0.025 EUR/h",
		},
		"Period": {purchases: []*connectorv1alpha1.Purchase{bought("a", seller, contract.Active, "500m", "12", "EUR", "P1D")}, want: "1 EUR/h"},
		"BeingResized": {
			purchases: []*connectorv1alpha1.Purchase{bought("a", seller, contract.Resizing, "2", "1", "EUR", "PT1H")}, want: "0.5 EUR/h",
		},
		"Free": {
			purchases: []*connectorv1alpha1.Purchase{bought("a", seller, contract.Active, "2", "0", "EUR", "PT1H")}, want: "0 EUR/h",
		},
		// Who pays so much must not be taken for one who pays nothing.
		"Dear": {
			purchases: []*connectorv1alpha1.Purchase{bought("a", seller, contract.Active, "1m", "999999999", "EUR", "PT1M")},
			want:      "59999999940000 EUR/h",
		},
		"Another": {purchases: []*connectorv1alpha1.Purchase{bought("a", other, contract.Active, "4", "0.1", "EUR", "PT1H")}},
		"Ended": {
			purchases: []*connectorv1alpha1.Purchase{bought("a", seller, contract.Ended, "4", "0.1", "EUR", "PT1H")}, before: "0.025 EUR/h",
		},
		"Suspended": {purchases: []*connectorv1alpha1.Purchase{bought("a", seller, contract.Suspended, "4", "0.1", "EUR", "PT1H")}},
		"None":      {before: "1 EUR/h"},
		"Unpriced":  {purchases: []*connectorv1alpha1.Purchase{unpriced}},
		"NoCores":   {purchases: []*connectorv1alpha1.Purchase{bought("a", seller, contract.Active, "0", "0.1", "EUR", "PT1H")}},
		"NoPeriod":  {purchases: []*connectorv1alpha1.Purchase{bought("a", seller, contract.Active, "1", "0.1", "EUR", "P2D")}},
		"NoAmount":  {purchases: []*connectorv1alpha1.Purchase{bought("a", seller, contract.Active, "1", "1e9", "EUR", "PT1H")}},
		"SeveralByCore": {
			purchases: []*connectorv1alpha1.Purchase{bought("a", seller, contract.Active, "1", "1", "EUR", "PT1H"),
				bought("b", seller, contract.Active, "3", "1", "EUR", "PT1H")}, want: "0.5 EUR/h",
		},
		"Currencies": {
			purchases: []*connectorv1alpha1.Purchase{bought("a", seller, contract.Active, "1", "1", "EUR", "PT1H"),
				bought("b", seller, contract.Active, "1", "1", "USD", "PT1H")}, before: "1 EUR/h",
		},
	} {
		t.Run(name, func(t *testing.T) {
			scheme := runtime.NewScheme()
			if err := connectorv1alpha1.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			if err := v09.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			fc := liqotest.ForeignCluster(seller, true, false)
			liqo.SetCorePrice(fc, tc.before)
			objects := []client.Object{fc}
			for _, p := range tc.purchases {
				objects = append(objects, p)
			}
			c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
			req := ctrl.Request{NamespacedName: client.ObjectKeyFromObject(fc)}
			for range 2 { // The second time changes nothing.
				if _, err := prices.New(prices.Config{Client: c}).Reconcile(t.Context(), req); err != nil {
					t.Fatalf("Reconcile(): %v", err)
				}
				if err := c.Get(t.Context(), req.NamespacedName, fc); err != nil {
					t.Fatalf("Get(): %v", err)
				}
				got := liqo.CorePrice(fc)
				if got != tc.want {
					t.Errorf("a core costs %q, want %q", got, tc.want)
				}
				if _, err := kpi.ParsePrice(got); got != "" && err != nil {
					t.Errorf("who reads it: %v", err)
				}
			}
		})
	}
}

func TestNobody(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v09.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	req := ctrl.Request{}
	req.Name = "gone"
	none := prices.Config{Client: fake.NewClientBuilder().WithScheme(scheme).Build()}
	if _, err := prices.New(none).Reconcile(t.Context(), req); err != nil {
		t.Errorf("Reconcile(): %v", err)
	}
}
