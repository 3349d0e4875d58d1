// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package address

import (
	"testing"

	"github.com/liqotech/liqo/pkg/consts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capacitorset/liqo-broker/pkg/core/addressing"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
)

func TestAdjustReady(t *testing.T) {
	const broker, a = cluster.ID("broker"), cluster.ID("provider-a")
	const direct, relayed = "10.90.0.13", "10.91.0.7"
	remote := &fakeRelay{routes: []addressing.Route{{Provider: a, Pods: mustView(t, "10.200.0.0/16", "10.90.0.0/16")}}}
	pod := func(address string, containers corev1.ConditionStatus, change ...func(*corev1.Pod)) *corev1.Pod {
		p := &corev1.Pod{Status: corev1.PodStatus{
			PodIP: address, Conditions: []corev1.PodCondition{{Type: corev1.ContainersReady, Status: containers}},
		}}
		for _, c := range change {
			c(p)
		}
		return p
	}
	unavailable := func(p *corev1.Pod) {
		p.Labels = map[string]string{consts.RemoteUnavailableKey: consts.RemoteUnavailableValue}
	}
	gated := func(p *corev1.Pod) {
		p.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "example.com/gate"}}
	}
	leaving := func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{} }
	const yes, no = corev1.ConditionTrue, corev1.ConditionFalse
	cases := map[string]struct {
		reason string
		lost   bool
		pod    *corev1.Pod
		is     corev1.ConditionStatus
		want   corev1.ConditionStatus
	}{
		"RelayedWell":       {"as the broker says", false, pod(relayed, yes), yes, yes},
		"RelayedLost":       {"no packet gets there", true, pod(relayed, yes), yes, no},
		"NoAddressLost":     {"the same for a pod without an address", true, pod("", yes), yes, no},
		"DirectLost":        {"packets get there past the broker", true, pod(direct, yes), yes, yes},
		"DirectOutOfSight":  {"the broker lost the provider, and the consumer did not", false, pod(direct, yes, unavailable), no, yes},
		"DirectAllLost":     {"the broker lost everybody", true, pod(direct, yes, unavailable), no, yes},
		"RelayedOutOfSight": {"the broker is the only way, and says that it is none", false, pod(relayed, yes, unavailable), no, no},
		"DirectUnready":     {"the containers themselves are not ready", false, pod(direct, no, unavailable), no, no},
		"DirectInSight":     {"the broker sees the pod, which is not ready", false, pod(direct, yes), no, no},
		"DirectGated":       {"a gate may be what the pod waits for", false, pod(direct, yes, unavailable, gated), no, no},
		"DirectLeaving":     {"a pod that is being deleted is on its way out of Services", false, pod(direct, yes, unavailable, leaving), no, no},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			translation := New(localIPAM{}, broker, remote)
			translation.checkTunnel = true
			translation.SetPeer(broker, addressing.Peer{Pods: mustView(t, "10.201.0.0/16", "10.83.0.0/16"), Connected: !tc.lost})
			translation.SetPeer(a, addressing.Peer{Pods: mustView(t, "10.200.0.0/16", "10.84.0.0/16"), Connected: true})
			ready := corev1.PodCondition{Type: corev1.PodReady, Status: tc.is}
			if translation.AdjustReady(tc.pod, &ready); ready.Status != tc.want {
				t.Errorf("%s: got %s, want %s", tc.reason, ready.Status, tc.want)
			}
		})
	}
}

// TestLostWithoutTunnels looks at a virtual kubelet that is told to leave networks alone.
func TestLostWithoutTunnels(t *testing.T) {
	translation := New(localIPAM{}, "broker", nil)
	translation.SetPeer("broker", addressing.Peer{Pods: mustView(t, "10.201.0.0/16", "10.83.0.0/16")})
	ready := corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue}
	if translation.AdjustReady(&corev1.Pod{}, &ready); ready.Status != corev1.ConditionTrue {
		t.Error("a pod is called not ready because of a tunnel that nobody needs")
	}
}
