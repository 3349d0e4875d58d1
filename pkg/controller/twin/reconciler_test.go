// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package twin

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/utils/clock"
	testingclock "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/controller/twin/planning"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/core/grant"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v09/liqotest"
	"github.com/capacitorset/liqo-broker/pkg/snapshot"
	"github.com/capacitorset/liqo-broker/pkg/snapshot/snapshottest"
)

const namespace = "web-consumer"

var (
	providerA = cluster.Identity{ID: "id-a", Name: "provider-a"}
	providerB = cluster.Identity{ID: "id-b", Name: "provider-b"}
	consumer  = cluster.Identity{ID: "id-c", Name: "consumer"}
	broker    = cluster.Identity{ID: "id-broker", Name: "broker"}
)

// ready returns a Provider as the provider controller leaves it.
func ready(id cluster.Identity) *v1alpha1.Provider {
	p := &v1alpha1.Provider{ObjectMeta: metav1.ObjectMeta{Name: string(id.ID)}}
	p.Status.ClusterName, p.Status.LargestPod = id.Name, room("100")
	p.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue}}
	return p
}

// room returns so many cores, with memory.
func room(cores string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cores), corev1.ResourceMemory: resource.MustParse("100Gi")}
}

// cordoned returns a provider that nothing but that keeps from taking pods.
func cordoned(id cluster.Identity) *v1alpha1.Provider {
	p := ready(id)
	p.Spec.Scheduling = v1alpha1.SchedulingCordoned
	p.Status.Conditions[0].Status, p.Status.Conditions[0].Reason = metav1.ConditionFalse, v1alpha1.ReasonCordoned
	return p
}

func off(id cluster.Identity) *v1alpha1.Provider {
	p := ready(id)
	p.Spec.Scheduling = v1alpha1.SchedulingDrained
	p.Status.Conditions[0].Status = metav1.ConditionFalse
	return p
}

// offloaded returns the twin namespace with an offloading that is in force.
func offloaded(selected ...cluster.Identity) []client.Object {
	ids := make([]cluster.ID, len(selected))
	for i, s := range selected {
		ids[i] = s.ID
	}
	ns := liqotest.TwinNamespace(namespace, consumer)
	o := liqotest.Offloading(namespace, ids...)
	liqotest.PutInForce(ns, o, selected...)
	return []client.Object{ns, o}
}

// harness is a reconciler with what it did.
type harness struct {
	t        *testing.T
	client   client.WithWatch
	recorder *record.FakeRecorder
	r        *Reconciler
	deleted  []string
	options  []client.DeleteOptions // Of each deletion.
	// views tells which providers the consumer reaches; nil asks for nothing.
	views func(cluster.ID) grant.Views
}

// newPlanner returns a planner that remembers nothing, and goes by a clock.
func (h *harness) newPlanner(now clock.Clock) *planning.Planner {
	return planning.NewPlanner(h.recorder, now, func(of cluster.ID) grant.Views {
		if h.views == nil {
			return grant.Views{}
		}
		return h.views(of)
	})
}

func start(t *testing.T, objects ...client.Object) *harness {
	t.Helper()
	h := &harness{t: t, recorder: record.NewFakeRecorder(100)}
	objects = append(objects, liqotest.VirtualNode(providerA, true), liqotest.VirtualNode(providerB, true),
		liqotest.VirtualNode(consumer, true))
	h.client = snapshottest.NewClient(t, interceptor.Funcs{
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			h.deleted = append(h.deleted, o.GetName())
			h.options = append(h.options, *(&client.DeleteOptions{}).ApplyOptions(opts))
			return c.Delete(ctx, o, opts...)
		},
	}, objects...)
	h.r = New(Config{
		Client: h.client, Live: h.client, Reader: snapshottest.Reader(h.client, ""), Clock: clock.RealClock{},
		Planner: h.newPlanner(clock.RealClock{}), Recorder: h.recorder, Own: broker, Mapping: "DefaultName",
		Metrics: NewMetrics(prometheus.NewHistogram(prometheus.HistogramOpts{})),
	})
	return h
}

func (h *harness) reconcile() ctrl.Result {
	h.t.Helper()
	result, err := h.r.Reconcile(h.t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: namespace}})
	if err != nil {
		h.t.Fatalf("Reconcile(): %v", err)
	}
	return result
}

