// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package twin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/controller/placementpolicy"
	"github.com/capacitorset/liqo-broker/pkg/controller/twin/planning"
	"github.com/capacitorset/liqo-broker/pkg/core/capacity"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/core/placement"
	"github.com/capacitorset/liqo-broker/pkg/core/podstate"
	"github.com/capacitorset/liqo-broker/pkg/core/resources"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v09/liqotest"
	"github.com/capacitorset/liqo-broker/pkg/shown/apiv1"
	"github.com/capacitorset/liqo-broker/pkg/snapshot/snapshottest"
	"github.com/capacitorset/liqo-broker/test/worlds"
)

// rooms is a world whose providers have room for so many cores, and whose policy decides itself.
type rooms struct {
	*chaos

	policies *placementpolicy.Reconciler
	cores    map[cluster.ID]int64
	// first tells that the scheduler takes the first provider that has room, and not any.
	first bool
}

// newRooms returns a world that has come to rest.
func newRooms(t *testing.T, seed uint64) *rooms {
	t.Helper()
	x := &rooms{chaos: newChaos(t, seed), cores: map[cluster.ID]int64{}}
	ctx := t.Context()
	x.must(x.c.Create(ctx, &v1alpha1.Consumer{ObjectMeta: metav1.ObjectMeta{Name: string(consumer.ID)}}))
	for _, id := range x.ids {
		x.cores[id.ID] = int64(3 + x.r.IntN(12))
	}
	if p := policy(0); x.get(p.Name, p) {
		most := int32(1 + x.r.IntN(3))
		p.Spec.Scaling, p.Spec.MaxProviders = nil, &most
		if x.r.IntN(3) == 0 {
			p.Spec.MoveSingletons = v1alpha1.SingletonsWithGap
		}
		x.must(x.c.Update(ctx, p))
		x.must(x.c.Delete(ctx, chooses()))
	}
	x.policies = placementpolicy.New(placementpolicy.Config{
		Client: x.c, Reader: snapshottest.Reader(x.c, ""), Recorder: record.NewFakeRecorder(100_000), Clock: x.clock,
	})
	for range 8 {
		x.round()
	}
	return x
}

// free returns what no pod uses of each provider.
func (x *rooms) free() map[cluster.ID]corev1.ResourceList {
	x.t.Helper()
	free := map[cluster.ID]corev1.ResourceList{}
	for id, cores := range x.cores {
		free[id] = corev1.ResourceList{corev1.ResourceCPU: *resource.NewQuantity(cores, resource.DecimalSI)}
	}
	for _, pod := range x.pods() {
		if at, placed := x.at(&pod); placed {
			free[at.ID] = resources.Subtract(free[at.ID], capacity.Requests(&pod.Spec))
		}
	}
	return free
}

// observe does what the provider controller does, and what those of policies do. What is as it should be is not written: that takes long.
func (x *rooms) observe() {
	x.t.Helper()
	free := x.free()
	for _, id := range x.ids {
		p, node := &v1alpha1.Provider{}, x.node(id)
		x.get(string(id.ID), p)
		before := p.DeepCopy()
		active := p.Spec.Scheduling == v1alpha1.SchedulingActive
		if active == isClosed(node) {
			node.Spec.Taints = []corev1.Taint{{Key: liqo.TaintCordoned, Effect: corev1.TaintEffectNoSchedule}}
			x.must(x.c.Update(x.t.Context(), node))
		}
		p.Status.ObservedGeneration, p.Status.LargestPod = p.Generation, free[id.ID]
		if !active {
			p.Status.LargestPod = nil
			p.Status.Conditions[0].Status, p.Status.Conditions[0].Reason = metav1.ConditionFalse, v1alpha1.ReasonDraining
		}
		if !equality.Semantic.DeepEqual(before.Status, p.Status) {
			x.must(x.c.Status().Update(x.t.Context(), p))
		}
	}
	x.clock.Step(10 * time.Second)
	_, err := x.policies.Reconcile(x.t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: "policy"}})
	x.must(err)
}

