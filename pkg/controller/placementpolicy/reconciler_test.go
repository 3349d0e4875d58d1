// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package placementpolicy

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/record"
	testingclock "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/core/kpi"
	"github.com/capacitorset/liqo-broker/pkg/lenient"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v09/liqotest"
	"github.com/capacitorset/liqo-broker/pkg/promquery"
	"github.com/capacitorset/liqo-broker/pkg/snapshot/snapshottest"
)

var now = time.Unix(1_800_000_000, 0)

// provider returns one that is ready and has a price.
func provider(id, price string) *v1alpha1.Provider {
	p := &v1alpha1.Provider{ObjectMeta: metav1.ObjectMeta{Name: id}}
	p.Status.ClusterName = "name-" + id
	p.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue}}
	setPrice(p, price)
	return p
}

func setPrice(p *v1alpha1.Provider, price string) {
	p.Status.KPIs = []v1alpha1.KPI{{
		Name: kpi.PriceCPU,
		KPIValue: v1alpha1.KPIValue{
			Value: v1alpha1.Number(price), Unit: "EUR/h", MeasuredTime: metav1.NewTime(now), ExpirationTime: metav1.NewTime(now.Add(time.Hour)),
		},
	}}
}

func consumer(id string) *v1alpha1.Consumer {
	return &v1alpha1.Consumer{ObjectMeta: metav1.ObjectMeta{Name: id}}
}

// cheapest returns the policy of the tests.
func cheapest() *v1alpha1.PlacementPolicy {
	return &v1alpha1.PlacementPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "cheapest", Generation: 1},
		Spec: v1alpha1.PlacementPolicySpec{
			AppliesTo: v1alpha1.AppliesTo{Scope: v1alpha1.ScopeDefault}, Weights: map[string]v1alpha1.Weight{kpi.PriceCPU: -10},
			MaxProviders: new(int32(1)),
			Steady:       v1alpha1.Steadiness{MarginPercent: new(int32(10)), Duration: &metav1.Duration{Duration: time.Minute}},
		},
	}
}

// harness is a reconciler with a clock, its events and its writes.
type harness struct {
	t        *testing.T
	client   client.WithWatch
	clock    *testingclock.FakeClock
	recorder *record.FakeRecorder
	r        *Reconciler
	writes   int
}

func begin(t *testing.T, objects ...client.Object) *harness {
	t.Helper()
	h := &harness{t: t, clock: testingclock.NewFakeClock(now), recorder: record.NewFakeRecorder(100)}
	count := func(o client.Object) {
		if _, is := o.(*v1alpha1.PlacementDecision); is {
			h.writes++
		}
	}
	funcs := snapshottest.OnPatch(func(client.Object) { h.writes++ })
	funcs.Create = func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
		count(o)
		return c.Create(ctx, o, opts...)
	}
	funcs.Update = func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
		count(o)
		return c.Update(ctx, o, opts...)
	}
	funcs.Delete = func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
		count(o)
		return c.Delete(ctx, o, opts...)
	}
	h.client = snapshottest.NewClient(t, funcs, objects...)
	h.r = New(Config{
		Client: h.client, Reader: snapshottest.Reader(h.client, ""), Recorder: h.recorder, Clock: h.clock, Asker: promquery.None{},
	})
	return h
}

// decide lets some time pass and returns the policy after it, and when to look again.
func (h *harness) decide(after time.Duration) (*v1alpha1.PlacementPolicy, time.Duration) {
	h.t.Helper()
	h.clock.Step(after)
	key := client.ObjectKey{Name: "cheapest"}
	result, err := h.r.Reconcile(h.t.Context(), ctrl.Request{NamespacedName: key})
	if err != nil {
		h.t.Fatalf("Reconcile(): %v", err)
	}
	p := &v1alpha1.PlacementPolicy{}
	if err := h.client.Get(h.t.Context(), key, p); err != nil {
		h.t.Fatalf("Get(): %v", err)
	}
	return p, result.RequeueAfter
}

