// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package together

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/controller/quota"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v09/liqotest"
)

// event is something that happens in a world, one time or another.
type event struct {
	often int
	do    func(namespace string, p cluster.Identity)
}

// events returns what happens in a world: some of it often, some never, so that worlds differ.
func (w *world) events() []event {
	always := func(do func()) func(string, cluster.Identity) { return func(string, cluster.Identity) { do() } }
	of := func(do func(namespace string)) func(string, cluster.Identity) {
		return func(namespace string, _ cluster.Identity) { do(namespace) }
	}
	on := func(do func(p cluster.Identity)) func(string, cluster.Identity) {
		return func(_ string, p cluster.Identity) { do(p) }
	}
	states := []corev1.ConditionStatus{
		corev1.ConditionTrue, corev1.ConditionTrue, corev1.ConditionFalse, corev1.ConditionFalse, corev1.ConditionUnknown,
	}
	usual := []event{{12, of(w.apply)}, {18, of(w.makePods)}, {18, always(w.schedule)}, {20, always(w.runPods)}, {5, always(w.replaceGiven)}}
	seldom := []event{
		{4, on(w.decide)},
		{4, on(func(p cluster.Identity) { w.setNode(p, states[w.r.IntN(len(states))]) })},
		{3, on(func(p cluster.Identity) { w.resize(p, []string{"0", "3", large}[w.r.IntN(3)]) })},
		{3, on(func(p cluster.Identity) { w.relabel(p, []string{"a", "b"}[w.r.IntN(2)]) })},
		{2, always(w.decree)},
		{3, always(w.crash)},
		{4, of(w.scale)},
		{3, w.meddle},
	}
	for i := range seldom {
		seldom[i].often *= w.r.IntN(4)
	}
	return append(usual, seldom...)
}

// happen lets one thing happen that is not the broker.
func (w *world) happen() {
	w.webhook.Follow(w.r, w.late)
	all := 0
	for _, e := range w.habits {
		all += e.often
	}
	n := w.r.IntN(all)
	for _, e := range w.habits {
		if n -= e.often; n < 0 {
			e.do(w.namespaces[w.r.IntN(len(w.namespaces))], w.providers[w.r.IntN(len(w.providers))])
			return
		}
	}
}

// apply does what Liqo does with an offloading.
func (w *world) apply(namespace string) {
	o, selected := w.offloading(namespace)
	if o == nil {
		return
	}
	ns := &corev1.Namespace{}
	w.get("", namespace, ns)
	on := slices.DeleteFunc(slices.Clone(w.providers), func(p cluster.Identity) bool { return !slices.Contains(selected, p.ID) })
	liqotest.PutInForce(ns, o, on...)
	w.update(ns)
	w.updateStatus(o)
}

// makePods does what Liqo does with the pods that are asked for, and the broker's webhook, which may not have seen the last word.
func (w *world) makePods(namespace string) {
	o, _ := w.offloading(namespace)
	ns := &corev1.Namespace{}
	w.get("", namespace, ns)
	known := &v09.NamespaceOffloading{}
	steered := w.webhook.Get(w.t.Context(), client.ObjectKey{Namespace: namespace, Name: liqo.OffloadingName}, known) == nil
	for _, wish := range w.shadows(namespace) {
		pod := liqotest.Pod(liqotest.ShadowPod(namespace, wish.Name, wish.Labels), "")
		like := waiting(namespace, "w0", 0)
		pod.UID, pod.Spec.Containers = "", like.Spec.Containers
		if !steered {
			liqo.Place(pod, nil)
		} else {
			liqo.Hold(pod)
			liqo.Admit(pod)
			seen := v09.OffloadingOf(known)
			liqo.Place(pod, seen.Selected)
			if !slices.Equal(seen.Placing, seen.Selected) {
				liqo.Place(pod, seen.Placing)
			}
		}
		if o != nil {
			if is := v09.OffloadingOf(o); is.InForce(ns) {
				liqo.Place(pod, is.Selected) // Liqo's own webhook.
			}
		}
		w.create(pod)
	}
}

