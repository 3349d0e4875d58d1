// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package twin

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/flowcontrol"
	testingclock "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/controller/twin/planning"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/core/grant"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v09/liqotest"
	"github.com/capacitorset/liqo-broker/pkg/snapshot/snapshottest"
	"github.com/capacitorset/liqo-broker/test/worlds"
)

// chaos is a broker's cluster in which Liqo, the scheduler, kubelets, people and networks do what they do, one at a time.
type chaos struct {
	t     *testing.T
	r     *rand.Rand
	c     client.WithWatch
	twin  *Reconciler
	clock *testingclock.FakeClock
	ids   []cluster.Identity
	// stale are the pods as the broker's cache has them; nil if it is up to date.
	stale *corev1.PodList
	full  map[cluster.ID]bool
	// asked tells that the consumer has to tell which providers it can reach, and reached are those of which it does.
	asked   bool
	reached map[cluster.ID]bool
	deleted []string // By the broker, in this round.
	serial  int
	log     []string
}

// newChaos returns a namespace with some workloads, two to four providers, and perhaps a policy.
func newChaos(t *testing.T, seed uint64) *chaos {
	t.Helper()
	x := &chaos{t: t, r: rand.New(rand.NewPCG(seed, 7)), clock: testingclock.NewFakeClock(began), full: map[cluster.ID]bool{},
		reached: map[cluster.ID]bool{}}
	x.asked = x.r.IntN(2) == 0
	objects := []client.Object{liqotest.TwinNamespace(namespace, consumer)}
	for i := range 2 + x.r.IntN(3) {
		id := cluster.Identity{ID: cluster.ID(fmt.Sprint("id-", i)), Name: fmt.Sprint("p", i)}
		x.ids, x.reached[id.ID] = append(x.ids, id), x.r.IntN(3) > 0
		objects = append(objects, x.newProvider(id), liqotest.VirtualNode(id, true))
	}
	if x.r.IntN(2) == 0 {
		p := policy(6000)
		p.Spec.Failover.Mode = []v1alpha1.FailoverMode{v1alpha1.FailoverAfterGrace, v1alpha1.FailoverImmediate,
			v1alpha1.FailoverNever}[x.r.IntN(3)]
		if x.r.IntN(3) == 0 {
			p.Spec.Scaling = &v1alpha1.Scaling{}
		}
		objects = append(objects, p, chooses(x.ids[0]))
	}
	x.c = snapshottest.NewClient(t, interceptor.Funcs{}, objects...)
	cached := interceptor.NewClient(x.c, interceptor.Funcs{List: x.list, Delete: x.remove})
	x.twin = New(Config{
		Client: cached, Live: x.c, Reader: snapshottest.Reader(cached, ""), Clock: x.clock,
		Planner: planning.NewPlanner(record.NewFakeRecorder(100_000), x.clock, x.views), Recorder: record.NewFakeRecorder(100_000), Own: broker,
		Mapping: "DefaultName", Metrics: NewMetrics(prometheus.NewHistogram(prometheus.HistogramOpts{})),
	})
	x.twin.backoff = flowcontrol.NewFakeBackOff(firstBackoff, maxBackoff, x.clock)
	for w := range 1 + x.r.IntN(3) {
		for range 1 + x.r.IntN(6) {
			x.ask(fmt.Sprint("w", w))
		}
	}
	return x
}

func (x *chaos) newProvider(id cluster.Identity) *v1alpha1.Provider {
	p := ready(id)
	p.Generation, p.Status.ObservedGeneration = 1, 1
	p.Spec.Scheduling = v1alpha1.SchedulingActive
	return p
}

// views are those of the providers that the consumer reaches.
func (x *chaos) views(cluster.ID) grant.Views {
	v := grant.Views{Asked: x.asked, Granted: map[cluster.ID]grant.View{}, Acknowledged: map[string]netip.Prefix{}}
	v.Told, v.Now = x.clock.Now(), x.clock.Now()
	for i, id := range x.ids {
		view := grant.View{Key: fmt.Sprint("n", i), Prefix: netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(i), 0, 0}), 16)}
		if v.Granted[id.ID] = view; x.reached[id.ID] {
			v.Acknowledged[view.Key] = view.Prefix
		}
	}
	return v
}

// list answers from the cache.
func (x *chaos) list(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
	pods, is := list.(*corev1.PodList)
	if is && x.stale != nil && (&client.ListOptions{}).ApplyOptions(options).Namespace == namespace {
		x.stale.DeepCopyInto(pods)
		return nil
	}
	return c.List(ctx, list, options...)
}

