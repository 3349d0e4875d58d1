// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package together

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/liqo"

	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
	"github.com/capacitorset/liqo-broker/test/worlds/apiserver"
)

// judge remembers what the broker is judged by.
type judge struct {
	// removedByBroker are the pods that the broker deleted.
	removedByBroker map[types.UID]bool
	// boundNow are the pods that were bound since the present reconcile began, and silentNow the nodes that were silent.
	boundNow  map[types.UID]bool
	silentNow map[string]bool
	// stuckSince tells since when pods wait.
	stuckSince map[types.UID]time.Time

	moved, replaced, given int
}

func newJudge() judge {
	return judge{
		removedByBroker: map[types.UID]bool{}, boundNow: map[types.UID]bool{}, silentNow: map[string]bool{},
		stuckSince: map[types.UID]time.Time{},
	}
}

// begin is called before a reconcile that is within no other.
func (w *world) begin() {
	clear(w.boundNow)
	clear(w.silentNow)
	for _, p := range w.providers {
		w.silenced(w.node(p))
	}
}

func (w *world) bound(pod *corev1.Pod) { w.boundNow[pod.UID] = true }

func (w *world) silenced(node *corev1.Node) {
	if liqo.NodeReadiness(node) == corev1.ConditionFalse {
		w.silentNow[node.Name] = true
	}
}

// waitsSince remembers since when a pod waits, and reports whether that is new.
func (w *world) waitsSince(pod *corev1.Pod, now time.Time) bool {
	if _, known := w.stuckSince[pod.UID]; known {
		return false
	}
	w.stuckSince[pod.UID] = now
	return true
}

func isReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// serves reports whether a pod serves. One does whose node nobody reports on.
func (w *world) serves(pod *corev1.Pod) bool {
	p, placed := w.at(pod)
	return placed && pod.DeletionTimestamp == nil && isReady(pod) && liqo.NodeReadiness(w.node(p)) != corev1.ConditionFalse
}

// servedIn returns the pods of a workload that serve, as a cache has it.
func (w *world) servedIn(c *apiserver.Cache, workload string) (uids []types.UID) {
	for _, o := range c.All(&corev1.Pod{}) {
		pod := o.(*corev1.Pod)
		node, _ := c.Seen(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: pod.Spec.NodeName}}).(*corev1.Node)
		if workloadOf(pod) == workload && pod.DeletionTimestamp == nil && isReady(pod) && node != nil &&
			liqo.NodeReadiness(node) != corev1.ConditionFalse {
			uids = append(uids, pod.UID)
		}
	}
	return uids
}

// removed judges that the broker deleted a pod. It must not be the last of its workload that serves, as far as the broker could
// know: others served in its cache, and have ceased to in another way than by the broker.
func (w *world) removed(c *brokerClient, pod *corev1.Pod, served, forced bool) {
	w.t.Helper()
	w.notef("%s deletes %s/%s on %q, served: %t, forced: %t", c.process.name, pod.Namespace, pod.Name, pod.Spec.NodeName, served, forced)
	w.moved++
	if forced {
		w.replaced++
		if !w.silentNow[pod.Spec.NodeName] {
			w.failf("%s/%s is replaced, and its node was never silent since the broker began to look", pod.Namespace, pod.Name)
		}
	}
	w.removedByBroker[pod.UID] = true
	if !served {
		return
	}
	workload := workloadOf(pod)
	for _, other := range w.pods(pod.Namespace) {
		if workloadOf(&other) == workload && other.UID != pod.UID && w.serves(&other) {
			return
		}
	}
	known := w.servedIn(c.controller.cache, workload)
	if !slices.Contains(known, pod.UID) {
		return // It began to serve in the last moment.
	}
	for _, uid := range known {
		if uid != pod.UID && !w.removedByBroker[uid] {
			return // It ceased to serve in the last moment.
		}
	}
	w.failf("%s/%s was the last pod that served of its workload; in the cache these served: %v", pod.Namespace, pod.Name, known)
}

// wrote judges other writes of the broker.
func (w *world) wrote(c *brokerClient, o client.Object) {
	w.t.Helper()
	switch o := o.(type) {
	case *v09.NamespaceOffloading:
		w.notef("%s selects %v in %s, and places on %v", c.process.name, v09.OffloadingOf(o).Selected, o.Namespace, v09.OffloadingOf(o).Placing)
		w.evict(c, o)
	case *corev1.Pod:
		w.givenBack(o)
	}
}

// offered judges what a consumer is to be offered: no less than it uses and, but for that, no more than the providers have, as far as
// the broker knows.
func (w *world) offered(c *brokerClient, consumer *v1alpha1.Consumer) {
	w.t.Helper()
	var has int64
	for _, o := range c.cache.All(&v1alpha1.Provider{}) {
		if p := o.(*v1alpha1.Provider); p.Spec.Scheduling != v1alpha1.SchedulingDrained {
			has += p.Status.Offered.Cpu().Value()
		}
	}
	offered, used := consumer.Status.Offered.Cpu().Value(), consumer.Status.Used.Cpu().Value()
	if offered < used || offered > max(used, has) {
		w.failf("%s is offered %d and uses %d, and the providers have %d", consumer.Name, offered, used, has)
	}
}

// evict does what Liqo does when a provider is no longer selected: what runs there goes at once. Nothing does, unless it was bound
// in the last moment.
func (w *world) evict(c *brokerClient, o *v09.NamespaceOffloading) {
	w.t.Helper()
	selected := v09.OffloadingOf(o).Selected
	for _, pod := range w.pods(o.Namespace) {
		p, placed := w.at(&pod)
		if !placed || slices.Contains(selected, p.ID) {
			continue
		}
		if !w.boundNow[pod.UID] && w.serves(&pod) && w.wanted(&pod) {
			known, _ := c.cache.Seen(&pod).(*corev1.Pod)
			wish := c.cache.Seen(&v09.ShadowPod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}})
			w.failf("Liqo evicts %s/%s, because %s is no longer selected; in the cache the pod is there: %t, and so is the wish for it: %t",
				pod.Namespace, pod.Name, p.Name, known != nil && known.UID == pod.UID && known.Spec.NodeName == pod.Spec.NodeName, wish != nil)
		}
		w.notef("Liqo evicts %s/%s", pod.Namespace, pod.Name)
		w.server.Drop(&pod)
	}
}

// wanted reports whether the consumer still asks for a pod.
func (w *world) wanted(pod *corev1.Pod) bool {
	return w.get(pod.Namespace, pod.Name, &v09.ShadowPod{})
}

// givenBack judges that the broker ended a pod.
func (w *world) givenBack(pod *corev1.Pod) {
	w.t.Helper()
	w.given++
	since, stuck := w.stuckSince[pod.UID]
	waited := time.Since(since)
	w.notef("%s/%s is given back after %s", pod.Namespace, pod.Name, waited)
	switch {
	case pod.Spec.NodeName != "":
		w.failf("%s/%s is given back, and is bound", pod.Namespace, pod.Name)
	case !stuck || waited < giveBackAfter-time.Second: // Conditions have whole seconds.
		w.failf("%s/%s is given back after %s", pod.Namespace, pod.Name, waited)
	case pod.Labels["pod-template-hash"] == "":
		w.failf("%s/%s is given back, and nothing makes another one", pod.Namespace, pod.Name)
	}
}
