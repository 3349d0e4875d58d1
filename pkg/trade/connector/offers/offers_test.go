// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package offers_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/capacity"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/catalog"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/clocktest"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/offers"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/peering"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/contract"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/ledger"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/offer"
	"github.com/capacitorset/liqo-broker/pkg/trade/negotiation"
	"github.com/capacitorset/liqo-broker/pkg/trade/party"
	"github.com/capacitorset/liqo-broker/pkg/trade/registry/registrytest"
)

// world is a cluster that sells, and what its registries are told.
type world struct {
	client.Client
	*offers.Reconciler

	t        *testing.T
	seller   *registrytest.Party
	now      time.Time
	books    ledger.Ledger
	has      corev1.ResourceList
	standing catalog.Standing
	kpis     []offer.KPI
	// attributes are those of the devices of the cluster.
	attributes capacity.Attributes
	// unguarded is what does not keep buyers in bounds; nil if all does.
	unguarded error
	events    *record.FakeRecorder
	// gap is what the cluster lacks of what it has sold.
	gap capacity.Gap

	mu     sync.Mutex
	listed map[string]string
	// seen are all contents that were listed, by offer and revision.
	seen map[string]string
	fail bool
}

func list(cpu, memory, pods string) v1alpha1.Quantities {
	return v1alpha1.Quantities{
		corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory),
		corev1.ResourcePods: resource.MustParse(pods),
	}
}

// small returns an Offer of one plan of 2 cores.
func small(name string) *connectorv1alpha1.Offer {
	return &connectorv1alpha1.Offer{
		ObjectMeta: metav1.ObjectMeta{Name: name, Generation: 1},
		Spec: connectorv1alpha1.OfferSpec{
			Title: "Small", Sale: connectorv1alpha1.SaleOpen, Kind: connectorv1alpha1.KindCluster, Region: "eu",
			Plans: []connectorv1alpha1.OfferPlan{{
				ID: "s", Resources: list("2", "4Gi", "20"), Price: connectorv1alpha1.Price{Amount: "0.10", Currency: "EUR", Period: "PT1H"},
			}},
			Buyers: connectorv1alpha1.Buyers{Otherwise: connectorv1alpha1.VerdictAccept},
		},
	}
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := connectorv1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	w := &world{
		t: t, seller: registrytest.NewParty(t, "seller"), now: time.Unix(1_800_000_000, 0), has: corev1.ResourceList(list("8", "64Gi", "100")),
		standing: catalog.Standing{Listed: true}, seen: map[string]string{}, events: record.NewFakeRecorder(1000),
	}
	w.Client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&connectorv1alpha1.Offer{}).
		WithInterceptorFuncs(interceptor.Funcs{
			SubResourceUpdate: func(
				ctx context.Context, c client.Client, sub string, o client.Object, opts ...client.SubResourceUpdateOption,
			) error {
				if w.fail {
					return errors.New("killed")
				}
				return c.SubResource(sub).Update(ctx, o, opts...)
			},
		}).Build()
	w.open()
	return w
}

