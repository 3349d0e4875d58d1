// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package transit

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/liqotech/liqo/pkg/virtualKubelet/reflection/manager"
	"github.com/liqotech/liqo/pkg/virtualKubelet/reflection/options"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	corev1listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"

	"github.com/capacitorset/liqo-broker/cmd/virtual-kubelet/internal/address"
	"github.com/capacitorset/liqo-broker/pkg/core/addressing"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/core/podstate"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
)

// reasonPathChanged is the reason of the event on a pod that is reached another way, or that another provider runs, than before.
const reasonPathChanged = "PathChanged"

// pathAnnotations are for the people of this cluster, and not reflected.
var pathAnnotations = []string{liqo.AnnotationPath, liqo.AnnotationProvider, liqo.AnnotationProviderName, liqo.AnnotationPathSince}

// Ways knows how pods are reached. Implementations may be used concurrently.
type Ways interface {
	// WayTo returns the way to a pod that is shown here at one address, and that the foreign cluster reports at another; false
	// if it cannot be told at the moment.
	WayTo(shown, reported string) (address.Way, bool)
}

// Paths is a reflector of pods that tells on the pods of this cluster which way they are reached, by annotations and events, and counts
// them by path. It does not on pods in transit: those belong to another cluster, which may read them, and must not read there
// who the providers of this one are.
type Paths struct {
	manager.Reflector
	podQueue

	ways  Ways
	count *prometheus.GaugeVec
	clock clock.PassiveClock
	log   logr.Logger

	// pods are the pods of this cluster on the virtual node.
	pods   corev1listers.PodLister
	client kubernetes.Interface
	events record.EventRecorder
	// told is what the pods are told. Only the worker of the queue uses it.
	told map[cache.ObjectName]*toldWay

	mu sync.Mutex
	// remote are the pods in the foreign cluster, by the namespace here.
	remote map[string]corev1listers.PodNamespaceLister
}

// toldWay is what a pod is told of how it is reached.
type toldWay struct {
	uid types.UID
	way address.Way
	// since is when that began.
	since time.Time
	// last is the last way that was known: a pod that is being moved has none.
	last address.Way
	// written is the pod as it was known when that was written; the cache that still has it has not heard of it.
	written *corev1.Pod
}

// NewPaths returns a reflector of pods that reflects as another one does, and tells how pods are reached. The label of the gauge is
// the path.
func NewPaths(reflector manager.Reflector, ways Ways, count *prometheus.GaugeVec, log logr.Logger) *Paths {
	return &Paths{
		Reflector: reflector, ways: ways, count: count, clock: clock.RealClock{}, log: log,
		told: map[cache.ObjectName]*toldWay{}, remote: map[string]corev1listers.PodNamespaceLister{},
	}
}

// Start begins the reflection.
func (p *Paths) Start(ctx context.Context, opts *options.ReflectorOpts) {
	p.pods, p.client = opts.LocalPodInformer.Lister(), opts.LocalClient
	p.events = opts.EventBroadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "liqo-pod-reflection"})
	p.start(ctx, p.tellPath, func(err error) { p.log.Error(err, "Cannot tell by which path a pod is reached") })
	p.follow(opts.LocalPodInformer.Informer(), func(pod *corev1.Pod) string { return pod.Namespace })
	p.Reflector.Start(ctx, opts)
}

// StartNamespace begins the reflection of a namespace.
func (p *Paths) StartNamespace(opts *options.NamespacedOpts) {
	forging := *opts.ForgingOpts
	forging.AnnotationsNotReflected = slices.Concat(forging.AnnotationsNotReflected, pathAnnotations)
	opts.ForgingOpts = &forging
	remote := opts.RemoteFactory.Core().V1().Pods()
	p.mu.Lock()
	p.remote[opts.LocalNamespace] = remote.Lister().Pods(opts.RemoteNamespace)
	p.mu.Unlock()
	p.follow(remote.Informer(), func(*corev1.Pod) string { return opts.LocalNamespace })
	p.Reflector.StartNamespace(opts)
}

// StopNamespace ends the reflection of a namespace.
func (p *Paths) StopNamespace(local, remote string) {
	p.mu.Lock()
	delete(p.remote, local)
	p.mu.Unlock()
	p.Reflector.StopNamespace(local, remote)
}

// Resync reflects every pod again, because addresses may have changed.
func (p *Paths) Resync() error {
	err := p.Reflector.Resync()
	pods, errList := p.pods.List(labels.Everything())
	utilruntime.Must(errList) // A cache has no errors.
	for _, pod := range pods {
		p.add(cache.MetaObjectToName(pod))
	}
	return err
}

// follow has pods looked at when an informer tells of them, or of their twins in the foreign cluster; these have the same name, and
// localNamespace returns the namespace here.
func (p *Paths) follow(informer cache.SharedIndexInformer, localNamespace func(*corev1.Pod) string) {
	look := func(object any) {
		if unknown, ok := object.(cache.DeletedFinalStateUnknown); ok {
			object = unknown.Obj
		}
		if pod, ok := object.(*corev1.Pod); ok {
			p.add(cache.NewObjectName(localNamespace(pod), pod.Name))
		}
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: look, UpdateFunc: func(_, updated any) { look(updated) }, DeleteFunc: look,
	})
	utilruntime.Must(err) // It fails only for an informer that has ended.
}

