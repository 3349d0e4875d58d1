// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/core/resources"
	"github.com/capacitorset/liqo-broker/pkg/liqo/line"
	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v09/liqotest"
	v1 "github.com/capacitorset/liqo-broker/pkg/liqo/v1"
	"github.com/capacitorset/liqo-broker/pkg/snapshot"
	"github.com/capacitorset/liqo-broker/pkg/snapshot/snapshottest"
)

func cpu(amount string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(amount)}
}

func provider(id cluster.ID, amount string, scheduling v1alpha1.Scheduling) *v1alpha1.Provider {
	p := &v1alpha1.Provider{ObjectMeta: metav1.ObjectMeta{Name: string(id)}, Spec: v1alpha1.ProviderSpec{Scheduling: scheduling}}
	if amount != "" {
		p.Status.Offered = cpu(amount)
	}
	return p
}

func pod(namespace, node, amount string, phase corev1.PodPhase) *corev1.Pod {
	p := liqotest.Pod(liqotest.ShadowPod(namespace, fmt.Sprintf("%s-%s-%s", node, amount, phase), nil), node)
	p.Spec.Containers = []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: cpu(amount)}}}
	p.Status.Phase = phase
	return p
}

// TestUnservedCapacity has a consumer whose mode the broker does not run: it keeps what it uses.
func TestUnservedCapacity(t *testing.T) {
	a, c := cluster.Identity{ID: "id-a", Name: "a"}, cluster.Identity{ID: "id-c", Name: "c"}
	unserved := &v1alpha1.Consumer{ObjectMeta: metav1.ObjectMeta{Name: string(c.ID)}}
	unserved.Spec.Mode = v1alpha1.ModeAggregated
	unserved.Spec.Capacity.Reserved = v1alpha1.Quantities(cpu("2"))
	reader := snapshottest.NewClient(t, interceptor.Funcs{},
		provider(a.ID, "4", v1alpha1.SchedulingActive), liqotest.VirtualNode(a, true), liqotest.TwinNamespace("of-c", c), unserved,
		pod("of-c", "liqo-a", "1", corev1.PodRunning))
	for mode, want := range map[v1alpha1.Mode]corev1.ResourceList{v1alpha1.ModeAggregated: cpu("4"), v1alpha1.ModeOrchestrated: cpu("1")} {
		r := snapshot.New(v09.Line{}, reader, "", func(m v1alpha1.Mode) bool { return m == mode })
		snap, err := r.Capacity(t.Context())
		if err != nil {
			t.Fatalf("Capacity(): %v", err)
		}
		if got := snap.Offered(c.ID)[corev1.ResourceCPU]; got.Cmp(want[corev1.ResourceCPU]) != 0 {
			t.Errorf("a broker that runs only %s offers an aggregated consumer %s cpu, want %v", mode, got.String(), want)
		}
		if got := snap.Offered("id-other")[corev1.ResourceCPU]; mode == v1alpha1.ModeOrchestrated && got.Cmp(resource.MustParse("3")) != 0 {
			t.Errorf("others are offered %s cpu, want what nobody uses", got.String())
		}
	}
}

// TestSuspendedCapacity has a consumer that keeps what it uses, and loses what is reserved for it.
func TestSuspendedCapacity(t *testing.T) {
	a, c := cluster.Identity{ID: "id-a", Name: "a"}, cluster.Identity{ID: "id-c", Name: "c"}
	for scheduling, want := range map[v1alpha1.ConsumerScheduling][2]string{
		"": {"4", "2"}, v1alpha1.ConsumerActive: {"4", "2"}, v1alpha1.ConsumerSuspended: {"1", "3"}, "Other": {"1", "3"},
	} {
		consumer := &v1alpha1.Consumer{ObjectMeta: metav1.ObjectMeta{Name: string(c.ID)}}
		consumer.Spec.Scheduling, consumer.Spec.Capacity.Reserved = scheduling, v1alpha1.Quantities(cpu("2"))
		snap, err := snapshot.New(v09.Line{}, snapshottest.NewClient(t, interceptor.Funcs{}, provider(a.ID, "4", v1alpha1.SchedulingActive),
			liqotest.VirtualNode(a, true), liqotest.TwinNamespace("of-c", c), consumer, pod("of-c", "liqo-a", "1", corev1.PodRunning)), "",
			nil).Capacity(t.Context())
		if err != nil {
			t.Fatalf("Capacity(): %v", err)
		}
		for i, id := range []cluster.ID{c.ID, "id-other"} {
			if got := snap.Offered(id)[corev1.ResourceCPU]; got.Cmp(resource.MustParse(want[i])) != 0 {
				t.Errorf("%q: %s is offered %s cpu, want %s", scheduling, id, got.String(), want[i])
			}
		}
	}
}