// remove deletes a pod as an API server does: unless it is forced to, the pod ends when its kubelet says so.
func (x *chaos) remove(ctx context.Context, c client.WithWatch, o client.Object, options ...client.DeleteOption) error {
	wanted := (&client.DeleteOptions{}).ApplyOptions(options)
	var is corev1.Pod
	if err := c.Get(ctx, client.ObjectKeyFromObject(o), &is); err != nil {
		return err
	}
	if *wanted.Preconditions.UID != is.UID {
		return apierrors.NewConflict(schema.GroupResource{Resource: "pods"}, o.GetName(), errors.New("another UID"))
	}
	if as := wanted.Preconditions.ResourceVersion; as != nil && *as != is.ResourceVersion {
		return apierrors.NewConflict(schema.GroupResource{Resource: "pods"}, o.GetName(), errors.New("another version"))
	}
	x.deleted = append(x.deleted, o.GetName())
	switch {
	case wanted.GracePeriodSeconds != nil && *wanted.GracePeriodSeconds == 0:
		x.end(&is)
	case is.DeletionTimestamp == nil:
		is.Finalizers = []string{"test/kubelet"}
		x.must(c.Update(ctx, &is))
		x.must(c.Delete(ctx, &is))
	}
	return nil
}

func (x *chaos) notef(format string, args ...any) {
	x.log = append(x.log, x.clock.Now().Format("15:04:05 ")+fmt.Sprintf(format, args...))
}

// story returns the last of what happened.
func (x *chaos) story() string { return strings.Join(x.log[max(0, len(x.log)-25):], "\n") }

func (x *chaos) must(err error) {
	x.t.Helper()
	if client.IgnoreNotFound(err) != nil {
		x.t.Fatalf("%v\n%s", err, x.story())
	}
}

// get reads an object, and reports whether it is there.
func (x *chaos) get(name string, o client.Object) bool {
	x.t.Helper()
	err := x.c.Get(x.t.Context(), client.ObjectKey{Namespace: o.GetNamespace(), Name: name}, o)
	x.must(err)
	return err == nil
}

func (x *chaos) pods() []corev1.Pod {
	x.t.Helper()
	var list corev1.PodList
	x.must(x.c.List(x.t.Context(), &list, client.InNamespace(namespace)))
	return list.Items
}

func (x *chaos) node(id cluster.Identity) *corev1.Node {
	x.t.Helper()
	node := &corev1.Node{}
	x.get("liqo-"+id.Name, node)
	return node
}

// offloading returns the namespace's offloading, and what it selects; nil if there is none.
func (x *chaos) offloading() (*v09.NamespaceOffloading, []cluster.ID) {
	x.t.Helper()
	o := &v09.NamespaceOffloading{ObjectMeta: metav1.ObjectMeta{Namespace: namespace}}
	if !x.get(liqo.OffloadingName, o) {
		return nil, nil
	}
	return o, v09.OffloadingOf(o).Selected
}

// at returns on which provider a pod is, and whether it is on one.
func (x *chaos) at(pod *corev1.Pod) (cluster.Identity, bool) {
	i := slices.IndexFunc(x.ids, func(id cluster.Identity) bool { return pod.Spec.NodeName == "liqo-"+id.Name })
	if i < 0 {
		return cluster.Identity{}, false
	}
	return x.ids[i], true
}

// serves reports whether a pod serves, as everybody can see.
func (x *chaos) serves(pod *corev1.Pod) bool {
	id, placed := x.at(pod)
	return placed && pod.DeletionTimestamp == nil && liqo.NodeReady(x.node(id)) &&
		slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
		})
}

func (x *chaos) setReady(pod *corev1.Pod, is bool) {
	x.t.Helper()
	condition := corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionFalse}
	if is {
		condition.Status = corev1.ConditionTrue
	}
	pod.Status.Phase, pod.Status.Conditions = corev1.PodRunning, []corev1.PodCondition{condition}
	x.must(x.c.Status().Update(x.t.Context(), pod))
}

// end lets a pod go.
func (x *chaos) end(pod *corev1.Pod) {
	x.t.Helper()
	pod.Finalizers = nil
	x.must(x.c.Update(x.t.Context(), pod))
	x.must(x.c.Delete(x.t.Context(), pod))
}

