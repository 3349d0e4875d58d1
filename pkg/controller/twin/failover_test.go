// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package twin

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/flowcontrol"
	testingclock "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v09/liqotest"
	"github.com/capacitorset/liqo-broker/pkg/remoteipam"
	"github.com/capacitorset/liqo-broker/pkg/snapshot"
	"github.com/capacitorset/liqo-broker/pkg/snapshot/snapshottest"
)

var began = time.Unix(1_000_000, 0)

// lose does what happens when provider-a is lost, or back.
func (h *harness) lose(lost bool) {
	h.t.Helper()
	var node corev1.Node
	var p v1alpha1.Provider
	err := errors.Join(
		h.client.Get(h.t.Context(), client.ObjectKey{Name: "liqo-provider-a"}, &node),
		h.client.Get(h.t.Context(), client.ObjectKey{Name: string(providerA.ID)}, &p))
	if err != nil {
		h.t.Fatalf("Get(): %v", err)
	}
	node.Status, p.Status = liqotest.VirtualNode(providerA, !lost).Status, ready(providerA).Status
	if lost {
		p.Status.Conditions[0].Status = metav1.ConditionFalse
		snapshottest.Lose(&p, began)
	}
	if err := errors.Join(h.client.Status().Update(h.t.Context(), &node), h.client.Status().Update(h.t.Context(), &p)); err != nil {
		h.t.Fatalf("Update(): %v", err)
	}
}

// startLost returns a harness in which web-0 and web-1 are on provider-a, which is
// lost, and web-2 is on provider-b.
func startLost(t *testing.T, clock *testingclock.FakeClock, more ...client.Object) *harness {
	t.Helper()
	h := start(t, slices.Concat(offloaded(providerA, providerB), workload("liqo-provider-a", "web-0", "web-1"),
		workload("liqo-provider-b", "web-2"), []client.Object{ready(providerA), ready(providerB)}, more)...)
	h.r.planner = h.newPlanner(clock)
	h.lose(true)
	return h
}

func TestFailover(t *testing.T) {
	clock := testingclock.NewFakeClock(began.Add(10 * time.Second))
	h := startLost(t, clock)
	if again := h.reconcile().RequeueAfter; len(h.deleted) > 0 || again != 20*time.Second {
		t.Fatalf("deleted %v, again after %s: want nothing in the grace, and a look at its end", h.deleted, again)
	}
	clock.Step(20 * time.Second)
	h.reconcile()
	if got := v09.OffloadingOf(h.offloading()).Placing; !slices.Equal(got, []cluster.ID{providerB.ID}) || len(h.deleted) > 0 {
		t.Fatalf("new pods go to %v, deleted %v: want them led past the lost provider first", got, h.deleted)
	}
	if got := v09.OffloadingOf(h.offloading()).Selected; len(got) != 2 {
		t.Errorf("selected %v: what runs on the lost provider would be removed when it returns", got)
	}
	h.reconcile()
	if diff := cmp.Diff([]string{"web-0", "web-1"}, h.deleted); diff != "" {
		t.Errorf("deleted: -want +got\n%s", diff)
	}
	for i, opts := range h.options {
		if opts.GracePeriodSeconds == nil || *opts.GracePeriodSeconds != 0 || opts.Preconditions == nil || *opts.Preconditions.UID == "" {
			t.Errorf("%s was deleted with %+v: nobody ends it on a lost provider, and another of its name may be there", h.deleted[i], opts)
		}
	}
	if events := h.events(); !strings.Contains(events, reasonReplaced) || strings.Contains(events, providerA.Name) {
		t.Errorf("events: %q, want the reason, and no provider's name, which consumers would see", events)
	}
}

// TestFailoverIsConfirmed has a broker that was late: its cache says that the provider is lost, and its virtual node is ready again, or
// nobody looks at it.
func TestFailoverIsConfirmed(t *testing.T) {
	for _, is := range []corev1.ConditionStatus{corev1.ConditionTrue, corev1.ConditionUnknown} {
		h := startLost(t, testingclock.NewFakeClock(began.Add(time.Minute)))
		node := liqotest.VirtualNode(providerA, true)
		node.Status.Conditions[0].Status = is
		h.r.live = snapshottest.NewClient(t, interceptor.Funcs{}, node)
		h.reconcile()
		if again := h.reconcile().RequeueAfter; len(h.deleted) > 0 || again != lateness {
			t.Errorf("deleted %v of a provider whose node is ready: %s, looks again after %s", h.deleted, is, again)
		}
		h.r.live = h.client
		if h.reconcile(); len(h.deleted) != 2 {
			t.Errorf("deleted %v of a provider that is lost after all", h.deleted)
		}
	}
}

