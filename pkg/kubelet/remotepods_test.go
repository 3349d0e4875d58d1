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
