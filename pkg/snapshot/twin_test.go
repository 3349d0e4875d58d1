// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/core/nodename"
	"github.com/capacitorset/liqo-broker/pkg/core/placement"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v09/liqotest"
	"github.com/capacitorset/liqo-broker/pkg/snapshot/snapshottest"
)

const namespace = "web-consumer"

var (
	providerA = cluster.Identity{ID: "id-a", Name: "provider-a"}
	providerB = cluster.Identity{ID: "id-b", Name: "provider-b"}
	consumer  = cluster.Identity{ID: "id-c", Name: "consumer"}
)

// deleted marks an object as being deleted.
func deleted[T client.Object](o T) T {
	o.SetDeletionTimestamp(new(metav1.Now()))
	o.SetFinalizers([]string{"test/hold"}) // Or else the fake client takes it away.
	return o
}

// lostProvider returns a provider none of whose nodes was ready when it was looked at last.
func lostProvider(id string) *v1alpha1.Provider {
	p := &v1alpha1.Provider{ObjectMeta: metav1.ObjectMeta{Name: id}}
	snapshottest.Lose(p, time.Unix(1_000_000, 0))
	return p
}

// behindSilentGateway returns a provider whose gateway is silent.
func behindSilentGateway(id string) *v1alpha1.Provider {
	p := lostProvider(id)
	meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionReachable).Reason = v1alpha1.ReasonGatewaySilent
	return p
}

