// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package remotepods decides how the pods that run in a foreign cluster are shown in this one, and
// which of the node's pods are run at all. It does not know how addresses are translated.
package remotepods

import (
	"sync"

	"github.com/liqotech/liqo/pkg/virtualKubelet/reflection/manager"
	"github.com/liqotech/liqo/pkg/virtualKubelet/reflection/options"
	corev1 "k8s.io/api/core/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	corev1listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/capacitorset/liqo-broker/pkg/core/podstate"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
)

// Pods is a reflector of pods that looks at the remote pods before Liqo's
// reflector sees them: it hides that a pod is being moved, and notes which pod has
// which address. It may be used concurrently.
type Pods struct {
	manager.Reflector

	// hold and release note the address of a pod, and that it is gone.
	hold    func(pod, address string)
	release func(pod string)

	// node is the virtual node; those of other nodes have pods in the same namespaces.
	node string

	mu sync.Mutex
	// held are the pods of each remote namespace.
	held map[string]map[string]remotePod
}

// remotePod is what is remembered of a remote pod.
type remotePod struct {
	address string
	// own tells that the pod is on the virtual node, and has not ended: one that has ended
	// serves nobody, and its object stays until somebody deletes it.
	own bool
}

// New returns a reflector that reflects the pods of a virtual node as another one does.
// It calls hold with the UID and the address of each remote pod, empty if it has none, before
// the other one sees the pod, and release with the UID when the pod is gone; neither may block.
func New(reflector manager.Reflector, node string, hold func(pod, address string), release func(pod string)) *Pods {
	return &Pods{Reflector: reflector, node: node, hold: hold, release: release, held: map[string]map[string]remotePod{}}
}

// StartNamespace begins the reflection of a namespace.
func (r *Pods) StartNamespace(opts *options.NamespacedOpts) {
	informer := opts.RemoteFactory.Core().V1().Pods().Informer()
	locals := opts.LocalFactory.Core().V1().Pods().Lister().Pods(opts.LocalNamespace)
	// Both fail only for an informer that runs already, and this one is made here.
	utilruntime.Must(informer.SetTransform(func(object any) (any, error) {
		if pod, ok := object.(*corev1.Pod); ok {
			return r.show(pod, leaves(locals, pod.Name)), nil
		}
		return object, nil
	}))
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{UpdateFunc: func(before, after any) {
		// Of a pod that was replaced while nobody watched, no end is told.
		pod, ok := before.(*corev1.Pod)
		if now, is := after.(*corev1.Pod); ok && is && now.UID != pod.UID {
			r.gone(pod)
		}
	}, DeleteFunc: func(object any) {
		if unknown, ok := object.(cache.DeletedFinalStateUnknown); ok {
			object = unknown.Obj
		}
		if pod, ok := object.(*corev1.Pod); ok {
			r.gone(pod)
		}
	}})
	utilruntime.Must(err)
	r.Reflector.StartNamespace(opts)
}

// StopNamespace ends the reflection of a namespace, and forgets its pods.
func (r *Pods) StopNamespace(local, remote string) {
	r.Reflector.StopNamespace(local, remote)
	r.mu.Lock()
	defer r.mu.Unlock()
	for pod := range r.held[remote] {
		r.release(pod)
	}
	delete(r.held, remote)
}

// show returns the pod as Liqo's reflector is to see it. A pod that is being moved has not
// ended; one that leaves, because the local pod is deleted, ends as it ends.
func (r *Pods) show(pod *corev1.Pod, leaves bool) *corev1.Pod {
	pod = withoutLostAddress(pod)
	if !leaves {
		pod = podstate.Relocating(pod, nil)
	}
	r.seen(pod)
	return pod
}

// leaves reports whether a local pod is deleted for good. A broker's own pod, which Liqo makes for
// a ShadowPod, is deleted when it is moved as well.
func leaves(locals corev1listers.PodNamespaceLister, name string) bool {
	local, err := locals.Get(name)
	return err == nil && local.DeletionTimestamp != nil && local.Labels[liqo.LabelManagedBy] != liqo.ManagedByShadowPod
}

// withoutLostAddress returns a pod that has ended without its address, which may be another
// pod's by now: nobody translates it any more, and the end of the pod must not wait for
// that. Other pods are returned as they are.
func withoutLostAddress(pod *corev1.Pod) *corev1.Pod {
	if !podstate.Ended(pod) {
		return pod
	}
	pod = pod.DeepCopy()
	pod.Status.PodIP, pod.Status.PodIPs = "", nil
	return pod
}

// seen notes the address of a pod before anybody translates it.
func (r *Pods) seen(pod *corev1.Pod) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.held[pod.Namespace] == nil {
		r.held[pod.Namespace] = map[string]remotePod{}
	}
	r.held[pod.Namespace][string(pod.UID)] = remotePod{pod.Status.PodIP, liqo.OriginNode(pod) == r.node && !podstate.Ended(pod)}
	r.hold(string(pod.UID), pod.Status.PodIP)
}

// gone forgets a pod.
func (r *Pods) gone(pod *corev1.Pod) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.held[pod.Namespace], string(pod.UID))
	r.release(string(pod.UID))
}

// AnyAt reports whether an address of any of the virtual node's own pods that have not ended is one of those.
func (r *Pods) AnyAt(those func(address string) bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, pods := range r.held {
		for _, pod := range pods {
			if pod.own && those(pod.address) {
				return true
			}
		}
	}
	return false
}
