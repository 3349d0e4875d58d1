// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/controller/twin/planning"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/core/placement"
	"github.com/capacitorset/liqo-broker/pkg/core/resources"
	"github.com/capacitorset/liqo-broker/pkg/lenient"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v09/liqotest"
	"github.com/capacitorset/liqo-broker/pkg/snapshot"
	"github.com/capacitorset/liqo-broker/pkg/snapshot/snapshottest"
)

var (
	providerA = cluster.Identity{ID: "id-a", Name: "provider-a"}
	providerB = cluster.Identity{ID: "id-b", Name: "provider-b"}
	consumer  = cluster.Identity{ID: "id-c", Name: "consumer"}
)

func amount(cpu string) corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse(cpu),
		corev1.ResourceMemory: resource.MustParse("1Gi"),
		corev1.ResourcePods:   resource.MustParse("10"),
	}
}

const (
	active   = v1alpha1.SchedulingActive
	cordoned = v1alpha1.SchedulingCordoned
	drained  = v1alpha1.SchedulingDrained
)

func newProvider(scheduling v1alpha1.Scheduling) *v1alpha1.Provider {
	return &v1alpha1.Provider{
		ObjectMeta: metav1.ObjectMeta{Name: string(providerA.ID), Generation: 3},
		Spec:       v1alpha1.ProviderSpec{Scheduling: scheduling},
	}
}

// settle reconciles provider A twice, because the first time may create it.
func settle(t *testing.T, c client.Client) error {
	t.Helper()
	return settleBy(t, c, plans())
}

func settleBy(t *testing.T, c client.Client, plans Plans) error {
	t.Helper()
	r := New(Config{Client: c, Reader: snapshottest.Reader(c, ""), Clock: clock.RealClock{}, Plans: plans})
	req := ctrl.Request{NamespacedName: client.ObjectKey{Name: string(providerA.ID)}}
	for range 2 {
		if _, err := r.Reconcile(t.Context(), req); err != nil {
			return err
		}
	}
	return nil
}

func get(t *testing.T, c client.Client) *v1alpha1.Provider {
	t.Helper()
	p := &v1alpha1.Provider{}
	if err := c.Get(t.Context(), client.ObjectKey{Name: string(providerA.ID)}, p); err != nil {
		t.Fatalf("Get(): %v", err)
	}
	return p
}