func TestCopies(t *testing.T) {
	labels := map[string]string{"app": "web"}
	shadow := func() *v09.ShadowPod { return liqotest.ShadowPod(namespace, "web-0", labels) }
	pod := func(node string, change func(*corev1.Pod)) *corev1.Pod {
		p := liqotest.Pod(shadow(), node, providerA.ID)
		if change != nil {
			change(p)
		}
		return p
	}
	phase := func(phase corev1.PodPhase) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Status.Phase, p.Status.Conditions = phase, nil }
	}
	base := placement.Copy{Pod: "web-0", Workload: "app=web"}
	with := func(change func(*placement.Copy)) []placement.Copy {
		c := base
		change(&c)
		return []placement.Copy{c}
	}
	cases := map[string]struct {
		reason  string
		objects []client.Object
		want    []placement.Copy
	}{
		"Running": {
			reason:  "A pod on a virtual node is on its provider.",
			objects: []client.Object{shadow(), pod("liqo-provider-a", nil)},
			want: with(func(c *placement.Copy) {
				c.Spot, c.Provider, c.Ready = placement.OnProvider, providerA.ID, true
			}),
		},
		"NodeDown": {
			reason:  "What a pod was last heard to do says nothing when its node is silent.",
			objects: []client.Object{shadow(), pod("liqo-provider-b", nil)},
			want:    with(func(c *placement.Copy) { c.Spot, c.Provider = placement.OnProvider, providerB.ID }),
		},
		"GatewaySilent": {
			reason:  "Nor when the gateway to its provider is.",
			objects: []client.Object{shadow(), pod("liqo-provider-a", nil), behindSilentGateway(string(providerA.ID))},
			want:    with(func(c *placement.Copy) { c.Spot, c.Provider = placement.OnProvider, providerA.ID }),
		},
		"ProviderLost": {
			reason:  "If a provider is lost for another reason, and its node is ready, it is back.",
			objects: []client.Object{shadow(), pod("liqo-provider-a", nil), lostProvider(string(providerA.ID))},
			want: with(func(c *placement.Copy) {
				c.Spot, c.Provider, c.Ready = placement.OnProvider, providerA.ID, true
			}),
		},
		"Unheard": {
			reason:  "A pod may serve where nobody reports on its node.",
			objects: []client.Object{shadow(), pod("liqo-provider-z", nil)},
			want:    with(func(c *placement.Copy) { c.Spot, c.Provider, c.Unheard = placement.OnProvider, "id-z", true }),
		},
		"Sole": {
			reason: "A pod of a StatefulSet may run only once.",
			objects: []client.Object{
				liqotest.ShadowPod(namespace, "web-0", map[string]string{"app": "web", "statefulset.kubernetes.io/pod-name": "web-0"}),
			},
			want: with(func(c *placement.Copy) { c.Workload, c.Missing, c.Sole = "StatefulSet web", true, true }),
		},
		"OwnNode": {
			reason:  "A pod on another node is on the broker.",
			objects: []client.Object{shadow(), pod("broker", nil)},
			want:    with(func(c *placement.Copy) { c.Spot, c.Ready = placement.OnBroker, true }),
		},
		"Missing": {
			reason:  "A wish without a pod is a copy that is missing.",
			objects: []client.Object{shadow()},
			want:    with(func(c *placement.Copy) { c.Missing = true }),
		},
		"Waiting": {
			reason:  "A pod that waits with the present selection is up to date.",
			objects: []client.Object{shadow(), pod("", nil)},
			want:    with(func(*placement.Copy) {}),
		},
		"Outdated": {
			reason:  "A pod that waits with another selection is not.",
			objects: []client.Object{shadow(), pod("", func(p *corev1.Pod) { p.Spec.Affinity = nil })},
			want:    with(func(c *placement.Copy) { c.Outdated = true }),
		},
		"Reopened": {
			reason:  "Nor is one that was made to wait, when providers take pods again.",
			objects: []client.Object{shadow(), pod("", func(p *corev1.Pod) { liqo.Place(p, nil) })},
			want:    with(func(c *placement.Copy) { c.Outdated = true }),
		},
		"PinnedToNobody": {
			reason: "One that is for a provider that is gone waits on.",
			objects: []client.Object{shadow(), pod("", func(p *corev1.Pod) {
				p.Labels["virtualkubelet.liqo.io/nodename"] = nodename.Name("id-broker", cluster.Identity{ID: "gone"})
				liqo.Place(p, nil)
			})},
			want: with(func(c *placement.Copy) { c.Pinned = true }),
		},
		"Leaving": {
			reason:  "A pod that ends while it is deleted is leaving, and comes back.",
			objects: []client.Object{shadow(), deleted(pod("liqo-provider-a", phase(corev1.PodFailed)))},
			want: with(func(c *placement.Copy) {
				c.Spot, c.Provider, c.Leaving = placement.OnProvider, providerA.ID, true
			}),
		},
		"Finished": {
			reason:  "A pod that has ended by itself is no copy.",
			objects: []client.Object{shadow(), pod("liqo-provider-a", phase(corev1.PodSucceeded))},
		},
		"NotWanted": {
			reason: "A pod that the consumer deletes is no copy.", objects: []client.Object{deleted(shadow()), pod("liqo-provider-a", nil)},
		},
		"Stray": {reason: "A pod that no consumer asked for is no copy.", objects: []client.Object{pod("liqo-provider-a", nil)}},
	}
	silent := liqotest.VirtualNode(cluster.Identity{ID: "id-z", Name: "provider-z"}, false)
	silent.Status.Conditions[0].Status = corev1.ConditionUnknown
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			ns := liqotest.TwinNamespace(namespace, consumer)
			o := liqotest.Offloading(namespace, providerA.ID)
			liqotest.PutInForce(ns, o, providerA)
			nodes := []client.Object{liqotest.VirtualNode(providerA, true), liqotest.VirtualNode(providerB, false), silent}
			c := snapshottest.NewClient(t, interceptor.Funcs{}, slices.Concat(tc.objects, []client.Object{o}, nodes)...)
			got, err := snapshottest.Reader(c, "").Twin(t.Context(), ns)
			if err != nil {
				t.Fatalf("%s\nTwin(): %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, got.Snapshot.Copies, cmpopts.EquateEmpty(),
				cmpopts.IgnoreFields(placement.Copy{}, "Requests")); diff != "" {
				t.Errorf("%s\nNamespace().Snapshot.Copies: -want +got\n%s", tc.reason, diff)
			}
			if !got.Snapshot.Effective || !cmp.Equal(got.Snapshot.Selected, []cluster.ID{providerA.ID}) {
				t.Errorf("%s\neffective %v, selected %v", tc.reason, got.Snapshot.Effective, got.Snapshot.Selected)
			}
		})
	}
}

