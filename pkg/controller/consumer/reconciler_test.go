// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package consumer

import (
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/lenient"
	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v09/liqotest"
	"github.com/capacitorset/liqo-broker/pkg/snapshot"
	"github.com/capacitorset/liqo-broker/pkg/snapshot/snapshottest"
)

var consumer = cluster.Identity{ID: "id-c", Name: "consumer"}

func provider(name, cpu string, scheduling v1alpha1.Scheduling) *v1alpha1.Provider {
	p := &v1alpha1.Provider{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.ProviderSpec{Scheduling: scheduling}}
	p.Status.Offered = corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse(cpu),
		corev1.ResourceMemory: resource.MustParse("1Gi"),
		corev1.ResourcePods:   resource.MustParse("10"),
	}
	return p
}

func TestReconcile(t *testing.T) {
	peered := liqotest.ForeignCluster(consumer, false, true)
	wants := func(mode v1alpha1.Mode) *v1alpha1.Consumer {
		return &v1alpha1.Consumer{ObjectMeta: metav1.ObjectMeta{Name: string(consumer.ID)}, Spec: v1alpha1.ConsumerSpec{Mode: mode}}
	}
	suspended := func(mode v1alpha1.Mode) *v1alpha1.Consumer {
		c := wants(mode)
		c.Spec.Scheduling = v1alpha1.ConsumerSuspended
		return c
	}
	perProvider := func(mode v1alpha1.Mode) *v1alpha1.Consumer {
		c := wants(mode)
		c.Spec.Nodes = v1alpha1.NodesPerProvider
		return c
	}
	both := Modes{Orchestrator: true, Aggregator: true}
	in := func(state string) *v09.ForeignCluster {
		fc := liqotest.ForeignCluster(consumer, false, true)
		liqotest.SetIncoming(fc, state)
		return fc
	}
	cases := map[string]struct {
		reason  string
		modes   Modes
		objects []client.Object
		absent  bool
		mode    v1alpha1.Mode
		cpu     string
		pools   []string // Provider and cpu of each node.
		ready   metav1.ConditionStatus
		why     string
	}{
		"Sum": {
			reason: "A consumer is offered the sum of the providers that are enabled, without itself.",
			modes:  both,
			objects: []client.Object{
				peered, provider("id-a", "1500m", v1alpha1.SchedulingActive), provider("id-b", "1", v1alpha1.SchedulingActive),
				provider("off", "8", v1alpha1.SchedulingDrained), provider("id-c", "16", v1alpha1.SchedulingActive),
			},
			mode: v1alpha1.ModeOrchestrated, cpu: "2500m", ready: metav1.ConditionTrue, why: v1alpha1.ReasonOffering,
		},
		"NoProvider": {
			reason: "Without providers the consumer is offered nothing, and the condition says so.",
			modes:  both, objects: []client.Object{peered},
			mode: v1alpha1.ModeOrchestrated, cpu: "0", ready: metav1.ConditionFalse, why: v1alpha1.ReasonNoProvider,
		},
		"NotPeered": {
			reason: "A cluster that does not peer gets no Consumer.",
			modes:  both, objects: []client.Object{liqotest.ForeignCluster(consumer, true, false)}, absent: true,
		},
		"NoLongerPeered": {
			reason: "A Consumer stays when the peering ends.",
			modes:  both, objects: []client.Object{liqotest.ForeignCluster(consumer, true, false), wants("")},
			mode: v1alpha1.ModeOrchestrated, cpu: "0", ready: metav1.ConditionFalse, why: v1alpha1.ReasonNotPeered,
		},
		"Ending": {
			reason: "While the peering ends, pods are still there.",
			modes:  both, objects: []client.Object{in("Disconnecting"), wants("")},
			mode: v1alpha1.ModeOrchestrated, cpu: "0", ready: metav1.ConditionFalse, why: v1alpha1.ReasonPeeringEnds,
		},
		"Pending": {
			reason: "So they are when another virtual node is made.",
			modes:  both, objects: []client.Object{in("Pending"), wants("")},
			mode: v1alpha1.ModeOrchestrated, cpu: "0", ready: metav1.ConditionFalse, why: v1alpha1.ReasonPeeringPending,
		},
		"Wish": {
			reason: "A mode that the broker runs is granted.",
			modes:  both, objects: []client.Object{peered, provider("id-a", "1", v1alpha1.SchedulingActive), wants(v1alpha1.ModeAggregated)},
			mode: v1alpha1.ModeAggregated, cpu: "1", ready: metav1.ConditionTrue, why: v1alpha1.ReasonOffering,
		},
		"WishNotServed": {
			reason:  "A consumer whose mode the broker does not run is not served.",
			modes:   Modes{Aggregator: true},
			objects: []client.Object{peered, provider("id-a", "1", v1alpha1.SchedulingActive), wants(v1alpha1.ModeOrchestrated)},
			cpu:     "0", ready: metav1.ConditionFalse, why: v1alpha1.ReasonModeNotServed,
		},
		"Suspended": {
			reason: "One that is suspended is offered nothing more than it uses, in the mode that it has.", modes: both,
			objects: []client.Object{peered, provider("id-a", "1", v1alpha1.SchedulingActive), suspended(v1alpha1.ModeOrchestrated)},
			mode:    v1alpha1.ModeOrchestrated, cpu: "0", ready: metav1.ConditionFalse, why: v1alpha1.ReasonSuspended,
		},
		"SuspendedAndNotServed": {
			reason: "That goes before its mode.", modes: Modes{Aggregator: true},
			objects: []client.Object{peered, provider("id-a", "1", v1alpha1.SchedulingActive), suspended(v1alpha1.ModeOrchestrated)},
			cpu:     "0", ready: metav1.ConditionFalse, why: v1alpha1.ReasonSuspended,
		},
		"ProvidersToBeHidden": {
			reason:  "One that is to see no providers does not see them because of a flag, nor a node for each.",
			modes:   Modes{Orchestrator: true},
			objects: []client.Object{peered, provider("id-a", "1", v1alpha1.SchedulingActive), perProvider(v1alpha1.ModeAggregated)},
			cpu:     "0", ready: metav1.ConditionFalse, why: v1alpha1.ReasonModeNotServed,
		},
		"NoLongerServed": {
			reason: "One whose mode the broker runs no more is not served any more.",
			modes:  Modes{Orchestrator: true},
			objects: []client.Object{peered, provider("id-a", "1", v1alpha1.SchedulingActive), func() client.Object {
				c := wants(v1alpha1.ModeAggregated)
				c.Status.Mode = v1alpha1.ModeAggregated
				return c
			}()},
			cpu: "0", ready: metav1.ConditionFalse, why: v1alpha1.ReasonModeNotServed,
		},
		"ProvidersHidden": {
			reason: "A consumer that is not to know the providers has one node, and the condition says why.",
			modes:  both, objects: []client.Object{peered, provider("id-a", "1", v1alpha1.SchedulingActive), perProvider(v1alpha1.ModeAggregated)},
			mode: v1alpha1.ModeAggregated, cpu: "1", ready: metav1.ConditionTrue, why: v1alpha1.ReasonProvidersHidden,
		},
		"PerProvider": {
			reason: "A node for each provider has the same in sum.",
			modes:  both, objects: []client.Object{
				peered, provider("id-a", "1500m", v1alpha1.SchedulingActive), provider("id-b", "1", v1alpha1.SchedulingActive), perProvider(""),
			},
			mode: v1alpha1.ModeOrchestrated, cpu: "2500m", pools: []string{"id-a 1500m", "id-b 1"}, ready: metav1.ConditionTrue,
			why: v1alpha1.ReasonOffering,
		},
		"Aggregator": {
			reason: "An aggregator aggregates.",
			modes:  Modes{Aggregator: true}, objects: []client.Object{peered, provider("id-a", "1", v1alpha1.SchedulingActive)},
			mode: v1alpha1.ModeAggregated, cpu: "1", ready: metav1.ConditionTrue, why: v1alpha1.ReasonOffering,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := snapshottest.NewClient(t, interceptor.Funcs{}, tc.objects...)
			served := snapshot.New(v09.Line{}, c, "", tc.modes.Serves)
			r := New(Config{Client: c, Reader: snapshottest.Reader(c, ""), Capacity: served.Capacity, Modes: tc.modes})
			req := ctrl.Request{NamespacedName: client.ObjectKey{Name: string(consumer.ID)}}
			for range 3 { // The first time may create it, and the next one finds its mode.
				if _, err := r.Reconcile(t.Context(), req); err != nil {
					t.Fatalf("%s\nReconcile(): %v", tc.reason, err)
				}
			}
			got := &v1alpha1.Consumer{}
			err := c.Get(t.Context(), req.NamespacedName, got)
			if tc.absent {
				if client.IgnoreNotFound(err) != nil || err == nil {
					t.Errorf("%s\ngot %+v, %v", tc.reason, got, err)
				}
				return
			}
			if err != nil {
				t.Fatalf("%s\nGet(): %v", tc.reason, err)
			}
			cpu := got.Status.Offered[corev1.ResourceCPU]
			if got.Status.Mode != tc.mode || cpu.Cmp(resource.MustParse(tc.cpu)) != 0 || got.Status.ClusterName != consumer.Name {
				t.Errorf("%s\nmode %s, %s cpu, name %s, want %s, %s", tc.reason, got.Status.Mode, cpu.String(), got.Status.ClusterName, tc.mode, tc.cpu)
			}
			ready := meta.FindStatusCondition(got.Status.Conditions, v1alpha1.ConditionReady)
			if ready == nil || ready.Status != tc.ready || ready.Reason != tc.why {
				t.Errorf("%s\nReady: %+v, want %s, %s", tc.reason, ready, tc.ready, tc.why)
			}
			var pools []string
			for _, p := range got.Status.NodeOffers {
				pools = append(pools, p.Provider+" "+p.Offered.Cpu().String())
			}
			if slices.Sort(pools); !slices.Equal(pools, tc.pools) {
				t.Errorf("%s\npools %q, want %q", tc.reason, pools, tc.pools)
			}
			if len(got.OwnerReferences) > 0 {
				t.Errorf("%s\nits settings go with %v", tc.reason, got.OwnerReferences)
			}
		})
	}
}