// TestConfusedCapacity has a consumer that cannot be told apart from another cluster.
func TestConfusedCapacity(t *testing.T) {
	a, c := cluster.Identity{ID: "id-a", Name: "a"}, cluster.Identity{ID: "id-c", Name: "c"}
	for reason, want := range map[string]string{v1alpha1.ReasonOffering: "4", v1alpha1.ReasonClusterNameTaken: "1"} {
		consumer := &v1alpha1.Consumer{ObjectMeta: metav1.ObjectMeta{Name: string(c.ID)}}
		consumer.Spec.Capacity.Reserved = v1alpha1.Quantities(cpu("2"))
		consumer.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: reason}}
		snap, err := snapshottest.Reader(snapshottest.NewClient(t, interceptor.Funcs{},
			provider(a.ID, "4", v1alpha1.SchedulingActive), liqotest.VirtualNode(a, true), liqotest.TwinNamespace("of-c", c), consumer,
			pod("of-c", "liqo-a", "1", corev1.PodRunning),
		), "").Capacity(t.Context())
		if err != nil {
			t.Fatalf("Capacity(): %v", err)
		}
		if got := snap.Offered(c.ID)[corev1.ResourceCPU]; got.Cmp(resource.MustParse(want)) != 0 {
			t.Errorf("%s: offered %s cpu, want %s", reason, got.String(), want)
		}
	}
}

// TestCordonedCapacity has a provider on which a consumer uses a core and two are free.
func TestCordonedCapacity(t *testing.T) {
	a, b, c := cluster.Identity{ID: "id-a", Name: "a"}, cluster.Identity{ID: "id-b", Name: "b"}, cluster.Identity{ID: "id-c", Name: "c"}
	for scheduling, want := range map[v1alpha1.Scheduling][2]string{
		"":                           {"5", "4"},
		v1alpha1.SchedulingActive:    {"5", "4"},
		v1alpha1.SchedulingCordoned:  {"3", "2"},
		v1alpha1.SchedulingDrained:   {"2", "2"},
		v1alpha1.Scheduling("Other"): {"3", "2"},
	} {
		snap, err := snapshottest.Reader(snapshottest.NewClient(t, interceptor.Funcs{},
			provider(a.ID, "3", scheduling), provider(b.ID, "2", v1alpha1.SchedulingActive), liqotest.VirtualNode(a, true),
			liqotest.VirtualNode(b, true), liqotest.TwinNamespace("of-c", c), pod("of-c", "liqo-a", "1", corev1.PodRunning),
		), "").Capacity(t.Context())
		if err != nil {
			t.Fatalf("Capacity(): %v", err)
		}
		for i, consumer := range []cluster.ID{c.ID, "id-other"} {
			if got := snap.Offered(consumer)[corev1.ResourceCPU]; got.Cmp(resource.MustParse(want[i])) != 0 {
				t.Errorf("%q: %s is offered %s cpu, want %s", scheduling, consumer, got.String(), want[i])
			}
		}
	}
}

