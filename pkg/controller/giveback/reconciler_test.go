// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package giveback

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	testingclock "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/core/nodename"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v09/liqotest"
	"github.com/capacitorset/liqo-broker/pkg/snapshot/snapshottest"
)

const (
	namespace = "web-consumer"
	own       = cluster.ID("id-broker")
	after     = 2 * time.Minute
	shortage  = "0/3 nodes are available: 3 Insufficient cpu."
)

var began = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// waiting returns a pod of a Deployment that the scheduler cannot place since it was
// made.
func waiting(name string, made time.Time) *corev1.Pod {
	pod := liqotest.Pod(liqotest.ShadowPod(namespace, name, map[string]string{"app": "web", "pod-template-hash": "5d"}), "")
	pod.CreationTimestamp = metav1.NewTime(made)
	pod.Status.Phase = corev1.PodPending
	pod.Status.Conditions = []corev1.PodCondition{{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
		Message: shortage, LastTransitionTime: metav1.NewTime(made),
	}}
	return pod
}

// harness is a Reconciler with a clock that a test sets.
type harness struct {
	*Reconciler

	t      *testing.T
	clock  *testingclock.FakePassiveClock
	events *record.FakeRecorder
}

func newHarness(t *testing.T, c client.Client) *harness {
	t.Helper()
	h := &harness{t: t, clock: testingclock.NewFakePassiveClock(began), events: record.NewFakeRecorder(100)}
	h.Reconciler = New(Config{
		Client: c, Recorder: h.events, Reader: snapshottest.Reader(c, own), After: after,
		Given: prometheus.NewCounterVec(prometheus.CounterOpts{}, []string{"consumer"}), Clock: h.clock,
	})
	return h
}

// look reconciles a pod at a time after the beginning, and returns it and when to
// look again.
func (h *harness) look(name string, at time.Duration) (*corev1.Pod, time.Duration) {
	h.t.Helper()
	h.clock.SetTime(began.Add(at))
	key := client.ObjectKey{Namespace: namespace, Name: name}
	result, err := h.Reconcile(h.t.Context(), ctrl.Request{NamespacedName: key})
	if err != nil {
		h.t.Fatalf("Reconcile(): %v", err)
	}
	pod := &corev1.Pod{}
	if err := h.Client.Get(h.t.Context(), key, pod); err != nil {
		h.t.Fatalf("Get(): %v", err)
	}
	return pod, result.RequeueAfter
}

func twin() *corev1.Namespace {
	return liqotest.TwinNamespace(namespace, cluster.Identity{ID: "id-c", Name: "consumer"})
}

// orchestrated returns the consumer, as one that may know the providers.
func orchestrated() *v1alpha1.Consumer {
	consumer := &v1alpha1.Consumer{ObjectMeta: metav1.ObjectMeta{Name: "id-c"}}
	consumer.Status.Mode = v1alpha1.ModeOrchestrated
	return consumer
}

// TestHidden tells a consumer that must not learn of providers why its pod was given back.
func TestHidden(t *testing.T) {
	aggregated := orchestrated()
	aggregated.Status.Mode = v1alpha1.ModeAggregated
	h := newHarness(t, snapshottest.NewClient(t, interceptor.Funcs{}, twin(), aggregated, waiting("web-0", began)))
	got, _ := h.look("web-0", after)
	if got.Status.Phase != corev1.PodFailed || strings.Contains(got.Status.Message, "nodes") {
		t.Errorf("phase %s, message %q: it counts the providers", got.Status.Phase, got.Status.Message)
	}
}