// TestNameTaken has a consumer that Liqo cannot tell apart from an older cluster, by the
// 24 bits of a hash that it has of an ID.
func TestNameTaken(t *testing.T) {
	first, second := cluster.Identity{ID: "id-1363", Name: "twin"}, cluster.Identity{ID: "id-1561", Name: "twin"}
	older, younger := liqotest.ForeignCluster(first, false, true), liqotest.ForeignCluster(second, false, true)
	younger.Name = "younger"
	c := snapshottest.NewClient(t, interceptor.Funcs{}, older, younger, provider("id-a", "4", v1alpha1.SchedulingActive))
	r := New(Config{
		Client: c, Reader: snapshottest.Reader(c, ""), Capacity: snapshottest.Reader(c, "").Capacity, Modes: Modes{Orchestrator: true},
	})
	for id, want := range map[cluster.ID]struct{ why, cpu string }{
		first.ID: {v1alpha1.ReasonOffering, "4"}, second.ID: {v1alpha1.ReasonClusterNameTaken, "0"},
	} {
		req := ctrl.Request{NamespacedName: client.ObjectKey{Name: string(id)}}
		for range 4 { // It is created, finds its mode, its condition, and what follows from it.
			if _, err := r.Reconcile(t.Context(), req); err != nil {
				t.Fatal(err)
			}
		}
		got := &v1alpha1.Consumer{}
		if err := c.Get(t.Context(), req.NamespacedName, got); err != nil {
			t.Fatal(err)
		}
		ready := meta.FindStatusCondition(got.Status.Conditions, v1alpha1.ConditionReady)
		if ready.Reason != want.why || got.Status.Offered.Cpu().String() != want.cpu {
			t.Errorf("%s: Ready %s, offered %s cpu; want %s, %s", id, ready.Reason, got.Status.Offered.Cpu(), want.why, want.cpu)
		}
		if served := want.cpu != "0"; got.IsServed() != served {
			t.Errorf("%s is served: %v", id, got.IsServed())
		}
	}
}