// ask makes the consumer ask for a pod of a workload.
func (x *chaos) ask(workload string) {
	x.t.Helper()
	x.serial++
	shadow := liqotest.ShadowPod(namespace, fmt.Sprintf("%s-%d", workload, x.serial), map[string]string{"app": workload})
	x.must(x.c.Create(x.t.Context(), shadow))
}

// observe does what the provider controller does.
func (x *chaos) observe() {
	x.t.Helper()
	for i, id := range x.ids {
		p, node := &v1alpha1.Provider{}, x.node(id)
		if !x.get(string(id.ID), p) {
			p = x.newProvider(id)
			status := p.Status
			x.must(x.c.Create(x.t.Context(), p))
			p.Status = status
		}
		node.Spec.Taints = nil
		if p.Spec.Scheduling != v1alpha1.SchedulingActive {
			node.Spec.Taints = []corev1.Taint{{Key: "brokering.liqo.io/cordoned", Effect: corev1.TaintEffectNoSchedule}}
		}
		x.must(x.c.Update(x.t.Context(), node))
		up := liqo.NodeReady(node)
		condition := &p.Status.Conditions[0]
		condition.Status, condition.Reason = metav1.ConditionFalse, "NodeNotReady"
		switch {
		case p.Spec.Scheduling == v1alpha1.SchedulingDrained:
			condition.Reason = v1alpha1.ReasonDrained
		case up && p.Spec.Scheduling == v1alpha1.SchedulingCordoned:
			condition.Reason = v1alpha1.ReasonCordoned
		case up:
			condition.Status, condition.Reason = metav1.ConditionTrue, "Offering"
		}
		switch {
		case up:
			meta.RemoveStatusCondition(&p.Status.Conditions, v1alpha1.ConditionReachable)
		case p.UnreachableSince() == nil:
			snapshottest.Lose(p, x.clock.Now())
		}
		p.Status.LargestPod = room("100")
		if x.full[id.ID] && i%2 == 0 { // The nodes of the others are larger than what is behind them.
			p.Status.LargestPod = nil
		}
		p.Status.ObservedGeneration = p.Generation
		x.must(x.c.Status().Update(x.t.Context(), p))
	}
}

// apply does what Liqo does with an offloading.
func (x *chaos) apply() {
	o, selected := x.offloading()
	if o == nil {
		return
	}
	ns := &corev1.Namespace{}
	x.get(namespace, ns)
	on := slices.DeleteFunc(slices.Clone(x.ids), func(id cluster.Identity) bool { return !slices.Contains(selected, id.ID) })
	liqotest.PutInForce(ns, o, on...)
	x.must(errors.Join(x.c.Update(x.t.Context(), ns), x.c.Update(x.t.Context(), o)))
}

// create does what Liqo does with the pods that are asked for, and the webhooks with them.
func (x *chaos) create() {
	o, selected := x.offloading()
	if o == nil || o.Status.RemoteNamespacesConditions == nil {
		return
	}
	kinds := v09.Line{}.Kinds()
	shadows := kinds.Shadows()
	x.must(x.c.List(x.t.Context(), shadows, client.InNamespace(namespace)))
	for i := range shadows.Items {
		pod := liqotest.Pod(liqotest.ShadowPod(namespace, shadows.Items[i].Name, shadows.Items[i].Labels), "", selected...)
		if placing := v09.OffloadingOf(o).Placing; !slices.Equal(placing, selected) {
			liqo.Place(pod, placing)
		}
		x.serial++
		pod.UID = types.UID(fmt.Sprint("uid-", x.serial))
		if err := x.c.Create(x.t.Context(), pod); !apierrors.IsAlreadyExists(err) {
			x.must(err)
		}
	}
}

// schedule does what the scheduler does, with any node that fits.
func (x *chaos) schedule() {
	for _, pod := range x.pods() {
		if pod.Spec.NodeName != "" || pod.DeletionTimestamp != nil || liqo.Waits(&pod) {
			continue
		}
		fit := slices.DeleteFunc(slices.Clone(x.ids), func(id cluster.Identity) bool {
			node := x.node(id)
			return !liqo.NodeReady(node) || len(node.Spec.Taints) > 0 || x.full[id.ID] || liqo.Excludes(&pod, id.ID)
		})
		if len(fit) > 0 {
			pod.Spec.NodeName = "liqo-" + fit[x.r.IntN(len(fit))].Name
			x.must(x.c.Update(x.t.Context(), &pod))
		}
	}
}