// offloading returns the namespace's offloading, or nil.
func (h *harness) offloading() *v09.NamespaceOffloading {
	h.t.Helper()
	o := &v09.NamespaceOffloading{}
	err := h.client.Get(h.t.Context(), client.ObjectKey{Namespace: namespace, Name: liqo.OffloadingName}, o)
	if client.IgnoreNotFound(err) != nil {
		h.t.Fatalf("Get(): %v", err)
	}
	if err != nil {
		return nil
	}
	return o
}

func (h *harness) events() string {
	var all []string
	for len(h.recorder.Events) > 0 {
		all = append(all, <-h.recorder.Events)
	}
	return strings.Join(all, "\n")
}

func TestOffloading(t *testing.T) {
	foreign := liqotest.Offloading(namespace, "elsewhere")
	foreign.Labels = nil
	cases := map[string]struct {
		reason  string
		objects []client.Object
		want    []cluster.ID
		event   string
	}{
		"New": {
			reason:  "A twin namespace is offloaded to all usable providers, and never back to its origin.",
			objects: []client.Object{liqotest.TwinNamespace(namespace, consumer), ready(providerA), ready(providerB), ready(consumer)},
			want:    []cluster.ID{"id-a", "id-b"}, event: reasonSelected,
		},
		"NoProvider": {
			reason:  "Without a usable provider there is no offloading: an empty selector would select all clusters.",
			objects: []client.Object{liqotest.TwinNamespace(namespace, consumer), off(providerA), ready(consumer)},
			event:   planning.ReasonNoProvider,
		},
		"Cordoned": {
			reason:  "A provider that is cordoned keeps the namespace, and gets no new pods.",
			objects: append(offloaded(providerA), cordoned(providerA)),
			want:    []cluster.ID{"id-a"}, event: planning.ReasonNoProvider,
		},
		"Another": {
			reason:  "A provider that becomes usable is added.",
			objects: append(offloaded(providerA), ready(providerA), ready(providerB)),
			want:    []cluster.ID{"id-a", "id-b"}, event: reasonSelected,
		},
		"Drained": {
			reason:  "A provider that is drained and empty is taken out.",
			objects: append(offloaded(providerA, providerB), off(providerA), ready(providerB)),
			want:    []cluster.ID{"id-b"}, event: reasonSelected,
		},
		"AllOff": {
			reason:  "When all are disabled, the selection stays.",
			objects: append(offloaded(providerA), off(providerA)),
			want:    []cluster.ID{"id-a"},
		},
		"Foreign": {
			reason:  "An offloading that somebody else made is left alone.",
			objects: []client.Object{liqotest.TwinNamespace(namespace, consumer), foreign, ready(providerA)},
			want:    []cluster.ID{"elsewhere"}, event: planning.ReasonForeignOffloading,
		},
		"NoTwin": {
			reason: "A namespace with the label alone was not made by Liqo for a consumer.",
			objects: []client.Object{func() client.Object {
				ns := liqotest.TwinNamespace(namespace, consumer)
				ns.Annotations = nil
				return ns
			}(), ready(providerA)},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			h := start(t, tc.objects...)
			h.reconcile()
			var got []cluster.ID
			if o := h.offloading(); o != nil {
				got = v09.OffloadingOf(o).Selected
				if o.Spec.PodOffloadingStrategy != "Remote" && name == "New" {
					t.Errorf("%s\nstrategy %s", tc.reason, o.Spec.PodOffloadingStrategy)
				}
			}
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s\nselected: -want +got\n%s", tc.reason, diff)
			}
			if events := h.events(); (events == "") != (tc.event == "") || !strings.Contains(events, tc.event) {
				t.Errorf("%s\nevents: %q, want %q", tc.reason, events, tc.event)
			}
		})
	}
}

// TestTwinOfLiqo looks at the namespace in which another broker shows its remote IPAM.
func TestTwinOfLiqo(t *testing.T) {
	const twin = "liqo-consumer-93e789"
	if !v09.TwinOfLiqo(twin, consumer) {
		t.Fatalf("%s is not how Liqo calls the namespace", twin)
	}
	h := start(t, liqotest.TwinNamespace(twin, consumer), liqotest.ForeignCluster(consumer, true, true), ready(providerA))
	if _, err := h.r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: twin}}); err != nil {
		t.Fatal(err)
	}
	err := h.client.Get(t.Context(), client.ObjectKey{Namespace: twin, Name: liqo.OffloadingName}, &v09.NamespaceOffloading{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("the namespace was offloaded to providers: %v", err)
	}
}