// change changes a provider or the policy.
func (h *harness) change(o client.Object, change func()) {
	h.t.Helper()
	if err := h.client.Get(h.t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
		h.t.Fatalf("Get(): %v", err)
	}
	change()
	if err := h.client.Update(h.t.Context(), o); err != nil {
		h.t.Fatalf("Update(): %v", err)
	}
	change()
	if err := h.client.Status().Update(h.t.Context(), o); err != nil {
		h.t.Fatalf("Status().Update(): %v", err)
	}
}

// all returns what is decided for each consumer, in order of their IDs. It fails if an object is not what its name says.
func (h *harness) all() []v1alpha1.ConsumerDecision {
	h.t.Helper()
	var p v1alpha1.PlacementPolicy
	if err := h.client.Get(h.t.Context(), client.ObjectKey{Name: "cheapest"}, &p); err != nil {
		h.t.Fatal(err)
	}
	var list v1alpha1.PlacementDecisionList
	if err := h.client.List(h.t.Context(), &list); err != nil {
		h.t.Fatal(err)
	}
	var all []v1alpha1.ConsumerDecision
	for _, d := range list.Items {
		if !d.IsOf(&p, d.Consumer) {
			h.t.Errorf("%s is the decision of %q for %q", d.Name, d.Policy, d.Consumer)
		}
		all = append(all, d.ConsumerDecision)
	}
	return all
}

// last returns what is decided for a consumer.
func (h *harness) last(consumer string) v1alpha1.ConsumerDecision {
	h.t.Helper()
	for _, d := range h.all() {
		if d.Consumer == consumer {
			return d
		}
	}
	return v1alpha1.ConsumerDecision{}
}

func (h *harness) chosen() map[string]string {
	h.t.Helper()
	found := map[string]string{}
	for _, d := range h.all() {
		found[d.Consumer] = strings.Join(ids(d.Chosen), ",")
	}
	return found
}

func ids(chosen []v1alpha1.ChosenProvider) (ids []string) {
	for _, c := range chosen {
		ids = append(ids, c.ID)
	}
	return ids
}

func condition(p *v1alpha1.PlacementPolicy) string {
	c := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionDecided)
	return string(c.Status) + " " + c.Reason
}

// TestConsumers has a consumer that is the cheapest provider itself, and one that
// another policy names.
func TestConsumers(t *testing.T) {
	other := cheapest()
	other.Name, other.Spec.AppliesTo = "other", v1alpha1.AppliesTo{Scope: v1alpha1.ScopeConsumers, Consumers: []string{"named"}}
	objects := []client.Object{
		other, consumer("a"), consumer("c"), consumer("named"), provider("a", "1"), provider("b", "2"), provider("z", "3"),
	}
	h := begin(t, append(objects, cheapest())...)
	p, again := h.decide(0)
	if diff := cmp.Diff(map[string]string{"a": "b", "c": "a"}, h.chosen()); diff != "" {
		t.Errorf("chosen: -want +got\n%s", diff)
	}
	if got := condition(p); got != "True Decided" || again != interval {
		t.Errorf("condition %s, again after %s", got, again)
	}

	requested := cheapest()
	requested.Spec.AppliesTo.Scope = v1alpha1.ScopeOnRequest
	h = begin(t, append(objects, requested)...)
	h.decide(0)
	if diff := cmp.Diff(map[string]string{"a": "b", "c": "a", "named": "a"}, h.chosen()); diff != "" {
		t.Errorf("that who wishes it would get: -want +got\n%s", diff)
	}
	unused := cheapest()
	unused.Spec.AppliesTo = v1alpha1.AppliesTo{Scope: v1alpha1.ScopeConsumers, Consumers: []string{"nobody"}}
	h = begin(t, append(objects, unused)...)
	if p, _ = h.decide(0); condition(p) != "True NoConsumer" || len(h.chosen()) != 0 {
		t.Errorf("for nobody: condition %s, chosen %v", condition(p), h.chosen())
	}
}

