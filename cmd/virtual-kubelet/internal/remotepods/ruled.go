// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package remotepods

import (
	"context"
	"errors"
	"sync"
	"time"

	vkv1alpha1 "github.com/liqotech/liqo/apis/virtualkubelet/v1alpha1"
	vkclient "github.com/liqotech/liqo/pkg/client/clientset/versioned/typed/virtualkubelet/v1alpha1"
	vklisters "github.com/liqotech/liqo/pkg/client/listers/virtualkubelet/v1alpha1"
	"github.com/liqotech/liqo/pkg/consts"
	"github.com/liqotech/liqo/pkg/virtualKubelet/forge"
	"github.com/liqotech/liqo/pkg/virtualKubelet/reflection/generic"
	"github.com/liqotech/liqo/pkg/virtualKubelet/reflection/manager"
	"github.com/liqotech/liqo/pkg/virtualKubelet/reflection/options"
	"github.com/liqotech/liqo/pkg/virtualKubelet/reflection/workload"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	corev1listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/record"

	"github.com/capacitorset/liqo-broker/pkg/core/podstate"
)

// ruledPods is Liqo's reflector of pods, and what a kubelet decides about the pods of its
// node besides running them, which Liqo leaves out: it refuses those whose host ports
// others have, ends those whose deadline has passed, makes none again that has ended, and
// says of ephemeral containers that they do not start.
type ruledPods struct {
	manager.Reflector

	// pods are the pods of this cluster on the virtual node.
	pods     corev1listers.PodLister
	ports    hostPorts
	alarms   alarms
	debugged debugged
}

// NewRuled makes a reflector of pods without workers one that is ruled and has some, and
// returns it. Others use the one that is given for exec and logs.
func NewRuled(pods *workload.PodReflector, workers uint) manager.Reflector {
	r := &ruledPods{Reflector: pods}
	// As workload.NewPodReflector does.
	pods.Reflector = generic.NewReflector(workload.PodReflectorName, r.namespaced(pods.NewNamespaced), pods.NewFallback,
		workers, consts.CustomLiqo, generic.ConcurrencyModeAll)
	return r
}

// Start begins the reflection.
func (r *ruledPods) Start(ctx context.Context, opts *options.ReflectorOpts) {
	r.pods = opts.LocalPodInformer.Lister()
	r.Reflector.Start(ctx, opts)
}

// StopNamespace ends the reflection of a namespace.
func (r *ruledPods) StopNamespace(local, remote string) {
	r.alarms.clearNamespace(local)
	r.debugged.forget(func(pod types.NamespacedName) bool { return pod.Namespace == local })
	r.Reflector.StopNamespace(local, remote)
}

// namespaced rules what reflects the pods of a namespace.
func (r *ruledPods) namespaced(inner generic.NamespacedReflectorFactoryFunc) generic.NamespacedReflectorFactoryFunc {
	return func(opts *options.NamespacedOpts) manager.NamespacedReflector {
		queue := opts.HandlerFactory(generic.NamespacedKeyer(opts.LocalNamespace))
		return &ruledNamespace{
			NamespacedReflector: inner(opts),
			rules:               r,
			namespace:           opts.LocalNamespace,
			local:               r.pods.Pods(opts.LocalNamespace),
			remote:              opts.RemoteFactory.Core().V1().Pods().Lister().Pods(opts.RemoteNamespace),
			shadows:             opts.RemoteLiqoFactory.Virtualkubelet().V1alpha1().ShadowPods().Lister().ShadowPods(opts.RemoteNamespace),
			localPods:           opts.LocalClient.CoreV1().Pods(opts.LocalNamespace),
			remotePods:          opts.RemoteClient.CoreV1().Pods(opts.RemoteNamespace),
			shadowPods:          opts.RemoteLiqoClient.VirtualkubeletV1alpha1().ShadowPods(opts.RemoteNamespace),
			events:              opts.EventBroadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "liqo-pod-reflection"}),
			again: func(name string) {
				queue.OnUpdate(nil, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: opts.LocalNamespace, Name: name}})
			},
		}
	}
}

// ruledNamespace rules the pods of one namespace.
type ruledNamespace struct {
	manager.NamespacedReflector

	rules     *ruledPods
	namespace string
	local     corev1listers.PodNamespaceLister
	remote    corev1listers.PodNamespaceLister
	shadows   vklisters.ShadowPodNamespaceLister

	localPods, remotePods typedcorev1.PodInterface
	shadowPods            vkclient.ShadowPodInterface
	events                record.EventRecorder
	// again makes that a pod is handled again.
	again func(name string)
}