// TestRefusal lets provider-a have another namespace of the same name.
func TestRefusal(t *testing.T) {
	clock := testingclock.NewFakeClock(time.Unix(1_000_000, 0))
	objects := offloaded(providerA, providerB)
	liqotest.Refuse(objects[1].(*v09.NamespaceOffloading), providerA, clock.Now())
	h := start(t, slices.Concat(objects, workload("liqo-provider-a", "web-0"), []client.Object{ready(providerA), ready(providerB)})...)
	h.r.planner = h.newPlanner(clock)
	selected := func() []cluster.ID { return v09.OffloadingOf(h.offloading()).Selected }
	both := []cluster.ID{providerA.ID, providerB.ID}

	if again := h.reconcile().RequeueAfter; again != planning.RefusalPatience || !slices.Equal(selected(), both) {
		t.Errorf("at first: selected %v, look again after %s: want both, and %s", selected(), again, planning.RefusalPatience)
	}
	clock.Step(planning.RefusalPatience)
	again := h.reconcile().RequeueAfter
	if again != planning.FirstRefusal || !slices.Equal(selected(), []cluster.ID{providerB.ID}) {
		t.Errorf("after the patience: selected %v, look again after %s: want provider-b, and %s", selected(), again, planning.FirstRefusal)
	}
	if events := h.events(); strings.Count(events, planning.ReasonRefused) != 1 || strings.Contains(events, providerA.Name) {
		t.Errorf("events: %q, want one that names no provider", events)
	}
	h.reconcile()
	if events := h.events(); strings.Contains(events, planning.ReasonRefused) {
		t.Errorf("events: %q, want none that repeats the refusal", events)
	}

	// What Liqo notes of provider-a stays as it was, but the provider is not selected.
	o := h.offloading()
	o.Status.RemoteNamespacesConditions = nil
	if err := h.client.Update(t.Context(), o); err != nil {
		t.Fatalf("Update(): %v", err)
	}
	clock.Step(planning.FirstRefusal)
	h.reconcile()
	if !slices.Equal(selected(), both) {
		t.Errorf("later: selected %v, want both: the other namespace may be gone", selected())
	}
}

// TestStrategy offloads namespaces of which the first fits into a name of 63
// characters with what Liqo appends, and the second does not.
func TestStrategy(t *testing.T) {
	const appended = len("-broker-123456")
	for length, want := range map[int]liqo.Mapping{
		63 - appended: "DefaultName",
		64 - appended: "EnforceSameName",
	} {
		name := strings.Repeat("n", length)
		h := start(t, liqotest.TwinNamespace(name, consumer), ready(providerA))
		key := client.ObjectKey{Name: name}
		if _, err := h.r.Reconcile(t.Context(), ctrl.Request{NamespacedName: key}); err != nil {
			t.Fatalf("Reconcile(): %v", err)
		}
		var o v09.NamespaceOffloading
		if err := h.client.Get(t.Context(), client.ObjectKey{Namespace: name, Name: liqo.OffloadingName}, &o); err != nil {
			t.Fatalf("Get(): %v", err)
		}
		if got := liqo.Mapping(o.Spec.NamespaceMappingStrategy); got != want {
			t.Errorf("a namespace whose name has %d characters: strategy %s, want %s", length, got, want)
		}
	}
}

// policy returns a placement policy for all.
func policy(perMinute int32) *v1alpha1.PlacementPolicy {
	p := &v1alpha1.PlacementPolicy{ObjectMeta: metav1.ObjectMeta{Name: "policy"}}
	p.Spec.AppliesTo.Scope, p.Spec.MaxMovesPerMinute = v1alpha1.ScopeDefault, perMinute
	return p
}

// chooses returns what the policy has chosen for the consumer.
func chooses(chosen ...cluster.Identity) *v1alpha1.PlacementDecision {
	var ids []cluster.ID
	for _, c := range chosen {
		ids = append(ids, c.ID)
	}
	return snapshottest.Decision(policy(0), consumer.ID, ids...)
}