// schedule does what the scheduler does, where there is room.
func (x *rooms) schedule() {
	free, closed := x.free(), map[cluster.ID]bool{}
	for _, id := range x.ids {
		closed[id.ID] = isClosed(x.node(id))
	}
	for _, pod := range x.pods() {
		if pod.Spec.NodeName != "" || pod.DeletionTimestamp != nil || liqo.Waits(&pod) {
			continue
		}
		fit := slices.DeleteFunc(slices.Clone(x.ids), func(id cluster.Identity) bool {
			return closed[id.ID] || liqo.Excludes(&pod, id.ID) || !placement.Fits(capacity.Requests(&pod.Spec), free[id.ID])
		})
		if len(fit) > 0 {
			at := 0
			if !x.first {
				at = x.r.IntN(len(fit))
			}
			pod.Spec.NodeName = "liqo-" + fit[at].Name
			free[fit[at].ID] = resources.Subtract(free[fit[at].ID], capacity.Requests(&pod.Spec))
			x.must(x.c.Update(x.t.Context(), &pod))
		}
	}
}

// isClosed reports whether no pod comes to a node.
func isClosed(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == liqo.TaintCordoned })
}

// create makes the pods that are asked for, each of which wants one to three cores.
func (x *rooms) create() {
	x.chaos.create()
	for _, pod := range x.pods() {
		if len(pod.Spec.Containers) == 0 {
			cores := resource.NewQuantity(int64(1+len(pod.Name)%2+int(pod.Name[len(pod.Name)-1])%2), resource.DecimalSI)
			pod.Spec.Containers = []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: *cores},
			}}}
			x.must(x.c.Update(x.t.Context(), &pod))
		}
	}
}

// run lets all pods get ready that are placed, and those go that are to end.
func (x *rooms) run() {
	for _, pod := range x.pods() {
		switch {
		case pod.DeletionTimestamp != nil:
			pod.Finalizers = nil
			x.must(x.c.Update(x.t.Context(), &pod))
		case pod.Spec.NodeName != "" && !podstate.Ready(&pod):
			x.setReady(&pod, true)
		}
	}
}

// reconcile lets the broker act. Other tests look at whether it may: here a policy may let the only pod of a workload go.
func (x *rooms) reconcile() {
	x.t.Helper()
	x.deleted = nil
	_, err := x.twin.Reconcile(x.t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: namespace}})
	x.must(err)
	if len(x.deleted) > 0 {
		_, selected := x.offloading()
		x.notef("deleted %v, selected %v", x.deleted, selected)
	}
}

// decide lets the broker act until it has nothing more to do before the world goes on. It returns what it has deleted.
func (x *rooms) decide() (deleted []string) {
	for range 4 {
		x.observe()
		x.reconcile()
		deleted = append(deleted, x.deleted...)
		x.apply()
	}
	return deleted
}

// round lets everybody do once what they do.
func (x *rooms) round() {
	for _, step := range []func(){x.observe, x.reconcile, x.apply, x.run, x.create, x.schedule, x.run} {
		step()
	}
}

// on returns the names of the pods on a provider that are not being deleted.
func (x *rooms) on(id cluster.Identity) []string {
	names := []string{}
	for _, pod := range x.pods() {
		if at, placed := x.at(&pod); placed && at == id && pod.DeletionTimestamp == nil {
			names = append(names, pod.Name)
		}
	}
	return names
}

// preview returns what the planner foresees of a drain.
func (x *rooms) preview(id cluster.Identity) apiv1.DrainPreview {
	x.t.Helper()
	e := &planning.Explainer{Client: x.c, Reader: snapshottest.Reader(x.c, ""), Planner: x.twin.planner}
	p, ok, err := e.PreviewDrain(x.t.Context(), id.ID, v1alpha1.SchedulingDrained)
	if err != nil || !ok {
		x.t.Fatalf("PreviewDrain(): %t, %v\n%s", ok, err, x.story())
	}
	return p
}

