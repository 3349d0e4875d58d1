// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package watch_test

import (
	"slices"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"github.com/capacitorset/liqo-broker/pkg/controller/watch"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v09/liqotest"
	"github.com/capacitorset/liqo-broker/pkg/snapshot/snapshottest"
)

func TestWhoIsConcerned(t *testing.T) {
	a, b := cluster.Identity{ID: "id-a", Name: "a"}, cluster.Identity{ID: "id-b", Name: "b"}
	first, second := cluster.Identity{ID: "id-1363", Name: "twin"}, cluster.Identity{ID: "id-1561", Name: "twin"}
	forged := liqotest.Offer(b, nil)
	forged.Spec.ClusterID = string(a.ID)
	lying := liqotest.VirtualNode(a, true)
	lying.Name = "liqo-b"
	elsewhere := liqotest.Offer(a, nil)
	elsewhere.Namespace = "elsewhere"
	sameName := liqotest.ForeignCluster(second, true, false)
	sameName.Name = "second"
	r := snapshottest.Reader(snapshottest.NewClient(t, interceptor.Funcs{}, liqotest.ForeignCluster(a, true, false),
		liqotest.ForeignCluster(b, true, false),
		liqotest.ForeignCluster(first, true, false), sameName, liqotest.Offer(a, nil), liqotest.Offer(b, nil)), "")
	cases := map[string]struct {
		reason string
		of     handler.MapFunc
		object client.Object
		want   []string
	}{
		"Offer": {
			reason: "An offer is of the cluster of its namespace.", of: watch.OfTenant(r), object: liqotest.Offer(a, nil), want: []string{"id-a"},
		},
		"Forged":    {reason: "Whatever it says.", of: watch.OfTenant(r), object: forged, want: []string{"id-b"}},
		"Elsewhere": {reason: "In another namespace it is nobody's.", of: watch.OfTenant(r), object: elsewhere},
		"Node":      {reason: "A node is of who offers it.", of: watch.OfNode(r), object: liqotest.VirtualNode(a, true), want: []string{"id-a"}},
		"Lying":     {reason: "One that says otherwise matters to both.", of: watch.OfNode(r), object: lying, want: []string{"id-a", "id-b"}},
		"Peer": {
			reason: "A foreign cluster matters to its own objects.", of: watch.OfRecord(r), object: liqotest.ForeignCluster(a, true, false),
			want: []string{"id-a"},
		},
		"Namesake": {
			reason: "And to those of who may have its name now.", of: watch.OfRecord(r), object: sameName,
			want: []string{"id-1561", "id-1363"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, request := range tc.of(t.Context(), tc.object) {
				got = append(got, request.Name)
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("%s\ngot %v, want %v", tc.reason, got, tc.want)
			}
		})
	}
}