// TestCapacity has two consumers, one of which is a provider as well.
func TestCapacity(t *testing.T) {
	a, b := cluster.Identity{ID: "id-a", Name: "a"}, cluster.Identity{ID: "id-b", Name: "b"}
	c := cluster.Identity{ID: "id-c", Name: "c"}
	reserved := &v1alpha1.Consumer{ObjectMeta: metav1.ObjectMeta{Name: string(c.ID)}}
	reserved.Spec.Capacity.Reserved = v1alpha1.Quantities(cpu("1500m"))
	objects := []client.Object{
		provider(a.ID, "4", v1alpha1.SchedulingActive), provider(b.ID, "2", v1alpha1.SchedulingActive),
		provider("off", "8", v1alpha1.SchedulingDrained), provider("down", "", v1alpha1.SchedulingActive), liqotest.VirtualNode(a, true),
		liqotest.VirtualNode(b, true), liqotest.TwinNamespace("of-c", c), liqotest.TwinNamespace("of-a", a),
		reserved,
		pod("of-c", "liqo-a", "1", corev1.PodRunning),
		pod("of-c", "liqo-b", "125m", corev1.PodPending),
		pod("of-c", "liqo-a", "16", corev1.PodFailed),
		pod("of-c", "", "16", corev1.PodPending),
		pod("of-c", "broker", "16", corev1.PodRunning),
		pod("of-a", "liqo-b", "250m", corev1.PodRunning),
		pod("else", "liqo-a", "500m", corev1.PodRunning),
	}
	snap, err := snapshottest.Reader(snapshottest.NewClient(t, interceptor.Funcs{}, objects...), "").Capacity(t.Context())
	if err != nil {
		t.Fatalf("Capacity(): %v", err)
	}
	cases := map[string]struct {
		reason    string
		got, want corev1.ResourceList
	}{
		"UsedByC":      {reason: "Pods that are bound to providers and have not ended.", got: snap.Used(c.ID), want: cpu("1125m")},
		"UsedByWhom":   {reason: "Pods that nobody knows the consumer of count too.", got: snap.Used(""), want: cpu("500m")},
		"OfferedToC":   {reason: "All that others do not use.", got: snap.Offered(c.ID), want: cpu("5250m")},
		"OfferedToA":   {reason: "Not its own, and not what is reserved for C and not used.", got: snap.Offered(a.ID), want: cpu("1500m")},
		"OfferedToNew": {reason: "A consumer that uses nothing.", got: snap.Offered("id-d"), want: cpu("3750m")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.got = resources.Subtract(tc.got, corev1.ResourceList{corev1.ResourcePods: resource.MustParse("1k")})
			if !resources.Equal(tc.want, tc.got) {
				t.Errorf("%s\ngot %v, want %v", tc.reason, tc.got, tc.want)
			}
		})
	}
}

// TestHugePod has a pod that its owner bound to a node by itself, and that requests what nobody has.
func TestHugePod(t *testing.T) {
	a, evil := cluster.Identity{ID: "id-a", Name: "a"}, cluster.Identity{ID: "id-evil", Name: "evil"}
	node := liqotest.VirtualNode(a, true)
	node.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("3"), corev1.ResourcePods: resource.MustParse("110")}
	huge := pod("of-evil", node.Name, "1000000", corev1.PodPending)
	for n := range 1000 {
		huge.Spec.Containers[0].Resources.Requests[corev1.ResourceName(fmt.Sprintf("evil.com/%d", n))] = resource.MustParse("1")
	}
	snap, err := snapshottest.Reader(snapshottest.NewClient(t, interceptor.Funcs{},
		provider(a.ID, "4", v1alpha1.SchedulingActive), node, liqotest.TwinNamespace("of-evil", evil), huge), "").Capacity(t.Context())
	if err != nil {
		t.Fatalf("Capacity(): %v", err)
	}
	used := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("3"), corev1.ResourcePods: resource.MustParse("1")}
	if got := snap.Used(evil.ID); !resources.Equal(got, used) || len(got) != len(used) {
		t.Errorf("used by the owner: %v, want %v", got, used)
	}
	if got := snap.Offered(evil.ID); got.Cpu().Cmp(resource.MustParse("4")) != 0 {
		t.Errorf("the owner is offered %v, want what the provider has", got)
	}
}

// TestCapacityCache counts how often the pods are counted.
func TestCapacityCache(t *testing.T) {
	counted := 0
	c := snapshottest.NewClient(t, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if _, ok := list.(*corev1.PodList); ok {
				counted++
			}
			return c.List(ctx, list, opts...)
		},
	}, provider("id-a", "4", v1alpha1.SchedulingActive))
	l := snapshot.NewCapacityCache(snapshottest.Reader(c, ""))
	look := func() corev1.ResourceList {
		t.Helper()
		snap, err := l.Capacity(t.Context())
		if err != nil {
			t.Fatalf("Capacity(): %v", err)
		}
		return snap.Offered("id-c")
	}
	look()
	look()
	if counted != 1 {
		t.Errorf("the pods were counted %d times, though nothing has changed", counted)
	}
	if err := c.Create(t.Context(), provider("id-b", "2", v1alpha1.SchedulingActive)); err != nil {
		t.Fatal(err)
	}
	l.Changed()
	if got := look(); !resources.Equal(cpu("6"), got) || counted != 2 {
		t.Errorf("after a change: %v, counted %d times", got, counted)
	}
}