func TestReady(t *testing.T) {
	peered := liqotest.ForeignCluster(providerA, true, false)
	good := liqotest.Offer(providerA, amount("2"))
	withdrawn := liqotest.Offer(providerA, amount("2"))
	liqotest.Withdraw(withdrawn)
	ours := liqotest.Offer(providerA, amount("2"))
	ours.Labels = nil
	second := liqotest.Offer(providerA, amount("1"))
	second.Name, second.Spec.NodeName = "second", "other-node"
	ending := liqotest.ForeignCluster(providerA, true, false)
	liqotest.EndPeering(ending)
	node := func(name string) *corev1.Node {
		n := liqotest.VirtualNode(providerA, true)
		n.Name = name
		return n
	}
	negative := amount("2")
	negative[corev1.ResourceMemory] = resource.MustParse("-1")
	marked := func(o client.Object, text string) {
		o.SetAnnotations(map[string]string{lenient.AnnotationUnreadable: text})
	}
	unreadable, undeclared, unpriced := liqotest.Offer(providerA, amount("0")), newProvider(active), newProvider(active)
	marked(unreadable, "spec.resourceQuota.hard[cpu]: no quantity")
	early := unreadable.DeepCopy()
	early.Status.Phase = ""
	marked(undeclared, "spec.capacity.declared[cpu]: no quantity")
	marked(unpriced, "spec.price.cpu: no quantity")
	offerOf := func(name string, cpu int64) client.Object {
		o := liqotest.Offer(providerA, amount("1"))
		o.Name, o.Spec.ResourceQuota.Hard[corev1.ResourceCPU] = name, *resource.NewQuantity(cpu, resource.DecimalSI)
		return o
	}
	garrulous := liqotest.Offer(providerA, amount("2"))
	for n := range 10 {
		garrulous.Spec.ResourceQuota.Hard[corev1.ResourceName(strings.Repeat(strconv.Itoa(n), 317))] = resource.MustParse("-1")
	}
	up, down, unknown := liqotest.VirtualNode(providerA, true), liqotest.VirtualNode(providerA, false), liqotest.VirtualNode(providerA, false)
	unknown.Status.Conditions[0].Status = corev1.ConditionUnknown

	cases := map[string]struct {
		reason  string
		objects []client.Object
		cpu     string
		why     string
		message string
	}{
		"Offering": {
			reason:  "A peered provider whose node is ready adds its offer.",
			objects: []client.Object{peered, good, up, newProvider(active)}, cpu: "2", why: v1alpha1.ReasonOffering,
		},
		"SecondNodeDown": {
			reason:  "An offer counts by its own node.",
			objects: []client.Object{peered, good, second, up, newProvider(active)}, cpu: "2", why: v1alpha1.ReasonOffering,
		},
		"Drained": {
			reason:  "A provider that is drained adds nothing.",
			objects: []client.Object{peered, good, up, newProvider(drained)}, why: v1alpha1.ReasonDrained,
		},
		"NotPeered": {
			reason:  "Without an established peering nothing counts.",
			objects: []client.Object{liqotest.ForeignCluster(providerA, false, true), good, up, newProvider(active)}, why: v1alpha1.ReasonNotPeered,
		},
		"NoForeignCluster": {
			reason:  "A provider made by hand waits for its foreign cluster.",
			objects: []client.Object{newProvider(active)}, why: v1alpha1.ReasonNotPeered,
		},
		"NoOffer": {
			reason:  "Without an offer nothing counts.",
			objects: []client.Object{peered, up, newProvider(active)}, why: v1alpha1.ReasonNoOffer,
		},
		"Withdrawn": {
			reason:  "With its offer a provider withdraws from the peering.",
			objects: []client.Object{peered, withdrawn, up, newProvider(active)}, why: v1alpha1.ReasonPeeringEnds,
		},
		"Zero": {
			reason:  "An offer of no cores is none, and the provider is to be left.",
			objects: []client.Object{peered, liqotest.Offer(providerA, amount("0")), down, newProvider(active)}, why: v1alpha1.ReasonWithdrawn,
		},
		"PartlyWithdrawn": {
			reason:  "As long as one offer is in force, pods stay.",
			objects: []client.Object{peered, withdrawn, second, up, node("other-node"), newProvider(active)}, cpu: "1", why: v1alpha1.ReasonOffering,
		},
		"Ending": {
			reason:  "Nor can a provider be used whose peering ends.",
			objects: []client.Object{ending, good, up, newProvider(active)}, why: v1alpha1.ReasonPeeringEnds,
		},
		"EndingDisabled": {
			reason:  "That matters more than what people chose.",
			objects: []client.Object{ending, good, up, newProvider(drained)}, why: v1alpha1.ReasonPeeringEnds,
		},
		"OurOwnOffer": {
			reason:  "What the broker offers to the cluster is not what the cluster offers.",
			objects: []client.Object{peered, ours, up, newProvider(active)}, why: v1alpha1.ReasonNoOffer,
		},
		"Unreadable": {
			reason:  "What cannot be read is not what the provider offers, and no reason to leave it either.",
			objects: []client.Object{peered, unreadable, up, newProvider(active)}, why: v1alpha1.ReasonInvalidOffer, message: "hard[cpu]",
		},
		"UnreadableNotAccepted": {
			reason:  "Nor is it before Liqo has accepted it.",
			objects: []client.Object{peered, early, up, newProvider(active)}, why: v1alpha1.ReasonInvalidOffer, message: "hard[cpu]",
		},
		"UnreadableDeclaration": {
			reason:  "What people meant to declare is not known.",
			objects: []client.Object{peered, good, up, undeclared}, why: v1alpha1.ReasonInvalidDeclaration, message: "declared[cpu]",
		},
		"UnreadablePrice": {
			reason:  "A provider whose price is not known has what it has.",
			objects: []client.Object{peered, good, up, unpriced}, cpu: "2", why: v1alpha1.ReasonOffering,
		},
		"TogetherAbsurd": {
			reason:  "Nor are many offers together more than a cluster has.",
			objects: []client.Object{peered, offerOf("1", 1<<59+1), offerOf("2", 1<<59), up, newProvider(active)}, why: v1alpha1.ReasonInvalidOffer,
			message: "cpu is more",
		},
		"Long": {
			reason:  "What a cluster writes may be long, and the API server takes no long message.",
			objects: []client.Object{peered, garrulous, up, newProvider(active)}, why: v1alpha1.ReasonInvalidOffer, message: "...",
		},
		"Negative": {
			reason:  "An offer that nobody can mean is refused.",
			objects: []client.Object{peered, liqotest.Offer(providerA, negative), up, newProvider(active)}, why: v1alpha1.ReasonInvalidOffer,
			message: "invalid offer: memory is negative (-1)",
		},
		"NodeDown": {
			reason:  "A provider out of reach adds nothing.",
			objects: []client.Object{peered, good, down, newProvider(active)}, why: v1alpha1.ReasonNodeNotReady,
			message: "Not ready: virtual node liqo-provider-a",
		},
		"NodeUnknown": {
			reason:  "A provider at which nobody looks adds nothing, and it is not the provider's fault.",
			objects: []client.Object{peered, good, unknown, newProvider(active)}, why: v1alpha1.ReasonNodeUnknown,
			message: "This cluster's virtual kubelet does not report: virtual node liqo-provider-a",
		},
		"NoNode": {
			reason:  "A provider without a virtual node adds nothing.",
			objects: []client.Object{peered, good, newProvider(active)}, why: v1alpha1.ReasonNodeNotReady,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := snapshottest.NewClient(t, interceptor.Funcs{}, tc.objects...)
			if err := settle(t, c); err != nil {
				t.Fatalf("%s\nReconcile(): %v", tc.reason, err)
			}
			p := get(t, c)
			var want corev1.ResourceList
			if tc.cpu != "" {
				want = amount(tc.cpu)
			}
			if !resources.Equal(want, p.Status.Offered) {
				t.Errorf("%s\noffered %v, want %v", tc.reason, p.Status.Offered, want)
			}
			ready := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionReady)
			if ready == nil || ready.Reason != tc.why || (ready.Status == metav1.ConditionTrue) != (tc.cpu != "") ||
				!strings.Contains(ready.Message, tc.message) {
				t.Errorf("%s\nReady: %+v, want reason %s and message %q", tc.reason, ready, tc.why, tc.message)
			}
			if p.Status.ObservedGeneration != p.Generation {
				t.Errorf("%s\nobserved generation %d, want %d", tc.reason, p.Status.ObservedGeneration, p.Generation)
			}
		})
	}
}

