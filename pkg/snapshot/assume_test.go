// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot_test

import (
	"context"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v09/liqotest"
	"github.com/capacitorset/liqo-broker/pkg/snapshot"
	"github.com/capacitorset/liqo-broker/pkg/snapshot/snapshottest"
)

func TestScheduled(t *testing.T) {
	for name, tc := range map[string]struct {
		status metav1.ConditionStatus
		reason string
		as     v1alpha1.Scheduling
		want   string
	}{
		"Drained":             {metav1.ConditionTrue, v1alpha1.ReasonOffering, v1alpha1.SchedulingDrained, v1alpha1.ReasonDraining},
		"Drained and away":    {metav1.ConditionFalse, v1alpha1.ReasonNodeNotReady, v1alpha1.SchedulingDrained, v1alpha1.ReasonDraining},
		"Drained and ending":  {metav1.ConditionFalse, v1alpha1.ReasonPeeringEnds, v1alpha1.SchedulingDrained, v1alpha1.ReasonPeeringEnds},
		"Cordoned":            {metav1.ConditionTrue, v1alpha1.ReasonOffering, v1alpha1.SchedulingCordoned, v1alpha1.ReasonCordoned},
		"Cordoned and away":   {metav1.ConditionFalse, v1alpha1.ReasonNodeNotReady, v1alpha1.SchedulingCordoned, v1alpha1.ReasonNodeNotReady},
		"Active, as it is":    {metav1.ConditionTrue, v1alpha1.ReasonOffering, v1alpha1.SchedulingActive, v1alpha1.ReasonOffering},
		"Drained and unknown": {"", "", v1alpha1.SchedulingDrained, ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := &v1alpha1.Provider{ObjectMeta: metav1.ObjectMeta{Name: "milan", Generation: 3}}
			p.Status.LargestPod = corev1.ResourceList{}
			if tc.status != "" {
				p.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: tc.status, Reason: tc.reason}}
			}
			before := p.DeepCopy()
			is := snapshot.Scheduled(p, tc.as)
			reason := ""
			if ready := meta.FindStatusCondition(is.Status.Conditions, v1alpha1.ConditionReady); ready != nil {
				reason = ready.Reason
			}
			takes := is.Status.LargestPod != nil
			if reason != tc.want || is.Spec.Scheduling != tc.as || is.Status.ObservedGeneration != 3 ||
				takes != (tc.as == v1alpha1.SchedulingActive) {
				t.Errorf("it is %q, want %q: %+v", reason, tc.want, is)
			}
			if p.Spec.Scheduling != before.Spec.Scheduling || len(p.Status.Conditions) > 0 && p.Status.Conditions[0] != before.Status.Conditions[0] {
				t.Errorf("the one given has become %+v", p)
			}
		})
	}
}

// TestOnce asks a cluster without indexes what a cache has: each kind is listed once, and what is assumed goes before what there is.
func TestOnce(t *testing.T) {
	milan, rome := cluster.Identity{ID: "id-milan", Name: "milan"}, cluster.Identity{ID: "id-rome", Name: "rome"}
	ns, node := liqotest.TwinNamespace("shop", rome), liqotest.VirtualNode(milan, true)
	shadow := liqotest.ShadowPod("shop", "web-1", nil)
	provider := &v1alpha1.Provider{ObjectMeta: metav1.ObjectMeta{Name: string(milan.ID)}}
	policy := &v1alpha1.PlacementPolicy{ObjectMeta: metav1.ObjectMeta{Name: "policy"}}
	policy.Spec.AppliesTo.Scope = v1alpha1.ScopeDefault
	lists := map[string]int{}
	indexed := snapshottest.NewClient(t, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			kind, err := c.GroupVersionKindFor(list)
			if err != nil {
				return err
			}
			if chosen := (&client.ListOptions{}).ApplyOptions(options); chosen.FieldSelector != nil || chosen.Namespace != "" {
				t.Errorf("%s are listed by %+v", kind.Kind, chosen)
			}
			lists[kind.Kind]++
			return c.List(ctx, list, options...)
		},
	}, ns, node, shadow, liqotest.Pod(shadow, node.Name), provider, policy, liqotest.ForeignCluster(milan, true, false),
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "own"}, Spec: corev1.PodSpec{NodeName: node.Name}})
	once := snapshot.Once(indexed, v09.Line{})
	decision := snapshottest.Decision(policy, rome.ID, milan.ID)
	drained := *snapshot.Scheduled(provider, v1alpha1.SchedulingDrained)
	reader := snapshot.New(v09.Line{}, once, "", nil).Over(
		snapshot.Assume(once, []v1alpha1.Provider{drained}, []v1alpha1.PlacementDecision{*decision}))
	for range 2 {
		twin, err := reader.Twin(t.Context(), ns)
		if err != nil {
			t.Fatal(err)
		}
		s := twin.Snapshot
		if len(s.Copies) != 1 || s.Copies[0].Provider != milan.ID || len(s.Providers) != 1 || s.Undecided || s.Providers[0].Scheduling == 0 {
			t.Errorf("the twin is %+v", s)
		}
		pods, err := reader.PodsOn(t.Context(), milan.ID)
		if err != nil || len(pods) != 1 || pods[0].Name != "web-1" {
			t.Errorf("on the provider are %d pods: %v", len(pods), err)
		}
		plain, err := snapshot.New(v09.Line{}, once, "", nil).Twin(t.Context(), ns)
		if err != nil || !plain.Snapshot.Undecided || plain.Snapshot.Providers[0].Scheduling != 0 {
			t.Errorf("without what is assumed it is %+v (%v)", plain.Snapshot, err)
		}
	}
	for kind, count := range lists {
		if count != 1 && !slices.Contains([]string{"ConfigMapList"}, kind) {
			t.Errorf("%s are listed %d times", kind, count)
		}
	}
	if err := once.Get(t.Context(), client.ObjectKey{Name: "turin"}, &v1alpha1.Provider{}); !apierrors.IsNotFound(err) {
		t.Errorf("what is not there: %v", err)
	}
	if err := once.List(t.Context(), &corev1.PodList{}, client.MatchingFields{"spec.nodeName": "x"}); err == nil {
		t.Error("there is no such index, and nothing is said")
	}
}