// TestPreviewedDrain drains a provider in random worlds: what goes at once is what the preview said, and so is what is left in the end.
func TestPreviewedDrain(t *testing.T) {
	ctrl.SetLogger(logr.Discard())
	seen := map[string]int{}
	worlds.Run(t, func(t *testing.T, seed uint64) {
		x := newRooms(t, seed)
		from := slices.MaxFunc(x.ids, func(a, b cluster.Identity) int { return len(x.on(a)) - len(x.on(b)) })
		for _, pod := range x.pods() {
			if x.r.IntN(12) == 0 && pod.Spec.NodeName != "" {
				x.setReady(&pod, false)
			}
		}
		x.observe()
		x.clock.Step(time.Hour) // What was deleted lately may be deleted again.
		x.reconcile()
		before := fmt.Sprint(x.on(from))
		preview := x.preview(from)
		foreseen := map[string][]string{"Moves": {}, "Stays": {}}
		for _, p := range preview.Pods {
			foreseen[p.Verdict] = append(foreseen[p.Verdict], p.Pod)
			seen[p.Verdict]++
			seen[p.Why]++
		}
		if now := fmt.Sprint(x.on(from)); now != before || len(x.on(from)) != len(preview.Pods) || !preview.Remembers {
			t.Fatalf("on %s were %s, are %s, and the preview is of %d pods: %+v", from.Name, before, now, len(preview.Pods), preview)
		}

		// People drain it.
		x.first = true
		there := x.on(from)
		x.want(from, v1alpha1.SchedulingDrained)
		var moves []string
		for _, pod := range x.decide() {
			if slices.Contains(there, pod) {
				moves = append(moves, pod)
			}
		}
		for range 12 {
			x.round()
		}
		for what, is := range map[string][]string{"Moves": moves, "Stays": x.on(from)} {
			slices.Sort(is)
			slices.Sort(foreseen[what])
			if !slices.Equal(is, foreseen[what]) {
				t.Errorf("of %v on %s is foreseen that %v are what %s, and it is %v\n%+v\n%s", there, from.Name, foreseen[what], what, is,
					preview, x.story())
			}
		}
	})
	worlds.Sayf(t, "%v", seen)
}

// TestPreviewDrain looks at what is said of pods that no plan is about, and at how much is said.
func TestPreviewDrain(t *testing.T) {
	foreign := offloaded(providerA, providerB)
	foreign[1].SetLabels(nil)
	ends := offloaded(providerA, providerB)
	ends[0].SetFinalizers([]string{"test/ends"})
	deleted := metav1.NewTime(began)
	ends[0].SetDeletionTimestamp(&deleted)
	unasked := workload("liqo-provider-a", "web-0")[1:]
	var many []string
	for i := range 300 {
		many = append(many, fmt.Sprintf("db-%d", 1000+i))
	}
	both := []client.Object{ready(providerA), ready(providerB)}
	cases := map[string]struct {
		reason              string
		objects             []client.Object
		as                  v1alpha1.Scheduling
		moves, later, stays int
		more                int
		why, message        string // Of the first pod, and of all.
	}{
		"Pair": {
			reason:  "A pair moves one after the other.",
			objects: slices.Concat(offloaded(providerA, providerB), workload("liqo-provider-a", "web-0", "web-1")),
			moves:   1, later: 1, why: string(placement.LastReady),
			message: "Of the pods on the provider 1 would move at once, 1 later, and 0 would stay",
		},
		"Cordoned": {
			reason: "From one that is cordoned nothing moves.", as: v1alpha1.SchedulingCordoned, stays: 2, why: string(placement.Unordered),
			objects: slices.Concat(offloaded(providerA, providerB), workload("liqo-provider-a", "web-0", "web-1")),
			message: "All pods on the provider would stay, and no new ones would come",
		},
		"Many": {
			reason: "The counts are of all.", objects: slices.Concat(offloaded(providerA, providerB), workload("liqo-provider-a", many...)),
			moves: 75, later: 225, more: 50, why: string(placement.TooManyNotReady),
			message: "Of the pods on the provider 75 would move at once, 225 later, and 0 would stay",
		},
		"Foreign": {
			reason: "Somebody else offloads it.", objects: slices.Concat(foreign, workload("liqo-provider-a", "web-0")), stays: 1,
			why: planning.MessageForeignOffloading, message: "Of the pods on the provider 0 would move at once, 0 later, and 1 would stay",
		},
		"Of nobody": {
			reason: "The namespace is no consumer's.", objects: workload("liqo-provider-a", "web-0"), stays: 1,
			why:     "it is of no consumer: the broker does not move it",
			message: "Of the pods on the provider 0 would move at once, 0 later, and 1 would stay",
		},
		"Unasked": {
			reason: "The wish has gone.", objects: slices.Concat(offloaded(providerA, providerB), unasked), stays: 1,
			why:     "its consumer does not ask for it any more: Liqo removes it",
			message: "Of the pods on the provider 0 would move at once, 0 later, and 1 would stay",
		},
		"Ends": {
			reason: "The namespace goes.", objects: slices.Concat(ends, workload("liqo-provider-a", "web-0")), stays: 1,
			why:     "its namespace is being deleted",
			message: "Of the pods on the provider 0 would move at once, 0 later, and 1 would stay",
		},
		"Empty": {reason: "Nothing is there.", objects: offloaded(providerA, providerB), message: "No pod is on the provider"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			h := start(t, slices.Concat(tc.objects, both)...)
			e := &planning.Explainer{Client: h.client, Reader: h.r.reader, Planner: h.r.planner}
			as := cmp.Or(tc.as, v1alpha1.SchedulingDrained)
			p, ok, err := e.PreviewDrain(t.Context(), providerA.ID, as)
			if err != nil || !ok {
				t.Fatalf("%s\nPreviewDrain(): %t, %v", tc.reason, ok, err)
			}
			if p.Moves != tc.moves || p.Later != tc.later || p.Stays != tc.stays || p.More != tc.more || p.Message != tc.message ||
				len(p.Pods) != tc.moves+tc.later+tc.stays-tc.more || p.Scheduling != string(as) || p.Provider.Name != providerA.Name {
				t.Errorf("%s\nthe preview is %+v", tc.reason, p)
			}
			if len(p.Pods) > 0 && p.Pods[0].Why != tc.why {
				t.Errorf("%s\nof %s is said %q, want %q", tc.reason, p.Pods[0].Pod, p.Pods[0].Why, tc.why)
			}
			if len(h.deleted) > 0 || h.events() != "" || h.r.planner.Remembers(namespace) {
				t.Errorf("%s\nwho looks changes something", tc.reason)
			}
			if _, ok, err := e.PreviewDrain(t.Context(), "nobody", as); ok || err != nil {
				t.Errorf("%s\nof a provider that is not there: %t, %v", tc.reason, ok, err)
			}
		})
	}
}

