// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package showntest has a small world for the tests of what shows it.
package showntest

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/core/kpi"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v09/liqotest"
	"github.com/capacitorset/liqo-broker/pkg/snapshot/snapshottest"
)

// The clusters of the world below: everything about a provider that a consumer might find has "hidden" in it.
var (
	Broker   = cluster.Identity{ID: "id-broker", Name: "broker"}
	Milan    = cluster.Identity{ID: "hidden-milan", Name: "hidden-name-milan"}
	Turin    = cluster.Identity{ID: "hidden-turin", Name: "hidden-name-turin"}
	Sees     = cluster.Identity{ID: "orchestrated", Name: "sees"}
	Blind    = cluster.Identity{ID: "aggregated", Name: "blind"}
	Midnight = time.Date(2024, 2, 29, 0, 0, 0, 0, time.UTC)
)

// NewProvider returns a provider that offers.
func NewProvider(id cluster.Identity) *v1alpha1.Provider {
	p := &v1alpha1.Provider{ObjectMeta: metav1.ObjectMeta{Name: string(id.ID), CreationTimestamp: metav1.NewTime(Midnight)}}
	p.Spec.Price = &v1alpha1.Price{Currency: "EUR", CPU: new(resource.MustParse("10m"))}
	p.Status = v1alpha1.ProviderStatus{
		ClusterName: id.Name, Free: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("3")},
		KPIs: []v1alpha1.KPI{
			{
				Name: kpi.RoundTripTime, KPIValue: v1alpha1.KPIValueOf(kpi.KPI{
					Value: 1.5, Unit: kpi.Milliseconds, Measured: Midnight, Expires: Midnight,
				}),
			},
		},
	}
	meta.SetStatusCondition(&p.Status.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonOffering,
		LastTransitionTime: metav1.NewTime(Midnight),
	})
	return p
}

// NewConsumer returns a consumer that is offered something.
func NewConsumer(id cluster.Identity, mode v1alpha1.Mode) *v1alpha1.Consumer {
	c := &v1alpha1.Consumer{ObjectMeta: metav1.ObjectMeta{Name: string(id.ID), CreationTimestamp: metav1.NewTime(Midnight)}}
	trip := kpi.KPI{Value: 2, Unit: kpi.Milliseconds, Measured: time.Now(), Expires: time.Now().Add(time.Hour)}
	c.Status = v1alpha1.ConsumerStatus{
		ClusterName: id.Name, Mode: mode, Offered: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("6")},
		NodeOffers: []v1alpha1.NodeOffer{{Node: "liqo-hidden-node", Provider: string(Milan.ID)}},
		RoundTrips: []v1alpha1.RoundTrip{{Provider: string(Milan.ID), KPIValue: v1alpha1.KPIValueOf(trip)}},
	}
	meta.SetStatusCondition(&c.Status.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonOffering,
		Message: "Offering 6 CPU of hidden-name-milan", LastTransitionTime: metav1.NewTime(Midnight),
	})
	return c
}

// World is a broker with two providers, two consumers that each have a pod on Milan, and a policy that has chosen Turin.
func World() []client.Object {
	node := liqotest.VirtualNode(Milan, true)
	node.Name = "liqo-hidden-node"
	policy := &v1alpha1.PlacementPolicy{ObjectMeta: metav1.ObjectMeta{Name: "cheap", UID: "1", CreationTimestamp: metav1.NewTime(Midnight)}}
	policy.Spec.AppliesTo.Scope = v1alpha1.ScopeDefault
	policy.Spec.Scaling = &v1alpha1.Scaling{Query: "delay", Unit: "ms", OffloadAbove: "200", UnoffloadBelow: "50", Min: 1}
	policy.Status.Summary = "hidden-name-turin"
	milan := NewProvider(Milan)
	milan.Labels = map[string]string{"region": "hidden-north"}
	seen := kpi.History{}.Observe(Midnight, true).Observe(Midnight.Add(time.Minute), true)
	objects := []client.Object{
		milan, &v1alpha1.ProviderHistory{ObjectMeta: metav1.ObjectMeta{Name: milan.Name}, History: seen.String()},
		NewProvider(Turin), NewConsumer(Sees, v1alpha1.ModeOrchestrated), NewConsumer(Blind, v1alpha1.ModeAggregated),
		node, policy, liqotest.ForeignCluster(Milan, true, false), liqotest.ForeignCluster(Sees, false, true),
		liqotest.Tunnel(Milan, "850μs", Midnight),
	}
	for _, c := range []cluster.Identity{Sees, Blind} {
		twin := liqotest.TwinNamespace("shop-"+c.Name, c)
		twin.Annotations["liqo.io/original-name"] = "shop"
		pod := liqotest.Pod(liqotest.ShadowPod(twin.Name, "web-0", nil), node.Name)
		pod.Status.PodIP = "10.66.6.6"
		pod.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("250m")},
		}}}
		d := snapshottest.Decision(policy, c.ID, Turin.ID)
		d.ConsumerName, d.Chosen[0].Name = c.Name, Turin.Name
		d.Explained = []v1alpha1.ExplainedProvider{
			{ID: string(Turin.ID), Name: Turin.Name, Chosen: true, Score: "87.5", Terms: []v1alpha1.ExplainedTerm{
				{KPI: kpi.PriceCPU, Value: "0.01", Unit: "EUR/h", Normalized: "0.88", Weight: -1},
			}},
			{ID: string(Milan.ID), Name: Milan.Name, Excluded: "it costs too much"},
		}
		d.Better = []v1alpha1.BetterProvider{{ID: string(Milan.ID), SinceTime: metav1.NewTime(Midnight)}}
		d.Scaling = &v1alpha1.ScalingStatus{Count: 1, Value: "120", Unit: "ms"}
		objects = append(objects, twin, pod, d)
	}
	return objects
}
