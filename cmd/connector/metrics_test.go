// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/serving/servingtest"
	"github.com/capacitorset/liqo-broker/pkg/trade/account"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/bill"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/contract"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/offer/offertest"
	"github.com/capacitorset/liqo-broker/test/metrictable"
)

// TestMetricTable compares what the connector measures with the reference, and counts what there is.
func TestMetricTable(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := connectorv1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	old := metav1.NewTime(now.Add(-time.Hour))
	const gpu, fpga = "nvidia.com/gpu", "example.com/fpga"
	sale := func(name, state string, created metav1.Time) *connectorv1alpha1.Sale {
		object := &connectorv1alpha1.Sale{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), CreationTimestamp: created}}
		object.Status.State = state
		object.Status.Resources = corev1.ResourceList{
			"cpu": resource.MustParse("1500m"), "memory": resource.MustParse("1Gi"), "pods": resource.MustParse("10"), gpu: resource.MustParse("2"),
			"example.com/of-nobodys-offer": resource.MustParse("1"),
		}
		return object
	}
	// It costs 2 EUR an hour since a day before the month, and is suspended for the last hour.
	paid := sale("paid", "Active", old)
	terms := contract.Terms{
		ID: "paid", Buyer: "b", Revision: 1, Price: offertest.Price("2"), StartsAt: now.AddDate(0, 0, -2), EndsAt: now.AddDate(0, 0, 2),
	}
	record := func(s *connectorv1alpha1.Sale, of contract.Record) *connectorv1alpha1.Sale {
		text, err := json.Marshal(of)
		if err != nil {
			t.Fatal(err)
		}
		s.Status.Record = string(text)
		s.Spec.Buyer, s.Spec.ContractID = connectorv1alpha1.PartyID(of.Key.Buyer), connectorv1alpha1.Label(of.Key.ID)
		return s
	}
	view := contract.View{State: contract.Active, Version: 1, Terms: terms, Countersignature: "both", PaidUntil: terms.EndsAt}
	view.Key = terms.Key()
	paid.Status.PaidUntilTime = &metav1.Time{Time: terms.EndsAt}
	suspended := sale("suspended", "Suspended", old)
	suspended.Status.PaidUntilTime = paid.Status.PaidUntilTime
	pausing := view
	pausing.State, pausing.Pauses = contract.Suspended, []contract.Pause{{From: now.Add(-time.Hour)}}
	changing := sale("changing", "Resizing", metav1.NewTime(now.AddDate(0, 0, -2)))
	changing.Status.PendingRevision = 2
	resizing := contract.View{Key: contract.Key{Buyer: "b", ID: "changing"}, Version: 1, State: contract.Resizing}
	proposed := sale("e", "Proposed", old)
	proposed.Status.PendingRevision = 1
	bought := &connectorv1alpha1.Purchase{ObjectMeta: metav1.ObjectMeta{Name: "bought", UID: "bought", CreationTimestamp: old}}
	bought.Status.State, bought.Status.PaidUntilTime = "Active", paid.Status.PaidUntilTime
	text, err := json.Marshal(map[string]any{"purchase": contract.Purchase{Terms: terms, Seen: view}})
	if err != nil {
		t.Fatal(err)
	}
	bought.Status.Record = string(text)
	published := []metav1.Condition{{Type: connectorv1alpha1.ConditionPublished, Status: metav1.ConditionTrue}}
	uncovered := []metav1.Condition{{
		Type: connectorv1alpha1.ConditionCovered, Status: metav1.ConditionFalse, Reason: connectorv1alpha1.ReasonUncovered,
	}}
	following := []metav1.Condition{{Type: connectorv1alpha1.ConditionFollowing, Status: metav1.ConditionTrue}}
	small := &connectorv1alpha1.Offer{ObjectMeta: metav1.ObjectMeta{Name: "small"}}
	one := resource.MustParse("1")
	small.Spec.Plans = []connectorv1alpha1.OfferPlan{{ID: "gpus", Resources: v1alpha1.Quantities{"cpu": one, gpu: one}}}
	small.Status.Conditions, small.Status.Signed = published, "by us"
	small.Status.Plans = []connectorv1alpha1.OfferPlanStatus{{ID: "gpus", Sold: 2, Available: 3}, {ID: "gone"}}
	large := &connectorv1alpha1.Offer{ObjectMeta: metav1.ObjectMeta{Name: "large"}} // It is not for sale.
	most := &connectorv1alpha1.OfferRange{Max: v1alpha1.Quantities{fpga: one}}
	large.Spec.Plans = []connectorv1alpha1.OfferPlan{{ID: "range", Range: most}}
	large.Status.Conditions, large.Status.Plans = uncovered, []connectorv1alpha1.OfferPlanStatus{{ID: "range", Available: 7}}
	lacking := sale("d", "Ended", old)
	lacking.Status.Conditions = uncovered
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(
		sale("a", "Active", old), sale("b", "Provisioning", old), sale("c", "Signed", metav1.NewTime(now)), lacking,
		proposed, record(paid, contract.Record{View: view}), record(suspended, contract.Record{View: pausing}), bought,
		record(changing, contract.Record{View: resizing, History: []contract.Transition{{At: now.Add(-time.Minute), To: contract.Resizing}}}),
		sale("f", "A state that nobody knows", old),
		&connectorv1alpha1.Purchase{ObjectMeta: metav1.ObjectMeta{Name: "never answered", CreationTimestamp: old}},
		&connectorv1alpha1.Registry{
			ObjectMeta: metav1.ObjectMeta{Name: "north"}, Status: connectorv1alpha1.RegistryStatus{Offers: 7, Conditions: following},
		},
		&connectorv1alpha1.Registry{ObjectMeta: metav1.ObjectMeta{Name: "south"}},
		small, large,
	).Build()
	m := newMetrics(c, clocktesting.NewFakePassiveClock(now))
	shown, _ := servingtest.Certificate(t, "localhost")
	registry := prometheus.NewRegistry()
	if err := m.register(registry, shown.Get); err != nil {
		t.Fatal(err)
	}
	metrictable.Check(t, registry)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got, hours := map[string]float64{}, 27+4.0/60+5.0/3600 // Since the month has begun.
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			words := []string{strings.TrimPrefix(family.GetName(), "liqo_broker_connector_")}
			for _, label := range metric.GetLabel() {
				words = append(words, label.GetValue())
			}
			got[strings.Join(words, " ")] = metric.GetGauge().GetValue()
		}
	}
	for name, want := range map[string]float64{
		"contracts seller Active": 2, "contracts seller Provisioning": 1, "contracts seller Signed": 1, "contracts seller Ended": 1,
		"contracts seller Reserved": 0, "contracts buyer Active": 1, "contracts_overdue seller": 1, "contracts_overdue buyer": 1,
		"sold_cpu_cores": 9, "sold_memory_bytes": 6 << 30, "registry_followed north": 1, "registry_followed south": 0,
		"sold_pods": 60, "sold_devices nvidia.com/gpu": 12, "sold_devices example.com/fpga": 0,
		"plan_left small gpus": 3, "plan_left small gone": 0,
		"registry_offers north": 7, "offers true": 1, "offers false": 1,
		"offers_uncovered Uncovered": 1, "offers_uncovered Overcommitted": 0,
		"sales_uncovered Uncovered": 1, "sales_uncovered Overcommitted": 0,
		"contract_price_per_hour EUR seller": 2, "contract_price_per_hour EUR buyer": 2, "approval_wait_seconds": 3600,
		"contract_cost_month EUR buyer": 2 * hours, "contract_cost_month EUR seller": 2 * (2*hours - 1),
	} {
		if value, is := got[name]; !is || math.Abs(value-want) > 1e-8 {
			t.Errorf("%s is %v, %t, not %v", name, value, is, want)
		}
	}
	for name, want := range map[string]int{"contracts": 24, "plan_left": 2, "sold_devices": 2} {
		if n := testutil.CollectAndCount(m, "liqo_broker_connector_"+name); n != want {
			t.Errorf("%d series of %s, not %d: one for each side and state, plan that is for sale, and device that is offered", n, name, want)
		}
	}
}