// TestUnclear tells the owner of a pod whose wish is mistyped, whether the pod is given back or stays.
func TestUnclear(t *testing.T) {
	for name, tc := range map[string]struct {
		wish  string
		bare  bool
		wants string
	}{
		"Given":  {"5 minutes", false, `and it is given back. The annotation brokering.liqo.io/give-back says "5 minutes", which is neither`},
		"Stays":  {"never", true, `says so. The annotation brokering.liqo.io/give-back says "never", which is neither a duration, such as `},
		"Known":  {"never", true, `10m, nor Never. `},
		"Long":   {strings.Repeat("5", 99), true, `says "` + strings.Repeat("5", 37) + `...", which`},
		"Wish":   {"3m", false, ""},
		"Never":  {Never, false, ""},
		"Nobody": {"", true, ""},
	} {
		pod := waiting("web-0", began)
		pod.Annotations = map[string]string{AnnotationGiveBack: tc.wish}
		if tc.bare {
			pod.Labels = map[string]string{}
		}
		h := newHarness(t, snapshottest.NewClient(t, interceptor.Funcs{}, twin(), orchestrated(), pod))
		h.look("web-0", 4*time.Minute)
		if event := <-h.events.Events; tc.wants == "" && strings.Contains(event, "neither") || !strings.Contains(event, tc.wants) {
			t.Errorf("%s: its owner is told %q, want %q", name, event, tc.wants)
		}
	}
}

func TestReconcile(t *testing.T) {
	cases := map[string]struct {
		reason string
		change func(*corev1.Pod)
		at     time.Duration
		given  bool
		again  time.Duration
		event  bool
	}{
		"Early": {reason: "A pod has its time.", at: 90 * time.Second, again: 30 * time.Second},
		"Late":  {reason: "After it the pod is given back.", at: after, given: true, event: true},
		"Bound": {reason: "A pod that has a node is none of ours.", at: after, change: func(p *corev1.Pod) { p.Spec.NodeName = "n" }},
		"Leaving": {
			reason: "Nor is one that is being deleted.", at: after, change: func(p *corev1.Pod) {
				p.DeletionTimestamp = new(metav1.Now())
				p.Finalizers = []string{"a/b"}
			},
		},
		"Gated": {
			reason: "Nor is one that somebody holds back.", at: after, change: func(p *corev1.Pod) {
				p.Status.Conditions[0].Reason = "SchedulingGated"
			},
		},
		"Bare": {
			reason: "Nothing recreates a pod without a controller: it stays, and an event says why.", at: after,
			change: func(p *corev1.Pod) { delete(p.Labels, "pod-template-hash") }, event: true,
		},
		"BareEarly": {
			reason: "Nobody is told before its time.", at: time.Minute, change: func(p *corev1.Pod) { delete(p.Labels, "pod-template-hash") },
			again: time.Minute,
		},
		"BareWish": {reason: "Its owner may wish otherwise.", at: 31 * time.Second, change: func(p *corev1.Pod) {
			p.Labels = map[string]string{}
			p.Annotations = map[string]string{AnnotationGiveBack: "30s"}
		}, given: true, event: true},
		"Never": {
			reason: "And may wish it never.", at: time.Hour, change: func(p *corev1.Pod) {
				p.Annotations = map[string]string{AnnotationGiveBack: Never}
			}, event: true,
		},
		"TooShort": {
			reason: "No wish is shorter than the scheduler needs.", at: time.Second, change: func(p *corev1.Pod) {
				p.Annotations = map[string]string{AnnotationGiveBack: "1ms"}
			}, again: 4 * time.Second,
		},
		"NoWish": {
			reason: "What nobody understands is no wish.", at: time.Minute, change: func(p *corev1.Pod) {
				p.Annotations = map[string]string{AnnotationGiveBack: "soon"}
			}, again: time.Minute,
		},
		"JobsBatch": {
			reason: "A Job recreates its pods.", at: after, change: func(p *corev1.Pod) {
				p.Labels = map[string]string{"batch.kubernetes.io/job-name": "j"}
			}, given: true, event: true,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			pod := waiting("web-0", began)
			if tc.change != nil {
				tc.change(pod)
			}
			h := newHarness(t, snapshottest.NewClient(t, interceptor.Funcs{}, twin(), orchestrated(), pod))
			got, again := h.look("web-0", tc.at)
			if given := got.Status.Phase == corev1.PodFailed; given != tc.given {
				t.Errorf("%s\nphase %s", tc.reason, got.Status.Phase)
			}
			if again != tc.again {
				t.Errorf("%s\nlooks again after %s, want %s", tc.reason, again, tc.again)
			}
			if (len(h.events.Events) > 0) != tc.event {
				t.Errorf("%s\n%d events", tc.reason, len(h.events.Events))
			}
			if !tc.given {
				return
			}
			if got.Status.Reason != "OffloadingAborted" || !strings.Contains(got.Status.Message, shortage) {
				t.Errorf("%s\nreason %q, message %q", tc.reason, got.Status.Reason, got.Status.Message)
			}
			types := []corev1.PodConditionType{}
			for _, c := range got.Status.Conditions {
				types = append(types, c.Type)
			}
			if !slices.Equal(types, []corev1.PodConditionType{corev1.PodScheduled, corev1.DisruptionTarget}) {
				t.Errorf("%s\nconditions %v: a Job's podFailurePolicy cannot tell", tc.reason, types)
			}
		})
	}
}

