// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package twin

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo/liqotest"
)

func TestProviderChanged(t *testing.T) {
	cases := map[string]struct {
		reason string
		change func(*v1alpha1.Provider)
		want   bool
	}{
		"Toggle":   {reason: "A toggle changes plans.", change: func(p *v1alpha1.Provider) { p.Spec.Scheduling = v1alpha1.SchedulingDrained }, want: true},
		"Cordon":   {reason: "So does a cordon.", change: func(p *v1alpha1.Provider) { p.Spec.Scheduling = v1alpha1.SchedulingCordoned }, want: true},
		"Observed": {reason: "So does that the scheduler was told.", change: func(p *v1alpha1.Provider) { p.Status.ObservedGeneration++ }, want: true},
		"Ready": {
			reason: "So does that the provider can be used no more.", want: true,
			change: func(p *v1alpha1.Provider) { p.Status.Conditions[0].Status = metav1.ConditionFalse },
		},
		"Name": {
			reason: "So does the name, by which Liqo calls what it makes for the provider.", want: true,
			change: func(p *v1alpha1.Provider) { p.Status.ClusterName = "other" },
		},
		"Offered": {
			reason: "What is offered does not change where pods may run.",
			change: func(p *v1alpha1.Provider) {
				p.Status.Offered = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
			},
		},
		"Message": {reason: "Nor does a message.", change: func(p *v1alpha1.Provider) { p.Status.Conditions[0].Message = "other" }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			before, after := ready(providerA), ready(providerA)
			tc.change(after)
			if got := providerChanged().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}); got != tc.want {
				t.Errorf("%s\nUpdate() = %v", tc.reason, got)
			}
		})
	}
}

func TestAllTwinNamespaces(t *testing.T) {
	other := liqotest.TwinNamespace("other", consumer)
	other.Annotations = nil
	h := start(t, liqotest.TwinNamespace("one", consumer), liqotest.TwinNamespace("two", consumer), other)
	want := []reconcile.Request{
		{NamespacedName: client.ObjectKey{Name: "one"}},
		{NamespacedName: client.ObjectKey{Name: "two"}},
	}
	if diff := cmp.Diff(want, h.r.all(t.Context())); diff != "" {
		t.Errorf("all(): -want +got\n%s", diff)
	}
}

// TestPolicyConcernsItsFollowers changes the policy that one of two consumers follows.
func TestPolicyConcernsItsFollowers(t *testing.T) {
	decided := func(generation int64, chosen ...string) *v1alpha1.PlacementPolicy {
		p := &v1alpha1.PlacementPolicy{ObjectMeta: metav1.ObjectMeta{Name: "p", Generation: generation}}
		p.Spec.AppliesTo = v1alpha1.AppliesTo{Scope: v1alpha1.ScopeConsumers, Consumers: []string{string(consumer.ID)}}
		d := v1alpha1.PlacementDecision{Consumers: []v1alpha1.DecidedConsumer{{ID: string(consumer.ID)}}}
		for _, id := range chosen {
			d.Chosen = append(d.Chosen, v1alpha1.ChosenProvider{ID: id})
		}
		p.Status.Decisions = []v1alpha1.PlacementDecision{d}
		return p
	}
	before := decided(1, "a", "b")
	explained := decided(1, "b", "a")
	explained.Status.Explanations = []v1alpha1.Explanation{{Consumer: string(consumer.ID), NotExplained: 7}}
	h := start(t, liqotest.TwinNamespace("one", consumer), liqotest.TwinNamespace("two", cluster.Identity{ID: "id-x", Name: "x"}), decided(1))
	cases := map[string]struct {
		reason string
		after  *v1alpha1.PlacementPolicy
		want   int
	}{
		"Explained": {reason: "Who is chosen matters, and not why, or in which order.", after: explained},
		"More":      {reason: "One more is another choice.", after: decided(1, "a", "b", "c"), want: 1},
		"Fewer":     {reason: "So is one less.", after: decided(1, "a"), want: 1},
		"Written":   {reason: "A policy that people change can come to apply to anybody.", after: decided(2, "a", "b"), want: 2},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := h.r.following(t.Context(), before, tc.after); len(got) != tc.want || tc.want == 1 && got[0].Name != "one" {
				t.Errorf("%s\nfollowing(): %v, want %d", tc.reason, got, tc.want)
			}
		})
	}
}
