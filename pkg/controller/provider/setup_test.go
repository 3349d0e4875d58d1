// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v09/liqotest"
	"github.com/capacitorset/liqo-broker/pkg/snapshot/snapshottest"
)

func TestNodeChanged(t *testing.T) {
	cases := map[string]struct {
		reason string
		before func(*corev1.Node)
		change func(*corev1.Node)
		want   bool
	}{
		"Lost": {
			reason: "A provider that offered nothing, and was not ready for that, may be out of reach now.",
			before: func(n *corev1.Node) {
				n.Status.Conditions[0].Status = corev1.ConditionFalse
				n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionTrue})
			},
			change: func(n *corev1.Node) {
				n.Status.Conditions = append(n.Status.Conditions,
					corev1.NodeCondition{Type: corev1.NodeNetworkUnavailable, Status: corev1.ConditionTrue})
			},
			want: true,
		},
		"Ready": {
			reason: "Whether the node is ready counts.", change: func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionFalse },
			want: true,
		},
		"Taint":   {reason: "A taint that somebody took away is put back.", change: func(n *corev1.Node) { n.Spec.Taints = nil }, want: true},
		"Cluster": {reason: "A node may come to stand for another cluster.", change: func(n *corev1.Node) { n.Labels = nil }, want: true},
		"Heartbeat": {
			reason: "A heartbeat is no change.", change: func(n *corev1.Node) { n.Status.Conditions[0].LastHeartbeatTime = metav1.Now() },
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			before, after := liqotest.VirtualNode(providerA, true), liqotest.VirtualNode(providerA, true)
			if tc.before != nil {
				tc.before(before)
				tc.before(after)
			}
			tc.change(after)
			if got := nodeChanged().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}); got != tc.want {
				t.Errorf("%s\nUpdate() = %v", tc.reason, got)
			}
		})
	}
}

func TestOfPod(t *testing.T) {
	shadow := liqotest.ShadowPod("web-consumer", "web-0", nil)
	cases := map[string]struct {
		reason   string
		node     string
		is       v1alpha1.Scheduling
		want     cluster.ID
		draining bool
	}{
		"Draining": {
			reason: "A pod on a provider that is drained is waited for.", node: "liqo-provider-a", is: drained, want: providerA.ID, draining: true,
		},
		"Active":     {reason: "A pod on another provider is a part of what is used.", node: "liqo-provider-a", is: active, want: providerA.ID},
		"Cordoned":   {reason: "So is one that stays.", node: "liqo-provider-a", is: cordoned, want: providerA.ID},
		"Waiting":    {reason: "A pod without a node belongs to no provider."},
		"BrokerNode": {reason: "Nor does one on the broker's own node.", node: "broker"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := snapshottest.NewClient(t, interceptor.Funcs{}, newProvider(tc.is), liqotest.VirtualNode(providerA, true))
			r := New(Config{Client: c, Reader: snapshottest.Reader(c, ""), Clock: clock.RealClock{}, Plans: plans()})
			got, draining := r.ofPod(t.Context(), liqotest.Pod(shadow, tc.node))
			if got != tc.want || draining != tc.draining {
				t.Errorf("%s\nofPod() = %q, %v", tc.reason, got, draining)
			}
		})
	}
}