// TestPolicy lets a policy choose provider-b, while the pods are on provider-a.
func TestPolicy(t *testing.T) {
	clock := testingclock.NewFakeClock(time.Unix(1_000_000, 0))
	var pods []client.Object
	for _, name := range []string{"one", "two", "three"} {
		pods = append(pods, workload("liqo-provider-a", name+"-0", name+"-1")...)
	}
	h := start(
		t, slices.Concat(offloaded(providerA), pods, []client.Object{ready(providerA), ready(providerB), policy(30), chooses(providerB)})...,
	)
	h.r.pacer = newPacer(clock)

	// New pods go to provider-b before the first one moves there.
	h.reconcile()
	o := h.offloading()
	if got := v09.OffloadingOf(o).Selected; !slices.Equal(got, []cluster.ID{providerA.ID, providerB.ID}) {
		t.Errorf("selected %v, want also the provider that is left, for what runs there", got)
	}
	if got := v09.OffloadingOf(o).Placing; !slices.Equal(got, []cluster.ID{providerB.ID}) || len(h.deleted) > 0 {
		t.Errorf("new pods are placed on %v, deleted %v: want the chosen one, and nothing", got, h.deleted)
	}

	// One at once, and then one in two seconds.
	ns := &corev1.Namespace{}
	if err := h.client.Get(t.Context(), client.ObjectKey{Name: namespace}, ns); err != nil {
		t.Fatalf("Get(): %v", err)
	}
	liqotest.PutInForce(ns, o, providerA, providerB)
	if err := errors.Join(h.client.Update(t.Context(), ns), h.client.Update(t.Context(), o)); err != nil {
		t.Fatalf("Update(): %v", err)
	}
	for n, want := range []string{"one-0", "three-0", "two-0"} {
		again := h.reconcile().RequeueAfter
		if len(h.deleted) != n+1 || h.deleted[n] != want || n < 2 && again != 2*time.Second {
			t.Fatalf("deleted %v, again after %s: want %s, and two seconds", h.deleted, again, want)
		}
		clock.Step(2 * time.Second)
	}
}

// TestLateCache disables a provider of whose pod the cache does not know yet.
func TestLateCache(t *testing.T) {
	objects := append(offloaded(providerA, providerB), off(providerA), ready(providerB))
	h := start(t, objects...)
	h.r.live = snapshottest.NewClient(t, interceptor.Funcs{}, workload("liqo-provider-a", "web-0")...)
	selected := func() []cluster.ID { return v09.OffloadingOf(h.offloading()).Selected }
	if again := h.reconcile().RequeueAfter; !slices.Contains(selected(), providerA.ID) || again != lateness {
		t.Errorf("selected %v, looks again after %s: Liqo removes at once what runs on provider-a", selected(), again)
	}
	h.r.live = h.client
	if h.reconcile(); !slices.Equal(selected(), []cluster.ID{providerB.ID}) {
		t.Errorf("selected %v: nothing runs on provider-a", selected())
	}
}

// TestPodOfOthers disables a provider of a namespace in which a pod runs that is none of Liqo's, and that no cache has.
func TestPodOfOthers(t *testing.T) {
	h := start(t, append(offloaded(providerA, providerB), off(providerA), ready(providerB))...)
	h.r.live = snapshottest.NewClient(t, interceptor.Funcs{}, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "acme-solver", UID: "1"}, Spec: corev1.PodSpec{NodeName: "broker"},
	})
	h.reconcile()
	if selected := v09.OffloadingOf(h.offloading()).Selected; slices.Contains(selected, providerA.ID) {
		t.Errorf("selected %v: nothing of Liqo's runs on provider-a", selected)
	}
}