// TestStatus shows what other consumers use, have reserved, and what Liqo has told.
func TestStatus(t *testing.T) {
	other := cluster.Identity{ID: "id-d", Name: "other"}
	providerA := cluster.Identity{ID: "id-a", Name: "provider-a"}
	pod := func(namespace, name, cpu string) *corev1.Pod {
		p := liqotest.Pod(liqotest.ShadowPod(namespace, name, nil), "liqo-provider-a")
		p.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)},
		}}}
		return p
	}
	wants := func(reserved, limit string) v1alpha1.ConsumerSpec {
		quantities := func(cpu string) v1alpha1.Quantities {
			if cpu == "" {
				return nil
			}
			return v1alpha1.Quantities{corev1.ResourceCPU: resource.MustParse(cpu)}
		}
		return v1alpha1.ConsumerSpec{Capacity: v1alpha1.ConsumerCapacity{Reserved: quantities(reserved), Limit: quantities(limit)}}
	}
	cases := map[string]struct {
		reason  string
		own     v1alpha1.ConsumerSpec
		others  v1alpha1.ConsumerSpec
		offered string
		mark    string
		met     metav1.ConditionStatus
		why     string
		message string
	}{
		"Plain": {
			reason:  "What the other uses is not offered, and what the consumer uses is.",
			offered: "3", met: metav1.ConditionTrue, why: v1alpha1.ReasonNothingReserved, message: "Nothing",
		},
		"Reserved": {
			reason: "What is reserved for the other and not used by it is not offered.",
			own:    wants("2", ""), others: wants("1500m", ""),
			offered: "2500m", met: metav1.ConditionTrue, why: v1alpha1.ReasonReserved, message: "all that is reserved",
		},
		"TooLittle": {
			reason: "Two reservations that do not fit are told to each.",
			own:    wants("3", ""), others: wants("2", ""),
			offered: "2", met: metav1.ConditionFalse, why: v1alpha1.ReasonTooLittleFree, message: "cpu 2 of 3",
		},
		"AboveLimit": {
			reason: "What is reserved above the limit is a mistake.",
			own:    wants("2", "1500m"), offered: "1500m",
			met: metav1.ConditionFalse, why: v1alpha1.ReasonReservedAboveLimit, message: "cpu 1500m of 2",
		},
		"Unreadable": {
			reason: "A limit that cannot be read is not no limit.",
			own:    wants("", "0"), mark: "spec.capacity.limit[cpu]: no quantity", offered: "0",
			met: metav1.ConditionFalse, why: v1alpha1.ReasonInvalidCapacity, message: "limit[cpu]",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := snapshottest.NewClient(t, interceptor.Funcs{},
				liqotest.ForeignCluster(consumer, false, true), provider("id-a", "4", v1alpha1.SchedulingActive), liqotest.VirtualNode(providerA, true),
				liqotest.TwinNamespace("mine", consumer), liqotest.TwinNamespace("theirs", other),
				pod("mine", "web-0", "500m"), pod("theirs", "web-0", "1"),
				liqotest.OfferTo(consumer, corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("7")}),
				&v1alpha1.Consumer{
					ObjectMeta: metav1.ObjectMeta{Name: "id-c", Annotations: map[string]string{lenient.AnnotationUnreadable: tc.mark}}, Spec: tc.own,
				},
				&v1alpha1.Consumer{ObjectMeta: metav1.ObjectMeta{Name: "id-d"}, Spec: tc.others},
			)
			r := New(Config{
				Client: c, Reader: snapshottest.Reader(c, ""), Capacity: snapshottest.Reader(c, "").Capacity, Modes: Modes{Orchestrator: true},
			})
			req := ctrl.Request{NamespacedName: client.ObjectKey{Name: string(consumer.ID)}}
			if _, err := r.Reconcile(t.Context(), req); err != nil {
				t.Fatalf("%s\nReconcile(): %v", tc.reason, err)
			}
			got := &v1alpha1.Consumer{}
			if err := c.Get(t.Context(), req.NamespacedName, got); err != nil {
				t.Fatal(err)
			}
			for _, f := range []struct {
				field string
				got   corev1.ResourceList
				want  string
			}{
				{"offered", got.Status.Offered, tc.offered}, {"used", got.Status.Used, "500m"}, {"granted", got.Status.Granted, "7"},
			} {
				if f.got.Cpu().Cmp(resource.MustParse(f.want)) != 0 {
					t.Errorf("%s\n%s: %s cpu, want %s", tc.reason, f.field, f.got.Cpu(), f.want)
				}
			}
			is := meta.FindStatusCondition(got.Status.Conditions, v1alpha1.ConditionReady)
			if is.Reason == v1alpha1.ReasonOffering && !strings.Contains(is.Message, " "+tc.offered+" CPU") {
				t.Errorf("%s\nReady says %q, want %s CPU", tc.reason, is.Message, tc.offered)
			}
			met := meta.FindStatusCondition(got.Status.Conditions, v1alpha1.ConditionReservationMet)
			if met == nil || met.Status != tc.met || met.Reason != tc.why || !strings.Contains(met.Message, tc.message) {
				t.Errorf("%s\nReservationMet: %+v", tc.reason, met)
			}
		})
	}
}