// TestCapacityCacheConcurrently changes what a provider has from several sides: whoever has
// told the cache of a change finds it in the snapshot.
func TestCapacityCacheConcurrently(t *testing.T) {
	const sides, changes = 4, 200
	var amount atomic.Int64
	c := snapshottest.NewClient(t, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			providers, ok := list.(*v1alpha1.ProviderList)
			if !ok {
				return c.List(ctx, list, opts...)
			}
			providers.Items = []v1alpha1.Provider{*provider("id-a", fmt.Sprint(amount.Load()), v1alpha1.SchedulingActive)}
			return nil
		},
	})
	l := snapshot.NewCapacityCache(snapshottest.Reader(c, ""))
	var all sync.WaitGroup
	for range sides {
		all.Go(func() {
			for range changes {
				least := amount.Add(1)
				l.Changed()
				snap, err := l.Capacity(t.Context())
				if err != nil {
					t.Errorf("Capacity(): %v", err)
					return
				}
				offered := snap.Offered("id-c")
				if got := offered.Cpu().Value(); got < least {
					t.Errorf("the snap have %d cores after a change to %d", got, least)
					return
				}
			}
		})
	}
	all.Wait()
}

func TestAccountChanged(t *testing.T) {
	id := cluster.Identity{ID: "id-a", Name: "a"}
	running := pod("ns", "liqo-a", "1", corev1.PodRunning)
	larger := pod("ns", "liqo-a", "2", corev1.PodRunning)
	moved := provider(id.ID, "4", v1alpha1.SchedulingActive)
	moved.Status.Used = cpu("1")
	reserved := &v1alpha1.Consumer{ObjectMeta: metav1.ObjectMeta{Generation: 2}}
	twin, other, named := liqotest.TwinNamespace("web", id), liqotest.TwinNamespace("web", id), liqotest.TwinNamespace("web", id)
	other.Labels["liqo.io/remote-cluster-id"], named.Annotations = "id-b", nil
	open := liqotest.TwinNamespace("web", id)
	open.Labels["liqo.io/scheduling-enabled"] = "true"
	cases := map[string]struct {
		reason        string
		before, after any
		want          bool
	}{
		"Twin":      {reason: "Pods of a namespace may count for another consumer, ...", before: twin, after: other, want: true},
		"NoTwin":    {reason: "... or for none any more.", before: twin, after: named, want: true},
		"Offloaded": {reason: "Where they run the pods themselves say.", before: twin, after: open},
		"Bound":     {reason: "A pod that is bound takes its place.", before: pod("ns", "", "1", corev1.PodPending), after: running, want: true},
		"Ended": {
			reason: "A pod that ends gives it back.", before: running, after: pod("ns", "liqo-a", "1", corev1.PodSucceeded), want: true,
		},
		"Resized": {reason: "A pod may change what it requests.", before: running, after: larger, want: true},
		"Started": {reason: "A pod that starts takes what it took.", before: pod("ns", "liqo-a", "1", corev1.PodPending), after: running},
		"Beat": {
			reason: "A node that is ready again is a Provider that changes.", before: liqotest.VirtualNode(id, true),
			after: liqotest.VirtualNode(id, false),
		},
		"Toggled": {
			reason: "A provider that is disabled has nothing to offer.", before: provider(id.ID, "4", v1alpha1.SchedulingActive),
			after: provider(id.ID, "4", v1alpha1.SchedulingDrained), want: true,
		},
		"Offered": {
			reason: "A provider may have less.", before: provider(id.ID, "4", v1alpha1.SchedulingActive),
			after: provider(id.ID, "3", v1alpha1.SchedulingActive), want: true,
		},
		"Accounts": {reason: "What the broker writes is no change.", before: provider(id.ID, "4", v1alpha1.SchedulingActive), after: moved},
		"Terms":    {reason: "People may change a consumer's terms.", before: &v1alpha1.Consumer{}, after: reserved, want: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := snapshottest.Reader(nil, "").AccountChanged(tc.before, tc.after); got != tc.want {
				t.Errorf("%s\nAccountChanged() = %v", tc.reason, got)
			}
		})
	}
}

// TestTenantChanged holds that the line of Liqo is asked which namespaces are those of peers: with Liqo 1.x they say it themselves.
func TestTenantChanged(t *testing.T) {
	before := &corev1.Namespace{}
	before.Name, before.Labels = "liqo-tenant-a", map[string]string{"liqo.io/tenant-namespace": "true", "liqo.io/remote-cluster-id": "a"}
	after := before.DeepCopy()
	after.Labels["liqo.io/remote-cluster-id"] = "b"
	for of, want := range map[line.Line]bool{v09.Line{}: false, v1.Line{}: true} {
		if got := snapshot.New(of, nil, "", nil).AccountChanged(before, after); got != want {
			t.Errorf("with Liqo %s, a tenant namespace that is another peer's: AccountChanged() = %t, want %t", of.Name(), got, want)
		}
	}
}