func TestExplained(t *testing.T) {
	off, stays, down, young := provider("off", "1"), provider("stays", "1"), provider("down", "1"), provider("young", "1")
	young.Status.Conditions = nil
	off.Spec.Scheduling, stays.Spec.Scheduling = v1alpha1.SchedulingDrained, v1alpha1.SchedulingCordoned
	down.Status.Conditions[0] = metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Message: "Not peered"}
	dear := provider("dear", "9")
	dear.Labels = map[string]string{"region": "north"}
	id := cluster.Identity{ID: "dear", Name: "dear"}
	node := liqotest.VirtualNode(id, true)
	node.Labels["region"], node.Labels["arch"] = "south", "arm64"
	lying := node.DeepCopy() // Another cluster's, which says that it is this one's.
	lying.Name, lying.Labels["arch"] = "liqo-zz", "amd64"
	policy := cheapest()
	policy.Spec.Filters = []v1alpha1.Filter{`!("arch" in labels) || labels.arch != "arm64" || labels.region != "north"`}
	h := begin(t, policy, consumer("c"), off, stays, down, young, dear, node, lying, liqotest.ForeignCluster(id, true, false),
		liqotest.Offer(id, nil), provider("b", "2"))
	h.decide(0)
	want := []v1alpha1.ExplainedProvider{
		{ID: "b", Name: "name-b", Chosen: true, Score: "100.0", Terms: []v1alpha1.ExplainedTerm{
			{KPI: "priceCPU", Value: "2", Unit: "EUR/h", Normalized: "1.00", Weight: -10},
		}},
		{ID: "dear", Name: "name-dear", Excluded: fmt.Sprintf("filter %q", policy.Spec.Filters[0])},
		{ID: "down", Name: "name-down", Excluded: "Not peered"},
		{ID: "off", Name: "name-off", Excluded: "The provider is drained"},
		{ID: "stays", Name: "name-stays", Excluded: "The provider is cordoned"},
		{ID: "young", Name: "name-young", Excluded: "The provider is not known yet"},
	}
	if diff := cmp.Diff(want, h.last("c").Explained,
		cmpopts.SortSlices(func(a, b v1alpha1.ExplainedProvider) bool { return a.ID < b.ID })); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// TestBounded has more providers and consumers than a status can explain.
func TestBounded(t *testing.T) {
	objects := []client.Object{cheapest()}
	for i := range 100 {
		objects = append(objects, provider(fmt.Sprintf("p-%03d", i), fmt.Sprint(i)), consumer(fmt.Sprintf("c-%03d", i)))
	}
	h := begin(t, objects...)
	h.decide(0)
	explained := 0
	for _, d := range h.all() {
		if len(d.Chosen) != 1 {
			t.Errorf("%s: chosen %v", d.Consumer, d.Chosen)
		}
		if len(d.Explained) > 0 {
			explained++
			if n := len(d.Explained) + int(d.NotExplained); len(d.Explained) > explainedChosen+explainedPassed+explainedExcluded || n != 100 {
				t.Errorf("%s: %d explained, %d not", d.Consumer, len(d.Explained), d.NotExplained)
			}
		}
	}
	if explained != explainedConsumers {
		t.Errorf("%d consumers have their decision explained, want %d", explained, explainedConsumers)
	}
}

// TestChosenIsExplained has a provider that keeps its place for a while, although many are better by now.
func TestChosenIsExplained(t *testing.T) {
	policy := cheapest()
	policy.Spec.Steady.MarginPercent = new(int32(50))
	h := begin(t, policy, consumer("c"), provider("chosen", "10"), provider("dearest", "100"))
	h.decide(0)
	for i := range explainedPassed + 1 {
		better := provider(fmt.Sprint("p", i), "9")
		status := better.Status
		if err := h.client.Create(t.Context(), better); err != nil {
			t.Fatal(err)
		}
		better.Status = status
		if err := h.client.Status().Update(t.Context(), better); err != nil {
			t.Fatal(err)
		}
	}
	h.decide(2 * time.Minute)
	if got := h.chosen()["c"]; got != "chosen" {
		t.Fatalf("chosen %s", got)
	}
	if !slices.ContainsFunc(h.last("c").Explained, func(e v1alpha1.ExplainedProvider) bool { return e.Chosen }) {
		t.Errorf("nothing explains the one that is chosen: %v", h.last("c").Explained)
	}
}

