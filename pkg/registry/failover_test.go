// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package registry_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/liqo/liqotest"
	"github.com/capacitorset/liqo-broker/pkg/placement"
	"github.com/capacitorset/liqo-broker/pkg/registry"
	"github.com/capacitorset/liqo-broker/pkg/registry/registrytest"
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
				tc.spec.Default = true
				objects = append(objects, &v1alpha1.PlacementPolicy{ObjectMeta: metav1.ObjectMeta{Name: "policy"}, Spec: *tc.spec})
			}
			got, err := registry.New(registrytest.NewClient(t, interceptor.Funcs{}, objects...)).
				Namespace(t.Context(), liqotest.TwinNamespace(namespace, consumer))
			if err != nil {
				t.Fatalf("Namespace(): %v", err)
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