// TestAccount has a provider that offers 4 cores on one virtual node and 2 on another,
// of which pods use 1 and 500m.
func TestAccount(t *testing.T) {
	first, second := liqotest.Offer(providerA, amount("4")), liqotest.Offer(providerA, amount("2"))
	second.Name, second.Spec.NodeName = "second", "liqo-second"
	node := liqotest.VirtualNode(providerA, true)
	node.Name = "liqo-second"
	pod := func(name, node, cpu string, phase corev1.PodPhase) *corev1.Pod {
		p := liqotest.Pod(liqotest.ShadowPod("web-consumer", name, nil), node)
		p.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)},
		}}}
		p.Status.Phase = phase
		return p
	}
	declared := v1alpha1.Quantities{corev1.ResourceCPU: resource.MustParse("3")}
	cases := map[string]struct {
		reason                                 string
		scheduling                             v1alpha1.Scheduling
		capacity                               v1alpha1.ProviderCapacity
		measured, offered, used, free, largest string
		why                                    string
	}{
		"Measured": {
			reason:   "By default the provider has what it offers.",
			measured: "6", offered: "6", used: "1500m", free: "4500m", largest: "3", why: v1alpha1.ReasonOffering,
		},
		"Min": {
			reason: "People declare less.", capacity: v1alpha1.ProviderCapacity{Rule: v1alpha1.CapacityMin, Declared: declared},
			measured: "6", offered: "3", used: "1500m", free: "1500m", largest: "1500m", why: v1alpha1.ReasonOffering,
		},
		"Overcommit": {
			reason:   "What is offered may be more than is there. A pod cannot be larger for it.",
			capacity: v1alpha1.ProviderCapacity{OvercommitPercent: new(int32(200))},
			measured: "6", offered: "12", used: "1500m", free: "10500m", largest: "3", why: v1alpha1.ReasonOffering,
		},
		"Declared": {
			reason:   "People declare that there is nothing but cores: no pod can be placed.",
			capacity: v1alpha1.ProviderCapacity{Rule: v1alpha1.CapacityDeclared, Declared: declared},
			measured: "6", offered: "3", used: "1500m", free: "1500m", largest: "0", why: v1alpha1.ReasonOffering,
		},
		"NothingDeclared": {
			reason:   "Who declares nothing offers nothing.",
			capacity: v1alpha1.ProviderCapacity{Rule: v1alpha1.CapacityDeclared},
			measured: "0", offered: "0", used: "1500m", free: "0", largest: "0", why: v1alpha1.ReasonNothingDeclared,
		},
		"Absurd": {
			reason: "A declaration that nobody can mean counts as nothing.",
			capacity: v1alpha1.ProviderCapacity{
				Rule: v1alpha1.CapacityMin, Declared: v1alpha1.Quantities{corev1.ResourceCPU: resource.MustParse("1e30")},
			},
			measured: "0", offered: "0", used: "1500m", free: "0", largest: "0", why: v1alpha1.ReasonInvalidDeclaration,
		},
		"AbsurdAndIgnored": {
			reason:   "What nobody believes does no harm.",
			capacity: v1alpha1.ProviderCapacity{Declared: v1alpha1.Quantities{corev1.ResourceCPU: resource.MustParse("1e30")}},
			measured: "6", offered: "6", used: "1500m", free: "4500m", largest: "3", why: v1alpha1.ReasonOffering,
		},
		"Drained": {
			reason: "What runs on a provider that is drained is still shown.", scheduling: drained,
			measured: "0", offered: "0", used: "1500m", free: "0", largest: "0", why: v1alpha1.ReasonDraining,
		},
		"Cordoned": {
			reason: "Of a provider that is cordoned, what is used counts.", scheduling: cordoned,
			measured: "6", offered: "1500m", used: "1500m", free: "0", largest: "0", why: v1alpha1.ReasonCordoned,
		},
		"CordonedWithLess": {
			reason: "But no more than it has.", scheduling: cordoned, capacity: v1alpha1.ProviderCapacity{OvercommitPercent: new(int32(10))},
			measured: "6", offered: "600m", used: "1500m", free: "0", largest: "0", why: v1alpha1.ReasonCordoned,
		},
		"CordonedWithNothing": {
			reason: "What else is wrong goes before.", scheduling: cordoned, capacity: v1alpha1.ProviderCapacity{Rule: v1alpha1.CapacityDeclared},
			measured: "0", offered: "0", used: "1500m", free: "0", largest: "0", why: v1alpha1.ReasonNothingDeclared,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := newProvider(tc.scheduling)
			p.Spec.Capacity = tc.capacity
			c := snapshottest.NewClient(t, interceptor.Funcs{}, liqotest.ForeignCluster(providerA, true, false), p,
				first.DeepCopy(), second.DeepCopy(), liqotest.VirtualNode(providerA, true), node.DeepCopy(),
				pod("a", "liqo-provider-a", "1", corev1.PodRunning), pod("b", "liqo-second", "500m", corev1.PodPending),
				pod("c", "liqo-second", "8", corev1.PodSucceeded))
			if err := settle(t, c); err != nil {
				t.Fatalf("%s\nReconcile(): %v", tc.reason, err)
			}
			status := get(t, c).Status
			for _, f := range []struct {
				field string
				got   corev1.ResourceList
				want  string
			}{
				{"measured", status.Measured, tc.measured}, {"offered", status.Offered, tc.offered}, {"used", status.Used, tc.used},
				{"free", status.Free, tc.free}, {"largestPod", status.LargestPod, tc.largest},
			} {
				if f.got.Cpu().Cmp(resource.MustParse(f.want)) != 0 {
					t.Errorf("%s\n%s: %s cpu, want %s", tc.reason, f.field, f.got.Cpu(), f.want)
				}
			}
			if ready := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReady); ready.Reason != tc.why {
				t.Errorf("%s\nReady: %+v", tc.reason, ready)
			}
		})
	}
}