func TestProviders(t *testing.T) {
	cases := map[string]struct {
		reason string
		id     cluster.Identity
		change func(*v1alpha1.Provider)
		want   placement.Provider
	}{
		"Ready": {
			reason: "A ready provider that has the namespace can take pods.",
			id:     providerA,
			want:   placement.Provider{ID: "id-a", Health: placement.Ready, Namespace: placement.Present},
		},
		"NotReceiving": {
			reason: "A provider without the namespace cannot yet.",
			id:     providerB,
			want:   placement.Provider{ID: "id-b", Health: placement.Ready},
		},
		"Drained": {
			reason: "A provider is drained when the change has been observed.",
			id:     providerA, change: func(p *v1alpha1.Provider) { p.Spec.Scheduling = v1alpha1.SchedulingDrained },
			want: placement.Provider{ID: "id-a", Health: placement.Ready, Scheduling: placement.Drained, Namespace: placement.Present},
		},
		"NotObserved": {
			reason: "Before that, it is neither ready nor closed to the scheduler.",
			id:     providerA, change: func(p *v1alpha1.Provider) { p.Spec.Scheduling, p.Generation = v1alpha1.SchedulingDrained, 8 },
			want: placement.Provider{ID: "id-a", Scheduling: placement.Closing, Namespace: placement.Present},
		},
		"Cordoned": {
			reason: "One that is only cordoned is well.",
			id:     providerA, change: func(p *v1alpha1.Provider) {
				p.Spec.Scheduling = v1alpha1.SchedulingCordoned
				p.Status.Conditions[0].Status, p.Status.Conditions[0].Reason = metav1.ConditionFalse, v1alpha1.ReasonCordoned
			},
			want: placement.Provider{ID: "id-a", Health: placement.Ready, Scheduling: placement.Cordoned, Namespace: placement.Present},
		},
		"CordonedNotObserved": {
			reason: "It is cordoned as soon as people want it.",
			id:     providerA, change: func(p *v1alpha1.Provider) { p.Spec.Scheduling, p.Generation = v1alpha1.SchedulingCordoned, 8 },
			want: placement.Provider{ID: "id-a", Scheduling: placement.Cordoned, Namespace: placement.Present},
		},
		"Lost": {
			reason: "It is known since when a provider is out of reach.",
			id:     providerA, change: func(p *v1alpha1.Provider) {
				p.Status.Conditions[0].Status = metav1.ConditionFalse
				snapshottest.Lose(p, time.Unix(1, 0))
			},
			want: placement.Provider{ID: "id-a", Namespace: placement.Present, LostSince: time.Unix(1, 0)},
		},
		"Withdrawn": {
			reason: "A provider may take its offer back.",
			id:     providerA, change: func(p *v1alpha1.Provider) {
				p.Status.Conditions[0].Status, p.Status.Conditions[0].Reason = metav1.ConditionFalse, v1alpha1.ReasonWithdrawn
			},
			want: placement.Provider{ID: "id-a", Health: placement.Withdrawn, Namespace: placement.Present},
		},
		"PeeringEnds": {
			reason: "Or end the peering.",
			id:     providerA, change: func(p *v1alpha1.Provider) {
				p.Status.Conditions[0].Status, p.Status.Conditions[0].Reason = metav1.ConditionFalse, v1alpha1.ReasonPeeringEnds
			},
			want: placement.Provider{ID: "id-a", Health: placement.Ending, Namespace: placement.Present},
		},
		"Origin": {
			reason: "The origin has been passed.",
			id:     consumer, want: placement.Provider{ID: "id-c", Health: placement.Ready, Namespace: placement.Passed},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := &v1alpha1.Provider{ObjectMeta: metav1.ObjectMeta{Name: string(tc.id.ID), Generation: 7}}
			p.Status.ClusterName, p.Status.ObservedGeneration = tc.id.Name, 7
			p.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue}}
			if tc.change != nil {
				tc.change(p)
			}
			ns := liqotest.TwinNamespace(namespace, consumer)
			o := liqotest.Offloading(namespace, providerA.ID)
			liqotest.PutInForce(ns, o, providerA)
			got, err := snapshottest.Reader(snapshottest.NewClient(t, interceptor.Funcs{}, p, o), "").Twin(t.Context(), ns)
			if err != nil {
				t.Fatalf("%s\nTwin(): %v", tc.reason, err)
			}
			if diff := cmp.Diff([]placement.Provider{tc.want}, got.Snapshot.Providers); diff != "" {
				t.Errorf("%s\nNamespace().Snapshot.Providers: -want +got\n%s", tc.reason, diff)
			}
		})
	}
}

