// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package purchases_test

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/trade/registry/registryv1"
)

// TestSellersCluster peers with the cluster that the seller has announced, at the host that it has announced, and with no other.
func TestSellersCluster(t *testing.T) {
	for name, tc := range map[string]struct {
		announced []registryv1.Cluster
		peers     bool
	}{
		"Announced":     {[]registryv1.Cluster{{ID: "x"}, {ID: string(remote().ID), Auth: "AUTH.example"}}, true},
		"None":          {nil, false},
		"Another":       {[]registryv1.Cluster{{ID: "x", Auth: "auth.example"}}, false},
		"OtherHost":     {[]registryv1.Cluster{{ID: string(remote().ID), Auth: "other.example"}}, false},
		"EndpointsHost": {[]registryv1.Cluster{{ID: string(remote().ID)}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, remote())
			w := newWorld(t, s)
			shown := w.parties[s.key.ID()]
			shown.Said.Clusters = tc.announced
			w.parties[s.key.ID()] = shown
			w.create("p", s, nil)
			for range 20 {
				w.once("p")
				s.serve(t, w.key("p"))
			}
			p := w.get("p")
			ready := meta.FindStatusCondition(p.Status.Conditions, connectorv1alpha1.ConditionReady)
			if peered := slices.Contains(w.clusters.log, "peer "+string(remote().ID)); peered != tc.peers {
				t.Errorf("peered: %t, %+v", peered, ready)
			}
		})
	}
}
