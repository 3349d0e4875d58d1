// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package kpis

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testingclock "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/core/kpi"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v09/liqotest"
	"github.com/capacitorset/liqo-broker/pkg/snapshot/snapshottest"
)

var (
	providerA = cluster.Identity{ID: "id-a", Name: "provider-a"}
	now       = time.Unix(1_800_000_000, 0)
)

// harness is a daemon with a clock and a count of what it wrote.
type harness struct {
	t      *testing.T
	client client.Client
	clock  *testingclock.FakeClock
	r      *Reconciler
	writes int
}

func begin(t *testing.T, objects ...client.Object) *harness {
	t.Helper()
	h := &harness{t: t, clock: testingclock.NewFakeClock(now)}
	h.client = snapshottest.NewClient(t, snapshottest.OnPatch(func(client.Object) { h.writes++ }), append(objects,
		&v1alpha1.Provider{ObjectMeta: metav1.ObjectMeta{Name: string(providerA.ID)}}, liqotest.ForeignCluster(providerA, true, false))...)
	h.restart()
	return h
}

// restart begins with a daemon that has no memory.
func (h *harness) restart() {
	h.r = New(Config{Client: h.client, Live: h.client, Reader: snapshottest.Reader(h.client, ""), Clock: h.clock})
}

// reconcile returns the provider after a reconciliation.
func (h *harness) reconcile() *v1alpha1.Provider {
	h.t.Helper()
	return h.reconcileWith(h.r)
}

// reconcileWith returns the provider after a reconciliation by a daemon.
func (h *harness) reconcileWith(r *Reconciler) *v1alpha1.Provider {
	h.t.Helper()
	key := client.ObjectKey{Name: string(providerA.ID)}
	if _, err := r.Reconcile(h.t.Context(), ctrl.Request{NamespacedName: key}); err != nil {
		h.t.Fatalf("Reconcile(): %v", err)
	}
	p := &v1alpha1.Provider{}
	if err := h.client.Get(h.t.Context(), key, p); err != nil {
		h.t.Fatalf("Get(): %v", err)
	}
	return p
}

// history returns what the daemon remembers of the provider.
func (h *harness) history() *v1alpha1.ProviderHistory {
	h.t.Helper()
	history := &v1alpha1.ProviderHistory{}
	if err := h.client.Get(h.t.Context(), client.ObjectKey{Name: string(providerA.ID)}, history); err != nil {
		h.t.Fatalf("get the history: %v", err)
	}
	return history
}

// minutes reconciles once a minute.
func (h *harness) minutes(n int) *v1alpha1.Provider {
	h.t.Helper()
	for range n {
		h.clock.Step(time.Minute)
		h.reconcile()
	}
	return h.reconcile()
}

func values(p *v1alpha1.Provider) map[string]string {
	found := map[string]string{}
	for _, f := range p.Status.KPIs {
		found[f.Name] = string(f.Value) + " " + f.Unit
	}
	return found
}

func TestAvailability(t *testing.T) {
	node := liqotest.VirtualNode(providerA, true)
	h := begin(t, node, liqotest.Offer(providerA, nil))
	h.reconcile()
	if got := values(h.minutes(30)); got["availability1h"] != "1 ratio" {
		t.Errorf("after half an hour in which it was up: %v", got)
	}
	if h.writes > 15 {
		t.Errorf("%d writes in half an hour in which nothing changed", h.writes)
	}
	node.Status.Conditions[0].Status = corev1.ConditionFalse
	if err := h.client.Status().Update(t.Context(), node); err != nil {
		t.Fatalf("Update(): %v", err)
	}
	before := h.writes
	h.reconcile()
	if h.writes != before+1 {
		t.Error("that the provider went down was not written at once")
	}
	if got := values(h.minutes(10)); got["availability1h"] != "0.75 ratio" {
		t.Errorf("after ten minutes in which it was down: %v", got)
	}
	if err := h.client.Delete(t.Context(), node); err != nil {
		t.Fatalf("Delete(): %v", err)
	}
	if got := values(h.minutes(60)); got["availability1h"] != "0.75 ratio" {
		t.Errorf("after an hour in which it was not peered: %v", got)
	}
}

// TestAvailabilityBehindSilentGateway has a provider whose node is called ready all the time, and whose gateway is silent for a while.
func TestAvailabilityBehindSilentGateway(t *testing.T) {
	h := begin(t, liqotest.VirtualNode(providerA, true), liqotest.Offer(providerA, nil))
	h.reconcile()
	p := h.minutes(30)
	meta.SetStatusCondition(&p.Status.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionReachable, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonGatewaySilent,
	})
	if err := h.client.Status().Update(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	h.reconcile()
	if got := values(h.minutes(10)); got["availability1h"] != "0.75 ratio" {
		t.Errorf("after ten minutes in which its gateway was silent: %v", got)
	}
}