// TestFailures breaks the policy in each way: what was chosen stays.
func TestFailures(t *testing.T) {
	cases := map[string]struct {
		reason string
		breaks func(*v1alpha1.PlacementPolicySpec)
		want   string
		mark   string
	}{
		"Syntax": {
			reason: "It does not compile.", breaks: func(s *v1alpha1.PlacementPolicySpec) { s.Filters = []v1alpha1.Filter{"kpi."} },
			want: "False InvalidCriteria",
		},
		"Nobody": {
			reason: "Nobody is so cheap.", breaks: func(s *v1alpha1.PlacementPolicySpec) { s.Filters = []v1alpha1.Filter{"kpi.priceCPU < 0"} },
			want: "False NobodyPasses",
		},
		"Spread": {reason: "There are no regions.", breaks: func(s *v1alpha1.PlacementPolicySpec) {
			s.Spread = []v1alpha1.SpreadConstraint{{Label: "region", MinValues: 1}}
		}, want: "False SpreadUnsatisfied"},
		"Long": {reason: "It takes too long.", breaks: func(s *v1alpha1.PlacementPolicySpec) {
			s.Filters = []v1alpha1.Filter{v1alpha1.Filter(strings.Repeat("[1,2,3,4,5,6,7,8,9].all(x, ", 6) + "true" + strings.Repeat(")", 6))}
		}, want: "False FilterFailed"},
		"Unreadable": {reason: "Nobody knows what it demands besides.", breaks: func(s *v1alpha1.PlacementPolicySpec) {
			s.Weights = map[string]v1alpha1.Weight{kpi.PriceCPU: 10}
		}, mark: "spec.steady.duration: missing unit", want: "False InvalidCriteria"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			policy := cheapest()
			h := begin(t, policy, consumer("c"), provider("a", "1"), provider("b", "2"))
			h.decide(0)
			h.change(policy, func() {
				tc.breaks(&policy.Spec)
				policy.Generation, policy.Annotations = 2, map[string]string{lenient.AnnotationUnreadable: tc.mark}
			})
			p, _ := h.decide(time.Minute)
			if got := condition(p); got != tc.want {
				t.Errorf("%s\ncondition %s, want %s", tc.reason, got, tc.want)
			}
			if got := h.chosen()["c"]; got != "a" {
				t.Errorf("%s\nchosen %s, want what was chosen before", tc.reason, got)
			}
			// A spread alone excludes no provider.
			if got, want := h.last("c").Chosen[0].Barred, tc.want != "False SpreadUnsatisfied"; got != want {
				t.Errorf("%s\nnew pods are kept away: %t, want %t", tc.reason, got, want)
			}
			if events := fmt.Sprint(len(h.recorder.Events)); events != "2" {
				t.Errorf("%s events, want one when it decided and one when it ceased to", events)
			}
			h.change(policy, func() {
				policy.Spec.Filters, policy.Spec.Spread = nil, nil
				policy.Generation, policy.Annotations = 3, nil
			})
			if p, _ = h.decide(time.Minute); condition(p) != "True Decided" || h.last("c").Chosen[0].Barred {
				t.Errorf("after it was repaired: condition %s, chosen %+v", condition(p), h.last("c").Chosen)
			}
		})
	}
}

// TestAwayIsNotBarred has a chosen provider out of reach that no filter excludes, while no
// other one passes.
func TestAwayIsNotBarred(t *testing.T) {
	policy, a := cheapest(), provider("a", "1")
	h := begin(t, policy, consumer("c"), a, provider("b", "2"))
	h.decide(0)
	h.change(policy, func() { policy.Spec.Filters = []v1alpha1.Filter{"kpi.priceCPU < 2.0"}; policy.Generation = 2 })
	h.change(a, func() { a.Status.Conditions[0].Status = metav1.ConditionFalse })
	p, _ := h.decide(time.Minute)
	if got := h.last("c").Chosen; condition(p) != "False NobodyPasses" || len(got) != 1 || got[0].ID != "a" || got[0].Barred {
		t.Errorf("condition %s, chosen %+v: want a, which keeps its pods when it is back", condition(p), got)
	}
}

