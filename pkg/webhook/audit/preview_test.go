// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"context"
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v09/liqotest"
	"github.com/capacitorset/liqo-broker/pkg/snapshot/snapshottest"
)

func TestCount(t *testing.T) {
	milan, turin := cluster.Identity{ID: "id-milan", Name: "milan"}, cluster.Identity{ID: "id-turin", Name: "turin"}
	rome, oslo := cluster.Identity{ID: "id-rome", Name: "rome"}, cluster.Identity{ID: "id-oslo", Name: "oslo"}
	provider := func(of cluster.Identity, scheduling v1alpha1.Scheduling, ready metav1.ConditionStatus) *v1alpha1.Provider {
		p := &v1alpha1.Provider{ObjectMeta: metav1.ObjectMeta{Name: string(of.ID)}}
		p.Spec.Scheduling = scheduling
		p.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: ready}}
		return p
	}
	pod := func(namespace, on string, i int, phase corev1.PodPhase) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprint("pod-", i)}}
		p.Spec.NodeName, p.Status.Phase = on, phase
		return p
	}
	other := provider(turin, v1alpha1.SchedulingActive, metav1.ConditionTrue)
	all := []client.Object{
		pod("shop", "liqo-milan", 1, corev1.PodRunning), pod("shop", "liqo-milan", 2, corev1.PodPending),
		pod("shop", "liqo-milan", 3, corev1.PodSucceeded), pod("shop", "liqo-turin", 4, corev1.PodRunning),
		pod("bank", "liqo-milan", 5, corev1.PodRunning), pod("own", "liqo-milan", 6, corev1.PodRunning),
		pod("gone", "liqo-milan", 7, corev1.PodRunning),
	}
	cases := map[string]struct {
		reason string
		to     v1alpha1.Scheduling
		other  *v1alpha1.Provider // Nil for none.
		pods   []client.Object
		want   string
	}{
		"Drained": {
			reason: "Pods of consumers leave; those that have ended, of others and elsewhere do not count.", to: v1alpha1.SchedulingDrained,
			other: other, pods: all, want: "Provider id-milan has 3 pods of 2 consumers. They leave, as far as other providers can take them.",
		},
		"Cordoned": {
			reason: "When it is cordoned they stay.", to: v1alpha1.SchedulingCordoned, pods: all,
			want: "Provider id-milan has 3 pods of 2 consumers. What is there stays, and nothing new comes.",
		},
		"Alone": {
			reason: "Without another provider they have nowhere to go.", to: v1alpha1.SchedulingDrained, pods: all[:1],
			want: "Provider id-milan has 1 pod of 1 consumer. No other provider is ready, so that none can take them.",
		},
		"NotReady": {
			reason: "Nor with one that is not ready.", to: v1alpha1.SchedulingDrained, pods: all,
			other: provider(turin, v1alpha1.SchedulingActive, metav1.ConditionFalse),
			want:  "Provider id-milan has 3 pods of 2 consumers. No other provider is ready, so that none can take them.",
		},
		"Closed": {
			reason: "Nor with one that is closed.", to: v1alpha1.SchedulingDrained, pods: all,
			other: provider(turin, v1alpha1.SchedulingCordoned, metav1.ConditionTrue),
			want:  "Provider id-milan has 3 pods of 2 consumers. No other provider is ready, so that none can take them.",
		},
		"Empty": {reason: "Of one without pods there is nothing to say.", to: v1alpha1.SchedulingDrained, pods: all[5:]},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			objects := append([]client.Object{
				liqotest.ForeignCluster(milan, true, false), liqotest.ForeignCluster(turin, true, false),
				liqotest.Offer(milan, nil), liqotest.Offer(turin, nil), liqotest.VirtualNode(milan, true), liqotest.VirtualNode(turin, true),
				liqotest.TwinNamespace("shop", rome), liqotest.TwinNamespace("bank", oslo),
				&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "own"}},
			}, tc.pods...)
			if tc.other != nil {
				objects = append(objects, tc.other)
			}
			c := snapshottest.NewClient(t, interceptor.Funcs{}, objects...)
			got, err := Count(c, snapshottest.Reader(c, "id-own"))(t.Context(), provider(milan, tc.to, metav1.ConditionTrue))
			if err != nil || got != tc.want {
				t.Errorf("%s\n%q, %v; want %q", tc.reason, got, err, tc.want)
			}
		})
	}
}

// TestCountFails holds that what cannot be counted is an error, and no sentence.
func TestCountFails(t *testing.T) {
	c := snapshottest.NewClient(t, interceptor.Funcs{
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			return errors.New("boom")
		},
	})
	p := &v1alpha1.Provider{ObjectMeta: metav1.ObjectMeta{Name: "id-milan"}}
	if got, err := Count(c, snapshottest.Reader(c, "id-own"))(t.Context(), p); err == nil || got != "" {
		t.Errorf("%q, %v", got, err)
	}
}
