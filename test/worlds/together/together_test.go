// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package together

import (
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/controller/quota"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/core/resources"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
	"github.com/capacitorset/liqo-broker/test/worlds"
)

// act lets one controller of a process look at one object, with a cache that may be behind.
func (w *world) act(p *process) {
	w.t.Helper()
	names := slices.Sorted(maps.Keys(p.controllers))
	name := names[w.r.IntN(len(names))]
	keys := w.names(name)
	if len(keys) == 0 {
		return
	}
	w.look(p, name, keys[w.r.IntN(len(keys))])
}

// look lets a controller of a process look at an object.
func (w *world) look(p *process, name string, key client.ObjectKey) {
	w.t.Helper()
	p.controllers[name].cache.Follow(w.r, w.late)
	p.reconcile(name, key)
}

// step lives through some time, in which controllers look at some objects, or at all, as when somebody told them.
func (w *world) step() {
	w.t.Helper()
	for range w.r.IntN(4) {
		w.happen()
	}
	told := w.r.IntN(3) == 0
	for _, name := range slices.Sorted(maps.Keys(w.leader.controllers)) {
		for _, key := range w.names(name) {
			if !told && w.r.IntN(4) > 0 {
				continue
			}
			w.begin()
			w.look(w.leader, name, key)
			if w.leader.dead {
				w.leader, w.standby = w.standby, w.newProcess()
			}
		}
		time.Sleep(time.Duration(w.r.IntN(1000)) * time.Millisecond)
	}
	if w.r.IntN(4) == 0 {
		time.Sleep(time.Duration(w.r.IntN(60)) * time.Second)
	}
}

// mend lets all providers serve again, and leaves people's choices as they are, unless nobody could run anything.
func (w *world) mend() {
	w.t.Helper()
	w.notef("the world is mended")
	w.mended = true
	for _, p := range w.providers {
		w.setNode(p, corev1.ConditionTrue)
		w.resize(p, large)
	}
	w.everybody()
	first := &v1alpha1.Provider{}
	w.get("", string(w.providers[0].ID), first)
	first.Spec.Scheduling, first.Labels = v1alpha1.SchedulingActive, map[string]string{zone: "a"}
	w.update(first)
}

// everybody lets each controller look at each object, with caches that are up to date.
func (w *world) everybody() {
	w.t.Helper()
	for _, name := range []string{"provider", "policy", "consumer", "quota", "twin", "giveback"} {
		for _, key := range w.names(name) {
			w.begin()
			w.leader.controllers[name].cache.CatchUp()
			w.leader.reconcile(name, key)
		}
	}
}

// rest fails unless the broker comes to rest: nothing is written in two rounds, each of which is longer than all of its waits.
func (w *world) rest() {
	w.t.Helper()
	for round, quiet := 0, 0; quiet < 2; round++ {
		if round == 300 {
			w.failf("it does not come to rest")
		}
		before := w.server.Version()
		w.webhook.CatchUp()
		for _, namespace := range w.namespaces {
			w.apply(namespace)
			w.makePods(namespace)
		}
		w.schedule()
		w.runPods()
		w.replaceGiven()
		w.everybody()
		if w.server.Version() > before {
			quiet = 0
			time.Sleep(20 * time.Second)
			continue
		}
		quiet++
		time.Sleep(6 * time.Minute)
	}
}

// rested fails unless all is as it is to be.
func (w *world) rested() {
	w.t.Helper()
	var open, cordoned []cluster.ID
	has := resources.Sum()
	for _, p := range w.providers {
		object := &v1alpha1.Provider{}
		switch w.get("", string(p.ID), object); object.Spec.Scheduling {
		case v1alpha1.SchedulingActive:
			open, has = append(open, p.ID), resources.Sum(has, amount(large))
		case v1alpha1.SchedulingCordoned:
			cordoned, has = append(cordoned, p.ID), resources.Sum(has, object.Status.Used)
		case v1alpha1.SchedulingDrained: // It has nothing for anybody.
		}
	}
	for _, namespace := range w.namespaces {
		if !w.get(namespace, quota.Name, &corev1.ResourceQuota{}) {
			w.failf("%s has no quota", namespace)
		}
		w.selectedAsChosen(namespace, open, cordoned)
	}
	for _, c := range w.consumers {
		object := &v1alpha1.Consumer{}
		w.get("", string(c.ID), object)
		used := w.used(c)
		if offered := object.Status.Offered.Cpu(); offered.Cmp(*has.Cpu()) > 0 && offered.Value() > used || offered.Value() < used {
			w.failf("%s is offered %s of %s, and uses %d", c.Name, offered, has.Cpu(), used)
		}
		if object.Status.Used.Cpu().Value() != used {
			w.failf("%s uses %d, and is said to use %s", c.Name, used, object.Status.Used.Cpu())
		}
	}
}

