// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package liqo_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
)

// TestTwins holds what is a twin namespace, and that the tenant namespaces of Liqo 1.x, which name a peer by the same label, are none.
func TestTwins(t *testing.T) {
	managed := map[string]string{"liqo.io/managed-by-namespace-map": "liqo-tenant-a/a"}
	cases := map[string]struct {
		reason      string
		labels      map[string]string
		annotations map[string]string
		twin        cluster.ID // Empty if it is none.
		selected    bool       // By what selects twins.
		kept        bool       // In caches.
	}{
		"Twin": {"Liqo has made it of a namespace of a.", map[string]string{"liqo.io/remote-cluster-id": "a"}, managed, "a", true, true},
		"Named": {
			"Somebody has put the label there: its pods are confined, and Liqo knows nothing of it.",
			map[string]string{"liqo.io/remote-cluster-id": "a"}, nil, "", true, true,
		},
		"Tenant": {
			"Liqo 1.x has made it for a, and runs a virtual kubelet and a gateway there.",
			map[string]string{"liqo.io/remote-cluster-id": "a", "liqo.io/tenant-namespace": "true"}, nil, "", false, true,
		},
		"TenantOrTwin": {
			"No webhook is asked about its pods, so that nobody places them.",
			map[string]string{"liqo.io/remote-cluster-id": "a", "liqo.io/tenant-namespace": "true"}, managed, "", false, true,
		},
		"Tenant0.9": {
			"Liqo 0.9 has labels of its own for them.",
			map[string]string{"discovery.liqo.io/cluster-id": "a", "discovery.liqo.io/tenant-namespace": "true"}, nil, "", false, false,
		},
		"Own": {"It is this cluster's.", map[string]string{"team": "a"}, nil, "", false, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Labels: tc.labels, Annotations: tc.annotations}}
			if id, is := liqo.TwinOf(namespace); id != tc.twin && is || is != (tc.twin != "") {
				t.Errorf("%s\nTwinOf() = %q, %t, want %q", tc.reason, id, is, tc.twin)
			}
			if got := liqo.TwinSelector().Matches(labels.Set(tc.labels)); got != tc.selected {
				t.Errorf("%s\nTwinSelector() selects it: %t", tc.reason, got)
			}
			if got := liqo.PeerNamespaceSelector().Matches(labels.Set(tc.labels)); got != tc.kept {
				t.Errorf("%s\nPeerNamespaceSelector() selects it: %t", tc.reason, got)
			}
			for _, peer := range []cluster.ID{"a", "b"} {
				of, err := metav1.LabelSelectorAsSelector(liqo.TwinsOf(peer))
				if err != nil {
					t.Fatal(err)
				}
				if got := of.Matches(labels.Set(tc.labels)); got != (tc.selected && peer == "a") {
					t.Errorf("%s\nTwinsOf(%s) selects it: %t", tc.reason, peer, got)
				}
			}
		})
	}
}