// TestReadableAmounts has offers and pods in units of their own, and a status that an earlier broker wrote.
func TestReadableAmounts(t *testing.T) {
	bytes := func(memory string) corev1.ResourceList {
		return corev1.ResourceList{"cpu": resource.MustParse("2"), "memory": resource.MustParse(memory), "pods": resource.MustParse("10")}
	}
	for name, tc := range map[string]struct {
		scheduling       v1alpha1.Scheduling
		has, uses, older string
		// measured, offered, used, free and largest are what the status says of memory.
		measured, offered, used, free, largest string
	}{
		"Decimal": {
			has: "20137M", uses: "100M", older: "20137M", measured: "19204Mi", offered: "19204Mi", used: "96Mi", free: "19108Mi", largest: "19108Mi",
		},
		"Bytes":   {has: "19608517696", uses: "1Gi", measured: "18700Mi", offered: "18700Mi", used: "1Gi", free: "17676Mi", largest: "17676Mi"},
		"Written": {has: "2048Mi", uses: "0", older: "2147483648", measured: "2Gi", offered: "2Gi", used: "0", free: "2Gi", largest: "2Gi"},
		"Cordoned": {
			scheduling: cordoned, has: "20137M", uses: "100M", measured: "19204Mi", offered: "96Mi", used: "96Mi", free: "0", largest: "0",
		},
	} {
		t.Run(name, func(t *testing.T) {
			pod := liqotest.Pod(liqotest.ShadowPod("web-consumer", "a", nil), "liqo-provider-a")
			pod.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{"memory": resource.MustParse(tc.uses)},
			}}}
			p := newProvider(tc.scheduling)
			if tc.older != "" {
				p.Status.Measured = bytes(tc.older)
			}
			c := snapshottest.NewClient(t, interceptor.Funcs{}, liqotest.ForeignCluster(providerA, true, false), p,
				liqotest.Offer(providerA, bytes(tc.has)), liqotest.VirtualNode(providerA, true), pod)
			if err := settle(t, c); err != nil {
				t.Fatalf("Reconcile(): %v", err)
			}
			is := get(t, c).Status
			for _, f := range []struct {
				field string
				got   corev1.ResourceList
				want  string
			}{
				{"measured", is.Measured, tc.measured}, {"offered", is.Offered, tc.offered}, {"used", is.Used, tc.used},
				{"free", is.Free, tc.free}, {"largestPod", is.LargestPod, tc.largest},
			} {
				if got := f.got.Memory().String(); got != f.want {
					t.Errorf("%s: %s of memory, want %s", f.field, got, f.want)
				}
			}
		})
	}
}

