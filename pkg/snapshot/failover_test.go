// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/core/placement"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v09/liqotest"
	"github.com/capacitorset/liqo-broker/pkg/remoteipam"
	"github.com/capacitorset/liqo-broker/pkg/snapshot"
	"github.com/capacitorset/liqo-broker/pkg/snapshot/snapshottest"
)

// TestFailoverRule reads the rule of a policy.
func TestFailoverRule(t *testing.T) {
	cases := map[string]struct {
		reason string
		spec   *v1alpha1.PlacementPolicySpec
		want   placement.Failover
		single bool
	}{
		"None": {
			reason: "Without a policy there is a rule too.",
			want:   placement.Failover{Mode: placement.AfterGrace, Grace: 30 * time.Second},
		},
		"Empty": {
			reason: "It is that of a policy which does not say.",
			spec:   &v1alpha1.PlacementPolicySpec{},
			want:   placement.Failover{Mode: placement.AfterGrace, Grace: 30 * time.Second},
		},
		"All": {
			reason: "A policy can say all of it.",
			spec: &v1alpha1.PlacementPolicySpec{
				Failover: v1alpha1.Failover{
					Mode: v1alpha1.FailoverNever, Grace: &metav1.Duration{Duration: time.Minute}, StatefulSets: v1alpha1.StatefulReplace,
				},
				MoveSingletons: v1alpha1.SingletonsWithGap,
			},
			want:   placement.Failover{Mode: placement.Never, Grace: time.Minute, ReplaceSole: true},
			single: true,
		},
		"Immediate": {
			reason: "Immediate is another mode.",
			spec:   &v1alpha1.PlacementPolicySpec{Failover: v1alpha1.Failover{Mode: v1alpha1.FailoverImmediate}},
			want:   placement.Failover{Mode: placement.Immediate, Grace: 30 * time.Second},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var objects []client.Object
			if tc.spec != nil {
				tc.spec.AppliesTo.Scope = v1alpha1.ScopeDefault
				objects = append(objects, &v1alpha1.PlacementPolicy{ObjectMeta: metav1.ObjectMeta{Name: "policy"}, Spec: *tc.spec})
			}
			got, err := snapshottest.Reader(snapshottest.NewClient(t, interceptor.Funcs{}, objects...), "").
				Twin(t.Context(), liqotest.TwinNamespace(namespace, consumer))
			if err != nil {
				t.Fatalf("Twin(): %v", err)
			}
			if diff := cmp.Diff(tc.want, got.Snapshot.Failover); diff != "" {
				t.Errorf("%s\nFailover: -want +got\n%s", tc.reason, diff)
			}
			if got.Snapshot.MoveSingletons != tc.single {
				t.Errorf("%s\nMoveSingletons is %v", tc.reason, got.Snapshot.MoveSingletons)
			}
		})
	}
}

// TestDirect has a consumer that reaches one of two lost providers past the broker.
func TestDirect(t *testing.T) {
	objects := []client.Object{liqotest.TwinNamespace(namespace, consumer)}
	for _, id := range []cluster.Identity{providerA, providerB} {
		p := &v1alpha1.Provider{ObjectMeta: metav1.ObjectMeta{Name: string(id.ID)}}
		snapshottest.Lose(p, time.Unix(1, 0))
		fc := liqotest.ForeignCluster(id, true, false)
		fc.Status.TenantNamespace.Local = "tenant-" + id.Name
		said := &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: "tenant-" + id.Name, Name: remoteipam.DirectName},
			Data:       map[string]string{"another": "10.0.0.0/16"},
		}
		if id == providerA {
			said.Data[string(consumer.ID)] = "10.1.0.0/16"
		}
		objects = append(objects, p, fc, said)
	}
	r := snapshottest.Reader(snapshottest.NewClient(t, interceptor.Funcs{}, objects...), "")
	got, err := r.Twin(t.Context(), liqotest.TwinNamespace(namespace, consumer))
	if err != nil {
		t.Fatalf("Twin(): %v", err)
	}
	direct := map[cluster.ID]bool{}
	for _, p := range got.Snapshot.Providers {
		direct[p.ID] = p.Direct
	}
	if diff := cmp.Diff(map[cluster.ID]bool{providerA.ID: true, providerB.ID: false}, direct); diff != "" {
		t.Errorf("Direct: -want +got\n%s", diff)
	}
	for ns, want := range map[string]cluster.ID{"tenant-provider-b": providerB.ID, "elsewhere": ""} {
		if got, err := r.TenantOf(t.Context(), ns); got != want || err != nil {
			t.Errorf("TenantOf(%s) = %q, %v; want %q", ns, got, err, want)
		}
	}
}

// TestDirectIsReadSeldom counts who asks the API server for what consumers say of a lost
// provider, and where.
func TestDirectIsReadSeldom(t *testing.T) {
	p := &v1alpha1.Provider{ObjectMeta: metav1.ObjectMeta{Name: string(providerA.ID)}}
	snapshottest.Lose(p, time.Unix(1, 0))
	said := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: liqotest.Tenant(providerA), Name: remoteipam.DirectName},
		Data:       map[string]string{string(consumer.ID): "10.1.0.0/16"},
	}
	forged := said.DeepCopy() // As a consumer can make it in a twin namespace.
	forged.Namespace = namespace
	var asked []string
	c := snapshottest.NewClient(t, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if _, is := o.(*corev1.ConfigMap); is {
				asked = append(asked, key.String())
			}
			return c.Get(ctx, key, o, opts...)
		},
	}, liqotest.TwinNamespace(namespace, consumer), p, liqotest.ForeignCluster(providerA, true, false), said, forged)
	r := snapshottest.Reader(c, "")
	looks := func(reason string, r *snapshot.Reader, direct bool) {
		t.Helper()
		got, err := r.Twin(t.Context(), liqotest.TwinNamespace(namespace, consumer))
		if err != nil {
			t.Fatal(err)
		}
		if got.Snapshot.Providers[0].Direct != direct {
			t.Errorf("%s\nDirect is %v", reason, !direct)
		}
	}
	looks("The consumer says that it reaches the provider.", r, true)
	if err := c.Delete(t.Context(), said); err != nil {
		t.Fatal(err)
	}
	looks("For a moment it is not asked again.", r, true)
	looks("Who asks for the first time is told that it does not any more.", snapshottest.Reader(c, ""), false)
	want := liqotest.Tenant(providerA) + "/" + remoteipam.DirectName
	if !slices.Equal(asked, []string{want, want}) {
		t.Errorf("asked for %v, want %s twice", asked, want)
	}
}