// tellPath tells a pod how it is reached, if that has changed. What is told stays while nobody knows.
func (p *Paths) tellPath(ctx context.Context, name cache.ObjectName) error {
	pod, err := p.pods.Pods(name.Namespace).Get(name.Name)
	switch {
	case apierrors.IsNotFound(err):
		p.forgetPod(name)
		return nil
	case err != nil:
		return fmt.Errorf("find pod %s: %w", name, err)
	}
	if _, transit := inTransit(pod); transit || !pod.DeletionTimestamp.IsZero() {
		return nil
	}
	told := p.toldOf(name, pod)
	if way, known := p.wayTo(pod); known && way != told.way {
		if told.changedBy(way) {
			p.events.Eventf(pod, corev1.EventTypeNormal, reasonPathChanged, "The path of the pod changed from %s to %s", told.last, way)
		}
		since := p.clock.Now()
		if way.Same(told.way) {
			since = told.since
		}
		p.set(told, way, since)
	}
	return p.annotate(ctx, pod, told)
}

// wayTo returns the way to a pod; false if it cannot be told at the moment. There is none to one that has no address.
func (p *Paths) wayTo(pod *corev1.Pod) (address.Way, bool) {
	if podstate.Ended(pod) || pod.Status.PodIP == "" {
		return address.Way{}, true
	}
	p.mu.Lock()
	pods, ok := p.remote[pod.Namespace]
	p.mu.Unlock()
	if !ok {
		return address.Way{}, false
	}
	remote, err := pods.Get(pod.Name)
	if err != nil {
		return address.Way{}, false
	}
	return p.ways.WayTo(pod.Status.PodIP, remote.Status.PodIP)
}

// toldOf returns what a pod was told before: by this virtual kubelet, or by the one before it.
func (p *Paths) toldOf(name cache.ObjectName, pod *corev1.Pod) *toldWay {
	if told, ok := p.told[name]; ok && told.uid == pod.UID {
		return told
	}
	p.forgetPod(name)
	told := &toldWay{uid: pod.UID}
	p.told[name] = told
	for _, path := range []addressing.Path{addressing.PathDirect, addressing.PathRelay} {
		if pod.Annotations[liqo.AnnotationPath] != path.String() {
			continue
		}
		since, err := time.Parse(time.RFC3339, pod.Annotations[liqo.AnnotationPathSince])
		if err != nil {
			since = p.clock.Now()
		}
		provider, name := cluster.ID(pod.Annotations[liqo.AnnotationProvider]), pod.Annotations[liqo.AnnotationProviderName]
		p.set(told, address.Way{Path: path, Provider: provider, Name: name}, since)
	}
	return told
}

// changedBy reports whether a way is another one than the last that was known. That the provider becomes known, or is told no
// more, changes nothing.
func (t *toldWay) changedBy(way address.Way) bool {
	none := address.Way{}
	if t.last == none || way == none {
		return false
	}
	return t.last.Path != way.Path || t.last.Provider != way.Provider && t.last.Provider != "" && way.Provider != ""
}

// set notes and counts what a pod is told.
func (p *Paths) set(told *toldWay, way address.Way, since time.Time) {
	if told.way.Path != addressing.PathUnknown {
		p.count.WithLabelValues(told.way.Path.String()).Dec()
	}
	told.way, told.since, told.written = way, since, nil
	if way.Path != addressing.PathUnknown {
		p.count.WithLabelValues(way.Path.String()).Inc()
		told.last = way
	}
}

// forgetPod forgets a pod that is gone.
func (p *Paths) forgetPod(name cache.ObjectName) {
	if told, ok := p.told[name]; ok {
		p.set(told, address.Way{}, time.Time{})
		delete(p.told, name)
	}
}

// annotate writes on a pod what it is told, unless it says so already.
func (p *Paths) annotate(ctx context.Context, pod *corev1.Pod, told *toldWay) error {
	want := map[string]string{}
	if told.way.Path != addressing.PathUnknown {
		want[liqo.AnnotationPath] = told.way.Path.String()
		want[liqo.AnnotationPathSince] = told.since.UTC().Format(time.RFC3339)
	}
	if told.way.Provider != "" {
		want[liqo.AnnotationProvider] = string(told.way.Provider)
	}
	if told.way.Name != "" {
		want[liqo.AnnotationProviderName] = told.way.Name
	}
	changes := map[string]any{}
	for _, key := range pathAnnotations {
		value, wanted := want[key]
		switch is, has := pod.Annotations[key]; {
		case wanted && (!has || is != value):
			changes[key] = value
		case has && !wanted:
			changes[key] = nil
		}
	}
	if len(changes) == 0 || told.written == pod {
		return nil
	}
	// With the UID, it is not another pod of the name that is told.
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": pod.UID, "annotations": changes}})
	if err != nil {
		return fmt.Errorf("write a patch of pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	_, err = p.client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("annotate pod %s/%s with its path: %w", pod.Namespace, pod.Name, err)
	}
	told.written = pod
	return nil
}
