// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package twin

import (
	"errors"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/flowcontrol"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/controller/twin/planning"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v09/liqotest"
)

// TestServing moves a pod whose workload has another one, ready for a moment only.
func TestSettling(t *testing.T) {
	clock := testingclock.NewFakeClock(began)
	h := start(t, slices.Concat(offloaded(providerA, providerB), workload("liqo-provider-a", "web-0"),
		workload("liqo-provider-b", "web-1"), []client.Object{off(providerA), ready(providerB)})...)
	h.r.planner = h.newPlanner(clock)
	h.ready("web-1", corev1.ConditionFalse)
	h.reconcile()
	h.ready("web-1", corev1.ConditionTrue)
	if again := h.reconcile().RequeueAfter; len(h.deleted) > 0 || again <= 0 || again > 5*time.Second {
		t.Fatalf("deleted %v, again after %s: want nothing yet, and a look soon", h.deleted, again)
	}
	clock.Step(time.Minute)
	h.reconcile()
	if !slices.Equal(h.deleted, []string{"web-0"}) {
		t.Errorf("deleted %v, want the pod of the provider that is disabled", h.deleted)
	}
}

// TestReplaced drains pods that their consumer is to replace: while it has not, no more go than if they were still there.
func TestReplaced(t *testing.T) {
	clock := testingclock.NewFakeClock(began)
	h := start(t, slices.Concat(offloaded(providerA, providerB), workload("liqo-provider-a", "web-0", "web-1", "web-2", "web-3"),
		[]client.Object{ready(providerA), ready(providerB)})...)
	h.r.planner = h.newPlanner(clock)
	h.reconcile()
	for _, pod := range []string{"web-0", "web-1"} {
		if err := h.client.Delete(t.Context(), liqotest.ShadowPod(namespace, pod, nil)); err != nil {
			t.Fatal(err)
		}
	}
	h.deleted = nil
	p := ready(providerA)
	if err := h.client.Get(t.Context(), client.ObjectKeyFromObject(p), p); err != nil {
		t.Fatal(err)
	}
	p.Spec.Scheduling = v1alpha1.SchedulingDrained
	if err := h.client.Update(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	h.reconcile()
	if again := h.reconcile().RequeueAfter; len(h.deleted) > 0 || again <= 0 || again > time.Minute {
		t.Fatalf("deleted %v, again after %s: two of four copies are to be replaced already", h.deleted, again)
	}
	clock.Step(time.Minute)
	h.reconcile()
	if !slices.Equal(h.deleted, []string{"web-2"}) {
		t.Errorf("deleted %v, want one of the two that the consumer is left with", h.deleted)
	}
}

// TestLevelInVain has a policy that came to use provider-b as well, which has room for the pods, and on which the scheduler places
// none of them all the same.
func TestLevelInVain(t *testing.T) {
	clock := testingclock.NewFakeClock(began)
	keeps := policy(60)
	keeps.Spec.Scaling = &v1alpha1.Scaling{}
	h := start(t, slices.Concat(offloaded(providerA, providerB), workload("liqo-provider-a", "web-0", "web-1", "web-2", "web-3"),
		[]client.Object{ready(providerA), ready(providerB), keeps, chooses(providerA, providerB)})...)
	h.r.planner, h.r.pacer = h.newPlanner(clock), newPacer(clock)
	h.r.backoff = flowcontrol.NewFakeBackOff(firstBackoff, maxBackoff, clock)
	moved, waited := 0, 0
	for second := range 3600 {
		clock.Step(time.Second)
		if second%5 > 0 {
			continue
		}
		h.deleted = nil
		h.reconcile()
		moved += len(h.deleted)
		for _, name := range h.deleted {
			h.recreate(name)
		}
		for _, name := range []string{"web-0", "web-1", "web-2", "web-3"} {
			pod := &corev1.Pod{}
			if err := h.client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, pod); err != nil {
				t.Fatal(err)
			}
			switch {
			case pod.Spec.NodeName != "":
			case liqo.Excludes(pod, providerA.ID):
				waited++
			default: // The scheduler takes provider-a.
				running := liqotest.Pod(liqotest.ShadowPod(namespace, name, map[string]string{"app": "web"}), "liqo-provider-a", providerA.ID,
					providerB.ID)
				if err := errors.Join(h.client.Delete(t.Context(), pod), h.client.Create(t.Context(), running)); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	if moved != 2 || waited > 8 {
		t.Errorf("in an hour %d pods were deleted, and one waited for %d s: want one to be tried, and to go back after %s", moved,
			5*waited, planning.PlaceTime)
	}
	if placing := v09.OffloadingOf(h.offloading()).Placing; !slices.Equal(placing, []cluster.ID{providerA.ID, providerB.ID}) {
		t.Errorf("new pods are placed on %v", placing)
	}
}

// ready sets the condition Ready of a pod.
func (h *harness) ready(name string, status corev1.ConditionStatus) {
	h.t.Helper()
	var pod corev1.Pod
	err := h.client.Get(h.t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, &pod)
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.PodReady {
			c.Status = status
		}
	}
	if err := errors.Join(err, h.client.Status().Update(h.t.Context(), &pod)); err != nil {
		h.t.Fatalf("set pod %s ready: %v", name, err)
	}
}