// TestLateWish disables a provider of whose pod the cache knows, and not yet that a consumer asked for it.
func TestLateWish(t *testing.T) {
	running := workload("liqo-provider-a", "web-0")
	isPod := func(o client.Object) bool { _, is := o.(*corev1.Pod); return is }
	wishless := slices.DeleteFunc(slices.Clone(running), func(o client.Object) bool { return !isPod(o) })
	h := start(t, slices.Concat(offloaded(providerA, providerB), wishless, []client.Object{off(providerA), ready(providerB)})...)
	selected := func() []cluster.ID { return v09.OffloadingOf(h.offloading()).Selected }
	if again := h.reconcile().RequeueAfter; !slices.Contains(selected(), providerA.ID) || again != lateness {
		t.Errorf("selected %v, looks again after %s: Liqo removes at once what runs on provider-a", selected(), again)
	}
	pod := &corev1.Pod{}
	if err := h.client.Get(t.Context(), client.ObjectKeyFromObject(wishless[0]), pod); err != nil {
		t.Fatal(err)
	}
	pod.Status.Phase = corev1.PodSucceeded
	if err := h.client.Status().Update(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	if h.reconcile(); !slices.Equal(selected(), []cluster.ID{providerB.ID}) {
		t.Errorf("selected %v: nothing runs on provider-a", selected())
	}
}

// TestDeletedProvider deletes the record of a provider that is well, and has all copies of a workload.
func TestDeletedProvider(t *testing.T) {
	h := start(t, slices.Concat(offloaded(providerA, providerB), workload("liqo-provider-a", "web-0", "web-1", "web-2"),
		[]client.Object{ready(providerA), ready(providerB)})...)
	selected := func() []cluster.ID { return v09.OffloadingOf(h.offloading()).Selected }
	if err := h.client.Delete(t.Context(), ready(providerA)); err != nil {
		t.Fatal(err)
	}
	h.deleted = nil
	for range 2 {
		h.reconcile()
	}
	if !slices.Contains(selected(), providerA.ID) || len(h.deleted) > 0 {
		t.Errorf("selected %v, deleted %v: Liqo removes at once what runs on provider-a", selected(), h.deleted)
	}
	if err := h.client.Create(t.Context(), ready(providerA)); err != nil {
		t.Fatal(err)
	}
	if h.reconcile(); !slices.Equal(v09.OffloadingOf(h.offloading()).Placing, []cluster.ID{providerA.ID, providerB.ID}) || len(h.deleted) > 0 {
		t.Errorf("with the record again, pods are placed on %v, and deleted %v", v09.OffloadingOf(h.offloading()).Placing, h.deleted)
	}
}

// TestMovesOfOthers has a pod that went astray again and again, so that it is not tried for minutes. Those of another workload move
// meanwhile, one in a second.
func TestMovesOfOthers(t *testing.T) {
	clock := testingclock.NewFakeClock(began)
	h := start(t, slices.Concat(offloaded(providerA, providerB), workload("liqo-provider-a", "a-0", "a-1", "b-0", "b-1"),
		[]client.Object{ready(providerA), ready(providerB), policy(60), chooses(providerB)})...)
	h.r.planner, h.r.pacer = h.newPlanner(clock), newPacer(clock)
	h.r.backoff = flowcontrol.NewFakeBackOff(firstBackoff, maxBackoff, clock)
	for range 12 {
		h.r.backoff.Next(namespace+"/a-0", clock.Now())
	}
	h.reconcile()
	for range 3 {
		clock.Step(time.Second)
		if again := h.reconcile().RequeueAfter; again <= 0 || again > maxBackoff {
			t.Errorf("looks again after %s", again)
		}
	}
	if !slices.Equal(h.deleted, []string{"b-0"}) {
		t.Errorf("deleted %v", h.deleted)
	}
}

// TestUndecided has a policy that has chosen nothing: nothing may be placed anywhere.
func TestUndecided(t *testing.T) {
	h := start(t, liqotest.TwinNamespace(namespace, consumer), ready(providerA), policy(60))
	h.reconcile()
	if o := h.offloading(); o != nil {
		t.Errorf("the namespace is offloaded to %v", v09.OffloadingOf(o).Selected)
	}
	if events := h.events(); !strings.Contains(events, planning.ReasonUndecided) {
		t.Errorf("events: %q", events)
	}
}

// TestTooManyNamespaces has a consumer with more namespaces than it may have: the oldest are
// offloaded, and what is offloaded stays.
func TestTooManyNamespaces(t *testing.T) {
	at := func(name string, second int64) *corev1.Namespace {
		ns := liqotest.TwinNamespace(name, consumer)
		ns.CreationTimestamp = metav1.Unix(second, 0)
		return ns
	}
	stranger := liqotest.TwinNamespace("of-another", cluster.Identity{ID: "id-x", Name: "another"})
	cases := map[string]struct {
		reason  string
		objects []client.Object
		want    bool
	}{
		"Oldest":    {"The first is offloaded.", []client.Object{at(namespace, 1), at("b", 2), at("c", 3)}, true},
		"Last":      {"The last that is allowed is, too.", []client.Object{at("b", 1), at(namespace, 2), at("c", 3), stranger}, true},
		"TooMany":   {"The next one is not.", []client.Object{at("b", 1), at("c", 2), at(namespace, 3)}, false},
		"SameTime":  {"Of two of a second the first by name is.", []client.Object{at("b", 1), at("z", 3), at(namespace, 3)}, true},
		"Offloaded": {"What is offloaded stays.", append(offloaded(providerA), at("b", 0), at("c", 0)), true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			h := start(t, append(tc.objects, ready(providerA))...)
			h.r.most = 2
			again := h.reconcile().RequeueAfter
			if got := h.offloading() != nil; got != tc.want {
				t.Errorf("%s\noffloaded: %t", tc.reason, got)
			}
			if said := strings.Contains(h.events(), planning.ReasonTooMany); said == tc.want || !tc.want && again != lookAgain {
				t.Errorf("%s\nsaid so: %t, looks again after %s", tc.reason, said, again)
			}
		})
	}
}

