// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TestAnyAt has pods of two virtual nodes in one namespace of the foreign cluster.
func TestAnyAt(t *testing.T) {
	nothing := func(string) {}
	r := newRemotePods(nil, "liqo-broker", func(string, string) {}, nothing)
	pod := func(node string) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: types.UID(node)}}
		p.Labels = map[string]string{"virtualkubelet.liqo.io/nodename": node}
		return p
	}
	all := func(string) bool { return true }
	r.seen(pod("liqo-other"))
	if r.anyAt(all) {
		t.Error("a pod of another virtual node counts")
	}
	r.seen(pod("liqo-broker"))
	if !r.anyAt(all) {
		t.Error("the node's own pod does not count")
	}
	r.gone(pod("liqo-broker"))
	if r.anyAt(all) {
		t.Error("a pod counts that is gone")
	}
}

// TestEndedPodLosesItsAddress ends a pod, whose object keeps the address until somebody deletes it. The broker tells no
// relay address for it any more, and its end must be reflected nevertheless.
func TestEndedPodLosesItsAddress(t *testing.T) {
	for phase, want := range map[corev1.PodPhase]string{
		corev1.PodPending: "10.90.0.7", corev1.PodRunning: "10.90.0.7", corev1.PodSucceeded: "", corev1.PodFailed: "",
	} {
		t.Run(string(phase), func(t *testing.T) {
			held := "nothing"
			r := newRemotePods(nil, "liqo-broker", func(_, address string) { held = address }, func(string) {})
			shown := r.show(&corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Namespace: "jobs", Name: "job", UID: "job"},
				Status:     corev1.PodStatus{Phase: phase, PodIP: "10.90.0.7", PodIPs: []corev1.PodIP{{IP: "10.90.0.7"}}},
			})
			if shown.Status.PodIP != want || (len(shown.Status.PodIPs) == 0) != (want == "") || shown.Status.Phase != phase {
				t.Errorf("it is shown as %s at %q and %v, want %q", shown.Status.Phase, shown.Status.PodIP, shown.Status.PodIPs, want)
			}
			if held != want {
				t.Errorf("relay addresses are kept for %q, want %q", held, want)
			}
		})
	}
}