// TestUnwatched has a broker that runs for a minute again and again, or a provider that is peered for one. What passes in
// between counts neither as up nor as down.
func TestUnwatched(t *testing.T) {
	const rounds = 20
	for name, leave := range map[string]func(*harness, *corev1.Node){
		"BrokerGone": func(h *harness, _ *corev1.Node) {
			h.clock.Step(210 * time.Second)
			h.restart()
		},
		"NotPeered": func(h *harness, node *corev1.Node) {
			if err := h.client.Delete(t.Context(), node); err != nil {
				t.Fatalf("Delete(): %v", err)
			}
			h.reconcile()
			h.clock.Step(210 * time.Second)
			node.ResourceVersion = ""
			if err := h.client.Create(t.Context(), node); err != nil {
				t.Fatalf("Create(): %v", err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			node := liqotest.VirtualNode(providerA, true)
			h := begin(t, node, liqotest.Offer(providerA, nil))
			for range rounds {
				h.reconcile()
				h.minutes(1)
				leave(h, node)
			}
			history, err := kpi.Parse(h.history().History)
			if err != nil {
				t.Fatalf("Parse(): %v", err)
			}
			watched := history.Rings[1].Filled + int64(max(0, len(history.Rings[1].Up)-1))*3600
			if watched > rounds*60 {
				t.Errorf("it was watched for %d minutes, and %d count", rounds, watched/60)
			}
			if got := values(h.minutes(30)); got["availability1h"] != "1 ratio" {
				t.Errorf("after half an hour in which it was up: %v", got)
			}
		})
	}
}

func TestRoundTrip(t *testing.T) {
	h := begin(t, liqotest.Tunnel(providerA, "850μs", now))
	if got := values(h.reconcile()); got["roundTripTime"] != "0.85 ms" {
		t.Errorf("KPIs: %v", got)
	}
	down := begin(t, liqotest.Tunnel(providerA, "0", now))
	if got := values(down.reconcile()); len(got) != 0 {
		t.Errorf("without a tunnel: %v", got)
	}
}

func TestPrices(t *testing.T) {
	quantity := func(text string) *resource.Quantity { q := resource.MustParse(text); return &q }
	offered := liqotest.Offer(providerA, nil)
	offered.Spec.Prices = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("3"), corev1.ResourceMemory: resource.MustParse("-1")}
	refused := offered.DeepCopy()
	refused.Status.Phase = "Refused"
	const day, iso = v1alpha1.Period("24h"), v1alpha1.Period("P1D")
	// named returns another offer with a price, which a cache lists before the first one or after it.
	named := func(name, price string) *v09.ResourceOffer {
		o := liqotest.Offer(providerA, nil)
		o.Name, o.Spec.Prices = name, corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(price)}
		return o
	}
	cases := map[string]struct {
		reason string
		offer  client.Object
		// second is another offer of the same provider.
		second *v09.ResourceOffer
		price  *v1alpha1.Price
		// bought is what a core costs by contract.
		bought string
		want   map[string]string
	}{
		"None": {reason: "Who says nothing has no price.", offer: liqotest.Offer(providerA, nil), want: map[string]string{}},
		"Offered": {
			reason: "A provider says no currency; a negative price is none.", offer: offered, want: map[string]string{"priceCPU": "3 XXX/h"},
		},
		"Refused": {reason: "What is not in force does not count.", offer: refused, want: map[string]string{}},
		"Currency": {
			reason: "People say in what, and for how long.", offer: offered, price: &v1alpha1.Price{Currency: "EUR", Period: day},
			want: map[string]string{"priceCPU": "0.125 EUR/h"},
		},
		"ISO": {
			reason: "And write it as they like.", offer: offered, price: &v1alpha1.Price{Currency: "EUR", Period: iso},
			want: map[string]string{"priceCPU": "0.125 EUR/h"},
		},
		"Dearer": {
			reason: "Of several offers the dearest one counts.", offer: offered, second: named("0", "4"),
			want: map[string]string{"priceCPU": "4 XXX/h"},
		},
		"Cheaper": {
			reason: "Whatever they are called.", offer: offered, second: named("zzz", "2"), want: map[string]string{"priceCPU": "3 XXX/h"},
		},
		"Override": {
			reason: "What people say goes first.", offer: offered,
			price: &v1alpha1.Price{Currency: "EUR", CPU: quantity("20m"), Memory: quantity("0")},
			want:  map[string]string{"priceCPU": "0.02 EUR/h", "priceMemory": "0 EUR/h"},
		},
		"Bought": {
			reason: "What is paid by contract goes before what is said in no currency.", offer: offered, bought: "0.0125 EUR/h",
			want: map[string]string{"priceCPU": "0.0125 EUR/h"},
		},
		"Told": {
			reason: "What people say goes before a contract.", offer: offered, bought: "0.0125 EUR/h", price: &v1alpha1.Price{Currency: "USD"},
			want: map[string]string{"priceCPU": "3 USD/h"},
		},
		"NoPrice": {
			reason: "A text that is no price is none.", offer: offered, bought: "-1 EUR/h", want: map[string]string{"priceCPU": "3 XXX/h"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			objects := []client.Object{tc.offer}
			if tc.second != nil {
				objects = append(objects, tc.second)
			}
			h := begin(t, objects...)
			p := h.reconcile()
			p.Spec.Price = tc.price
			if tc.bought != "" {
				fc := liqotest.ForeignCluster(providerA, true, false)
				if err := h.client.Get(t.Context(), client.ObjectKeyFromObject(fc), fc); err != nil {
					t.Fatalf("Get(): %v", err)
				}
				liqo.SetCorePrice(fc, tc.bought)
				if err := h.client.Update(t.Context(), fc); err != nil {
					t.Fatalf("Update(): %v", err)
				}
			}
			if err := h.client.Update(t.Context(), p); err != nil {
				t.Fatalf("Update(): %v", err)
			}
			if diff := cmp.Diff(tc.want, values(h.reconcile())); diff != "" {
				t.Errorf("%s\n-want +got\n%s", tc.reason, diff)
			}
		})
	}
}