// TestUndecidedLater has a policy that has chosen nothing in a namespace that was offloaded
// before: what runs stays, and what is new waits.
func TestUndecidedLater(t *testing.T) {
	h := start(t, slices.Concat(offloaded(providerA), workload("liqo-provider-a", "web-0"), []client.Object{ready(providerA), policy(60)})...)
	for range 2 {
		h.reconcile()
	}
	o := h.offloading()
	if got := v09.OffloadingOf(o).Selected; !slices.Equal(got, []cluster.ID{providerA.ID}) || len(h.deleted) > 0 {
		t.Errorf("selected %v, deleted %v: what runs is to stay", got, h.deleted)
	}
	if got := v09.OffloadingOf(o).Placing; len(got) > 0 {
		t.Errorf("new pods are placed on %v, which no policy has chosen", got)
	}
	if events := h.events(); !strings.Contains(events, planning.ReasonUndecided) {
		t.Errorf("events: %q", events)
	}
}

// TestUndecidedOnBroker has a pod on the broker's own node, of a time before the broker
// kept pods from there.
func TestUndecidedOnBroker(t *testing.T) {
	h := start(t, slices.Concat([]client.Object{liqotest.TwinNamespace(namespace, consumer), ready(providerA), policy(60)},
		workload("broker", "web-0"))...)
	h.reconcile()
	if !slices.Equal(h.deleted, []string{"web-0"}) {
		t.Errorf("deleted %v: the pod goes on to run on the broker's own node", h.deleted)
	}
}

// TestUnserved has a consumer whose mode the broker does not run, with a namespace that was offloaded when it did.
func TestUnserved(t *testing.T) {
	wants := &v1alpha1.Consumer{
		ObjectMeta: metav1.ObjectMeta{Name: string(consumer.ID)}, Spec: v1alpha1.ConsumerSpec{Mode: v1alpha1.ModeAggregated},
	}
	orchestratorOnly := func(h *harness) *harness {
		h.r.reader = snapshot.New(v09.Line{}, h.client, broker.ID, func(m v1alpha1.Mode) bool { return m == v1alpha1.ModeOrchestrated })
		return h
	}
	h := orchestratorOnly(start(t, liqotest.TwinNamespace(namespace, consumer), ready(providerA), wants))
	h.reconcile()
	if o := h.offloading(); o != nil {
		t.Errorf("a new namespace is offloaded to %v", v09.OffloadingOf(o).Selected)
	}
	if events := h.events(); !strings.Contains(events, planning.ReasonUnserved) {
		t.Errorf("events: %q", events)
	}

	ns := liqotest.TwinNamespace(namespace, consumer)
	o := liqotest.Offloading(namespace, providerA.ID)
	liqotest.PutInForce(ns, o, providerA)
	shadow := liqotest.ShadowPod(namespace, "web-0", map[string]string{"app": "web"})
	h = orchestratorOnly(start(t, ns, o, ready(providerA), wants, shadow, liqotest.Pod(shadow, "liqo-provider-a", providerA.ID)))
	h.reconcile()
	h.reconcile()
	if o := h.offloading(); !slices.Equal(v09.OffloadingOf(o).Selected, []cluster.ID{providerA.ID}) || len(h.deleted) > 0 {
		t.Errorf("what runs does not stay: selected %v, deleted %v", v09.OffloadingOf(o).Selected, h.deleted)
	}
	if placing := v09.OffloadingOf(h.offloading()).Placing; len(placing) > 0 {
		t.Errorf("new pods are placed on %v", placing)
	}
	h.r.reader = snapshottest.Reader(h.client, broker.ID)
	h.reconcile()
	if placing := v09.OffloadingOf(h.offloading()).Placing; !slices.Equal(placing, []cluster.ID{providerA.ID}) {
		t.Errorf("once the mode is run, new pods are placed on %v", placing)
	}
	if got := h.r.ofConsumer(t.Context(), wants); len(got) != 1 || got[0].Name != namespace {
		t.Errorf("namespaces of the consumer: %v", got)
	}
	if got := h.r.ofConsumer(t.Context(), &v1alpha1.Consumer{ObjectMeta: metav1.ObjectMeta{Name: "other"}}); len(got) > 0 {
		t.Errorf("namespaces of another consumer: %v", got)
	}
}