// TestReadableAmounts has a provider and a pod in units of their own: the columns have one.
func TestReadableAmounts(t *testing.T) {
	has := provider("id-a", "4", v1alpha1.SchedulingActive)
	has.Status.Offered[corev1.ResourceMemory] = resource.MustParse("40274000000")
	pod := liqotest.Pod(liqotest.ShadowPod("mine", "web-0", nil), "liqo-provider-a")
	pod.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("100M")},
	}}}
	c := snapshottest.NewClient(t, interceptor.Funcs{}, has, pod,
		liqotest.ForeignCluster(consumer, false, true), liqotest.VirtualNode(cluster.Identity{ID: "id-a", Name: "provider-a"}, true),
		liqotest.TwinNamespace("mine", consumer),
		liqotest.OfferTo(consumer, corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("40274M")}),
		&v1alpha1.Consumer{ObjectMeta: metav1.ObjectMeta{Name: "id-c"}, Spec: v1alpha1.ConsumerSpec{
			Mode: v1alpha1.ModeOrchestrated, Nodes: v1alpha1.NodesPerProvider,
		}})
	r := New(Config{
		Client: c, Reader: snapshottest.Reader(c, ""), Capacity: snapshottest.Reader(c, "").Capacity, Modes: Modes{Orchestrator: true},
	})
	key := client.ObjectKey{Name: string(consumer.ID)}
	got := &v1alpha1.Consumer{}
	for range 2 { // The nodes are offered in the mode that was written.
		if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: key}); err != nil {
			t.Fatalf("Reconcile(): %v", err)
		}
		if err := c.Get(t.Context(), key, got); err != nil {
			t.Fatal(err)
		}
	}
	said := []string{got.Status.Offered.Memory().String(), got.Status.Used.Memory().String(), got.Status.Granted.Memory().String()}
	if want := []string{"38408Mi", "96Mi", "38408Mi"}; !slices.Equal(said, want) {
		t.Errorf("offered, used and granted are %q, want %q", said, want)
	}
	if is := meta.FindStatusCondition(got.Status.Conditions, v1alpha1.ConditionReady); !strings.Contains(is.Message, "38408Mi memory") {
		t.Errorf("Ready says %q", is.Message)
	}
	nodes := map[string]string{}
	for _, n := range got.Status.NodeOffers {
		nodes[n.Provider] = n.Offered.Memory().String()
	}
	if want := map[string]string{"": "95Mi", "id-a": "38312Mi"}; !maps.Equal(nodes, want) {
		t.Errorf("the nodes are offered %v, want %v", nodes, want)
	}
}