// Handle does what is to be done about a pod: by the rules, or else what Liqo does.
func (n *ruledNamespace) Handle(ctx context.Context, name string) error {
	key := types.NamespacedName{Namespace: n.namespace, Name: name}
	local, err := n.local.Get(name) // The only error is that it does not exist.
	if err != nil || local.DeletionTimestamp != nil {
		n.rules.alarms.clear(key)
		n.rules.debugged.forget(func(pod types.NamespacedName) bool { return pod == key })
		return n.NamespacedReflector.Handle(ctx, name)
	}
	shadow, remote := n.there(name)
	if !ours(shadow, remote) {
		return n.NamespacedReflector.Handle(ctx, name)
	}
	n.tellDebug(local)
	left, limited := deadlineLeft(local, time.Now())
	switch {
	case refused(local):
		// What there is under its name was made for another pod, which is gone.
		return n.remove(ctx, shadow)
	case !begun(local) && !n.admitPod(local):
		return n.refuse(ctx, local)
	case podstate.Ended(local) && shadow == nil:
		// Liqo would run it once more.
		n.rules.alarms.clear(key)
		return nil
	case podstate.Ended(local) || !limited || endedThere(local, shadow):
		n.rules.alarms.clear(key)
	case left > 0:
		n.rules.alarms.set(key, left, func() { n.again(name) })
	default:
		return n.end(ctx, local, shadow, remote)
	}
	return n.NamespacedReflector.Handle(ctx, name)
}

// admitPod reports whether the virtual node may have a pod.
func (n *ruledNamespace) admitPod(local *corev1.Pod) bool {
	if len(hostPortsOf(local)) == 0 {
		return true // Most pods: nobody has to look at all the others.
	}
	node, err := n.rules.pods.List(labels.Everything())
	utilruntime.Must(err) // It reads a cache.
	return n.rules.ports.admitPod(local, node)
}

// remove removes a ShadowPod, unless it is being removed; nil is none.
func (n *ruledNamespace) remove(ctx context.Context, shadow *vkv1alpha1.ShadowPod) error {
	if shadow == nil || shadow.DeletionTimestamp != nil {
		return nil
	}
	err := n.shadowPods.Delete(ctx, shadow.Name, *metav1.NewPreconditionDeleteOptions(string(shadow.UID)))
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// there returns what the foreign cluster has of a pod; nil for what it does not have.
func (n *ruledNamespace) there(name string) (shadow *vkv1alpha1.ShadowPod, remote *corev1.Pod) {
	if found, err := n.shadows.Get(name); err == nil {
		shadow = found
	}
	if found, err := n.remote.Get(name); err == nil {
		remote = found
	}
	return shadow, remote
}

// ours reports whether what the foreign cluster has of a pod was made by this cluster.
func ours(shadow *vkv1alpha1.ShadowPod, remote *corev1.Pod) bool {
	return (shadow == nil || forge.IsReflected(shadow)) && (remote == nil || forge.IsReflected(remote))
}

// update writes the status of a pod here, if that changes.
func (n *ruledNamespace) update(ctx context.Context, local *corev1.Pod, edit func(*corev1.PodStatus) bool) error {
	pod := local.DeepCopy()
	if !edit(&pod.Status) {
		return nil
	}
	_, err := n.localPods.UpdateStatus(ctx, pod, metav1.UpdateOptions{FieldManager: forge.ReflectionFieldManager})
	return err
}

// unreachedRetry is after what time it is tried again to delete a ShadowPod when its
// cluster could not be reached. Liqo waits ever longer, up to 17 min, and the pod
// would run for so long beside the one that replaced it.
const unreachedRetry = 5 * time.Second

// Soon returns an error by which Liqo tries again after five seconds, if it is one of
// a cluster that was not reached, and others as they are, also nil.
func Soon(err error) error {
	if answered := apierrors.APIStatus(nil); err != nil && !errors.As(err, &answered) {
		return errors.Join(err, generic.EnqueueAfter(unreachedRetry))
	}
	return err
}

// alarms call a function for a pod at a time. The zero value is ready for use.
type alarms struct {
	mu     sync.Mutex
	timers map[types.NamespacedName]*time.Timer
}

// set has a function called after some time, and not those that were set before.
func (a *alarms) set(key types.NamespacedName, after time.Duration, call func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.timers == nil {
		a.timers = map[types.NamespacedName]*time.Timer{}
	}
	a.stop(key)
	a.timers[key] = time.AfterFunc(after, call)
}

// clear has no function called.
func (a *alarms) clear(key types.NamespacedName) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.stop(key)
}

// clearNamespace has no function called for the pods of a namespace.
func (a *alarms) clearNamespace(namespace string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for key := range a.timers {
		if key.Namespace == namespace {
			a.stop(key)
		}
	}
}

// stop is called with the lock held.
func (a *alarms) stop(key types.NamespacedName) {
	if timer, ok := a.timers[key]; ok {
		timer.Stop()
		delete(a.timers, key)
	}
}