// schedule does what the scheduler does, with any node that fits.
func (w *world) schedule() {
	all := w.pods("")
	used := map[string]int64{}
	for i := range all {
		used[all[i].Spec.NodeName]++
	}
	for i := range all {
		pod := &all[i]
		if pod.Spec.NodeName != "" || pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodFailed {
			continue
		}
		fit := slices.DeleteFunc(slices.Clone(w.providers), func(p cluster.Identity) bool {
			node := w.node(p)
			closed := slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == liqo.TaintCordoned })
			return !liqo.NodeReady(node) || closed || liqo.Excludes(pod, p.ID) || liqo.Waits(pod) ||
				used[node.Name] >= node.Status.Allocatable.Cpu().Value()
		})
		condition := corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()}
		if len(fit) == 0 {
			condition.Status, condition.Reason, condition.Message = corev1.ConditionFalse, corev1.PodReasonUnschedulable, "0 nodes are available"
			if w.waitsSince(pod, condition.LastTransitionTime.Time) {
				pod.Status.Conditions = []corev1.PodCondition{condition}
				w.updateStatus(pod)
			}
			continue
		}
		p := fit[w.r.IntN(len(fit))]
		pod.Spec.NodeName = nodeOf(p)
		w.update(pod)
		pod.Status.Conditions = []corev1.PodCondition{condition}
		w.updateStatus(pod)
		used[pod.Spec.NodeName]++
		w.bound(pod)
	}
}

// runPods does what kubelets do: some pods become ready, and what is to end ends, where the provider is reached.
func (w *world) runPods() {
	for _, pod := range w.pods("") {
		p, placed := w.at(&pod)
		switch {
		case !placed || !liqo.NodeReady(w.node(p)):
		case pod.DeletionTimestamp != nil:
			w.server.Drop(&pod)
		case w.mended || w.r.IntN(4) > 0:
			w.start(&pod, p)
		}
	}
}

// start lets a pod serve, if its provider has the namespace.
func (w *world) start(pod *corev1.Pod, p cluster.Identity) {
	if _, selected := w.offloading(pod.Namespace); slices.Contains(selected, p.ID) {
		w.setReady(pod, corev1.ConditionTrue)
	}
}

func (w *world) setReady(pod *corev1.Pod, is corev1.ConditionStatus) {
	if isReady(pod) == (is == corev1.ConditionTrue) && pod.Status.Phase == corev1.PodRunning {
		return
	}
	pod.Status.Phase = corev1.PodRunning
	pod.Status.Conditions = slices.DeleteFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodReady })
	pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: corev1.PodReady, Status: is})
	w.updateStatus(pod)
}

// replaceGiven does what consumers do with pods that were given back.
func (w *world) replaceGiven() {
	for _, pod := range w.pods("") {
		if pod.Status.Reason != liqo.ReasonOffloadingAborted {
			continue
		}
		w.server.Drop(&pod)
		wish := &v09.ShadowPod{}
		if w.get(pod.Namespace, pod.Name, wish) {
			w.server.Drop(wish)
			w.ask(pod.Namespace, wish.Labels["app"])
		}
	}
}

// decide changes what people want of a provider.
func (w *world) decide(p cluster.Identity) {
	object := &v1alpha1.Provider{}
	if w.get("", string(p.ID), object) {
		object.Spec.Scheduling = []v1alpha1.Scheduling{v1alpha1.SchedulingActive, v1alpha1.SchedulingCordoned,
			v1alpha1.SchedulingDrained}[w.r.IntN(3)]
		w.notef("%s is to be %s", p.Name, object.Spec.Scheduling)
		w.update(object)
	}
}

// setNode loses the link to a provider, or mends it, or lets nobody report: the pods serve then, and nobody knows.
func (w *world) setNode(p cluster.Identity, is corev1.ConditionStatus) {
	node := w.node(p)
	if liqo.NodeReadiness(node) == is {
		return
	}
	w.notef("node of %s: %s", p.Name, is)
	node.Status.Conditions[0].Status, node.Status.Conditions[0].LastTransitionTime = is, metav1.Now()
	w.updateStatus(node)
	w.silenced(node)
	for _, pod := range w.pods("") {
		switch at, placed := w.at(&pod); {
		case !placed || at != p || pod.DeletionTimestamp != nil:
		case is == corev1.ConditionTrue:
			w.start(&pod, p)
		case is == corev1.ConditionFalse:
			w.setReady(&pod, is)
		}
	}
}

