// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package liqo

import (
	"net/netip"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
)

func TestWays(t *testing.T) {
	noted := Ways{Noted: true}
	seen := Ways{Through: map[cluster.ID][]netip.Prefix{
		"milan": {netip.MustParsePrefix("10.69.0.0/16"), netip.MustParsePrefix("10.64.0.0/16")}, "oslo": nil,
	}}
	node := func(id string, ours bool) *corev1.Node {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{LabelNodeType: NodeTypeVirtual, LabelRemoteClusterID: id}}}
		if ours {
			n.Labels[LabelVirtualKubelet] = "v0.1.0"
		}
		return n
	}
	for name, tc := range map[string]struct {
		reason        string
		ways          Ways
		node          *corev1.Node
		address, note string
		broker        bool
		path          string
	}{
		"Noted":     {"The virtual kubelet has told.", noted, node("milan", true), "10.1.0.7", "direct", true, "direct"},
		"NotNoted":  {"It has not told yet.", noted, node("milan", true), "10.69.0.7", "", true, ""},
		"OfLiqo":    {"The virtual kubelet is Liqo's own.", noted, node("milan", false), "10.1.0.7", "", false, ""},
		"AtHome":    {"The node is none of another cluster.", noted, &corev1.Node{}, "10.1.0.7", "", false, ""},
		"Relay":     {"The address is in a view of the broker.", seen, node("milan", false), "10.64.3.7", "", true, "relay"},
		"Note":      {"Nobody notes anything, whatever is there.", seen, node("milan", false), "10.1.0.7", "direct", true, ""},
		"Itself":    {"The broker runs the pod itself, or nobody knows.", seen, node("milan", false), "10.70.0.7", "", true, ""},
		"NoAddress": {"The pod has no address yet.", seen, node("milan", false), "", "", true, ""},
		"Unknown":   {"Nothing is known of the views of that broker.", seen, node("oslo", false), "10.69.0.7", "", true, ""},
		"Stranger":  {"The peer is no broker, whoever made its virtual kubelet.", seen, node("rome", true), "10.69.0.7", "", false, ""},
		"NoBroker":  {"A node of this cluster is nobody's.", Ways{Through: map[cluster.ID][]netip.Prefix{}}, &corev1.Node{}, "", "", false, ""},
	} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{AnnotationPath: tc.note}}}
		pod.Status.PodIP = tc.address
		if is := tc.ways.IsOfBroker(tc.node); is != tc.broker {
			t.Errorf("%s: %s IsOfBroker() = %t", name, tc.reason, is)
		}
		if way := tc.ways.To(pod, tc.node); way != (Way{Path: tc.path}) {
			t.Errorf("%s: %s To() = %+v, want path %q", name, tc.reason, way, tc.path)
		}
	}
}

// TestWaysTell asks who runs a pod: what is noted on it counts where somebody notes it, and else what the broker says of its node.
func TestWaysTell(t *testing.T) {
	since := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{LabelProvider: "turin"}}}
	pod := func(of, name, since string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{
			AnnotationProvider: of, AnnotationProviderName: name, AnnotationPathSince: since,
		}}}
	}
	for name, tc := range map[string]struct {
		reason string
		ways   Ways
		pod    *corev1.Pod
		want   Way
	}{
		"Noted": {
			"The virtual kubelet was told.", Ways{Noted: true}, pod("id", "milan", since.Format(time.RFC3339)),
			Way{Provider: cluster.Identity{ID: "id", Name: "milan"}, Since: since},
		},
		"Garbled": {"That is no time.", Ways{Noted: true}, pod("", "", "yesterday"), Way{Provider: cluster.Identity{ID: "turin"}}},
		"Claimed": {
			"Whoever has written that, it was no virtual kubelet.", Ways{}, pod("id", "milan", since.Format(time.RFC3339)),
			Way{Provider: cluster.Identity{ID: "turin"}},
		},
	} {
		if way := tc.ways.To(tc.pod, node); way != tc.want {
			t.Errorf("%s: %s To() = %+v, want %+v", name, tc.reason, way, tc.want)
		}
	}
}