// TestRoom has a pod of one core, beside a wish for one that does not exist, and a provider with some room. Only a policy that uses
// another number of providers from time to time evens out.
func TestRoom(t *testing.T) {
	room := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("3")}
	p := &v1alpha1.Provider{ObjectMeta: metav1.ObjectMeta{Name: string(providerA.ID)}}
	p.Status.LargestPod = room
	shadow := liqotest.ShadowPod(namespace, "web-0", map[string]string{"app": "web"})
	pod := liqotest.Pod(shadow, "liqo-provider-a", providerA.ID)
	one := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
	pod.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: one}}}
	policy := &v1alpha1.PlacementPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "policy"},
		Spec:       v1alpha1.PlacementPolicySpec{AppliesTo: v1alpha1.AppliesTo{Scope: v1alpha1.ScopeDefault}},
	}
	for _, levels := range []bool{false, true} {
		if levels {
			policy.Spec.Scaling = &v1alpha1.Scaling{}
		}
		c := snapshottest.NewClient(t, interceptor.Funcs{}, p, policy, shadow, pod, liqotest.ShadowPod(namespace, "web-1", nil),
			liqotest.VirtualNode(providerA, true))
		got, err := snapshottest.Reader(c, "").Twin(t.Context(), liqotest.TwinNamespace(namespace, consumer))
		if err != nil {
			t.Fatalf("Twin(): %v", err)
		}
		if diff := cmp.Diff(room, got.Snapshot.Providers[0].Room); diff != "" || got.Snapshot.Level != levels {
			t.Errorf("to level is %t, the provider has: -want +got\n%s", got.Snapshot.Level, diff)
		}
		want := []corev1.ResourceList{{corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourcePods: resource.MustParse("1")}, nil}
		for i, c := range got.Snapshot.Copies {
			if diff := cmp.Diff(want[i], c.Requests); diff != "" {
				t.Errorf("%s requests: -want +got\n%s", c.Pod, diff)
			}
		}
	}
}

// TestWiderPlacing has pods that wait and were led to provider-b alone. Since then, pods are placed on both providers.
func TestWiderPlacing(t *testing.T) {
	both := []cluster.ID{providerA.ID, providerB.ID}
	on := func(id cluster.Identity) map[string]string {
		return map[string]string{"app": "web", "virtualkubelet.liqo.io/nodename": nodename.Name("id-broker", id)}
	}
	for name, tc := range map[string]struct {
		reason string
		labels map[string]string
		want   bool
	}{
		"Anywhere":  {"It could go to provider-a now, and cannot.", map[string]string{"app": "web"}, true},
		"PinnedToA": {"It must run on provider-a, and cannot.", on(providerA), true},
		"PinnedToB": {"It must run on provider-b in any case.", on(providerB), false},
	} {
		t.Run(name, func(t *testing.T) {
			ns := liqotest.TwinNamespace(namespace, consumer)
			o := liqotest.Offloading(namespace, both...)
			liqotest.PutInForce(ns, o, providerA, providerB)
			shadow := liqotest.ShadowPod(namespace, "web-0", tc.labels)
			pod := liqotest.Pod(shadow, "", both...)
			liqo.Place(pod, []cluster.ID{providerB.ID})
			c := snapshottest.NewClient(t, interceptor.Funcs{}, o, shadow, pod)
			got, err := snapshottest.Reader(c, "id-broker").Twin(t.Context(), ns)
			if err != nil {
				t.Fatalf("Twin(): %v", err)
			}
			if outdated := got.Snapshot.Copies[0].Outdated; outdated != tc.want {
				t.Errorf("%s\noutdated: %t", tc.reason, outdated)
			}
		})
	}
}