// open opens the reconciler as another process.
func (w *world) open() {
	w.t.Helper()
	var err error
	w.Reconciler, err = offers.New(offers.Config{
		Client: w.Client, Reader: w.Client, Party: party.ID(w.seller.ID), Key: func() party.Key { return w.seller.Key },
		Kind: connectorv1alpha1.KindCluster, Ledger: func(context.Context) (ledger.Ledger, error) { return w.books, nil },
		Capacity:   func(context.Context) (corev1.ResourceList, error) { return w.has, nil },
		Registries: w, Clock: clocktest.Func(func() time.Time { return w.now }),
		Attributes: func(context.Context) (capacity.Attributes, error) { return w.attributes, nil },
		Measured:   func(context.Context, time.Time) ([]offer.KPI, error) { return w.kpis, nil },
		Covered:    func(context.Context, time.Time) (capacity.Gap, error) { return w.gap, nil },
		Guarded:    func(context.Context) error { return w.unguarded },
		Events:     w.events,
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

// SetOffers implements offers.Registries. What is listed must be stored.
func (w *world) SetOffers(signed map[string]string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.listed = maps.Clone(signed)
	for id, text := range signed {
		o := w.parse(text)
		key := id + "/" + time.Unix(o.Revision, 0).String()
		if before, ok := w.seen[key]; ok && before != text {
			w.t.Errorf("offer %s was signed twice as revision %d", id, o.Revision)
		}
		w.seen[key] = text
		if stored := w.offer(id).Status.Signed; stored != text {
			w.t.Errorf("offer %s is listed and not stored: %q", id, stored)
		}
	}
}

// Standings implements offers.Registries.
func (w *world) Standings(string, string) map[string]catalog.Standing {
	if w.standing == (catalog.Standing{}) {
		return nil
	}
	return map[string]catalog.Standing{"eu": w.standing}
}

func (w *world) parse(signed string) offer.Offer {
	w.t.Helper()
	text, err := party.Payload(signed)
	if err != nil {
		w.t.Fatal(err)
	}
	o, err := offer.Parse(text)
	if err != nil {
		w.t.Fatal(err)
	}
	return o
}

func (w *world) offer(name string) *connectorv1alpha1.Offer {
	w.t.Helper()
	o := &connectorv1alpha1.Offer{}
	if err := w.Get(w.t.Context(), client.ObjectKey{Name: name}, o); err != nil {
		w.t.Fatal(err)
	}
	return o
}

func (w *world) look() ctrl.Result {
	w.t.Helper()
	result, err := w.Reconcile(w.t.Context(), ctrl.Request{})
	if err != nil {
		w.t.Fatal(err)
	}
	return result
}

// change changes the spec of an Offer.
func (w *world) change(name string, do func(*connectorv1alpha1.OfferSpec)) {
	w.t.Helper()
	o := w.offer(name)
	do(&o.Spec)
	o.Generation++
	if err := w.Update(w.t.Context(), o); err != nil {
		w.t.Fatal(err)
	}
}

// published returns reason and message of an Offer's condition.
func (w *world) published(name string) (reason, message string) {
	w.t.Helper()
	c := meta.FindStatusCondition(w.offer(name).Status.Conditions, connectorv1alpha1.ConditionPublished)
	if c == nil {
		w.t.Fatalf("offer %s has no condition", name)
	}
	if (c.Status == metav1.ConditionTrue) != (c.Reason == connectorv1alpha1.ReasonPublished) {
		w.t.Errorf("offer %s: %s for %s", name, c.Status, c.Reason)
	}
	return c.Reason, c.Message
}

// sell holds some units of the plan.
func (w *world) sell(id string, cpu string) {
	w.t.Helper()
	resources := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
	w.books = w.books.Keep(ledger.Hold{Key: ledger.Key{Buyer: "b", ID: id}, Offer: "small", Plan: "s", Resources: resources})
}

func available(o offer.Offer) int64 { return o.Plans[0].Available }

// TestLife signs, lists, changes, renews and closes an offer.
func TestLife(t *testing.T) {
	w := newWorld(t, small("small"))
	w.look()
	first := w.parse(w.listed["small"])
	if available(first) != 4 || first.ValidUntil.Sub(first.IssuedAt) != time.Hour || first.Region != "eu" || first.Revision != w.now.Unix() {
		t.Errorf("signed %+v", first)
	}
	if reason, _ := w.published("small"); reason != connectorv1alpha1.ReasonPublished {
		t.Errorf("published: %s", reason)
	}

	// Nothing changes: nothing is signed.
	w.now = w.now.Add(time.Minute)
	w.look()
	if got := w.parse(w.listed["small"]); got.Revision != first.Revision {
		t.Errorf("signed again as revision %d", got.Revision)
	}

	// What is sold is not available, and that is signed, but not too often.
	w.sell("1", "2")
	w.look()
	if got := w.parse(w.listed["small"]); available(got) != 3 {
		t.Errorf("%d available after one was sold", available(got))
	}
	w.sell("2", "2")
	w.now = w.now.Add(time.Second)
	if result := w.look(); available(w.parse(w.listed["small"])) != 3 || result.RequeueAfter > 4*time.Second {
		t.Errorf("%d available a second after, to be looked at in %s", available(w.parse(w.listed["small"])), result.RequeueAfter)
	}
	if status := w.offer("small").Status; status.Sold != 2 || status.Plans[0].Available != 2 {
		t.Errorf("status %+v", status)
	}
	w.now = w.now.Add(5 * time.Second)
	w.look()
	if got := w.parse(w.listed["small"]); available(got) != 2 {
		t.Errorf("%d available", available(got))
	}

	// A change of the content is signed at once; a stock counts what is sold.
	stock := int64(3)
	w.change("small", func(s *connectorv1alpha1.OfferSpec) { s.Title, s.Plans[0].Stock = "Another", &stock })
	w.look()
	if got := w.parse(w.listed["small"]); got.Name != "Another" || available(got) != 1 {
		t.Errorf("signed %+v", got)
	}

	// It is renewed at half of its time, with the party's new key, and after the clock was set back.
	before := w.parse(w.listed["small"]).Revision
	for name, change := range map[string]func(){
		"time":  func() { w.now = w.now.Add(31 * time.Minute) },
		"key":   func() { w.seller = w.seller.Rotate(t) },
		"clock": func() { w.now = w.now.Add(-time.Hour) },
	} {
		change()
		w.look()
		after := w.parse(w.listed["small"])
		if after.Revision <= before || !after.IssuedAt.Equal(w.now.UTC().Truncate(time.Second)) {
			t.Errorf("%s: revision %d after %d, issued %s", name, after.Revision, before, after.IssuedAt)
		}
		before = after.Revision
	}

	// A process that begins lists what is stored.
	signed := w.listed["small"]
	w.open()
	w.look()
	if w.listed["small"] != signed {
		t.Error("another process has signed again")
	}

	// A registry that wants a higher revision gets one, after a while.
	w.standing = catalog.Standing{Refused: true, Outdated: true, Why: "must grow"}
	w.look()
	if got := w.parse(w.listed["small"]); got.Revision != before {
		t.Errorf("signed at once as revision %d after %d", got.Revision, before)
	}
	w.now = w.now.Add(time.Minute)
	w.look()
	if got := w.parse(w.listed["small"]); got.Revision <= before {
		t.Errorf("revision %d after %d", got.Revision, before)
	}
	w.standing = catalog.Standing{Listed: true}

	// Closed and opened again: what was withdrawn does not come back as it was.
	signed = w.listed["small"]
	for _, sale := range []connectorv1alpha1.SaleSwitch{connectorv1alpha1.SaleClosed, connectorv1alpha1.SaleOpen} {
		w.change("small", func(s *connectorv1alpha1.OfferSpec) { s.Sale = sale })
		w.look()
	}
	if after := w.parse(w.listed["small"]); after.Revision <= w.parse(signed).Revision {
		t.Errorf("opened again with revision %d", after.Revision)
	}
	before = w.parse(w.listed["small"]).Revision

	// Closed: nobody buys, and who has bought keeps its limits.
	w.change("small", func(s *connectorv1alpha1.OfferSpec) { s.Sale = connectorv1alpha1.SaleClosed })
	w.look()
	if reason, _ := w.published("small"); reason != connectorv1alpha1.ReasonClosed || len(w.listed) != 0 {
		t.Errorf("closed: %s, listed %v", reason, w.listed)
	}
	if _, err := w.Offer(t.Context(), "small"); !errors.Is(err, negotiation.ErrNotOffered) {
		t.Errorf("a closed offer: %v", err)
	}
	if limits, err := w.Limits(t.Context(), "small", "s"); err != nil || *limits.Stock != 3 {
		t.Errorf("limits of a closed offer: %+v, %v", limits, err)
	}

	// Deleted and created again under its name: the revision grows on.
	if err := w.Delete(t.Context(), w.offer("small")); err != nil {
		t.Fatal(err)
	}
	w.look()
	if _, err := w.Limits(t.Context(), "small", "s"); !errors.Is(err, negotiation.ErrNotOffered) {
		t.Errorf("limits of an offer that is gone: %v", err)
	}
	w.now = w.now.Add(2 * time.Hour)
	if err := w.Create(t.Context(), small("small")); err != nil {
		t.Fatal(err)
	}
	w.look()
	if after := w.parse(w.listed["small"]); after.Revision <= before {
		t.Errorf("revision %d after %d", after.Revision, before)
	}
}

// TestReplaced deletes an offer and creates another one under its name within a second, unseen by the reconciler: registries have the one
// as a revision, so that the other one needs a higher one.
func TestReplaced(t *testing.T) {
	w := newWorld(t, small("small"))
	w.look()
	for _, amount := range []connectorv1alpha1.Amount{"0.20", "0.30"} {
		before := w.parse(w.listed["small"]).Revision
		if err := w.Delete(t.Context(), w.offer("small")); err != nil {
			t.Fatal(err)
		}
		other := small("small")
		other.Spec.Plans[0].Price.Amount = amount
		if err := w.Create(t.Context(), other); err != nil {
			t.Fatal(err)
		}
		w.look()
		if after := w.parse(w.listed["small"]); after.Revision <= before {
			t.Errorf("revision %d after %d", after.Revision, before)
		}
	}
}

// TestKilled has the write of the signature fail: what was not stored is never listed (SetOffers looks), and what was valid before stays.
func TestKilled(t *testing.T) {
	w := newWorld(t, small("small"))
	w.fail = true
	if _, err := w.Reconcile(t.Context(), ctrl.Request{}); err == nil || len(w.listed) != 0 {
		t.Fatalf("error %v, listed %v", err, w.listed)
	}
	w.fail = false
	w.open()
	w.look()
	before := w.listed["small"]
	w.change("small", func(s *connectorv1alpha1.OfferSpec) { s.Title = "Changed" })
	w.fail = true
	if _, err := w.Reconcile(t.Context(), ctrl.Request{}); err == nil || w.listed["small"] != before {
		t.Errorf("error %v, listed another one: %t", err, w.listed["small"] != before)
	}
	w.fail = false
	w.change("small", func(s *connectorv1alpha1.OfferSpec) { s.Title = "Changed again" })
	w.open()
	w.look()
	if got := w.parse(w.listed["small"]); got.Name != "Changed again" {
		t.Errorf("listed %q", got.Name)
	}
	// What somebody else has put into the status is not believed.
	o := w.offer("small")
	other := registrytest.NewParty(t, "other")
	forged := w.parse(w.listed["small"])
	forged.Name = "Forged"
	o.Status.Signed = other.Sign(t, offer.Type, forged)
	if err := w.Status().Update(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	w.now = w.now.Add(time.Second)
	w.look()
	if got := w.parse(w.listed["small"]); got.Name != "Changed again" {
		t.Errorf("listed %q", got.Name)
	}
}

// TestUnguarded takes an offer from the catalogs and from the counter while nothing keeps buyers in bounds, and leaves who has bought its
// limits.
func TestUnguarded(t *testing.T) {
	w := newWorld(t, small("small"))
	w.unguarded = fmt.Errorf("%w: there is no guard", peering.ErrUnguarded)
	sold := func(when string, want bool) {
		t.Helper()
		_, err := w.Offer(t.Context(), "small")
		if _, listed := w.listed["small"]; listed != want || errors.Is(err, negotiation.ErrNotOffered) == want {
			t.Errorf("%s: listed: %t, offered: %v", when, listed, err)
		}
		if limits, err := w.Limits(t.Context(), "small", "s"); err != nil || limits.Capacity.Cpu().Value() != 8 {
			t.Errorf("%s: the limits of who has bought are %+v, %v", when, limits, err)
		}
	}
	w.look()
	sold("at first", false)
	reason, message := w.published("small")
	if signed := w.offer("small").Status.Signed; reason != connectorv1alpha1.ReasonUnguarded ||
		!strings.Contains(message, "there is no guard") || signed != "" {
		t.Errorf("%s: %s; signed %q", reason, message, signed)
	}
	w.unguarded = nil
	for range 3 {
		w.look()
	}
	sold("guarded", true)
	for _, want := range []string{"Warning Unguarded ", "Normal Published "} {
		if event := <-w.events.Events; !strings.HasPrefix(event, want) || len(w.events.Events) > 1 {
			t.Errorf("event %q and %d more, want %s", event, len(w.events.Events), want)
		}
	}

	// What is missing is soon there, also while something is reserved.
	w.unguarded = errors.New("the API server does not answer")
	w.sell("1", "2")
	w.books.Holds[0].Until = w.now.Add(time.Hour)
	if result := w.look(); result.RequeueAfter > 5*time.Second {
		t.Errorf("it is looked at again in %s", result.RequeueAfter)
	}
	sold("nobody can tell", false)
}

// TestInvalid holds that what makes no sense is told, and keeps no other offer back.
func TestInvalid(t *testing.T) {
	cases := map[string]struct {
		change func(*connectorv1alpha1.OfferSpec)
		want   string
	}{
		"Negative": {
			func(s *connectorv1alpha1.OfferSpec) { s.Plans[0].Resources["cpu"] = resource.MustParse("-1") }, `spec.plans[0].resources["cpu"]`,
		},
		"TooFine": {
			func(s *connectorv1alpha1.OfferSpec) { s.Plans[0].Resources["cpu"] = resource.MustParse("1u") }, `spec.plans[0].resources["cpu"]`,
		},
		"Amount": {func(s *connectorv1alpha1.OfferSpec) { s.Plans[0].Price.Amount = "1e1.5" }, "spec.plans[0].price.amount"},
		"Per": {func(s *connectorv1alpha1.OfferSpec) {
			s.Plans[0].UnitPrices = map[string]connectorv1alpha1.UnitPrice{"cpu": {Amount: "1", Per: "8GB"}}
		}, `spec.plans[0].unitPrices["cpu"].per`},
		"NoPods":   {func(s *connectorv1alpha1.OfferSpec) { delete(s.Plans[0].Resources, "pods") }, "pods"},
		"Currency": {func(s *connectorv1alpha1.OfferSpec) { s.Plans[0].Price.Currency = "euro" }, "currency"},
		"Secret":   {func(s *connectorv1alpha1.OfferSpec) { s.Description = "https://user:password@host" }, "description"},
		"Rule": {func(s *connectorv1alpha1.OfferSpec) {
			s.Buyers.Rules = []connectorv1alpha1.BuyerRule{{Expression: "1 +", Verdict: connectorv1alpha1.VerdictAccept}}
		}, "spec.buyers"},
		"Kind": {func(s *connectorv1alpha1.OfferSpec) { s.Kind = connectorv1alpha1.KindBroker }, "spec.kind"},
		"Durations": {func(s *connectorv1alpha1.OfferSpec) {
			s.Plans[0].MinDuration, s.Plans[0].MaxDuration = &metav1.Duration{Duration: 2 * time.Hour}, &metav1.Duration{Duration: time.Hour}
		}, "maxDuration"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, small("small"), small("wrong"))
			w.look()
			w.change("wrong", tc.change)
			w.look()
			reason, message := w.published("wrong")
			if reason != connectorv1alpha1.ReasonInvalidOffer || !strings.Contains(message, tc.want) {
				t.Errorf("%s: %s", reason, message)
			}
			if w.listed["wrong"] != "" || w.listed["small"] == "" {
				t.Error("the wrong offer is listed, or the right one is not")
			}
		})
	}
}

// TestAhead makes an offer again in another process, after the clock was ahead for some days: registries have it within minutes.
func TestAhead(t *testing.T) {
	w := newWorld(t, small("small"))
	const days = 10 * 24 * time.Hour
	w.now = w.now.Add(days)
	w.look()
	seen := w.parse(w.listed["small"]).Revision
	w.now = w.now.Add(-days)
	if err := w.Delete(t.Context(), w.offer("small")); err != nil {
		t.Fatal(err)
	}
	w.look()
	if err := w.Create(t.Context(), small("small")); err != nil {
		t.Fatal(err)
	}
	w.open()
	w.look()
	minutes := 0
	for w.parse(w.listed["small"]).Revision <= seen && minutes < 60 {
		minutes++
		w.now = w.now.Add(time.Minute)
		w.standing = catalog.Standing{Refused: true, Outdated: true, Why: "the revision must grow"}
		w.look()
	}
	if minutes > 5 {
		t.Errorf("it has revision %d after %d minutes, and registries have seen %d", w.parse(w.listed["small"]).Revision, minutes, seen)
	}

	// A registry that is never content changes nothing for others: revisions still grow, and not beyond all bounds.
	for range 60 {
		w.now = w.now.Add(time.Minute)
		w.look()
	}
	if got := time.Unix(w.parse(w.listed["small"]).Revision, 0).Sub(w.now); got > 401*24*time.Hour {
		t.Errorf("revisions are %s ahead", got)
	}
}

// TestStanding says what registries say.
func TestStanding(t *testing.T) {
	w := newWorld(t, small("small"))
	for want, standing := range map[string]catalog.Standing{
		connectorv1alpha1.ReasonNoRegistry:   {},
		connectorv1alpha1.ReasonNotPublished: {Why: "on its way"},
		connectorv1alpha1.ReasonOfferRefused: {Refused: true, Why: "too many"},
		connectorv1alpha1.ReasonPublished:    {Listed: true},
	} {
		w.standing = standing
		w.look()
		if reason, message := w.published("small"); reason != want || !strings.Contains(message, standing.Why) {
			t.Errorf("%s: %s; want %s", reason, message, want)
		}
	}
}

// TestNegotiations asks what a negotiation asks.
func TestNegotiations(t *testing.T) {
	ranged := small("ranged")
	ranged.Spec.Plans[0].Resources = nil
	ranged.Spec.Plans[0].Range = &connectorv1alpha1.OfferRange{
		Min: list("3", "1Gi", "10"), Max: list("6", "2Gi", "20"), Step: list("1", "1Gi", "10"),
	}
	ranged.Spec.Buyers = connectorv1alpha1.Buyers{
		Rules: []connectorv1alpha1.BuyerRule{{Expression: `buyer == "bad"`, Verdict: connectorv1alpha1.VerdictDeny, Reason: "go away"}},
	}
	w := newWorld(t, small("small"), ranged)

	// Before the first look nobody is told that there is nothing.
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := w.Offer(ctx, "small"); err == nil || errors.Is(err, negotiation.ErrNotOffered) {
		t.Errorf("before the first look: %v", err)
	}
	w.look()
	listing, err := w.Offer(t.Context(), "ranged")
	if err != nil || listing.JWS != w.listed["ranged"] || available(listing.Offer) != 2 {
		t.Errorf("listing %+v, %v", listing.Offer, err)
	}
	limits, err := w.Limits(t.Context(), "small", "s")
	if err != nil || limits.Stock != nil || limits.Capacity.Cpu().Value() != 8 {
		t.Errorf("limits %+v, %v", limits, err)
	}
	for _, id := range []string{"none", ""} {
		if _, err := w.Offer(t.Context(), id); !errors.Is(err, negotiation.ErrNotOffered) {
			t.Errorf("offer %q: %v", id, err)
		}
	}
	if _, err := w.Limits(t.Context(), "small", "none"); !errors.Is(err, negotiation.ErrNotOffered) {
		t.Errorf("a plan that is not there: %v", err)
	}
	for _, tc := range []struct {
		offer, buyer string
		want         contract.Verdict
	}{{"small", "bad", contract.Accept}, {"ranged", "bad", contract.Deny}, {"ranged", "good", contract.Ask}} {
		a := negotiation.Application{Buyer: party.ID(tc.buyer), Terms: contract.Terms{Offer: tc.offer}}
		if got, reason, err := w.Admit(t.Context(), a); err != nil || got != tc.want || got == contract.Deny && reason != "go away" {
			t.Errorf("%s buys %s: %s %q %v", tc.buyer, tc.offer, got, reason, err)
		}
	}
	w.now = w.now.Add(2 * time.Hour)
	if _, err := w.Offer(t.Context(), "small"); !errors.Is(err, negotiation.ErrNotOffered) {
		t.Errorf("an offer that is over: %v", err)
	}
}

// TestMeasured holds that what was measured is in the signed offer, and that it is signed again for that only from time to time.
func TestMeasured(t *testing.T) {
	w := newWorld(t, small("small"))
	measured := func(value float64) {
		w.kpis = []offer.KPI{{Name: "availability30d", Value: value, Unit: "ratio", MeasuredAt: w.now.UTC(), MeasuredBy: w.seller.ID, Samples: 2}}
	}
	measured(0.999)
	w.look()
	first := w.parse(w.listed["small"])
	if len(first.KPIs) != 1 || first.KPIs[0] != w.kpis[0] {
		t.Fatalf("the offer has %+v", first.KPIs)
	}
	for _, step := range []struct {
		reason string
		after  time.Duration
		value  float64
		signed bool
	}{
		{"only the time has changed", 10 * time.Minute, 0.999, false},
		{"another value, long after it was signed", 0, 0.998, true},
		{"another value, soon after", time.Minute, 0.997, false},
		{"that value, later", 5 * time.Minute, 0.997, true},
	} {
		before := w.listed["small"]
		w.now = w.now.Add(step.after)
		measured(step.value)
		w.look()
		if got := w.listed["small"] != before; got != step.signed {
			t.Errorf("%s: signed again: %t", step.reason, got)
		}
	}
	if got := w.parse(w.listed["small"]).KPIs; len(got) != 1 || got[0].Value != 0.997 {
		t.Errorf("the offer has %+v", got)
	}
}

// TestLapsed offers again what was reserved and not signed, as soon as the reservation has lapsed, also if nobody removes it from the
// ledger.
func TestLapsed(t *testing.T) {
	w := newWorld(t, small("small"))
	w.books = ledger.Ledger{}.Keep(ledger.Hold{
		Key: ledger.Key{Buyer: "b", ID: "c"}, Offer: "small", Plan: "s", Until: w.now.Add(7 * time.Second),
		Resources: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("8")},
	})
	result := w.look()
	if got := available(w.parse(w.listed["small"])); got != 0 || result.RequeueAfter != 7*time.Second {
		t.Errorf("%d available while all is reserved, to be looked at in %s", got, result.RequeueAfter)
	}
	w.now = w.now.Add(result.RequeueAfter)
	w.look()
	if got, status := available(w.parse(w.listed["small"])), w.offer("small").Status; got != 4 || status.Sold != 0 {
		t.Errorf("%d available after the reservation has lapsed, %d sold", got, status.Sold)
	}
}

// TestHeld has rules see what a buyer has already, by its other contracts, as long as that counts.
func TestHeld(t *testing.T) {
	o := small("small")
	o.Spec.Buyers = connectorv1alpha1.Buyers{Otherwise: connectorv1alpha1.VerdictAsk, Rules: []connectorv1alpha1.BuyerRule{{
		Expression: `buyer.held["cpu"] + terms.resources["cpu"] <= 4.0`, Verdict: connectorv1alpha1.VerdictAccept,
	}}}
	w := newWorld(t, o)
	w.look()
	of := func(buyer, id, cpu string, until time.Time) {
		w.books = w.books.Keep(ledger.Hold{Key: ledger.Key{Buyer: buyer, ID: id}, Offer: "small", Plan: "s", Until: until,
			Resources: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse(cpu),
			}})
	}
	admit := func(want contract.Verdict) {
		t.Helper()
		verdict, reason, err := w.Admit(t.Context(), negotiation.Application{Buyer: "b", Terms: contract.Terms{
			ID: "new", Offer: "small", Resources: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")},
		}})
		if err != nil || verdict != want {
			t.Errorf("with %v: %s %q, %v: want %s", w.books.Of("b", "new", w.now), verdict, reason, err, want)
		}
	}
	admit(contract.Accept)
	of("another", "x", "8", time.Time{})
	of("b", "new", "8", time.Time{}) // What it asks for itself.
	of("b", "x", "2", time.Time{})
	admit(contract.Accept)
	of("b", "y", "500m", w.now.Add(time.Minute))
	admit(contract.Ask)
	w.now = w.now.Add(time.Minute) // The reservation has lapsed.
	admit(contract.Accept)
}
