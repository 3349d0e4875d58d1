// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"cmp"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testingclock "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v09/liqotest"
	"github.com/capacitorset/liqo-broker/pkg/snapshot/snapshottest"
)

// TestReachable looks at a provider at noon, whose nodes turned ready or not at some
// time before.
func TestReachable(t *testing.T) {
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	at := func(minutes int) *metav1.Time {
		return &metav1.Time{Time: noon.Add(time.Duration(minutes) * time.Minute)}
	}
	node := func(ready bool, name string, minutes int) *corev1.Node {
		n := liqotest.VirtualNode(providerA, ready)
		n.Name = name
		n.Status.Conditions[0].LastTransitionTime = *at(minutes)
		return n
	}
	bare := func(kinds ...corev1.NodeConditionType) *corev1.Node {
		n := node(false, "one", -3)
		for _, kind := range kinds {
			n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: kind, Status: corev1.ConditionTrue})
		}
		return n
	}
	unknown := func(name string, minutes int) *corev1.Node {
		n := node(false, name, minutes)
		n.Status.Conditions[0].Status = corev1.ConditionUnknown
		return n
	}
	cases := map[string]struct {
		reason  string
		known   *metav1.Time
		ending  bool
		objects []client.Object
		want    *metav1.Time
		// why is the reason, by default that no node is ready.
		why string
	}{
		"Ready": {
			why: v1alpha1.ReasonNodeReady, reason: "A provider whose node is ready is not lost.", objects: []client.Object{node(true, "one", -9)},
		},
		"Returned": {
			why: v1alpha1.ReasonNodeReady, reason: "One that is back is not lost any more.", known: at(-5),
			objects: []client.Object{node(true, "one", -1)},
		},
		"Lost": {
			reason: "One is lost since its node says so, also if the broker did not run then.", objects: []client.Object{node(false, "one", -3)},
			want: at(-3),
		},
		"Last": {
			reason: "Of several nodes the last one counts.", objects: []client.Object{node(false, "one", -3), node(false, "two", -2)}, want: at(-2),
		},
		"OneLeft": {
			why: v1alpha1.ReasonNodeReady, reason: "Of several nodes one is enough.",
			objects: []client.Object{node(false, "one", -3), node(true, "two", -2)},
		},
		"Known": {
			reason: "What is known stays: the tunnel was lost after the API server.", known: at(-8),
			objects: []client.Object{node(false, "one", -3)}, want: at(-8),
		},
		"Unwatched": {
			why: v1alpha1.ReasonNodeUnknown, reason: "Where nobody looks nobody is lost.", objects: []client.Object{unknown("one", -3)},
		},
		"Turned": {
			why: v1alpha1.ReasonNodeUnknown, reason: "Nor is one that was lost when somebody looked last.", known: at(-8),
			objects: []client.Object{unknown("one", -3)},
		},
		"Ending": {
			reason: "Liqo has taken the virtual kubelet away: nobody will look any more.", ending: true,
			objects: []client.Object{unknown("one", -3)}, want: at(-3),
		},
		"HalfSeen": {
			reason: "The node at which somebody looks counts.", objects: []client.Object{unknown("one", -9), node(false, "two", -3)}, want: at(-3),
		},
		"Future": {reason: "A node whose clock is ahead is lost now.", objects: []client.Object{node(false, "one", 3)}, want: at(0)},
		"SetBack": {
			reason: "So is one that was known to be lost in the future.", known: at(8), objects: []client.Object{node(false, "one", 3)}, want: at(0),
		},
		"NoNode": {why: v1alpha1.ReasonNoNode, reason: "Without a node there is nothing to lose."},
		"Withdrawn": {
			why: v1alpha1.ReasonNothingOffered, reason: "Who only offers nothing is in reach.",
			objects: []client.Object{bare(corev1.NodeMemoryPressure)},
		},
		"BothGone": {
			reason: "Not so without its tunnel.", objects: []client.Object{bare(corev1.NodeMemoryPressure, corev1.NodeNetworkUnavailable)},
			want: at(-3),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := newProvider(active)
			if tc.known != nil {
				snapshottest.Lose(p, tc.known.Time)
			}
			fc := liqotest.ForeignCluster(providerA, true, false)
			if tc.ending {
				liqotest.EndPeering(fc)
			}
			c := snapshottest.NewClient(t, interceptor.Funcs{}, append(tc.objects, p, fc)...)
			r := New(Config{Client: c, Reader: snapshottest.Reader(c, ""), Clock: testingclock.NewFakePassiveClock(noon), Plans: plans()})
			if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: p.Name}}); err != nil {
				t.Fatalf("Reconcile(): %v", err)
			}
			now := get(t, c)
			if got := now.UnreachableSince(); !got.Equal(tc.want) {
				t.Errorf("%s\nlost since %v, want %v", tc.reason, got, tc.want)
			}
			why := cmp.Or(tc.why, v1alpha1.ReasonNodesNotReady)
			if got := meta.FindStatusCondition(now.Status.Conditions, v1alpha1.ConditionReachable); got.Reason != why {
				t.Errorf("%s\n%s: %s, want %s", tc.reason, got.Status, got.Reason, why)
			}
		})
	}
}