// TestPinned has pods that may run on one provider only.
func TestPinned(t *testing.T) {
	a := cluster.Identity{ID: "id-a", Name: "provider-a"}
	node := nodename.Name(own, a)
	provider := func(is v1alpha1.Scheduling) *v1alpha1.Provider {
		p := &v1alpha1.Provider{ObjectMeta: metav1.ObjectMeta{Name: string(a.ID)}}
		p.Spec.Scheduling = is
		return p
	}
	lost := provider(v1alpha1.SchedulingActive)
	lost.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse}}
	offloaded := func(to ...cluster.ID) client.Object { return liqotest.Offloading(namespace, to...) }
	c := cluster.Identity{ID: "id-c", Name: "consumer"}
	offered := liqotest.OfferTo(c, nil)
	offered.Spec.NodeName = node
	cases := map[string]struct {
		reason  string
		objects []client.Object
		wish    string
		given   bool
		message string
	}{
		"Chosen": {
			reason: "The provider may have room later.", objects: []client.Object{provider(v1alpha1.SchedulingActive), offloaded("id-a", "id-b")},
		},
		"Unchosen": {
			reason: "The provider gets no pod of the namespace.", objects: []client.Object{provider(v1alpha1.SchedulingActive), offloaded("id-b")},
			given: true, message: "takes no pods of the namespace",
		},
		"Cordoned": {
			reason: "It is cordoned.", objects: []client.Object{provider(v1alpha1.SchedulingCordoned), offloaded("id-a")}, given: true,
			message: "cordoned",
		},
		"Drained": {
			reason:  "It is drained, though something still runs there.",
			objects: []client.Object{provider(v1alpha1.SchedulingDrained), offloaded("id-a")}, given: true, message: "drained",
		},
		"Lost": {
			reason: "It is out of reach, and others may be not.", objects: []client.Object{lost, offloaded("id-a")}, given: true,
			message: "not ready",
		},
		"Gone": {
			reason: "It is gone, and its node stays.", objects: []client.Object{liqotest.ForeignCluster(c, false, true), offered, offloaded("id-b")},
			given: true, message: "is gone",
		},
		"Stranger": {reason: "A node that only looks like it is not ours.", objects: []client.Object{offloaded("id-b")}},
		"OwnersWay": {
			reason: "The owner of a pod may wish otherwise.", objects: []client.Object{provider(v1alpha1.SchedulingDrained), offloaded("id-b")},
			wish: "1m",
		},
		"NotYet": {reason: "A namespace that is not offloaded yet will be.", objects: []client.Object{provider(v1alpha1.SchedulingActive)}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			pod := waiting("web-0", began)
			pod.Labels["virtualkubelet.liqo.io/nodename"] = node
			if tc.wish != "" {
				pod.Annotations = map[string]string{AnnotationGiveBack: tc.wish}
			}
			h := newHarness(t, snapshottest.NewClient(t, interceptor.Funcs{}, append(tc.objects, twin(), pod)...))
			got, _ := h.look("web-0", 6*time.Second)
			if given := got.Status.Phase == corev1.PodFailed; given != tc.given || !strings.Contains(got.Status.Message, tc.message) {
				t.Errorf("%s\nphase %s, message %q", tc.reason, got.Status.Phase, got.Status.Message)
			}
		})
	}
}

// TestStranger leaves a pod alone that no consumer has put there.
func TestStranger(t *testing.T) {
	ns := twin()
	ns.Annotations = nil
	h := newHarness(t, snapshottest.NewClient(t, interceptor.Funcs{}, ns, waiting("web-0", began)))
	if pod, _ := h.look("web-0", time.Hour); pod.Status.Phase == corev1.PodFailed {
		t.Error("a pod of the broker's own was ended")
	}
}