// run does what kubelets do: some pods become ready, and what is to end ends, where the provider is reached.
func (x *chaos) run() {
	for _, pod := range x.pods() {
		id, placed := x.at(&pod)
		switch {
		case placed && !liqo.NodeReady(x.node(id)):
		case pod.DeletionTimestamp != nil:
			pod.Finalizers = nil
			x.must(x.c.Update(x.t.Context(), &pod))
		case placed && x.r.IntN(4) > 0:
			x.setReady(&pod, true)
		}
	}
}

// want changes what people want of a provider.
func (x *chaos) want(id cluster.Identity, want v1alpha1.Scheduling) {
	p := &v1alpha1.Provider{}
	if !x.get(string(id.ID), p) {
		return
	}
	p.Spec.Scheduling = want
	p.Generation++
	x.notef("%s is to be %s", id.Name, want)
	x.must(x.c.Update(x.t.Context(), p))
}

// link loses the link to a provider, or mends it.
func (x *chaos) link(id cluster.Identity, up bool) {
	node := x.node(id)
	node.Status = liqotest.VirtualNode(id, up).Status
	x.notef("link of %s: %t", id.Name, up)
	x.must(x.c.Status().Update(x.t.Context(), node))
	for _, pod := range x.pods() {
		if at, placed := x.at(&pod); placed && at == id && pod.DeletionTimestamp == nil {
			x.setReady(&pod, up)
		}
	}
}

// choose lets the policy choose some providers.
func (x *chaos) choose() {
	d := chooses()
	if !x.get("policy", &v1alpha1.PlacementPolicy{}) || !x.get(d.Name, d) {
		return
	}
	chosen := slices.DeleteFunc(slices.Clone(x.ids), func(cluster.Identity) bool { return x.r.IntN(2) == 0 })
	if len(chosen) == 0 {
		chosen = x.ids[:1]
	}
	d.Chosen = chooses(chosen...).Chosen
	x.notef("the policy chooses %v", chosen)
	x.must(x.c.Update(x.t.Context(), d))
}

// happen lets one thing happen.
func (x *chaos) happen() {
	id := x.ids[x.r.IntN(len(x.ids))]
	switch n := x.r.IntN(100); {
	case n < 14:
		x.apply()
	case n < 34:
		x.create()
	case n < 54:
		x.schedule()
	case n < 76:
		x.run()
	case n < 81:
		x.want(id, []v1alpha1.Scheduling{v1alpha1.SchedulingActive, v1alpha1.SchedulingCordoned, v1alpha1.SchedulingDrained}[x.r.IntN(3)])
	case n < 84: // Somebody deletes the record of a provider.
		x.notef("%s is deleted", id.Name)
		x.must(x.c.Delete(x.t.Context(), &v1alpha1.Provider{ObjectMeta: metav1.ObjectMeta{Name: string(id.ID)}}))
	case n < 88:
		x.link(id, !liqo.NodeReady(x.node(id)))
	case n < 91:
		x.choose()
	case n < 94: // A pod crashes.
		for _, pod := range x.pods() {
			if x.serves(&pod) && x.r.IntN(4) == 0 {
				x.notef("%s crashes", pod.Name)
				x.setReady(&pod, false)
			}
		}
	case n < 96:
		x.ask(fmt.Sprint("w", x.r.IntN(3)))
	case n < 98:
		x.full[id.ID] = !x.full[id.ID]
	case n == 98 && x.asked:
		x.tell()
	default:
		x.notef("the broker restarts")
		x.twin.planner = planning.NewPlanner(record.NewFakeRecorder(100_000), x.clock, x.views)
	}
}

// tell has the consumer reach other providers, or fall silent.
func (x *chaos) tell() {
	silent := x.r.IntN(3) == 0
	for _, id := range x.ids {
		x.reached[id.ID] = !silent && x.r.IntN(2) == 0
	}
	x.notef("the consumer reaches %v", x.reached)
}

// checkPlaced fails if new pods go where the consumer does not reach them.
func (x *chaos) checkPlaced() {
	x.t.Helper()
	o, _ := x.offloading()
	if o == nil || !x.asked || x.stale != nil {
		return
	}
	for _, id := range v09.OffloadingOf(o).Placing {
		if !x.reached[id] {
			x.t.Fatalf("new pods go to %s, which the consumer does not reach\n%s", id, x.story())
		}
	}
}