func TestCreate(t *testing.T) {
	both := liqotest.ForeignCluster(providerA, true, true)
	cases := map[string]struct {
		reason        string
		fc            *v09.ForeignCluster
		fromConsumers bool
		created, on   bool
	}{
		"Peered": {
			reason: "The first outgoing peering makes a Provider, active.", fc: liqotest.ForeignCluster(providerA, true, false),
			created: true, on: true,
		},
		"PeeredBack": {
			reason: "A cluster that uses the broker does not provide because the broker's Service has to reach it.", fc: both, created: true,
		},
		"Wanted": {reason: "Unless that is wanted.", fc: both, fromConsumers: true, created: true, on: true},
		"Consumer": {
			reason: "A cluster that only consumes is no provider.", fc: liqotest.ForeignCluster(providerA, false, true),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := snapshottest.NewClient(t, interceptor.Funcs{}, tc.fc)
			r := New(Config{Client: c, Reader: snapshottest.Reader(c, ""), Clock: clock.RealClock{}, Plans: plans()})
			r.fromConsumers = tc.fromConsumers
			for range 2 {
				if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: string(providerA.ID)}}); err != nil {
					t.Fatalf("%s\nReconcile(): %v", tc.reason, err)
				}
			}
			var list v1alpha1.ProviderList
			if err := c.List(t.Context(), &list); err != nil {
				t.Fatalf("List(): %v", err)
			}
			if !tc.created {
				if len(list.Items) != 0 {
					t.Errorf("%s\ngot %v", tc.reason, list.Items)
				}
				return
			}
			if len(list.Items) != 1 {
				t.Fatalf("%s\ngot %v", tc.reason, list.Items)
			}
			p := list.Items[0]
			if (p.Spec.Scheduling == active) != tc.on || p.Status.ClusterName != providerA.Name || len(p.OwnerReferences) > 0 {
				t.Errorf("%s\ngot %+v", tc.reason, p)
			}
		})
	}
}

// TestConsumesLater has a provider begin to use the broker: one that nobody has asked, and that has no pods, does not provide any more.
func TestConsumesLater(t *testing.T) {
	for name, tc := range map[string]struct {
		reason        string
		change        func(*v1alpha1.Provider)
		fromConsumers bool
		on            bool
	}{
		"Unasked": {reason: "The broker had peered before its consumer did."},
		"Wanted":  {reason: "Consumers are to provide.", fromConsumers: true, on: true},
		"Decided": {reason: "Somebody has changed its spec.", change: func(p *v1alpha1.Provider) { p.Generation = 2 }, on: true},
		"Provides": {reason: "Its pods would be moved.", change: func(p *v1alpha1.Provider) {
			p.Status.Used = corev1.ResourceList{"pods": resource.MustParse("1")}
		}, on: true},
		"Made": {reason: "People have made it.", change: func(p *v1alpha1.Provider) { p.Annotations = nil }, on: true},
	} {
		t.Run(name, func(t *testing.T) {
			c := snapshottest.NewClient(t, interceptor.Funcs{}, liqotest.ForeignCluster(providerA, true, false))
			r := New(Config{
				Client: c, Reader: snapshottest.Reader(c, ""), Clock: clock.RealClock{}, Plans: plans(), FromConsumers: tc.fromConsumers,
			})
			p := &v1alpha1.Provider{}
			reconcile := func() {
				t.Helper()
				key := client.ObjectKey{Name: string(providerA.ID)}
				if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: key}); err != nil {
					t.Fatal(err)
				}
				if err := c.Get(t.Context(), key, p); err != nil {
					t.Fatal(err)
				}
			}
			reconcile()
			if tc.change != nil {
				tc.change(p)
				status := p.Status
				if err := c.Update(t.Context(), p); err != nil {
					t.Fatal(err)
				}
				p.Status = status
				if err := c.Status().Update(t.Context(), p); err != nil {
					t.Fatal(err)
				}
			}
			fc := &v09.ForeignCluster{}
			if err := c.Get(t.Context(), client.ObjectKey{Name: providerA.Name}, fc); err != nil {
				t.Fatal(err)
			}
			liqotest.SetPeering(fc, true, true)
			if err := c.Update(t.Context(), fc); err != nil {
				t.Fatal(err)
			}
			reconcile()
			reconcile()
			if on := p.Spec.Scheduling == active; on != tc.on || !on && p.Annotations[annotationConsumes] == "" {
				t.Errorf("%s\nit is %q, with %v", tc.reason, p.Spec.Scheduling, p.Annotations)
			}
		})
	}
}