func TestFree(t *testing.T) {
	h := begin(t)
	p := h.reconcile()
	p.Status.Free = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1500m"), corev1.ResourceMemory: resource.MustParse("512Mi")}
	if err := h.client.Status().Update(t.Context(), p); err != nil {
		t.Fatalf("Update(): %v", err)
	}
	want := map[string]string{"freeCPU": "1.5 cores", "freeMemory": "0.5 GiB"}
	if diff := cmp.Diff(want, values(h.reconcile())); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// TestDamagedHistory begins again.
func TestDamagedHistory(t *testing.T) {
	h := begin(t, liqotest.VirtualNode(providerA, true), liqotest.Offer(providerA, nil))
	h.reconcile()
	written := h.history()
	written.History = `{"rings":[{"up":[9999]}]}`
	if err := h.client.Update(t.Context(), written); err != nil {
		t.Fatalf("Update(): %v", err)
	}
	h.restart()
	if p := h.minutes(10); strings.Contains(h.history().History, "9999") || values(p)["availability1h"] != "1 ratio" {
		t.Errorf("history %s, KPIs %v", h.history().History, p.Status.KPIs)
	}
}

// TestHistoryOfOthers has somebody write and remove a history behind the daemon's back: it goes on.
func TestHistoryOfOthers(t *testing.T) {
	h := begin(t, liqotest.VirtualNode(providerA, true), liqotest.Offer(providerA, nil))
	h.minutes(20)
	written := h.history()
	if owner := metav1.GetControllerOf(written); owner == nil || owner.Kind != "Provider" || owner.Name != written.Name {
		t.Errorf("the history belongs to %v", owner)
	}
	written.Labels = map[string]string{"x": "y"}
	if err := h.client.Update(t.Context(), written); err != nil {
		t.Fatalf("Update(): %v", err)
	}
	h.clock.Step(5 * time.Minute)
	if _, err := h.r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: string(providerA.ID)}}); err == nil {
		t.Error("no error though somebody else wrote the history")
	}
	p := h.reconcile()
	if got := h.history(); got.Labels["x"] != "y" || got.History == written.History || values(p)["availability1h"] != "1 ratio" {
		t.Errorf("after somebody else wrote it: %v, KPIs %v", got, values(p))
	}
	if err := h.client.Delete(t.Context(), h.history()); err != nil {
		t.Fatalf("Delete(): %v", err)
	}
	h.clock.Step(5 * time.Minute)
	if _, err := h.r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: string(providerA.ID)}}); err == nil {
		t.Error("no error though somebody else removed the history")
	}
	if h.minutes(5); h.history().History == "" {
		t.Error("no new history")
	}
}
