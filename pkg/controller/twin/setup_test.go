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
	"github.com/capacitorset/liqo-broker/pkg/liqo/v09/liqotest"
	"github.com/capacitorset/liqo-broker/pkg/snapshot/snapshottest"
)

func TestProviderChanged(t *testing.T) {
	cases := map[string]struct {
		reason string
		change func(*v1alpha1.Provider)
		want   bool
	}{
		"Toggle": {
			reason: "A toggle changes plans.", change: func(p *v1alpha1.Provider) { p.Spec.Scheduling = v1alpha1.SchedulingDrained }, want: true,
		},
		"Cordon": {
			reason: "So does a cordon.", change: func(p *v1alpha1.Provider) { p.Spec.Scheduling = v1alpha1.SchedulingCordoned }, want: true,
		},
		"Observed": {
			reason: "So does that the scheduler was told.", change: func(p *v1alpha1.Provider) { p.Status.ObservedGeneration++ }, want: true,
		},
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

// TestDecisionConcernsItsFollowers changes what is chosen for one of two consumers.
func TestDecisionConcernsItsFollowers(t *testing.T) {
	p := &v1alpha1.PlacementPolicy{ObjectMeta: metav1.ObjectMeta{Name: "p"}}
	p.Spec.AppliesTo = v1alpha1.AppliesTo{Scope: v1alpha1.ScopeConsumers, Consumers: []string{string(consumer.ID)}}
	h := start(t, liqotest.TwinNamespace("one", consumer), liqotest.TwinNamespace("two", cluster.Identity{ID: "id-x", Name: "x"}), p)
	before := snapshottest.Decision(p, consumer.ID, "a", "b")
	explained := snapshottest.Decision(p, consumer.ID, "b", "a")
	explained.NotExplained = 7
	cases := map[string]struct {
		reason string
		after  *v1alpha1.PlacementDecision
		want   bool
	}{
		"Explained": {reason: "Who is chosen matters, and not why, or in which order.", after: explained},
		"More":      {reason: "One more is another choice.", after: snapshottest.Decision(p, consumer.ID, "a", "b", "c"), want: true},
		"Fewer":     {reason: "So is one less.", after: snapshottest.Decision(p, consumer.ID, "a"), want: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := choiceChanged().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: tc.after}); got != tc.want {
				t.Errorf("%s\nUpdate() = %t", tc.reason, got)
			}
		})
	}
	if got := h.r.following(t.Context(), before); len(got) != 1 || got[0].Name != "one" {
		t.Errorf("following(): %v, want the namespace of the consumer", got)
	}
	if got := h.r.following(t.Context(), snapshottest.Decision(p, "id-x", "a")); len(got) > 0 {
		t.Errorf("following(): %v, which do not follow the policy", got)
	}
	// A policy that comes, goes or is changed by people can come to apply to anybody.
	if got := h.r.everywhere(t.Context(), p); len(got) != 2 {
		t.Errorf("everywhere(): %v", got)
	}
}

// TestReportConcernsItsConsumer changes an object in the tenant namespace of one of two consumers.
func TestReportConcernsItsConsumer(t *testing.T) {
	h := start(t, liqotest.TwinNamespace("one", consumer), liqotest.TwinNamespace("two", cluster.Identity{ID: "id-x", Name: "x"}),
		liqotest.ForeignCluster(consumer, false, true))
	report := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: liqotest.Offer(consumer, nil).Namespace}}
	if got := h.r.ofTenant(t.Context(), report); len(got) != 1 || got[0].Name != "one" {
		t.Errorf("ofTenant(): %v, want the namespace of the consumer", got)
	}
	report.Namespace = "elsewhere"
	if got := h.r.ofTenant(t.Context(), report); len(got) > 0 {
		t.Errorf("ofTenant(): %v, which is in no tenant namespace", got)
	}
}