// TestStatusRefused has a policy whose status the API server does not take, because its spec was written before the schema
// became stricter.
func TestStatusRefused(t *testing.T) {
	policy := cheapest()
	policy.Annotations = map[string]string{lenient.AnnotationUnreadable: "spec.steady.duration: missing unit"}
	recorder := record.NewFakeRecorder(1)
	c := snapshottest.NewClient(t, interceptor.Funcs{
		SubResourcePatch: func(context.Context, client.Client, string, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
			return apierrors.NewInvalid(schema.GroupKind{Kind: "PlacementPolicy"}, policy.Name, nil)
		},
	}, policy, consumer("c"), provider("a", "1"))
	clock := testingclock.NewFakeClock(now)
	r := New(Config{Client: c, Reader: snapshottest.Reader(c, ""), Recorder: recorder, Clock: clock, Asker: promquery.None{}})
	for range 3 { // Of which one has an event.
		result, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: policy.Name}})
		if err != nil || result.RequeueAfter != interval {
			t.Fatalf("Reconcile() = %v, %v", result, err)
		}
		clock.Step(interval)
	}
	if event := <-recorder.Events; !strings.Contains(event, "spec.steady.duration") {
		t.Errorf("event: %s", event)
	}
}

// TestSteady lets another provider be better, for long enough.
func TestSteady(t *testing.T) {
	a := provider("a", "1")
	h := begin(t, cheapest(), consumer("c"), a, provider("b", "2"))
	h.decide(0)
	// A spec that was changed a moment ago, as with the price, is no reason to go.
	h.change(a, func() { setPrice(a, "3"); a.Generation = 7 })
	_, again := h.decide(10 * time.Second)
	if h.chosen()["c"] != "a" || again != interval || len(h.last("c").Better) != 1 {
		t.Errorf("at first: chosen %v, again after %s, better %v", h.chosen(), again, h.last("c").Better)
	}
	// The daemon was killed.
	h.r = New(Config{
		Client: h.client, Reader: snapshottest.Reader(h.client, ""), Recorder: h.recorder, Clock: h.clock, Asker: promquery.None{},
	})
	if _, again = h.decide(50 * time.Second); h.chosen()["c"] != "a" || again != 10*time.Second {
		t.Errorf("then: chosen %v, again after %s", h.chosen(), again)
	}
	if h.decide(10 * time.Second); h.chosen()["c"] != "b" || len(h.last("c").Better) > 0 {
		t.Errorf("after a minute: chosen %v", h.chosen())
	}
}

// TestSteadyIsNotEarly begins late in a second, of which the status does not tell.
func TestSteadyIsNotEarly(t *testing.T) {
	a := provider("a", "1")
	h := begin(t, cheapest(), consumer("c"), a, provider("b", "2"))
	h.decide(0)
	h.change(a, func() { setPrice(a, "3") })
	h.decide(10*time.Second + 900*time.Millisecond)
	if h.decide(59*time.Second + 800*time.Millisecond); h.chosen()["c"] != "a" {
		t.Errorf("after less than a minute: chosen %v", h.chosen())
	}
	if h.decide(2 * time.Second); h.chosen()["c"] != "b" {
		t.Errorf("after more than a minute: chosen %v", h.chosen())
	}
}

// TestAway restarts the daemon while the chosen provider is out of reach.
func TestAway(t *testing.T) {
	a := provider("a", "1")
	h := begin(t, cheapest(), consumer("c"), a, provider("b", "2"))
	h.decide(0)
	h.change(a, func() { a.Status.Conditions[0].Status = metav1.ConditionFalse })
	h.decide(10 * time.Second)
	if got := h.last("c").Chosen; h.chosen()["c"] != "a,b" || got[0].AwaySinceTime == nil || got[1].AwaySinceTime != nil {
		t.Errorf("out of reach: chosen %v", got)
	}
	h.r = New(Config{
		Client: h.client, Reader: snapshottest.Reader(h.client, ""), Recorder: h.recorder, Clock: h.clock, Asker: promquery.None{},
	})
	if h.decide(50 * time.Second); h.chosen()["c"] != "a,b" {
		t.Errorf("after 50 s: chosen %v", h.chosen())
	}
	if h.decide(10 * time.Second); h.chosen()["c"] != "b" {
		t.Errorf("after a minute: chosen %v", h.chosen())
	}
}

