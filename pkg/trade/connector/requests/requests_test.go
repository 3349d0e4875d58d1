// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package requests_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/clocktest"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/requests"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/contract"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/offer"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/offer/offertest"
)

var errKilled = errors.New("killed")

// world is a cluster with one request, r.
type world struct {
	t          *testing.T
	client     client.Client
	candidates []requests.Candidate
	invalid    error
	filter     offer.Filter
	now        time.Time
	kill       func() error
	events     *record.FakeRecorder
	reconciler *requests.Reconciler
}

func newWorld(t *testing.T, plans ...string) *world {
	t.Helper()
	return newKeepingWorld(t, 0, plans...)
}

// newKeepingWorld is newWorld where what was paid for is kept for a time.
func newKeepingWorld(t *testing.T, keep time.Duration, plans ...string) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := connectorv1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, now: time.Now().Truncate(time.Second), kill: func() error { return nil }, events: record.NewFakeRecorder(1000)}
	for _, plan := range plans {
		w.candidates = append(w.candidates, requests.Candidate{Offer: offer.Key{Party: strings.Repeat("a", 52), Offer: "small"}, Plan: plan})
	}
	killed := func(write func() error) error {
		if err := w.kill(); err != nil {
			return err
		}
		if err := write(); err != nil {
			return err
		}
		return w.kill()
	}
	w.client = fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&connectorv1alpha1.Purchase{},
		&connectorv1alpha1.CapacityRequest{}).
		WithObjects(&connectorv1alpha1.CapacityRequest{
			ObjectMeta: metav1.ObjectMeta{Name: "r", UID: "uid-r"},
			Spec: connectorv1alpha1.CapacityRequestSpec{
				Resources: v1alpha1.Quantities{"cpu": resource.MustParse("2")}, Duration: metav1.Duration{Duration: time.Hour},
				MaxPrice: &connectorv1alpha1.Price{Amount: "1.5", Currency: "EUR", Period: "PT1H"},
				Regions:  []string{"eu"}, Kinds: []connectorv1alpha1.SellerKind{"Cluster"}, Sellers: []connectorv1alpha1.PartyID{"x"},
				Expression: "true",
			},
		}).
		WithInterceptorFuncs(interceptor.Funcs{
			Create: func(ctx context.Context, c client.WithWatch, object client.Object, opts ...client.CreateOption) error {
				return killed(func() error { return c.Create(ctx, object, opts...) })
			},
			Delete: func(ctx context.Context, c client.WithWatch, object client.Object, opts ...client.DeleteOption) error {
				return killed(func() error { return c.Delete(ctx, object, opts...) })
			},
			SubResourceUpdate: func(
				ctx context.Context, c client.Client, sub string, object client.Object, opts ...client.SubResourceUpdateOption,
			) error {
				return killed(func() error { return c.SubResource(sub).Update(ctx, object, opts...) })
			},
		}).Build()
	var err error
	w.reconciler, err = requests.New(requests.Config{
		Client: w.client, Reader: w.client, Events: w.events, Clock: clocktest.Func(func() time.Time { return w.now }), Keep: keep,
		Offers: func(filter offer.Filter) ([]requests.Candidate, error) {
			w.filter = filter
			return w.candidates, w.invalid
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// run calls the reconciler some times, which is enough for everything that waits for nobody.
func (w *world) run() *connectorv1alpha1.CapacityRequest {
	w.t.Helper()
	name := types.NamespacedName{Name: "r"}
	for range 6 {
		if _, err := w.reconciler.Reconcile(context.Background(), ctrl.Request{NamespacedName: name}); err != nil && !errors.Is(err, errKilled) {
			w.t.Fatal(err)
		}
	}
	request := &connectorv1alpha1.CapacityRequest{}
	if err := w.client.Get(context.Background(), name, request); err != nil {
		w.t.Fatal(err)
	}
	return request
}

func (w *world) purchases() []connectorv1alpha1.Purchase {
	w.t.Helper()
	all := &connectorv1alpha1.PurchaseList{}
	if err := w.client.List(context.Background(), all); err != nil {
		w.t.Fatal(err)
	}
	return all.Items
}

// becomes lets the one purchase have a reason.
func (w *world) becomes(state, reason string) {
	w.t.Helper()
	all := w.purchases()
	if len(all) != 1 {
		w.t.Fatalf("%d purchases", len(all))
	}
	kill := w.kill
	w.kill = func() error { return nil }
	status := metav1.ConditionFalse
	if reason == connectorv1alpha1.ReasonActive {
		status = metav1.ConditionTrue
	}
	all[0].Status.State = state
	meta.SetStatusCondition(&all[0].Status.Conditions, metav1.Condition{
		Type: connectorv1alpha1.ConditionReady, Status: status, Reason: reason, LastTransitionTime: metav1.NewTime(w.now),
	})
	if err := w.client.Status().Update(context.Background(), &all[0]); err != nil {
		w.t.Fatal(err)
	}
	w.kill = kill
}

func ready(request *connectorv1alpha1.CapacityRequest) metav1.Condition {
	if c := meta.FindStatusCondition(request.Status.Conditions, connectorv1alpha1.ConditionReady); c != nil {
		return *c
	}
	return metav1.Condition{}
}

// TestServe buys the best plan, the next one if it does not serve, and none after the end.
func TestServe(t *testing.T) {
	w := newWorld(t, "one", "two")
	request := w.run()
	all := w.purchases()
	if len(all) != 1 || request.Status.Purchase != all[0].Name || all[0].Spec.Plan != "one" || !metav1.IsControlledBy(&all[0], request) ||
		all[0].Spec.Duration.Duration != time.Hour || all[0].Spec.MaxPrice.Amount != "1.5" ||
		all[0].Spec.Resources["cpu"] != resource.MustParse("2") {
		t.Fatalf("purchases: %+v", all)
	}
	if f := w.filter; f.Resources["cpu"].Milli() != 2000 || time.Duration(f.Duration) != time.Hour || f.MaxPrice.String() != "1.5 EUR/h" ||
		len(f.Regions) != 1 || len(f.Kinds) != 1 || len(f.Parties) != 1 || f.Expression != "true" {
		t.Errorf("filter: %+v", f)
	}
	w.becomes("Rejected", connectorv1alpha1.ReasonRejected)
	request = w.run()
	if all = w.purchases(); len(all) != 1 || all[0].Spec.Plan != "two" || len(request.Status.Tried) != 1 ||
		request.Status.Tried[0].Plan != "one" {
		t.Fatalf("after the first was rejected: %+v, %+v", all, request.Status)
	}
	w.becomes("Active", connectorv1alpha1.ReasonActive)
	if request = w.run(); ready(request).Status != metav1.ConditionTrue {
		t.Errorf("active: %+v", ready(request))
	}
	w.becomes("Ended", connectorv1alpha1.ReasonEnded)
	if request = w.run(); ready(request).Reason != connectorv1alpha1.ReasonEnded || len(w.purchases()) != 1 {
		t.Errorf("ended: %+v, %d purchases", ready(request), len(w.purchases()))
	}
	if err := w.client.Delete(t.Context(), &w.purchases()[0]); err != nil {
		t.Fatal(err)
	}
	if request = w.run(); ready(request).Reason != connectorv1alpha1.ReasonEnded || len(w.purchases()) != 0 {
		t.Errorf("tidied up after the end: %+v, %d purchases", ready(request), len(w.purchases()))
	}
	close(w.events.Events)
	var told []string
	for event := range w.events.Events {
		told = append(told, strings.Join(strings.Fields(event)[:2], " "))
	}
	if want := []string{"Normal Negotiating", "Normal Active", "Normal Ended"}; !slices.Equal(told, want) {
		t.Errorf("events: %q, want %q", told, want)
	}
}

// TestChosen writes into a purchase what the catalog has shown of the plan, so that its seller cannot sell another one by its name.
func TestChosen(t *testing.T) {
	w := newWorld(t, "one")
	amount, err := offer.ParseAmount("0.1")
	if err != nil {
		t.Fatal(err)
	}
	c := &w.candidates[0]
	c.Digest, c.Region, c.Notice, c.Price = "sha256:1", "eu", time.Hour, offer.Price{Amount: amount, Currency: "EUR", Period: offer.Day}
	w.run()
	want := &connectorv1alpha1.ListedPlan{
		Digest: "sha256:1", Region: "eu", Notice: metav1.Duration{Duration: time.Hour},
		Price: connectorv1alpha1.Price{Amount: "0.1", Currency: "EUR", Period: "P1D"},
	}
	if all := w.purchases(); len(all) != 1 {
		t.Fatalf("%d purchases", len(all))
	} else if diff := cmp.Diff(want, all[0].Spec.Listed); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// TestGiveUp gives up for each reason, and tries again after a while.
func TestGiveUp(t *testing.T) {
	for _, c := range []struct {
		state, reason string
		after         time.Duration
		gives         bool
	}{
		{"Expired", connectorv1alpha1.ReasonExpired, 0, true}, {"Failed", connectorv1alpha1.ReasonFailed, 0, true},
		{"", connectorv1alpha1.ReasonOrderRefused, 0, true}, {"", connectorv1alpha1.ReasonTooExpensive, 0, true},
		{"", connectorv1alpha1.ReasonNotReachable, 0, true}, {"Reserved", connectorv1alpha1.ReasonNotReachable, 0, true},
		{"", connectorv1alpha1.ReasonSellerUnreachable, time.Minute, false},
		{"", connectorv1alpha1.ReasonSellerUnreachable, 6 * time.Minute, true},
		{"Signed", connectorv1alpha1.ReasonSellerUnreachable, 6 * time.Minute, false},
		{"Proposed", connectorv1alpha1.ReasonAwaitsApproval, time.Hour, false},
	} {
		w := newWorld(t, "one")
		w.run()
		w.becomes(c.state, c.reason)
		w.now = w.now.Add(c.after)
		request := w.run()
		if gave := len(w.purchases()) == 0; gave != c.gives ||
			c.gives && (ready(request).Reason != connectorv1alpha1.ReasonNoOffer || len(request.Status.Tried) != 1) {
			t.Errorf("%s after %s: gave up is %t: %+v", c.reason, c.after, gave, request.Status)
		}
		if w.now = w.now.Add(11 * time.Minute); c.gives {
			if w.run(); len(w.purchases()) != 1 {
				t.Errorf("%s: %d purchases after the time in which it was tried", c.reason, len(w.purchases()))
			}
		}
	}
}

// seller returns the ID of a party.
func seller(n int) string { return fmt.Sprintf("s%051d", n) }

// TestTurns has dead and refusing sellers be cheaper than one that serves: it has its turn, however many they are, and they theirs ever
// more seldom.
func TestTurns(t *testing.T) {
	for name, c := range map[string]struct {
		sellers, plans int
		reason         string
		within         time.Duration
	}{
		"a dead seller with three plans":     {1, 3, connectorv1alpha1.ReasonSellerUnreachable, 6 * time.Minute},
		"a seller that refuses many plans":   {1, 30, connectorv1alpha1.ReasonOrderRefused, time.Minute},
		"three dead sellers with many plans": {3, 30, connectorv1alpha1.ReasonSellerUnreachable, 20 * time.Minute},
		"more sellers than are remembered":   {100, 2, connectorv1alpha1.ReasonOrderRefused, time.Hour},
		"a seller that is not reached":       {1, 3, connectorv1alpha1.ReasonNotReachable, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			for n := range c.sellers {
				for plan := range c.plans {
					w.candidates = append(w.candidates, requests.Candidate{
						Offer: offer.Key{Party: seller(n), Offer: "small"}, Plan: fmt.Sprint("p", plan),
					})
				}
			}
			good := requests.Candidate{Offer: offer.Key{Party: seller(c.sellers), Offer: "small"}, Plan: "good"}
			w.candidates = append(w.candidates, good)
			for begin := w.now; ; {
				w.run()
				bought := w.purchases()[0]
				if string(bought.Spec.Seller) == good.Offer.Party {
					return
				}
				w.becomes("", c.reason)
				if w.now = w.now.Add(time.Second); c.reason == connectorv1alpha1.ReasonSellerUnreachable {
					w.now = w.now.Add(5 * time.Minute)
				}
				if request := w.run(); w.now.Sub(begin) > c.within || len(request.Status.Tried) > 64 {
					t.Fatalf("in %s the other seller was not asked; %d are remembered", w.now.Sub(begin), len(request.Status.Tried))
				}
			}
		})
	}
}

// TestSeldom asks the only seller ever more seldom.
func TestSeldom(t *testing.T) {
	w := newWorld(t, "one")
	for _, wait := range []time.Duration{
		10 * time.Minute, 20 * time.Minute, 40 * time.Minute, 80 * time.Minute, 160 * time.Minute, 4 * time.Hour, 4 * time.Hour,
	} {
		w.run()
		w.becomes("Failed", connectorv1alpha1.ReasonFailed)
		w.run()
		if w.now = w.now.Add(wait - time.Second); len(w.purchases()) > 0 || len(w.run().Status.Tried) != 1 || len(w.purchases()) > 0 {
			t.Fatalf("it is asked again before %s", wait)
		}
		if w.now = w.now.Add(time.Second); len(w.run().Status.Purchase) == 0 {
			t.Fatalf("it is not asked again after %s", wait)
		}
	}
}

// TestNeverReady gives up a seller that has signed, and never gives anything that can be used.
func TestNeverReady(t *testing.T) {
	for _, reason := range []string{
		connectorv1alpha1.ReasonSettingUp, connectorv1alpha1.ReasonNodeNotReady, connectorv1alpha1.ReasonSellerUnreachable,
		connectorv1alpha1.ReasonContractSuspended, connectorv1alpha1.ReasonContractUnknown, connectorv1alpha1.ReasonSellerRestored,
	} {
		w := newWorld(t, "one", "two")
		w.candidates[1].Offer.Party = seller(1)
		w.run()
		w.becomes("Proposed", connectorv1alpha1.ReasonAwaitsApproval)
		w.run()
		w.now = w.now.Add(20 * time.Hour)
		w.becomes("Signed", reason)
		w.run()
		if w.now = w.now.Add(14 * time.Minute); w.run().Status.Tried != nil {
			t.Errorf("%s: given up after 14 minutes", reason)
		}
		if w.now = w.now.Add(2 * time.Minute); len(w.run().Status.Tried) != 1 || w.purchases()[0].Spec.Plan != "two" {
			t.Errorf("%s: it waits for ever", reason)
		}
	}
}

// TestEndedEarly buys for the time that is left elsewhere if a seller ends a contract early.
func TestEndedEarly(t *testing.T) {
	w := newWorld(t, "one", "two")
	w.candidates[1].Offer.Party = seller(1)
	begin := metav1.NewTime(w.now)
	for _, c := range []struct{ at, left time.Duration }{{20 * time.Minute, 40 * time.Minute}, {50 * time.Minute, 10 * time.Minute}} {
		w.run()
		w.becomes("Active", connectorv1alpha1.ReasonActive)
		w.run()
		bought := w.purchases()[0]
		bought.Status.StartTime = &metav1.Time{Time: begin.Add(time.Hour - bought.Spec.Duration.Duration)}
		if err := w.client.Status().Update(t.Context(), &bought); err != nil {
			t.Fatal(err)
		}
		w.now = begin.Add(c.at)
		w.becomes("Ended", connectorv1alpha1.ReasonEndedEarly)
		if w.run(); time.Duration(w.filter.Duration) != c.left {
			t.Fatalf("after %s capacity of %s is looked for", c.at, time.Duration(w.filter.Duration))
		}
	}
	w.becomes("Active", connectorv1alpha1.ReasonActive)
	w.now = begin.Add(time.Hour - time.Second)
	bought := w.purchases()[0]
	bought.Status.StartTime = &metav1.Time{Time: begin.Add(50 * time.Minute)}
	if err := w.client.Status().Update(t.Context(), &bought); err != nil {
		t.Fatal(err)
	}
	w.becomes("Ended", connectorv1alpha1.ReasonEndedEarly)
	if request := w.run(); ready(request).Reason != connectorv1alpha1.ReasonEnded || len(w.purchases()) != 1 {
		t.Errorf("with a second left: %+v", ready(request))
	}
}

// TestKeeps keeps what was paid for as long as people say, though another one was bought in its place: as ended, so that it does not come
// back. What nobody paid for is deleted at once.
func TestKeeps(t *testing.T) {
	const keep = 24 * time.Hour
	w := newKeepingWorld(t, keep, "one", "two", "three")
	w.candidates[1].Offer.Party, w.candidates[2].Offer.Party = seller(1), seller(2)
	w.run()
	w.becomes("Rejected", connectorv1alpha1.ReasonRejected)
	w.run()
	first := w.purchases()
	if len(first) != 1 {
		t.Fatalf("%d purchases, one of which nobody paid for", len(first))
	}
	paid := func(name string) {
		t.Helper()
		p := &connectorv1alpha1.Purchase{}
		if err := w.client.Get(t.Context(), types.NamespacedName{Name: name}, p); err != nil {
			t.Fatal(err)
		}
		p.Status.StartTime, p.Status.PaidUntilTime = &metav1.Time{Time: w.now}, &metav1.Time{Time: w.now.Add(10 * time.Minute)}
		p.Status.EndTime = p.Status.PaidUntilTime
		if err := w.client.Status().Update(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	paid(first[0].Name)
	w.now = w.now.Add(10 * time.Minute)
	w.becomes("Ended", connectorv1alpha1.ReasonEndedEarly)
	request := w.run()
	all := w.purchases()
	at := slices.IndexFunc(all, func(p connectorv1alpha1.Purchase) bool { return p.Name == first[0].Name })
	if len(all) != 2 || at < 0 || all[at].Spec.End == nil || request.Status.Purchase == first[0].Name {
		t.Fatalf("kept: %+v, the request has %s", all, request.Status.Purchase)
	}
	// The other one serves to the end.
	second := &connectorv1alpha1.Purchase{}
	paid(request.Status.Purchase)
	if err := w.client.Get(t.Context(), types.NamespacedName{Name: request.Status.Purchase}, second); err != nil {
		t.Fatal(err)
	}
	meta.SetStatusCondition(&second.Status.Conditions, metav1.Condition{
		Type: connectorv1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: connectorv1alpha1.ReasonEnded,
	})
	if err := w.client.Status().Update(t.Context(), second); err != nil {
		t.Fatal(err)
	}
	w.now = w.now.Add(10 * time.Minute)
	if request = w.run(); ready(request).Reason != connectorv1alpha1.ReasonEnded || len(w.purchases()) != 2 {
		t.Errorf("over: %+v, %d purchases", ready(request), len(w.purchases()))
	}
	w.now = w.now.Add(keep - 11*time.Minute)
	result, err := w.reconciler.Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Name: "r"}})
	if err != nil || result.RequeueAfter != time.Minute {
		t.Errorf("a minute before the first has been kept for long enough: %+v, %v", result, err)
	}
	for i, left := range []int{2, 1, 0} {
		if w.run(); len(w.purchases()) != left {
			t.Errorf("%d purchases are left, not %d", len(w.purchases()), left)
		}
		w.now = w.now.Add([]time.Duration{time.Minute, 10 * time.Minute, 0}[i])
	}
	if request = w.run(); ready(request).Reason != connectorv1alpha1.ReasonEnded || len(w.purchases()) != 0 {
		t.Errorf("all is forgotten: %+v, %d purchases", ready(request), len(w.purchases()))
	}
}

// TestMaxTotal buys only what is paid by what is left of the total, also after others that are owed for.
func TestMaxTotal(t *testing.T) {
	w := newKeepingWorld(t, 24*time.Hour, "one", "two", "three", "four")
	for i, amount := range []string{"1.000000001", "1", "0.9", "0.8"} {
		w.candidates[i].Price = offertest.Price(amount)
		w.candidates[i].Offer.Party = seller(i)
	}
	request := &connectorv1alpha1.CapacityRequest{}
	if err := w.client.Get(t.Context(), types.NamespacedName{Name: "r"}, request); err != nil {
		t.Fatal(err)
	}
	request.Spec.MaxTotal = &connectorv1alpha1.Money{Amount: "1", Currency: "EUR"}
	if err := w.client.Update(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	w.run()
	bought := w.purchases()
	if len(bought) != 1 || bought[0].Spec.Plan != "two" || *bought[0].Spec.MaxTotal != *request.Spec.MaxTotal {
		t.Fatalf("bought is %+v", bought)
	}
	// After half an hour it ends, and 0.6 is owed: for notice, too. So 0.4 is left for half an hour, which another one costs exactly.
	p := &bought[0]
	start := metav1.NewTime(w.now)
	terms := contract.Terms{Price: offertest.Price("1"), StartsAt: w.now, EndsAt: w.now.Add(time.Hour)}
	view := contract.View{Terms: terms, Countersignature: "both", PaidUntil: w.now.Add(36 * time.Minute)}
	text, err := json.Marshal(map[string]any{"purchase": contract.Purchase{Terms: terms, Seen: view}})
	if err != nil {
		t.Fatal(err)
	}
	p.Status.Record, p.Status.StartTime, p.Status.PaidUntilTime = string(text), &start, &metav1.Time{Time: view.PaidUntil}
	if err := w.client.Status().Update(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	w.now = w.now.Add(30 * time.Minute)
	w.becomes("Ended", connectorv1alpha1.ReasonEndedEarly)
	w.run()
	bought = w.purchases()
	at := slices.IndexFunc(bought, func(other connectorv1alpha1.Purchase) bool { return other.Name != p.Name })
	if len(bought) != 2 || bought[at].Spec.Plan != "four" || bought[at].Spec.MaxTotal.Amount != "0.4" {
		t.Fatalf("bought is %+v", bought)
	}
	// With that one refused, nothing is cheap enough.
	meta.SetStatusCondition(&bought[at].Status.Conditions, metav1.Condition{
		Type: connectorv1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: connectorv1alpha1.ReasonRejected,
	})
	if err := w.client.Status().Update(t.Context(), &bought[at]); err != nil {
		t.Fatal(err)
	}
	w.candidates = w.candidates[:3]
	if is := ready(w.run()); is.Reason != connectorv1alpha1.ReasonNoOffer || !strings.Contains(is.Message, "0.6 EUR is spent") {
		t.Errorf("it says %s: %s", is.Reason, is.Message)
	}
}

// TestInterrupted waits for what is not in use for a while, and buys once: nothing elsewhere if it is in use again, the rest of the time if
// it is not, and nothing if there is no rest.
func TestInterrupted(t *testing.T) {
	for _, reason := range []string{
		connectorv1alpha1.ReasonContractSuspended, connectorv1alpha1.ReasonContractUnknown, connectorv1alpha1.ReasonSellerRestored,
	} {
		w := newWorld(t, "one", "two")
		w.candidates[1].Offer.Party = seller(1)
		w.run()
		bought := w.purchases()[0]
		bought.Status.StartTime = &metav1.Time{Time: w.now}
		if err := w.client.Status().Update(t.Context(), &bought); err != nil {
			t.Fatal(err)
		}
		for range 2 { // Each time it is waited for again.
			w.becomes("Active", connectorv1alpha1.ReasonActive)
			w.run()
			w.becomes("Suspended", reason)
			w.run()
			if w.now = w.now.Add(14 * time.Minute); w.run().Status.Tried != nil || w.purchases()[0].Name != bought.Name {
				t.Fatalf("%s: given up after 14 minutes", reason)
			}
		}
		if w.now = w.now.Add(2 * time.Minute); len(w.run().Status.Tried) != 1 || len(w.purchases()) != 1 || w.purchases()[0].Spec.Plan != "two" {
			t.Fatalf("%s: not given up after 16 minutes: %+v", reason, w.purchases())
		}
		if got := w.purchases()[0].Spec.Duration.Duration; got != 30*time.Minute {
			t.Errorf("%s: of an hour, of which half is over, %s are bought", reason, got)
		}
		bought = w.purchases()[0]
		bought.Status.StartTime = &metav1.Time{Time: w.now}
		if err := w.client.Status().Update(t.Context(), &bought); err != nil {
			t.Fatal(err)
		}
		w.becomes("Active", connectorv1alpha1.ReasonActive)
		w.run()
		w.now = w.now.Add(14 * time.Minute)
		w.becomes("Suspended", reason)
		w.run()
		if w.now = w.now.Add(15*time.Minute + 30*time.Second); len(w.run().Status.Tried) != 1 || w.purchases()[0].Name != bought.Name {
			t.Errorf("%s: given up half a minute before its end: %+v", reason, w.purchases())
		}
	}
}

// TestCurrencies buys nothing of what cannot be compared.
func TestCurrencies(t *testing.T) {
	w := newWorld(t, "one", "two")
	w.candidates[0].Price.Currency, w.candidates[1].Price.Currency = "AAA", "EUR"
	if w.run(); len(w.purchases()) != 1 || w.filter.Currency != "" {
		t.Errorf("with a price: %d purchases", len(w.purchases())) // The filter has only let pass those in its currency.
	}
	w = newWorld(t, "one", "two")
	w.candidates[0].Price.Currency, w.candidates[1].Price.Currency = "AAA", "EUR"
	w.edit(func(spec *connectorv1alpha1.CapacityRequestSpec) { spec.MaxPrice = nil })
	if request := w.run(); len(w.purchases()) != 0 || ready(request).Reason != connectorv1alpha1.ReasonInvalidRequest ||
		!strings.Contains(ready(request).Message, "currency") {
		t.Errorf("without: %+v", ready(request))
	}
	w.edit(func(spec *connectorv1alpha1.CapacityRequestSpec) { spec.Currency = "EUR" })
	if w.run(); len(w.purchases()) != 1 || w.filter.Currency != "EUR" {
		t.Errorf("with a currency: %d purchases, %q", len(w.purchases()), w.filter.Currency)
	}
}

// edit changes the request, which people cannot.
func (w *world) edit(change func(*connectorv1alpha1.CapacityRequestSpec)) {
	w.t.Helper()
	request := &connectorv1alpha1.CapacityRequest{}
	if err := w.client.Get(w.t.Context(), types.NamespacedName{Name: "r"}, request); err != nil {
		w.t.Fatal(err)
	}
	change(&request.Spec)
	if err := w.client.Update(w.t.Context(), request); err != nil {
		w.t.Fatal(err)
	}
}

// TestFits looks whether an offer that has changed passes the request that a purchase was made for.
func TestFits(t *testing.T) {
	w := newWorld(t, "one")
	w.edit(func(spec *connectorv1alpha1.CapacityRequestSpec) { spec.Sellers, spec.Expression = nil, "" })
	w.run()
	bought := w.purchases()[0]
	text := `{"party":"` + strings.Repeat("a", 52) + `","id":"small","revision":1,"issuedAt":"2026-01-01T00:00:00Z","validUntil":"2026-01-02T00:00:00Z","kind":"Cluster",
		"name":"Small","region":"eu","plans":[{"id":"PLAN","resources":{"cpu":"2","memory":"1Gi","pods":"10"},"price":{"amount":"1","currency":"EUR","period":"PT1H"},"available":0}]}`
	for name, c := range map[string]struct {
		old, new string
		fits     bool
	}{
		"the plan":       {"PLAN", "one", true},
		"another plan":   {"PLAN", "two", false},
		"another region": {`"region":"eu"`, `"region":"us"`, false},
	} {
		read, err := offer.Parse([]byte(strings.Replace(strings.Replace(text, c.old, c.new, 1), "PLAN", "one", 1)))
		if err != nil {
			t.Fatal(err)
		}
		if fits, err := w.reconciler.Fits(t.Context(), &bought, read); err != nil || fits != c.fits {
			t.Errorf("%s: fits is %t, %v", name, fits, err)
		}
		byHand := bought
		byHand.OwnerReferences = nil
		if fits, err := w.reconciler.Fits(t.Context(), &byHand, read); err != nil || !fits {
			t.Errorf("%s, made by hand: fits is %t, %v", name, fits, err)
		}
	}
}

// TestEndedByHand buys nothing again where somebody has ended the purchase, whatever its seller makes of that.
func TestEndedByHand(t *testing.T) {
	for _, reason := range []string{connectorv1alpha1.ReasonRejected, connectorv1alpha1.ReasonExpired, connectorv1alpha1.ReasonFailed} {
		w := newWorld(t, "one", "two")
		w.run()
		bought := w.purchases()[0]
		bought.Spec.End = &connectorv1alpha1.ContractEnd{}
		if err := w.client.Update(t.Context(), &bought); err != nil {
			t.Fatal(err)
		}
		w.becomes("Proposed", connectorv1alpha1.ReasonSellerUnreachable)
		w.now = w.now.Add(time.Hour)
		if request := w.run(); ready(request).Reason != connectorv1alpha1.ReasonSellerUnreachable {
			t.Errorf("while its seller is silent: %+v", request.Status)
		}
		w.becomes("Rejected", reason)
		if request := w.run(); ready(request).Reason != connectorv1alpha1.ReasonEnded || request.Status.Purchase != bought.Name ||
			len(request.Status.Tried) > 0 {
			t.Errorf("%s: %+v", reason, request.Status)
		}
	}
}

// TestNone buys nothing where there is nothing, or where the request makes no sense.
func TestNone(t *testing.T) {
	w := newWorld(t)
	if request := w.run(); ready(request).Reason != connectorv1alpha1.ReasonNoOffer {
		t.Errorf("no offers: %+v", ready(request))
	}
	w.invalid = errors.New("expression: no")
	if request := w.run(); ready(request).Reason != connectorv1alpha1.ReasonInvalidRequest ||
		!strings.Contains(ready(request).Message, "expression") {
		t.Errorf("invalid: %+v", ready(request))
	}
}

// TestKill kills before and after each write: there is one purchase, of the second plan.
func TestKill(t *testing.T) {
	for n := 1; ; n++ {
		calls := 0
		w := newWorld(t, "one", "two")
		w.kill = func() error {
			if calls++; calls == n {
				return errKilled
			}
			return nil
		}
		w.run()
		w.becomes("Rejected", connectorv1alpha1.ReasonRejected)
		request := w.run()
		if all := w.purchases(); len(all) != 1 || all[0].Spec.Plan != "two" || request.Status.Purchase != all[0].Name ||
			len(request.Status.Tried) != 1 {
			t.Fatalf("killed at %d: %d purchases, %+v", n, len(all), request.Status)
		}
		if calls < n {
			if n < 8 {
				t.Errorf("only %d places to be killed at", n-1)
			}
			return
		}
	}
}