// TestBillsReadOnce asks for what contracts cost again and again: a record is read once for each version of its object, and what is over,
// or gone, is forgotten.
func TestBillsReadOnce(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	paid := &metav1.Time{Time: now.Add(time.Hour)}
	p := connectorv1alpha1.Purchase{ObjectMeta: metav1.ObjectMeta{Name: "same", UID: "p"}}
	s := connectorv1alpha1.Sale{ObjectMeta: metav1.ObjectMeta{Name: "same", UID: "s"}}
	p.Status.PaidUntilTime, s.Status.PaidUntilTime = paid, paid
	broken := *s.DeepCopy()
	broken.Name, broken.UID = "broken", "b"
	b, read := newBills(), []string{}
	b.ofPurchase = func(p *connectorv1alpha1.Purchase) (account.Entry, error) {
		read = append(read, "bought "+p.ResourceVersion)
		return account.Entry{Bill: bill.Contract{PaidUntil: paid.Time}}, nil
	}
	b.ofSale = func(s *connectorv1alpha1.Sale) (account.Entry, error) {
		if s.Name == "broken" {
			return account.Entry{}, account.ErrUnreadable
		}
		read = append(read, "sold "+s.ResourceVersion)
		return account.Entry{Bill: bill.Contract{PaidUntil: paid.Add(time.Hour)}}, nil
	}
	look := func(at time.Time, version string, bills int, want ...string) {
		t.Helper()
		p.ResourceVersion, s.ResourceVersion, read = version, version, nil
		bought, sold := b.running(at, []connectorv1alpha1.Purchase{p}, []connectorv1alpha1.Sale{broken, s})
		if len(bought) != bills || len(sold) != bills || !slices.Equal(read, want) {
			t.Errorf("at %s, version %s: %d and %d bills; read %v, want %v", at, version, len(bought), len(sold), read, want)
		}
		if bills > 0 && (!bought[0].PaidUntil.Equal(paid.Time) || sold[0].PaidUntil.Equal(paid.Time)) {
			t.Errorf("at %s, version %s: the bills are of each other", at, version)
		}
	}
	look(now, "1", 1, "bought 1", "sold 1")
	look(now.Add(time.Minute), "1", 1)
	look(now, "2", 1, "bought 2", "sold 2")
	look(now.AddDate(0, 1, 0), "2", 0)
	look(now, "2", 1, "bought 2", "sold 2")
}