// TestAwayForAMoment has a provider that would be chosen if none was, and restarts the daemon while it stands in for the chosen one.
func TestAwayForAMoment(t *testing.T) {
	a, b := provider("a", "10"), provider("b", "20")
	h := begin(t, cheapest(), consumer("c"), a, b, provider("dear", "100"))
	h.decide(0)
	h.change(b, func() { setPrice(b, "9") }) // By less than the margin.
	h.change(a, func() { a.Status.Conditions[0].Status = metav1.ConditionFalse })
	h.decide(30 * time.Second)
	if got := h.last("c").Chosen; h.chosen()["c"] != "a,b" || got[0].Substitute || !got[1].Substitute {
		t.Errorf("out of reach: chosen %v", got)
	}
	h.r = New(Config{
		Client: h.client, Reader: snapshottest.Reader(h.client, ""), Recorder: h.recorder, Clock: h.clock, Asker: promquery.None{},
	})
	h.change(a, func() { a.Status.Conditions[0].Status = metav1.ConditionTrue })
	if h.decide(5 * time.Second); h.chosen()["c"] != "a" {
		t.Errorf("after 5 s: chosen %v, want the one that was away for a moment", h.chosen())
	}
}

// TestWrites lets prices wander without another decision.
func TestWrites(t *testing.T) {
	a := provider("a", "1")
	h := begin(t, cheapest(), consumer("c"), a, provider("b", "100"), provider("z", "200"))
	h.decide(0)
	for i := range 60 {
		h.change(a, func() { setPrice(a, fmt.Sprint(i)) })
		h.decide(5 * time.Second)
	}
	// The harness' own writes are no patches.
	if h.writes > 7 {
		t.Errorf("%d writes in five minutes in which only scores changed", h.writes)
	}
	if _, again := h.decide(time.Second); again != time.Second {
		t.Errorf("again after %s, want the rest of the pause", again)
	}
}

// TestNodesOfOneProvider has a provider that is a broker itself, and has two virtual nodes here, in two regions. A cache
// lists them in any order.
func TestNodesOfOneProvider(t *testing.T) {
	policy := cheapest()
	policy.Spec.MaxProviders = nil
	policy.Spec.Filters = []v1alpha1.Filter{`labels["continent"] == "europe"`, `"region" in labels`}
	objects := []client.Object{policy, consumer("c")}
	for id, regions := range map[cluster.ID][]string{"id-b": {"north", "south"}, "id-z": {"north", "north"}, "id-y": {"north"}} {
		provider := provider(string(id), "1")
		identity := cluster.Identity{ID: id, Name: string(id)}
		objects = append(objects, provider, liqotest.ForeignCluster(identity, true, false))
		for i, region := range regions {
			node, offer := liqotest.VirtualNode(identity, true), liqotest.Offer(identity, nil)
			node.Name = fmt.Sprint("liqo-", id, i)
			node.Labels["continent"], node.Labels["region"] = "europe", region
			offer.Name, offer.Spec.NodeName = node.Name, node.Name
			objects = append(objects, node, offer)
		}
	}
	h := begin(t, objects...)
	reversed := false
	h.r.reader = snapshottest.Reader(interceptor.NewClient(h.client, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			err := c.List(ctx, list, opts...)
			if nodes, ok := list.(*corev1.NodeList); ok && reversed {
				slices.Reverse(nodes.Items)
			}
			return err
		},
	}), "")
	for range 4 {
		h.decide(30 * time.Second)
		if got := h.chosen()["c"]; got != "id-y,id-z" {
			t.Errorf("chosen %s, want those that are in one region", got)
		}
		reversed = !reversed
	}
}