// TestPreviewDrainEnds ends a preview while it reads the first of three namespaces: it reads no other.
func TestPreviewDrainEnds(t *testing.T) {
	objects := slices.Concat([]client.Object{ready(providerA), ready(providerB)}, offloaded(providerA, providerB),
		workload("liqo-provider-a", "web-0"))
	for _, name := range []string{namespace + "-2", namespace + "-3"} {
		shadow := liqotest.ShadowPod(name, "web-0", nil)
		objects = append(objects, liqotest.TwinNamespace(name, consumer), shadow, liqotest.Pod(shadow, "liqo-provider-a", providerA.ID))
	}
	h := start(t, objects...)
	for _, ends := range []bool{false, true} {
		read := 0
		ctx, end := context.WithCancel(t.Context())
		noting := listing{h.client, func(list client.ObjectList) {
			if _, is := list.(*metav1.PartialObjectMetadataList); is {
				if read++; ends {
					end()
				}
			}
		}}
		e := &planning.Explainer{Client: noting, Reader: h.r.reader, Planner: h.r.planner}
		p, ok, err := e.PreviewDrain(ctx, providerA.ID, v1alpha1.SchedulingDrained)
		end()
		if !ends && (err != nil || !ok || read != 3 || len(p.Pods) != 3) {
			t.Errorf("of %d namespaces is foreseen: %t, %v, %+v", read, ok, err, p)
		}
		if ends && (!errors.Is(err, context.Canceled) || read != 1) {
			t.Errorf("once nobody waits for it, %d namespaces are read: %v", read, err)
		}
	}
}

// listing is a reader that says what it lists.
type listing struct {
	client.Reader

	says func(client.ObjectList)
}

// List implements client.Reader.
func (l listing) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	l.says(list)
	return l.Reader.List(ctx, list, options...)
}