// TestFailoverCancelled lets the provider return when new pods are already led past it.
func TestFailoverCancelled(t *testing.T) {
	clock := testingclock.NewFakeClock(began.Add(time.Minute))
	h := startLost(t, clock)
	h.reconcile()
	h.lose(false)
	h.reconcile()
	h.reconcile()
	if len(h.deleted) > 0 {
		t.Errorf("deleted %v on a provider that is back", h.deleted)
	}
	if got := v09.OffloadingOf(h.offloading()).Placing; len(got) != 2 {
		t.Errorf("new pods go to %v", got)
	}
}

// TestFailoverOfPolicy has policies that say otherwise than the default.
func TestFailoverOfPolicy(t *testing.T) {
	cases := map[string]struct {
		reason string
		rule   v1alpha1.Failover
		want   []string
	}{
		"Never":     {reason: "Never, whatever time passes.", rule: v1alpha1.Failover{Mode: v1alpha1.FailoverNever}},
		"Longer":    {reason: "A longer grace.", rule: v1alpha1.Failover{Grace: &metav1.Duration{Duration: 2 * time.Hour}}},
		"Immediate": {reason: "At once.", rule: v1alpha1.Failover{Mode: v1alpha1.FailoverImmediate}, want: []string{"web-0", "web-1"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := policy(60)
			p.Spec.Failover = tc.rule
			h := startLost(t, testingclock.NewFakeClock(began.Add(time.Hour)), p, chooses(providerA, providerB))
			h.reconcile()
			h.reconcile()
			if diff := cmp.Diff(tc.want, h.deleted, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s\ndeleted: -want +got\n%s", tc.reason, diff)
			}
		})
	}
}

// TestWithdrawn drains a provider that takes its offer back.
func TestWithdrawn(t *testing.T) {
	p := ready(providerA)
	p.Status.Conditions[0].Status, p.Status.Conditions[0].Reason = metav1.ConditionFalse, v1alpha1.ReasonWithdrawn
	h := start(t, slices.Concat(offloaded(providerA, providerB), workload("liqo-provider-a", "web-0", "web-1", "web-2", "web-3", "db-0"),
		[]client.Object{p, ready(providerB)})...)
	h.reconcile()
	h.reconcile()
	if diff := cmp.Diff([]string{"web-0"}, h.deleted); diff != "" {
		t.Errorf("deleted: -want +got\n%s", diff)
	}
	if len(h.options) > 0 && h.options[0].GracePeriodSeconds != nil {
		t.Error("a pod was not given the time to end")
	}
}

// TestPeeringEnded removes a pod that Liqo has evicted and nobody can end: its virtual kubelet has gone first.
func TestPeeringEnded(t *testing.T) {
	never := policy(60)
	never.Spec.Failover = v1alpha1.Failover{Mode: v1alpha1.FailoverNever}
	clock := testingclock.NewFakeClock(began.Add(time.Minute))
	h := startLost(t, clock, never, chooses(providerA, providerB))
	var p v1alpha1.Provider
	if err := h.client.Get(t.Context(), client.ObjectKey{Name: string(providerA.ID)}, &p); err != nil {
		t.Fatal(err)
	}
	p.Status.Conditions[0].Reason = v1alpha1.ReasonPeeringEnds
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web-0"}}
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata": {"finalizers": ["example.com/keeps"]}}`))
	if err := errors.Join(h.client.Status().Update(t.Context(), &p), h.client.Patch(t.Context(), pod, patch),
		h.client.Delete(t.Context(), pod)); err != nil {
		t.Fatal(err)
	}
	h.deleted, h.options = nil, nil
	h.reconcile()
	h.reconcile()
	if diff := cmp.Diff([]string{"web-0", "web-1"}, h.deleted); diff != "" {
		t.Errorf("deleted: -want +got\n%s", diff)
	}
	for _, opts := range h.options {
		if opts.GracePeriodSeconds == nil || *opts.GracePeriodSeconds != 0 {
			t.Errorf("deleted with %+v, and nobody is there to end it", opts)
		}
	}
}

// TestSingletons moves a workload of one copy if the policy says so.
func TestSingletons(t *testing.T) {
	p := policy(60)
	p.Spec.MoveSingletons = v1alpha1.SingletonsWithGap
	h := start(t, slices.Concat(offloaded(providerA, providerB), workload("liqo-provider-a", "db-0"),
		[]client.Object{off(providerA), ready(providerB), p, chooses(providerB)})...)
	h.reconcile()
	h.reconcile()
	if diff := cmp.Diff([]string{"db-0"}, h.deleted); diff != "" {
		t.Errorf("deleted: -want +got\n%s", diff)
	}
}

// TestLostChanges lets the changes of a Provider pass that begin and end a failover.
func TestLostChanges(t *testing.T) {
	for name, change := range map[string]func(*v1alpha1.Provider){
		"Lost":      func(p *v1alpha1.Provider) { snapshottest.Lose(p, time.Now()) },
		"Withdrawn": func(p *v1alpha1.Provider) { p.Status.Conditions[0].Reason = v1alpha1.ReasonWithdrawn },
	} {
		before, after := off(providerA), off(providerA)
		change(after)
		if !passes(before, after) || !passes(after, before) {
			t.Errorf("%s: the change does not pass", name)
		}
	}
}