// resize changes what a provider offers.
func (w *world) resize(p cluster.Identity, cpu string) {
	o, node := &v09.ResourceOffer{}, w.node(p)
	w.get(liqotest.Tenant(p), p.Name, o)
	o.Spec.ResourceQuota.Hard, node.Status.Allocatable = amount(cpu), amount(cpu)
	w.notef("%s offers %s", p.Name, cpu)
	w.update(o)
	w.updateStatus(node)
}

// relabel lets people say where a provider is.
func (w *world) relabel(p cluster.Identity, at string) {
	object := &v1alpha1.Provider{}
	if w.get("", string(p.ID), object) {
		object.Labels = map[string]string{zone: at}
		w.notef("%s is in zone %s", p.Name, at)
		w.update(object)
	}
}

// crash lets some pods stop to serve.
func (w *world) crash() {
	for _, pod := range w.pods("") {
		if w.serves(&pod) && w.r.IntN(6) == 0 {
			w.notef("%s/%s crashes", pod.Namespace, pod.Name)
			w.setReady(&pod, corev1.ConditionFalse)
		}
	}
}

// scale lets a consumer ask for one more pod, or one less.
func (w *world) scale(namespace string) {
	wishes := w.shadows(namespace)
	if w.r.IntN(2) == 0 || len(wishes) == 0 {
		w.ask(namespace, fmt.Sprint("w", w.r.IntN(3)))
		return
	}
	wish := wishes[w.r.IntN(len(wishes))]
	shadow, pod := &v09.ShadowPod{}, &corev1.Pod{}
	w.get(namespace, wish.Name, shadow)
	w.notef("%s/%s is not wanted any more", namespace, wish.Name)
	w.server.Drop(shadow)
	if w.get(namespace, wish.Name, pod) {
		w.must(w.server.Delete(pod, pod.Spec.NodeName != "", &client.DeleteOptions{}))
	}
}

// meddle lets somebody remove or change what is the broker's.
func (w *world) meddle(namespace string, p cluster.Identity) {
	var o client.Object
	decision := &v1alpha1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.DecisionName(policyName, string(w.consumers[0].ID))}}
	switch w.r.IntN(6) {
	case 0:
		o = &v1alpha1.Provider{ObjectMeta: metav1.ObjectMeta{Name: string(p.ID)}}
	case 1:
		o = &v1alpha1.Consumer{ObjectMeta: metav1.ObjectMeta{Name: string(w.consumers[0].ID)}}
	case 2:
		o = &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: quota.Name}}
	case 3:
		o = decision
	case 4:
		if w.get("", decision.Name, decision) {
			w.notef("somebody chooses %s", p.ID)
			decision.Chosen = []v1alpha1.ChosenProvider{{ID: string(p.ID)}}
			w.update(decision)
		}
		return
	default:
		bounds := &corev1.ResourceQuota{}
		if w.get(namespace, quota.Name, bounds) {
			bounds.Annotations, bounds.Spec.Hard = nil, nil
			w.update(bounds)
		}
		return
	}
	w.notef("somebody deletes %T %s", o, o.GetName())
	w.server.Drop(o)
}

// meanwhile lets the world go on while a controller does, and perhaps another replica take over.
func (w *world) meanwhile(p *process) {
	if w.mended || w.depth > 1 || w.r.IntN(4) > 0 {
		return
	}
	w.depth++
	defer func() { w.depth-- }()
	for range w.r.IntN(3) {
		w.happen()
	}
	if p != w.leader || w.r.IntN(8) > 0 {
		return
	}
	w.notef("%s takes over from %s, which goes on", w.standby.name, p.name)
	w.leader, w.standby = w.standby, w.newProcess()
	for range 1 + w.r.IntN(6) {
		w.act(w.leader)
	}
	p.left = min(p.left, 6) // It goes when it knows.
}
