// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testingclock "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v09/liqotest"
	"github.com/capacitorset/liqo-broker/pkg/snapshot/snapshottest"
	"github.com/capacitorset/liqo-broker/test/worlds"
)

// anyProvider looks at a provider that offers and declares anything: at the second look nothing is written, what is free
// is never negative, and what cannot be used has nothing.
func anyProvider(t *testing.T, r *rand.Rand) {
	objects := anyObjects(r)
	writes := 0
	c := snapshottest.NewClient(t, snapshottest.OnPatch(func(client.Object) { writes++ }), objects...)
	clock := testingclock.NewFakeClock(time.Unix(1_000_000, 0))
	key := client.ObjectKey{Name: string(providerA.ID)}
	reconciler := New(Config{Client: c, Reader: snapshottest.Reader(c, ""), Clock: clock, Plans: plans()})
	for look := range 4 {
		if look == 2 {
			writes = 0
		}
		if _, err := reconciler.Reconcile(t.Context(), ctrl.Request{NamespacedName: key}); err != nil {
			t.Fatalf("Reconcile(): %v", err)
		}
		clock.Step(time.Minute)
	}
	if writes > 0 {
		t.Errorf("%d writes, although nothing has changed", writes)
	}
	var p v1alpha1.Provider
	if err := c.Get(t.Context(), key, &p); err != nil {
		t.Fatal(err)
	}
	ready := meta.IsStatusConditionTrue(p.Status.Conditions, v1alpha1.ConditionReady)
	// What pods use of a cordoned one stays offered to their consumers.
	kept := p.EffectiveScheduling() == v1alpha1.SchedulingCordoned && p.Status.Free.Cpu().IsZero() && len(p.Status.LargestPod) == 0
	if !ready && !kept && len(p.Status.Offered)+len(p.Status.Free)+len(p.Status.LargestPod) > 0 {
		t.Errorf("it is not ready, and has %v", p.Status.Offered)
	}
	for name, free := range p.Status.Free {
		if free.Sign() < 0 || free.Cmp(p.Status.Offered[name]) > 0 {
			t.Errorf("of %s it has %v, and %s is free", name, p.Status.Offered, free.String())
		}
	}
}

// anyObjects returns what there is of a provider, some of it hostile.
func anyObjects(r *rand.Rand) []client.Object {
	once := func(n int) bool { return r.IntN(n) == 0 } // In n.
	list := func() corev1.ResourceList {
		amounts := []string{"0", "1", "1500m", "8", "3Gi", "7Ei", "-1", "1n", "2Ei"}
		l := corev1.ResourceList{}
		for _, name := range []corev1.ResourceName{"cpu", "memory", "pods", "nvidia.com/gpu"} {
			if !once(4) {
				l[name] = resource.MustParse(amounts[r.IntN(len(amounts))])
			}
		}
		return l
	}
	p := &v1alpha1.Provider{ObjectMeta: metav1.ObjectMeta{Name: string(providerA.ID), Generation: 3}}
	p.Spec.Scheduling = []v1alpha1.Scheduling{active, active, active, cordoned, drained}[r.IntN(5)]
	p.Spec.Capacity.Rule = []v1alpha1.CapacityRule{"", "Measured", "Declared", "Min", "Other"}[r.IntN(5)]
	p.Spec.Capacity.Declared = v1alpha1.Quantities(list())
	p.Spec.Capacity.OvercommitPercent = new(int32(r.IntN(1001)))
	objects := []client.Object{
		p, liqotest.ForeignCluster(providerA, !once(4), false), liqotest.TwinNamespace("twin", cluster.Identity{ID: "id-c", Name: "c"}),
	}
	for i := range r.IntN(3) {
		o, node := liqotest.Offer(providerA, list()), liqotest.VirtualNode(providerA, !once(3))
		if i > 0 {
			o.Name, o.Spec.NodeName, node.Name = "second", "liqo-second", "liqo-second"
		}
		if once(6) {
			liqotest.Withdraw(o)
		}
		if once(6) {
			o.Status.Phase = ""
		}
		node.Status.Conditions[0].LastTransitionTime = metav1.NewTime(time.Unix(r.Int64N(2_000_000), 0))
		objects = append(objects, o, node)
		for j := range r.IntN(3) {
			pod := liqotest.Pod(liqotest.ShadowPod("twin", fmt.Sprint("pod-", i, "-", j), nil), node.Name)
			pod.Spec.Containers = []corev1.Container{
				{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("250m")}}},
			}
			objects = append(objects, pod)
		}
	}
	return objects
}

// TestAnyProvider looks at random providers.
func TestAnyProvider(t *testing.T) {
	worlds.Run(t, func(t *testing.T, seed uint64) { anyProvider(t, rand.New(rand.NewPCG(seed, 1))) })
}