func passes(before, after *v1alpha1.Provider) bool {
	return providerChanged().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after})
}

// TestAskAgain has a lost provider that the consumer reaches past the broker: nobody tells
// when it does not any more.
func TestAskAgain(t *testing.T) {
	lost := ready(providerA)
	snapshottest.Lose(lost, time.Now())
	said := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: liqotest.Tenant(providerA), Name: remoteipam.DirectName},
		Data:       map[string]string{string(consumer.ID): "10.1.0.0/16"},
	}
	for reason, tc := range map[string]struct {
		objects []client.Object
		within  time.Duration
	}{
		"It is asked again soon.":                    {[]client.Object{lost, said}, 2 * snapshot.DirectAge},
		"Without a way of its own there is no need.": {[]client.Object{ready(providerA), said}, 0},
	} {
		h := start(t, append(tc.objects, liqotest.ForeignCluster(providerA, true, false), liqotest.TwinNamespace("web-consumer", consumer))...)
		result, err := h.r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: "web-consumer"}})
		if err != nil {
			t.Fatal(err)
		}
		if result.RequeueAfter != tc.within {
			t.Errorf("%s\nagain after %s, want %s", reason, result.RequeueAfter, tc.within)
		}
	}
}

// TestNoRoomForReplacements has pods on a lost provider, and another one that has room for none of them, and then for one.
func TestNoRoomForReplacements(t *testing.T) {
	h := startLost(t, testingclock.NewFakeClock(began.Add(time.Minute)))
	roomOfB := func(cores string) {
		var b v1alpha1.Provider
		err := h.client.Get(t.Context(), client.ObjectKey{Name: string(providerB.ID)}, &b)
		b.Status.LargestPod = room(cores)
		if err := errors.Join(err, h.client.Status().Update(t.Context(), &b)); err != nil {
			t.Fatal(err)
		}
	}
	roomOfB("100m")
	for _, name := range []string{"web-0", "web-1"} {
		var pod corev1.Pod
		err := h.client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, &pod)
		core := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
		pod.Spec.Containers = []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{Requests: core}}}
		if err := errors.Join(err, h.client.Update(t.Context(), &pod)); err != nil {
			t.Fatal(err)
		}
	}
	for range 3 {
		if again := h.reconcile().RequeueAfter; len(h.deleted) > 0 || again > lookForRoom {
			t.Fatalf("deleted %v, which fit nowhere, and looks again after %s", h.deleted, again)
		}
	}
	roomOfB("1500m")
	if h.reconcile(); !slices.Equal(h.deleted, []string{"web-0"}) {
		t.Errorf("deleted %v: there is room for one", h.deleted)
	}
}

// recreate makes a pod again, as Liqo does, with what the webhooks make it require at this moment. It waits.
func (h *harness) recreate(name string) {
	h.t.Helper()
	o := h.offloading()
	app, _, _ := strings.Cut(name, "-")
	shadow := liqotest.ShadowPod(namespace, name, map[string]string{"app": app})
	pod := liqotest.Pod(shadow, "", v09.OffloadingOf(o).Selected...)
	if placing := v09.OffloadingOf(o).Placing; !slices.Equal(placing, v09.OffloadingOf(o).Selected) {
		liqo.Place(pod, placing)
	}
	if err := h.client.Create(h.t.Context(), pod); err != nil {
		h.t.Fatalf("Create(): %v", err)
	}
}

// TestReturn replaces the pods of a lost provider, and the other one turns out to have no room for them: when the first is
// back, they can go there again.
func TestReturn(t *testing.T) {
	clock := testingclock.NewFakeClock(began.Add(time.Minute))
	h := startLost(t, clock)
	h.r.backoff = flowcontrol.NewFakeBackOff(firstBackoff, maxBackoff, clock)
	h.reconcile() // Leads new pods past the lost provider.
	h.reconcile()
	replaced := []string{"web-0", "web-1"}
	if !slices.Equal(h.deleted, replaced) {
		t.Fatalf("deleted %v, want %v", h.deleted, replaced)
	}
	for _, name := range replaced {
		h.recreate(name)
	}
	h.lose(false)
	clock.Step(time.Minute)
	h.deleted = nil
	h.reconcile() // Places pods on both again.
	h.reconcile()
	if !slices.Equal(h.deleted, replaced) {
		t.Fatalf("deleted %v, want %v: they wait for provider-b alone", h.deleted, replaced)
	}
	clock.Step(time.Minute)
	h.deleted = nil
	for _, name := range replaced {
		h.recreate(name)
	}
	if h.reconcile(); len(h.deleted) > 0 {
		t.Errorf("deleted %v, which may go to both providers", h.deleted)
	}
}