// TestConsumerActivated activates a provider that is drained because it uses the broker, and drains it again.
func TestConsumerActivated(t *testing.T) {
	c := snapshottest.NewClient(t, interceptor.Funcs{}, liqotest.ForeignCluster(providerA, true, true))
	for _, tc := range []struct {
		scheduling v1alpha1.Scheduling
		message    string
	}{
		{"", "The cluster uses the broker, and provides only if somebody sets spec.scheduling to Active"},
		{cordoned, "The cluster has made no offer that Liqo accepted"},
		{drained, "The provider is drained: it takes no pods, and none is left there"},
	} {
		if tc.scheduling != "" {
			p := get(t, c)
			p.Spec.Scheduling = tc.scheduling
			if err := c.Update(t.Context(), p); err != nil {
				t.Fatal(err)
			}
		}
		if err := settle(t, c); err != nil {
			t.Fatalf("Reconcile(): %v", err)
		}
		if ready := meta.FindStatusCondition(get(t, c).Status.Conditions, v1alpha1.ConditionReady); ready.Message != tc.message {
			t.Errorf("Ready: %s, want %s", ready.Message, tc.message)
		}
	}
}

// TestSettingsSurviveTheForeignCluster lets Liqo forget a cluster and find it again.
func TestSettingsSurviveTheForeignCluster(t *testing.T) {
	fc := liqotest.ForeignCluster(providerA, true, false)
	p := newProvider(drained)
	p.Labels = map[string]string{"topology.kubernetes.io/region": "eu"}
	c := snapshottest.NewClient(t, interceptor.Funcs{}, fc, p)
	if err := settle(t, c); err != nil {
		t.Fatalf("Reconcile(): %v", err)
	}
	if err := c.Delete(t.Context(), fc); err != nil {
		t.Fatal(err)
	}
	if err := settle(t, c); err != nil {
		t.Fatalf("Reconcile(): %v", err)
	}
	if err := c.Create(t.Context(), liqotest.ForeignCluster(providerA, true, false)); err != nil {
		t.Fatal(err)
	}
	if err := settle(t, c); err != nil {
		t.Fatalf("Reconcile(): %v", err)
	}
	if got := get(t, c); got.Spec.Scheduling != drained || got.Labels["topology.kubernetes.io/region"] != "eu" {
		t.Errorf("the provider that is back is %s, with labels %v", got.Spec.Scheduling, got.Labels)
	}
}

// TestToggleSurvivesThePeering ends a peering and begins it again.
func TestToggleSurvivesThePeering(t *testing.T) {
	fc := liqotest.ForeignCluster(providerA, true, false)
	c := snapshottest.NewClient(t, interceptor.Funcs{}, fc, newProvider(drained))
	for _, established := range []bool{true, false, true} {
		liqotest.SetPeering(fc, established, false)
		if err := c.Update(t.Context(), fc); err != nil {
			t.Fatalf("Update(): %v", err)
		}
		if err := settle(t, c); err != nil {
			t.Fatalf("Reconcile(): %v", err)
		}
		if get(t, c).Spec.Scheduling != drained {
			t.Fatalf("the provider is not drained any more when the peering was established: %v", established)
		}
	}
}