// TestBackOff gives pods of one workload back, each made in the second in which the
// one before was: the next one waits twice as long. Those made together are given
// back together.
func TestBackOff(t *testing.T) {
	const late = 700 * time.Millisecond
	c := snapshottest.NewClient(t, interceptor.Funcs{}, twin())
	h := newHarness(t, c)
	made := time.Duration(0)
	for _, wait := range []time.Duration{after, 2 * after, 4 * after, 8 * after, 16 * after, time.Hour, time.Hour} {
		for i, name := range []string{"web-0", "web-1"} {
			pod := waiting(name, began.Add(made))
			if err := c.Create(t.Context(), pod); err != nil {
				t.Fatal(err)
			}
			if _, again := h.look(name, made+late); again != wait-late {
				t.Fatalf("pod %d waits %s, want %s", i, again+late, wait)
			}
		}
		made += wait
		for _, name := range []string{"web-0", "web-1"} {
			pod, _ := h.look(name, made+late)
			if pod.Status.Phase != corev1.PodFailed {
				t.Fatalf("%s was not given back after %s", name, wait)
			}
			if err := c.Delete(t.Context(), pod); err != nil {
				t.Fatal(err)
			}
		}
	}
	h.patience.note("other", began, h.clock.Now().Add(3*longest), after)
	if len(h.patience) != 1 {
		t.Errorf("%d workloads are remembered, want only the last one", len(h.patience))
	}
}

// TestClockAhead gives a pod back by a clock that is ahead of the one that says when pods were made, or behind it.
func TestClockAhead(t *testing.T) {
	for _, ahead := range []time.Duration{-3 * time.Second, 0, 3 * time.Second} {
		const wait = 10 * time.Second
		p := patience{}
		p.note("web", began, began.Add(wait+ahead), wait)
		if got := p.of("web", began.Add(time.Second), wait); got != wait {
			t.Errorf("%s ahead: a pod that was made a second after the first waits %s, want %s", ahead, got, wait)
		}
		if got := p.of("web", began.Add(wait).Truncate(time.Second), wait); got != 2*wait {
			t.Errorf("%s ahead: its successor waits %s, want %s", ahead, got, 2*wait)
		}
	}
}

// TestDrain gives back the pods of a workload that the broker recreates one after the
// other: none of them waits longer than the first, though each is made after the one
// before was given back.
func TestDrain(t *testing.T) {
	c := snapshottest.NewClient(t, interceptor.Funcs{}, twin())
	h := newHarness(t, c)
	made := time.Duration(0)
	for _, name := range []string{"web-0", "web-1", "web-2"} {
		shadow := liqotest.ShadowPod(namespace, name, nil)
		shadow.CreationTimestamp = metav1.NewTime(began.Add(-time.Hour))
		for _, object := range []client.Object{shadow, waiting(name, began.Add(made))} {
			if err := c.Create(t.Context(), object); err != nil {
				t.Fatal(err)
			}
		}
		if pod, again := h.look(name, made+after); pod.Status.Phase != corev1.PodFailed {
			t.Errorf("%s waits %s longer", name, again)
		}
		made += after + time.Second
	}
}

// TestLostRace lets somebody else change the pod first: it is looked at again.
func TestLostRace(t *testing.T) {
	c := snapshottest.NewClient(t, interceptor.Funcs{
		SubResourcePatch: func(
			_ context.Context, _ client.Client, _ string, o client.Object, p client.Patch, _ ...client.SubResourcePatchOption,
		) error {
			if data, err := p.Data(o); err != nil || !strings.Contains(string(data), "resourceVersion") {
				t.Errorf("the patch %s overwrites what others changed (%v)", data, err)
			}
			return apierrors.NewConflict(corev1.Resource("pods"), "web-0", nil)
		},
	}, twin(), waiting("web-0", began))
	h := newHarness(t, c)
	h.clock.SetTime(began.Add(after))
	_, err := h.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: namespace, Name: "web-0"}})
	if !apierrors.IsConflict(err) {
		t.Errorf("Reconcile(): %v, want a conflict", err)
	}
	if len(h.patience) != 0 || len(h.events.Events) != 0 {
		t.Error("a pod that was not given back counts")
	}
}