// evict does what Liqo does when a provider is no longer selected: what runs there goes at once.
func (x *chaos) evict() (evicted []string) {
	o, selected := x.offloading()
	if o == nil {
		return nil
	}
	for _, pod := range x.pods() {
		if id, placed := x.at(&pod); placed && !slices.Contains(selected, id.ID) {
			evicted = append(evicted, pod.Name)
			x.end(&pod)
		}
	}
	return evicted
}

// serving returns the pods of each workload that serve.
func (x *chaos) serving() map[string][]string {
	serving := map[string][]string{}
	for _, pod := range x.pods() {
		if workload, _, _ := strings.Cut(pod.Name, "-"); x.serves(&pod) {
			serving[workload] = append(serving[workload], pod.Name)
		}
	}
	return serving
}

// reconcile lets the broker act, and fails if no pod of a workload serves any more because of that. A cache that is behind can
// make it recreate a pod that was the last one; it never makes Liqo evict any.
func (x *chaos) reconcile() {
	x.t.Helper()
	x.evict() // What the scheduler has bound in the moment in which a provider was no longer selected.
	before := x.serving()
	x.deleted = nil
	_, err := x.twin.Reconcile(x.t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: namespace}})
	if err != nil && !apierrors.IsConflict(err) {
		x.t.Fatalf("Reconcile(): %v\n%s", err, x.story())
	}
	if err == nil {
		x.checkPlaced()
	}
	evicted := x.evict()
	if len(x.deleted)+len(evicted) > 0 {
		_, selected := x.offloading()
		x.notef("deleted %v, evicted by Liqo %v, selected %v", x.deleted, evicted, selected)
	}
	after := x.serving()
	for workload, pods := range before {
		if len(after[workload]) == 0 && (x.stale == nil || len(evicted) > 0) {
			x.t.Fatalf("of %s only %v served, and nothing does: the cache is behind: %t\n%s", workload, pods, x.stale != nil, x.story())
		}
	}
}

// rest mends everything, but leaves all providers but one full that are. It fails unless the broker comes to rest, and no pod waits
// that may go to any provider.
func (x *chaos) rest() {
	x.t.Helper()
	x.full[x.ids[x.r.IntN(len(x.ids))].ID] = false
	for _, id := range x.ids {
		x.reached[id.ID] = true
		if x.link(id, true); x.newest(id).Spec.Scheduling != v1alpha1.SchedulingActive {
			x.want(id, v1alpha1.SchedulingActive)
		}
	}
	quiet := 0
	for round := 0; quiet < 5; round++ {
		if round == 200 {
			x.t.Fatalf("it does not come to rest\n%s", x.story())
		}
		x.observe()
		for _, step := range []func(){x.apply, x.create, x.schedule, x.run} {
			step()
		}
		o, _ := x.offloading()
		x.clock.Step(10 * time.Second)
		x.reconcile()
		quiet++
		if now, _ := x.offloading(); len(x.deleted) > 0 || o == nil || now.ResourceVersion != o.ResourceVersion {
			quiet = 0
		}
	}
	for _, pod := range x.pods() {
		if !x.get("policy", &v1alpha1.PlacementPolicy{}) && pod.Spec.NodeName == "" {
			x.t.Errorf("%s waits, and one provider takes it\n%s", pod.Name, x.story())
		}
	}
}

func (x *chaos) newest(id cluster.Identity) *v1alpha1.Provider {
	x.observe()
	p := &v1alpha1.Provider{}
	x.get(string(id.ID), p)
	return p
}

// TestChaos looks at random worlds: the broker never takes the last pod of a workload that serves, and comes to rest when the world
// does.
func TestChaos(t *testing.T) {
	ctrl.SetLogger(logr.Discard())
	worlds.Run(t, func(t *testing.T, seed uint64) {
		x := newChaos(t, seed)
		for range 60 {
			if x.r.IntN(3) == 0 { // The cache does not see what happens in this round.
				x.stale = &corev1.PodList{Items: x.pods()}
			}
			things := x.r.IntN(4)
			if x.stale != nil {
				things *= 4
			}
			for range things {
				x.happen()
			}
			if x.r.IntN(3) > 0 {
				x.observe()
			}
			for range 1 + x.r.IntN(3) {
				x.reconcile()
				x.clock.Step(time.Duration(x.r.IntN(2000)) * time.Millisecond)
			}
			x.stale = nil
			x.clock.Step(time.Duration(x.r.IntN(8)) * time.Second)
		}
		x.rest()
	})
}