func TestTaint(t *testing.T) {
	isOurs := func(taint corev1.Taint) bool { return taint.Key == liqo.TaintCordoned }
	c := snapshottest.NewClient(t, interceptor.Funcs{},
		liqotest.ForeignCluster(providerA, true, false), liqotest.Offer(providerA, amount("2")), newProvider(drained),
		liqotest.VirtualNode(providerA, true), liqotest.VirtualNode(providerB, true))
	for _, scheduling := range []v1alpha1.Scheduling{drained, active, cordoned, drained, "", "Other"} {
		p := get(t, c)
		p.Spec.Scheduling = scheduling
		if err := c.Update(t.Context(), p); err != nil {
			t.Fatalf("Update(): %v", err)
		}
		if err := settle(t, c); err != nil {
			t.Fatalf("Reconcile(): %v", err)
		}
		for name, want := range map[string]bool{"liqo-provider-a": scheduling != active && scheduling != "", "liqo-provider-b": false} {
			var node corev1.Node
			if err := c.Get(t.Context(), client.ObjectKey{Name: name}, &node); err != nil {
				t.Fatalf("Get(): %v", err)
			}
			if slices.ContainsFunc(node.Spec.Taints, isOurs) != want {
				t.Errorf("%q: taints of %s: %v", scheduling, name, node.Spec.Taints)
			}
			if len(node.Spec.Taints) == 0 || isOurs(node.Spec.Taints[0]) {
				t.Errorf("%q: Liqo's taint of %s is gone: %v", scheduling, name, node.Spec.Taints)
			}
		}
	}
}

// TestStatusFollowsTheTaint makes the taint fail: nobody may then believe that
// the scheduler has been told.
func TestStatusFollowsTheTaint(t *testing.T) {
	boom := errors.New("boom")
	c := snapshottest.NewClient(t, interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			if _, ok := o.(*corev1.Node); ok {
				return boom
			}
			return c.Patch(ctx, o, p, opts...)
		},
	}, liqotest.ForeignCluster(providerA, true, false), newProvider(drained), liqotest.VirtualNode(providerA, true))
	if err := settle(t, c); !errors.Is(err, boom) {
		t.Errorf("Reconcile(): %v, want %v", err, boom)
	}
	if p := get(t, c); p.Status.ObservedGeneration == p.Generation {
		t.Error("the status says that the change was observed")
	}
}