// TestSuspended suspends a consumer that has a pod, and lets it go on.
func TestSuspended(t *testing.T) {
	c := &v1alpha1.Consumer{ObjectMeta: metav1.ObjectMeta{Name: string(consumer.ID)}}
	suspended := c.DeepCopy()
	suspended.Spec.Scheduling = v1alpha1.ConsumerSuspended
	unasked := c.DeepCopy()
	unasked.Spec.Views = v1alpha1.ViewsUnchecked
	for _, e := range []event.UpdateEvent{
		{ObjectOld: c, ObjectNew: suspended}, {ObjectOld: suspended, ObjectNew: c}, {ObjectOld: c, ObjectNew: unasked},
	} {
		if !servingChanged().Update(e) {
			t.Errorf("nobody looks at the namespaces of %+v", e.ObjectNew)
		}
	}
	if servingChanged().Update(event.UpdateEvent{ObjectOld: c, ObjectNew: c}) {
		t.Error("all namespaces are looked at for nothing")
	}

	h := start(t, slices.Concat(offloaded(providerA), []client.Object{ready(providerA), suspended}, workload("liqo-provider-a", "web-0"))...)
	h.reconcile()
	h.reconcile()
	if o := h.offloading(); len(v09.OffloadingOf(o).Selected) != 1 || len(v09.OffloadingOf(o).Placing) > 0 || len(h.deleted) > 0 {
		t.Errorf("selected %v, new pods go to %v, deleted %v: what runs is to stay, and nothing to come", v09.OffloadingOf(o).Selected,
			v09.OffloadingOf(o).Placing, h.deleted)
	}
	if events := h.events(); !strings.Contains(events, planning.ReasonSuspended) || strings.Contains(events, planning.ReasonUnserved) {
		t.Errorf("events: %q", events)
	}
	suspended.Spec.Scheduling = v1alpha1.ConsumerActive
	if err := h.client.Update(t.Context(), suspended); err != nil {
		t.Fatal(err)
	}
	h.reconcile()
	if got := v09.OffloadingOf(h.offloading()).Placing; !slices.Equal(got, []cluster.ID{providerA.ID}) {
		t.Errorf("new pods of a consumer that is not suspended any more go to %v", got)
	}
}

// TestPacer changes the limit of a policy.
func TestPacer(t *testing.T) {
	clock := testingclock.NewFakeClock(time.Unix(1_000_000, 0))
	p := newPacer(clock)
	pods := make([]string, 1000)
	for _, perMinute := range []int32{6, 600, 0} {
		moved := 0
		for range 600 {
			allowed, _ := p.allow(policy(perMinute), pods)
			moved += len(allowed)
			clock.Step(100 * time.Millisecond)
		}
		if want := max(1, int(perMinute)); moved < want || moved > want+1 {
			t.Errorf("%d pods moved in a minute, want %d", moved, want)
		}
	}
	if allowed, again := p.allow(nil, pods); len(allowed) > 0 || again != 0 {
		t.Errorf("without a policy: %d pods, again after %s", len(allowed), again)
	}
}

// workload returns shadow pods and their ready pods on a node.
func workload(node string, names ...string) []client.Object {
	var objects []client.Object
	for _, name := range names {
		app, _, _ := strings.Cut(name, "-")
		shadow := liqotest.ShadowPod(namespace, name, map[string]string{"app": app})
		objects = append(objects, shadow, liqotest.Pod(shadow, node, providerA.ID, providerB.ID))
	}
	return objects
}

