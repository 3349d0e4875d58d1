// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package kpis

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v09/liqotest"
	"github.com/capacitorset/liqo-broker/pkg/snapshot/snapshottest"
)

var consumer = cluster.Identity{ID: "id-c", Name: "consumer"}

// life is what the broker sees of a pod: when it is bound, and what comes then.
type life []func(*corev1.Pod)

func bound(p *corev1.Pod) { p.Spec.NodeName = "liqo-provider-a" }

func becomesReady(p *corev1.Pod) {
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
}

func ends(phase corev1.PodPhase, reason string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Status.Phase, p.Status.Reason, p.Status.Conditions = phase, reason, nil }
}

func TestPods(t *testing.T) {
	onBroker := func(p *corev1.Pod) { p.Spec.NodeName = "own" }
	elsewhere := func(p *corev1.Pod) { p.Namespace = "own"; bound(p) }
	cases := map[string]struct {
		reason string
		life   life
		want   map[string]string
	}{
		"Started": {
			reason: "From bound to ready passes one step.", life: life{bound, becomesReady},
			want: map[string]string{"failureRate": "0 ratio", "startupMedian": "7 s", "startupP90": "7 s"},
		},
		"Waited": {
			reason: "What passes before the pod is bound does not count.", life: life{func(*corev1.Pod) {}, bound, becomesReady},
			want: map[string]string{"failureRate": "0 ratio", "startupMedian": "7 s", "startupP90": "7 s"},
		},
		"Evicted": {
			reason: "The provider let it fail.", life: life{bound, ends(corev1.PodFailed, "Evicted")},
			want: map[string]string{"failureRate": "1 ratio"},
		},
		"Crashed": {
			reason: "What the program does is not the provider's doing.", life: life{bound, ends(corev1.PodFailed, "")},
			want: map[string]string{"failureRate": "0 ratio"},
		},
		"TooLong": {
			reason: "Nor is the owner's deadline.", life: life{bound, ends(corev1.PodFailed, "DeadlineExceeded")},
			want: map[string]string{"failureRate": "0 ratio"},
		},
		"Done": {
			reason: "A job that was never ready has no start-up time.", life: life{bound, ends(corev1.PodSucceeded, "")},
			want: map[string]string{"failureRate": "0 ratio"},
		},
		"LostLater": {
			reason: "A pod that ran and failed counts as both.", life: life{bound, becomesReady, ends(corev1.PodFailed, "NodeLost")},
			want: map[string]string{"failureRate": "0.5 ratio", "startupMedian": "7 s", "startupP90": "7 s"},
		},
		"NotBound": {
			reason: "A pod that was given back was on no provider.", life: life{ends(corev1.PodFailed, "OffloadingAborted")},
			want: map[string]string{},
		},
		"OnBroker": {reason: "The broker's own nodes are no provider.", life: life{onBroker, becomesReady}, want: map[string]string{}},
		"NoTwin":   {reason: "What is of no consumer does not count.", life: life{elsewhere, becomesReady}, want: map[string]string{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			h := begin(t, liqotest.VirtualNode(providerA, true), liqotest.TwinNamespace("twin", consumer))
			r := New(Config{Client: h.client, Live: h.client, Reader: snapshottest.Reader(h.client, ""), Clock: h.clock})
			update := r.pods.handler().Update
			for uid := range 3 {
				pod := liqotest.Pod(liqotest.ShadowPod("twin", "pod", nil), "")
				pod.UID = types.UID(rune('a' + uid))
				for _, change := range tc.life {
					after := pod.DeepCopy()
					change(after)
					h.clock.Step(7 * time.Second)
					update(t.Context(), event.UpdateEvent{ObjectOld: pod, ObjectNew: after}, nil)
					pod = after
				}
			}
			for range 2 { // The second time nothing is left to be noted.
				h.reconcileWith(r)
				h.clock.Step(time.Minute)
			}
			// After a restart.
			got := values(h.reconcileWith(New(Config{Client: h.client, Live: h.client, Reader: snapshottest.Reader(h.client, ""), Clock: h.clock})))
			for name := range got {
				if name != "failureRate" && name != "startupMedian" && name != "startupP90" {
					delete(got, name)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want +got\n%s", tc.reason, diff)
			}
			if len(r.pods.seen) > 0 {
				t.Errorf("not written down: %v", r.pods.seen)
			}
		})
	}
}

// TestDeletedPodsAreForgotten deletes a pod before it is ready.
func TestDeletedPodsAreForgotten(t *testing.T) {
	h := begin(t)
	w := New(Config{Client: h.client, Live: h.client, Reader: snapshottest.Reader(h.client, ""), Clock: h.clock}).pods
	before, after := &corev1.Pod{}, &corev1.Pod{Spec: corev1.PodSpec{NodeName: "n"}}
	w.handler().Update(t.Context(), event.UpdateEvent{ObjectOld: before, ObjectNew: after}, nil)
	if len(w.bound) != 1 {
		t.Errorf("bound: %v", w.bound)
	}
	w.handler().Delete(t.Context(), event.DeleteEvent{Object: after}, nil)
	if len(w.bound) != 0 {
		t.Errorf("bound after the deletion: %v", w.bound)
	}
}

func TestCarbon(t *testing.T) {
	spec := func(intensity string, expires *metav1.Time) *v1alpha1.Carbon {
		return &v1alpha1.Carbon{Intensity: resource.MustParse(intensity), Unit: "gCO2e/kWh", ExpirationTime: expires}
	}
	later := metav1.NewTime(now.Add(time.Hour))
	cases := map[string]struct {
		reason string
		label  string
		second string // The label of another virtual node.
		spec   *v1alpha1.Carbon
		want   string
		until  time.Time
	}{
		"None":     {reason: "Who says nothing is unknown."},
		"Shown":    {reason: "A provider may say it itself.", label: "312.5", want: "312.5 gCO2e/kWh", until: now.Add(validity)},
		"Written":  {reason: "What people write goes first.", label: "5", spec: spec("40", nil), want: "40 gCO2e/kWh", until: now.Add(validity)},
		"Expires":  {reason: "People say until when.", spec: spec("40", &later), want: "40 gCO2e/kWh", until: later.Time},
		"Negative": {reason: "Nothing emits less than nothing.", label: "-5"},
		"Absurd":   {reason: "Nothing emits ten kilograms.", label: "1e9"},
		"NaN":      {reason: "What is no number is unknown.", label: "NaN"},
		"Text":     {reason: "So is what cannot be read.", label: "green"},
		"Dirtier": {
			reason: "Of several nodes the worst one counts.", label: "12", second: "300", want: "300 gCO2e/kWh", until: now.Add(validity),
		},
		"Cleaner":  {reason: "Whatever they are called.", label: "300", second: "12", want: "300 gCO2e/kWh", until: now.Add(validity)},
		"Unclear":  {reason: "What cannot be read may be the worst.", label: "300", second: "green"},
		"Unlikely": {reason: "People can be as wrong.", spec: spec("1M", nil)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			node := liqotest.VirtualNode(providerA, true)
			if tc.label != "" {
				node.Labels[liqo.LabelCarbon] = tc.label
			}
			objects := []client.Object{node, liqotest.Offer(providerA, nil)}
			if tc.second != "" {
				other, offer := node.DeepCopy(), liqotest.Offer(providerA, nil)
				other.Name, other.Labels[liqo.LabelCarbon] = "other", tc.second
				offer.Name, offer.Spec.NodeName = other.Name, other.Name
				objects = append(objects, other, offer)
			}
			h := begin(t, objects...)
			p := h.reconcile()
			p.Spec.Carbon = tc.spec
			if err := h.client.Update(t.Context(), p); err != nil {
				t.Fatal(err)
			}
			h.clock.SetTime(now)
			p = h.reconcile()
			if got := values(p)["carbon"]; got != tc.want {
				t.Errorf("%s\ncarbon %q, want %q", tc.reason, got, tc.want)
			}
			for _, f := range p.Status.KPIs {
				if f.Name == "carbon" && !f.ExpirationTime.Time.Equal(tc.until) {
					t.Errorf("%s\nexpires %s, want %s", tc.reason, f.ExpirationTime, tc.until)
				}
			}
		})
	}
}
