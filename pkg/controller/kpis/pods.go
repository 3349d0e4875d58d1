// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package kpis

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/capacitorset/liqo-broker/pkg/core/kpi"
	"github.com/capacitorset/liqo-broker/pkg/core/podstate"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/snapshot"
)

// ownDoing are the reasons of failed pods that are not the provider's: the pod ran for
// longer than its owner allows, or was never offloaded. A pod without a reason ended by
// what its program did.
var ownDoing = map[string]bool{"": true, "DeadlineExceeded": true, liqo.ReasonOffloadingAborted: true}

// podWatcher sees what becomes of the pods on the providers. All times are by the clock
// of the broker: those in the pods are by the clocks of the providers. What it does not
// see, because the broker does not run, does not count.
type podWatcher struct {
	objects client.Reader
	reader  *snapshot.Reader
	clock   clock.PassiveClock

	mu sync.Mutex
	// bound are the pods that are bound and not ready yet, and since when.
	bound map[types.UID]time.Time
	// seen is what became of pods, by provider, and is not written down yet.
	seen map[string][]kpi.PodSeen
}

func newPodWatcher(objects client.Reader, r *snapshot.Reader, clock clock.PassiveClock) *podWatcher {
	return &podWatcher{objects: objects, reader: r, clock: clock, bound: map[types.UID]time.Time{}, seen: map[string][]kpi.PodSeen{}}
}

// handler watches, and asks for no reconciliation: KPIs are written once a minute.
func (w *podWatcher) handler() handler.EventHandler {
	return handler.Funcs{
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, _ workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			w.update(ctx, e.ObjectOld.(*corev1.Pod), e.ObjectNew.(*corev1.Pod))
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, _ workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			w.mu.Lock()
			defer w.mu.Unlock()
			delete(w.bound, e.Object.GetUID())
		},
	}
}

// update notes what an update of a pod tells.
func (w *podWatcher) update(ctx context.Context, before, after *corev1.Pod) {
	now := w.clock.Now()
	w.mu.Lock()
	if before.Spec.NodeName == "" && after.Spec.NodeName != "" {
		w.bound[after.UID] = now
	}
	since, starting := w.bound[after.UID]
	seen := kpi.PodSeen{At: now}
	var note bool
	switch failed := after.Status.Phase == corev1.PodFailed; {
	case after.Spec.NodeName == "":
	case failed && before.Status.Phase != corev1.PodFailed:
		seen.Failed = !ownDoing[after.Status.Reason]
		note = seen.Failed || starting
	case starting && after.Status.Phase == corev1.PodSucceeded:
		note = true
	case starting && podstate.Ready(after):
		seen.Startup, note = now.Sub(since), true
	}
	if note {
		delete(w.bound, after.UID)
	}
	w.mu.Unlock()
	if note {
		w.note(ctx, after, seen)
	}
}

// note remembers what became of a pod, for its provider and its consumer.
func (w *podWatcher) note(ctx context.Context, pod *corev1.Pod, seen kpi.PodSeen) {
	var node corev1.Node
	var namespace corev1.Namespace
	if w.objects.Get(ctx, client.ObjectKey{Name: pod.Spec.NodeName}, &node) != nil ||
		w.objects.Get(ctx, client.ObjectKey{Name: pod.Namespace}, &namespace) != nil {
		return // Gone, or not of a consumer.
	}
	provider, err := w.reader.ClusterOf(ctx, &node)
	consumer, twin := liqo.TwinOf(&namespace)
	if err != nil || provider == "" || !twin {
		return
	}
	seen.Consumer = string(consumer)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen[string(provider)] = append(w.seen[string(provider)], seen)
}

// of returns what was seen of the pods on a provider and is not written down.
func (w *podWatcher) of(provider string) []kpi.PodSeen {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.seen[provider]
}

// written forgets the first of what was seen, which is in a status.
func (w *podWatcher) written(provider string, n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.seen[provider] = w.seen[provider][n:]; len(w.seen[provider]) == 0 {
		delete(w.seen, provider)
	}
}
