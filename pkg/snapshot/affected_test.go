// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/core/placement"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v09/liqotest"
	"github.com/capacitorset/liqo-broker/pkg/snapshot/snapshottest"
)

// TestAffectedBy has two namespaces of consumer c, for which a policy chose provider b,
// one of which wishes another policy; and one of consumer d, which has no policy.
func TestAffectedBy(t *testing.T) {
	consumer, free := cluster.Identity{ID: "id-c", Name: "c"}, cluster.Identity{ID: "id-d", Name: "d"}
	offloading := func(namespace string, ids ...cluster.ID) client.Object {
		return liqotest.Offloading(namespace, ids...)
	}
	wished := policy("wished", func(s *v1alpha1.PlacementPolicySpec) { s.AppliesTo.Scope = v1alpha1.ScopeOnRequest })
	names := policy("names", func(s *v1alpha1.PlacementPolicySpec) {
		s.AppliesTo = v1alpha1.AppliesTo{Scope: v1alpha1.ScopeConsumers, Consumers: []string{"id-c"}}
	})
	objects := func(more ...client.Object) []client.Object {
		return append(more,
			liqotest.TwinNamespace("named", consumer), liqotest.TwinNamespace("wishes", consumer), liqotest.TwinNamespace("free", free),
			names, wished, snapshottest.Decision(names, "id-c", "id-b"), snapshottest.Decision(wished, "id-c", "id-w"),
			liqotest.ShadowPod("wishes", "pod", map[string]string{liqo.LabelPolicy: "wished"}),
		)
	}
	pod := liqotest.Pod(liqotest.ShadowPod("named", "pod", nil), "liqo-x")
	cases := map[string]struct {
		reason  string
		objects []client.Object
		id      cluster.ID
		want    []string
	}{
		"Stranger": {reason: "A provider that nobody chose concerns who has no policy.", objects: objects(), id: "id-x", want: []string{"free"}},
		"Chosen":   {reason: "One that a policy chose concerns who follows it.", objects: objects(), id: "id-b", want: []string{"free", "named"}},
		"Wished":   {reason: "So does the choice of a policy that is wished.", objects: objects(), id: "id-w", want: []string{"free", "wishes"}},
		"Selected": {
			reason:  "One that is selected still concerns the namespace.",
			objects: objects(offloading("named", "id-x", "id-b"), offloading("wishes", "id-w")), id: "id-x", want: []string{"free", "named"},
		},
		"Occupied": {
			reason:  "So does one where pods are.",
			objects: objects(liqotest.VirtualNode(cluster.Identity{ID: "id-x", Name: "x"}, true), pod), id: "id-x", want: []string{"free", "named"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := snapshottest.Reader(snapshottest.NewClient(t, interceptor.Funcs{}, tc.objects...), "")
			got, err := r.AffectedBy(t.Context(), tc.id)
			if err != nil {
				t.Fatalf("AffectedBy(): %v", err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nAffectedBy(): -want +got\n%s", tc.reason, diff)
			}
		})
	}
	r := snapshottest.Reader(snapshottest.NewClient(t, interceptor.Funcs{}, objects()...), "")
	for name, want := range map[string][]string{"names": {"named"}, "wished": {"wishes"}, "other": nil} {
		got, err := r.FollowersOf(t.Context(), name, "id-c")
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("FollowersOf(%s): %v, -want +got\n%s", name, err, diff)
		}
	}
	if got, err := r.FollowersOf(t.Context(), "names", "id-d"); len(got) > 0 || err != nil {
		t.Errorf("the namespaces of another consumer follow: %v, %v", got, err)
	}
}

// TestOnlyWhatConcerns reads a namespace with a policy among many providers.
func TestOnlyWhatConcerns(t *testing.T) {
	const namespace = "web"
	consumer := cluster.Identity{ID: "id-c", Name: "c"}
	var objects []client.Object
	for _, name := range []string{"b", "s", "o", "x", "y"} {
		p := &v1alpha1.Provider{}
		p.Name = "id-" + name
		objects = append(objects, p)
	}
	shadow := liqotest.ShadowPod(namespace, "pod", nil)
	objects = append(objects, decided(policy("names", func(s *v1alpha1.PlacementPolicySpec) {
		s.AppliesTo = v1alpha1.AppliesTo{Scope: v1alpha1.ScopeConsumers, Consumers: []string{"id-c"}}
	}))...)
	objects = append(objects,
		liqotest.Offloading(namespace, "id-s", "id-gone"),
		liqotest.VirtualNode(cluster.Identity{ID: "id-o", Name: "o"}, true), shadow, liqotest.Pod(shadow, "liqo-o"),
	)
	r := snapshottest.Reader(snapshottest.NewClient(t, interceptor.Funcs{}, objects...), "")
	n, err := r.Twin(t.Context(), liqotest.TwinNamespace(namespace, consumer))
	if err != nil {
		t.Fatalf("Twin(): %v", err)
	}
	got := map[cluster.ID]bool{}
	for _, p := range n.Snapshot.Providers {
		got[p.ID] = p.Choice == placement.Unchosen
	}
	if diff := cmp.Diff(map[cluster.ID]bool{"id-b": false, "id-s": true, "id-o": true}, got); diff != "" {
		t.Errorf("the providers, and whether they are unchosen: -want +got\n%s", diff)
	}
}