func TestDraining(t *testing.T) {
	const namespace = "web-consumer"
	ns := liqotest.TwinNamespace(namespace, consumer)
	o := liqotest.Offloading(namespace, providerA.ID, providerB.ID)
	liqotest.PutInForce(ns, o, providerA, providerB)
	b := &v1alpha1.Provider{ObjectMeta: metav1.ObjectMeta{Name: string(providerB.ID)}}
	b.Status.ClusterName, b.Status.LargestPod = providerB.Name, amount("2")
	b.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue}}
	// The twin controller relies on what an earlier reconciliation has written.
	closed := newProvider(drained)
	closed.Status.ObservedGeneration = closed.Generation

	labeled := func(name, node string, labels map[string]string) []client.Object {
		shadow := liqotest.ShadowPod(namespace, name, labels)
		return []client.Object{shadow, liqotest.Pod(shadow, node, providerA.ID, providerB.ID)}
	}
	workload := func(name, app, node string) []client.Object {
		return labeled(name, node, map[string]string{"app": app})
	}
	member := func(name, role, node string) []client.Object {
		return labeled(name, node, map[string]string{"app": "pg", "role": role, "statefulset.kubernetes.io/pod-name": name})
	}
	many := holds{}
	for n := range 2 * v1alpha1.MaxHeld {
		many = append(many, fmt.Sprintf("web-%03d", 2*v1alpha1.MaxHeld-n-1))
	}
	cases := map[string]struct {
		reason  string
		pods    []client.Object
		plans   Plans
		status  metav1.ConditionStatus
		why     string
		message string
		// held is the first pod that is held, and how many are.
		held v1alpha1.HeldPod
		all  int
	}{
		"Drained": {
			reason: "With no pod left the drain is over.",
			pods:   workload("web-0", "web", "liqo-provider-b"),
			status: metav1.ConditionFalse, why: v1alpha1.ReasonDrained, message: "No pod is left on the provider",
		},
		"Leaving": {
			reason: "Pods that move are counted.",
			pods:   slices.Concat(workload("web-0", "web", "liqo-provider-a"), workload("web-1", "web", "liqo-provider-b")),
			status: metav1.ConditionTrue, why: v1alpha1.ReasonPodsLeaving, message: "1 pod is left on the provider",
		},
		"Planned": {
			reason: "What is planned counts, whatever the objects say.", plans: holds{"web-0"},
			pods:   slices.Concat(workload("web-0", "web", "liqo-provider-a"), workload("web-1", "web", "liqo-provider-b")),
			status: metav1.ConditionTrue, why: v1alpha1.ReasonPodsHeld,
			message: "1 pod is left on the provider; web-consumer/web-0 stays: no other provider has room for it",
			held:    v1alpha1.HeldPod{Namespace: namespace, Pod: "web-0", Reason: "no other provider has room for it"}, all: 1,
		},
		"Many": {
			reason: "Of many the first are told.", plans: many,
			pods:   slices.Concat(workload("web-0", "web", "liqo-provider-a"), workload("web-1", "web", "liqo-provider-b")),
			status: metav1.ConditionTrue, why: v1alpha1.ReasonPodsHeld,
			message: "1 pod is left on the provider; web-consumer/web-000 stays: no other provider has room for it; " +
				"web-consumer/web-001 stays: no other provider has room for it; web-consumer/web-002 stays: no other provider has room for it; " +
				"web-consumer/web-003 stays: no other provider has room for it; web-consumer/web-004 stays: no other provider has room for it; " +
				"and 123 more",
			held: v1alpha1.HeldPod{Namespace: namespace, Pod: "web-000", Reason: "no other provider has room for it"}, all: v1alpha1.MaxHeld,
		},
		"Members": {
			reason: "A database's copy that follows is one of those that lead.",
			pods:   slices.Concat(member("pg-0", "primary", "liqo-provider-b"), member("pg-1", "standby", "liqo-provider-a")),
			status: metav1.ConditionTrue, why: v1alpha1.ReasonPodsLeaving, message: "1 pod is left on the provider",
		},
		"Held": {
			reason: "A pod that is the only copy is named.",
			pods:   workload("db-0", "db", "liqo-provider-a"),
			status: metav1.ConditionTrue, why: v1alpha1.ReasonPodsHeld,
			message: "1 pod is left on the provider; web-consumer/db-0 stays: it is the last ready replica of its workload",
			held:    v1alpha1.HeldPod{Namespace: namespace, Pod: "db-0", Reason: "it is the last ready replica of its workload"}, all: 1,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			objects := slices.Concat([]client.Object{
				liqotest.ForeignCluster(providerA, true, false), closed.DeepCopy(), b.DeepCopy(), ns.DeepCopy(), o.DeepCopy(),
				liqotest.VirtualNode(providerA, true), liqotest.VirtualNode(providerB, true),
			}, tc.pods)
			c := snapshottest.NewClient(t, interceptor.Funcs{}, objects...)
			if tc.plans == nil {
				tc.plans = plans()
			}
			if err := settleBy(t, c, tc.plans); err != nil {
				t.Fatalf("%s\nReconcile(): %v", tc.reason, err)
			}
			status := get(t, c).Status
			if len(status.Held) != tc.all || tc.all > 0 && status.Held[0] != tc.held {
				t.Errorf("%s\nheld: %v, want %d, the first %v", tc.reason, status.Held, tc.all, tc.held)
			}
			wantReady, wantDrained := v1alpha1.ReasonDraining, metav1.ConditionFalse
			if tc.why == v1alpha1.ReasonDrained {
				wantReady, wantDrained = v1alpha1.ReasonDrained, metav1.ConditionTrue
			}
			if ready := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReady); ready == nil || ready.Reason != wantReady {
				t.Errorf("%s\nReady: %+v, want %s", tc.reason, ready, wantReady)
			}
			if d := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionDrained); d == nil || d.Status != wantDrained ||
				d.Reason != tc.why || d.Message != tc.message {
				t.Errorf("%s\nDrained: %+v, want %s", tc.reason, d, wantDrained)
			}
			got := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionDraining)
			if got == nil || got.Status != tc.status || got.Reason != tc.why || got.Message != tc.message {
				t.Errorf("%s\nDraining: %+v, want %s, %s, %q", tc.reason, got, tc.status, tc.why, tc.message)
			}
		})
	}
}

// holds are pods that the plan leaves on provider-a.
type holds []string

func (h holds) Plan(context.Context, *corev1.Namespace, *snapshot.Twin) (plan placement.Plan, again time.Duration) {
	for _, pod := range h {
		plan.Held = append(plan.Held, placement.Held{Pod: pod, Provider: providerA.ID, Reason: placement.NoRoom})
	}
	return plan, 0
}

// plans returns a planner that remembers nothing yet.
func plans() Plans { return planning.NewPlanner(record.NewFakeRecorder(100), clock.RealClock{}, nil) }

// TestQuiet reconciles a settled provider: nothing is written.
func TestQuiet(t *testing.T) {
	writes := 0
	c := snapshottest.NewClient(t, snapshottest.OnPatch(func(client.Object) { writes++ }),
		liqotest.ForeignCluster(providerA, true, false), liqotest.Offer(providerA, amount("2")), liqotest.VirtualNode(providerA, true))
	if err := settle(t, c); err != nil {
		t.Fatalf("Reconcile(): %v", err)
	}
	settled := writes
	if err := settle(t, c); err != nil {
		t.Fatalf("Reconcile(): %v", err)
	}
	if writes != settled || settled == 0 {
		t.Errorf("%d writes, then %d: want none", settled, writes-settled)
	}
}