// used counts the cores that a consumer's pods use.
func (w *world) used(c cluster.Identity) (cores int64) {
	for _, pod := range w.pods("") {
		ns := &corev1.Namespace{}
		w.get("", pod.Namespace, ns)
		if consumer, _ := liqo.TwinOf(ns); consumer == c.ID && pod.Spec.NodeName != "" {
			cores++
		}
	}
	return cores
}

// selectedAsChosen fails unless pods are placed on what is chosen for a namespace, and are nowhere else if they can move and are to.
func (w *world) selectedAsChosen(namespace string, open, cordoned []cluster.ID) {
	w.t.Helper()
	ns, want := &corev1.Namespace{}, open
	w.get("", namespace, ns)
	if p := (&v1alpha1.PlacementPolicy{}); w.get("", policyName, p) {
		want = nil
		consumer, _ := liqo.TwinOf(ns)
		d := &v1alpha1.PlacementDecision{}
		w.get("", v1alpha1.DecisionName(policyName, string(consumer)), d)
		for _, c := range d.Chosen {
			if slices.Contains(open, cluster.ID(c.ID)) && !c.Barred {
				want = append(want, cluster.ID(c.ID))
			}
		}
	}
	slices.Sort(want)
	o, selected := w.offloading(namespace)
	if len(want) == 0 || o == nil {
		w.failf("for %s %v are chosen, and the offloading is %v", namespace, want, o)
	}
	// The scheduler places nothing on a provider that is drained, whatever pods require.
	placing := slices.DeleteFunc(v09.OffloadingOf(o).Placing, func(id cluster.ID) bool { return !slices.Contains(open, id) })
	if !slices.Equal(placing, want) {
		w.failf("%s is placed on %v, and %v are chosen", namespace, placing, want)
	}
	copies, at := map[string]int{}, map[cluster.ID]bool{}
	for _, pod := range w.pods(namespace) {
		copies[workloadOf(&pod)]++
	}
	for _, pod := range w.pods(namespace) {
		p, placed := w.at(&pod)
		switch at[p.ID] = true; {
		case !placed:
			w.failf("%s/%s waits", namespace, pod.Name)
		case !slices.Contains(want, p.ID) && !slices.Contains(cordoned, p.ID) && copies[workloadOf(&pod)] > 1:
			w.failf("%s/%s stays on %s, and could move", namespace, pod.Name, p.Name)
		}
	}
	for _, id := range selected {
		if !slices.Contains(want, id) && !slices.Contains(cordoned, id) && !at[id] {
			w.failf("%s has selected %s, where nothing runs", namespace, id)
		}
	}
}

// TestTogether looks at random worlds: the broker never takes the last pod of a workload that serves, replaces none whose provider
// is there, gives none back too soon, and comes to rest when the world does, with everything as it is to be.
func TestTogether(t *testing.T) {
	ctrl.SetLogger(logr.Discard())
	var moved, replaced, given, processes int
	worlds.Run(t, func(t *testing.T, seed uint64) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, seed)
			for range 40 {
				w.step()
			}
			w.mend()
			w.rest()
			w.rested()
			moved, replaced, given, processes = moved+w.moved, replaced+w.replaced, given+w.given, processes+w.processes
		})
	})
	t.Logf("%d pods moved, of which %d replaced, %d given back, %d processes", moved, replaced, given, processes)
}