func TestRemake(t *testing.T) {
	shadow := liqotest.ShadowPod(namespace, "web-9", nil)
	untouched := liqotest.Pod(shadow, "")
	alone := liqotest.Pod(liqotest.ShadowPod(namespace, "stray-0", nil), "liqo-provider-a")
	cases := map[string]struct {
		reason  string
		objects []client.Object
		want    []string
	}{
		"Drain": {
			reason: "A quarter of the copies leaves a provider that is disabled.",
			objects: slices.Concat(offloaded(providerA, providerB),
				workload("liqo-provider-a", "web-0", "web-1", "web-2", "web-3", "web-4", "web-5")),
			want: []string{"web-0", "web-1"},
		},
		"OnlyCopy": {
			reason:  "The only copy stays.",
			objects: slices.Concat(offloaded(providerA, providerB), workload("liqo-provider-a", "db-0")),
		},
		"OwnNode": {
			reason:  "A pod that got onto the broker's own node leaves it.",
			objects: slices.Concat(offloaded(providerB), workload("broker", "web-0")),
			want:    []string{"web-0"},
		},
		"NodeGone": {
			reason:  "A pod whose virtual node is gone is recreated, and stands in for no other one, whatever it said last.",
			objects: slices.Concat(offloaded(providerA, providerB), workload("liqo-provider-a", "web-0"), workload("liqo-gone", "web-1")),
			want:    []string{"web-1"},
		},
		"Untouched": {
			reason:  "A pod that waits and that the webhook did not see is recreated.",
			objects: append(offloaded(providerB), shadow, untouched),
			want:    []string{"web-9"},
		},
		"Stray": {
			reason:  "A pod that Liqo would not recreate is not deleted.",
			objects: append(offloaded(providerA, providerB), alone),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			h := start(t, append(tc.objects, off(providerA), ready(providerB))...)
			h.reconcile()
			for i, opts := range h.options {
				if waits := name == "Untouched"; (opts.Preconditions.ResourceVersion != nil) != waits {
					t.Errorf("%s\n%s is deleted as long as it is %+v, want as it is now: %t", tc.reason, h.deleted[i], opts.Preconditions, waits)
				}
			}
			if diff := cmp.Diff(tc.want, h.deleted, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s\ndeleted: -want +got\n%s", tc.reason, diff)
			}
		})
	}
}

// TestRemakeBacksOff lets a pod come back as it was, as it does when Liqo's
// webhook is not there: it must not be deleted again and again at once.
func TestRemakeBacksOff(t *testing.T) {
	shadow := liqotest.ShadowPod(namespace, "web-9", nil)
	h := start(t, append(offloaded(providerB), shadow, liqotest.Pod(shadow, ""), ready(providerB))...)
	h.r.backoff = flowcontrol.NewFakeBackOff(firstBackoff, maxBackoff, testingclock.NewFakeClock(time.Unix(1_000_000, 0)))
	h.reconcile()
	if err := h.client.Create(t.Context(), liqotest.Pod(shadow, "")); err != nil {
		t.Fatalf("Create(): %v", err)
	}
	result := h.reconcile()
	if len(h.deleted) != 1 || result.RequeueAfter <= 0 {
		t.Errorf("deleted %v, requeue after %v: want one deletion and a later try", h.deleted, result.RequeueAfter)
	}
}

// TestRemakeOfBound has the scheduler find a node for a pod that waits with an old selection, just when the pod is to be made again: it
// stays, and is looked at next as what it is.
func TestRemakeOfBound(t *testing.T) {
	shadow := liqotest.ShadowPod(namespace, "web-9", nil)
	h := start(t, append(offloaded(providerB), shadow, liqotest.Pod(shadow, ""), off(providerA), ready(providerB))...)
	h.r.client = interceptor.NewClient(h.client, interceptor.Funcs{
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			if as := (&client.DeleteOptions{}).ApplyOptions(opts).Preconditions; as.ResourceVersion != nil {
				return apierrors.NewConflict(schema.GroupResource{Resource: "pods"}, o.GetName(), errors.New("it has a node"))
			}
			return c.Delete(ctx, o, opts...)
		},
	})
	result := h.reconcile()
	if len(h.deleted) > 0 || result.RequeueAfter > 0 || strings.Contains(h.events(), reasonRecreated) {
		t.Errorf("deleted %v, and looks again in %v: want nothing, and that when the node is known", h.deleted, result.RequeueAfter)
	}
}

// TestWriteFails makes the write of the offloading fail: no pod may move then.
func TestWriteFails(t *testing.T) {
	boom := errors.New("boom")
	h := start(t)
	h.client = snapshottest.NewClient(t, interceptor.Funcs{
		Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
			return boom
		},
		Delete: func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error {
			t.Error("a pod was deleted")
			return nil
		},
	}, slices.Concat(offloaded(providerA), workload("broker", "web-0"), []client.Object{off(providerA), ready(providerB)})...)
	r := New(Config{
		Metrics: h.r.metrics, Client: h.client, Live: h.client, Reader: snapshottest.Reader(h.client, ""), Clock: clock.RealClock{},
		Planner: planning.NewPlanner(h.recorder, clock.RealClock{}, nil), Recorder: h.recorder, Mapping: "DefaultName",
	})
	if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: namespace}}); !errors.Is(err, boom) {
		t.Errorf("Reconcile(): %v, want %v", err, boom)
	}
}
