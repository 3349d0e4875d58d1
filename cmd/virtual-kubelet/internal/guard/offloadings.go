// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/go-logr/logr"
	offloadingv1alpha1 "github.com/liqotech/liqo/apis/offloading/v1alpha1"
	liqoclient "github.com/liqotech/liqo/pkg/client/clientset/versioned"
	liqoinformers "github.com/liqotech/liqo/pkg/client/informers/externalversions"
	liqolisters "github.com/liqotech/liqo/pkg/client/listers/virtualkubelet/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corev1listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
)

// offloadingsResource is the resource of NamespaceOffloadings.
var offloadingsResource = offloadingv1alpha1.GroupVersion.WithResource("namespaceoffloadings")

const (
	// rightsInterval is how long it may take until a right that was granted is used.
	rightsInterval = time.Minute
	// askAgain is after what time an API server is asked again that did not answer.
	askAgain = 2 * time.Second
)

// Peering is a foreign cluster to which this one offloads namespaces.
type Peering struct {
	// Own is this cluster, and Foreign the other one.
	Own     cluster.Identity
	Foreign cluster.ID
	// TenantNamespace is where this cluster keeps what concerns the foreign one.
	TenantNamespace string
	// LiqoNamespace is offloaded without its pods.
	LiqoNamespace string
	// RolePatch names what gives the right to read NamespaceOffloadings; who lacks it is told.
	RolePatch string
}

// ownOffloadings goes by the NamespaceOffloadings of this cluster. Without the right to
// read them it goes by what Liqo made of them, until it has the right.
type ownOffloadings struct {
	peering Peering

	client  kubernetes.Interface
	liqo    liqoclient.Interface
	dynamic dynamic.Interface
	log     logr.Logger
	// every is how often is asked whether a right that was missing is there.
	every time.Duration

	changed func(local string)
	group   sync.WaitGroup

	mu      sync.Mutex
	current answers
}

// answers are those of a rule that knows all that it goes by.
type answers interface {
	offloads(local, remote string) (bool, error)
}

var errNotKnown = errors.New("the offloadings of this cluster are not known yet")

// offloads implements offloadingRule.
func (o *ownOffloadings) offloads(local, remote string) (bool, error) {
	o.mu.Lock()
	current := o.current
	o.mu.Unlock()
	if current == nil {
		return false, errNotKnown
	}
	return current.offloads(local, remote)
}

// start implements offloadingRule.
func (o *ownOffloadings) start(ctx context.Context, changed func(local string)) {
	o.changed = changed
	ready := make(chan struct{})
	o.group.Go(func() {
		may := o.mayRead(ctx)
		if may {
			o.use(ctx, o.readOffloadings)
		} else if ctx.Err() == nil {
			o.log.Info("This virtual kubelet may not read NamespaceOffloadings; it reflects the namespaces that are offloaded with their pods. "+
				"A foreign cluster that consumes from this one as well can ask for those of others", "apply", o.peering.RolePatch)
			o.use(ctx, o.readLabels)
		}
		close(ready)
		if !may {
			o.wait(ctx)
		}
	})
	select {
	case <-ready:
	case <-ctx.Done():
	case <-time.After(startPatience):
		o.log.Info("The offloadings of this cluster are not known in time; running pods may be deleted as unknown")
	}
}

// join returns when all has ended that start began; the context must have ended.
func (o *ownOffloadings) join() { o.group.Wait() }

// use goes by other answers from now on.
func (o *ownOffloadings) use(ctx context.Context, read func(context.Context) (answers, error)) {
	answers, err := read(ctx)
	if err != nil {
		o.log.Error(err, "Cannot read what this cluster offloads")
		return
	}
	o.mu.Lock()
	o.current = answers
	o.mu.Unlock()
	o.changed("")
}

// wait goes by the NamespaceOffloadings as soon as they may be read.
func (o *ownOffloadings) wait(ctx context.Context) {
	ticker := time.NewTicker(o.every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if o.mayRead(ctx) {
			o.log.Info("This virtual kubelet may read NamespaceOffloadings now, and follows them")
			o.use(ctx, o.readOffloadings)
			return
		}
	}
}

// mayRead reports whether NamespaceOffloadings may be read; it asks until the API server
// answers, or the context ends.
func (o *ownOffloadings) mayRead(ctx context.Context) bool {
	for {
		_, err := o.dynamic.Resource(offloadingsResource).List(ctx, metav1.ListOptions{Limit: 1})
		if err == nil || apierrors.IsForbidden(err) {
			return err == nil
		}
		o.log.Error(err, "Cannot ask whether NamespaceOffloadings may be read")
		select {
		case <-ctx.Done():
			return false
		case <-time.After(askAgain):
		}
	}
}

// byOffloading answers by the NamespaceOffloadings.
type byOffloading struct {
	own   cluster.Identity
	nodes func() ([]virtualNodeOf, error)

	mu          sync.Mutex
	offloadings map[string]*v09.NamespaceOffloading
}

// virtualNodeOf is a VirtualNode with the node that was made of it; nil if there is none.
type virtualNodeOf struct {
	virtual *v09.VirtualNode
	node    *corev1.Node
}

func (b *byOffloading) offloads(local, remote string) (bool, error) {
	b.mu.Lock()
	offloading := b.offloadings[local]
	b.mu.Unlock()
	if offloading == nil || !offloading.DeletionTimestamp.IsZero() || v09.RemoteName(offloading, b.own) != remote {
		return false, nil
	}
	nodes, err := b.nodes()
	if err != nil {
		return false, err
	}
	for _, n := range nodes {
		selected, err := v09.SelectsNode(&offloading.Spec.ClusterSelector, n.virtual, n.node)
		if err != nil {
			return false, fmt.Errorf("match the selector of NamespaceOffloading %s/%s: %w", local, offloading.Name, err)
		}
		if selected {
			return true, nil
		}
	}
	return false, nil
}

// set takes over an offloading, and forget that it is gone; both return its namespace.
func (b *byOffloading) set(object any) (string, error) {
	raw, ok := object.(*unstructured.Unstructured)
	if !ok {
		return "", fmt.Errorf("NamespaceOffloading is a %T", object)
	}
	if raw.GetName() != liqo.OffloadingName {
		return "", nil
	}
	offloading := &v09.NamespaceOffloading{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(raw.Object, offloading); err != nil {
		return "", fmt.Errorf("parse NamespaceOffloading %s/%s: %w", raw.GetNamespace(), raw.GetName(), err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.offloadings[offloading.Namespace] = offloading
	return offloading.Namespace, nil
}

func (b *byOffloading) forgetOffloading(object any) string {
	key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(object)
	if err != nil {
		return ""
	}
	namespace, name, err := cache.SplitMetaNamespaceKey(key)
	if err != nil || name != liqo.OffloadingName {
		return ""
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.offloadings, namespace)
	return namespace
}

// readOffloadings follows the NamespaceOffloadings of this cluster and the virtual nodes
// of the foreign one until the context ends. It returns once those are known that exist.
func (o *ownOffloadings) readOffloadings(ctx context.Context) (answers, error) {
	virtualFactory := liqoinformers.NewSharedInformerFactory(o.liqo, 0)
	virtuals := virtualFactory.Virtualkubelet().V1alpha1().VirtualNodes()
	nodeFactory := informers.NewSharedInformerFactoryWithOptions(o.client, 0,
		informers.WithTweakListOptions(func(options *metav1.ListOptions) {
			options.LabelSelector = labels.Set{liqo.LabelRemoteClusterID: string(o.peering.Foreign)}.String()
		}))
	nodes := nodeFactory.Core().V1().Nodes()
	b := &byOffloading{own: o.peering.Own, offloadings: map[string]*v09.NamespaceOffloading{}, nodes: func() ([]virtualNodeOf, error) {
		return o.virtualNodes(virtuals.Lister(), nodes.Lister())
	}}
	factory := dynamicinformer.NewDynamicSharedInformerFactory(o.dynamic, 0)

	// A NamespaceOffloading concerns one namespace, and a change of a virtual node may concern all.
	set := func(object any) {
		switch local, err := b.set(object); {
		case err != nil:
			o.log.Error(err, "Ignored a NamespaceOffloading")
		case local != "":
			o.changed(local)
		}
	}
	first, err1 := factory.ForResource(offloadingsResource).Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    set,
		UpdateFunc: func(_, updated any) { set(updated) },
		DeleteFunc: func(deleted any) {
			if local := b.forgetOffloading(deleted); local != "" {
				o.changed(local)
			}
		},
	})
	second, err2 := virtuals.Informer().AddEventHandler(whenLabelsChange(func() { o.changed("") }))
	third, err3 := nodes.Informer().AddEventHandler(whenLabelsChange(func() { o.changed("") }))
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, fmt.Errorf("watch what this cluster offloads: %w", err)
	}
	// An answer is true only when all that it goes by is known.
	factory.Start(ctx.Done())
	virtualFactory.Start(ctx.Done())
	nodeFactory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), first.HasSynced, second.HasSynced, third.HasSynced) {
		return nil, fmt.Errorf("watch what this cluster offloads: %w", context.Cause(ctx))
	}
	return b, nil
}

// virtualNodes returns the virtual nodes of the foreign cluster. It has one map of
// namespaces, whichever of them a namespace is offloaded to.
func (o *ownOffloadings) virtualNodes(virtuals liqolisters.VirtualNodeLister, nodes corev1listers.NodeLister) ([]virtualNodeOf, error) {
	all, err := virtuals.List(labels.Everything())
	if err != nil {
		return nil, fmt.Errorf("list the virtual nodes: %w", err)
	}
	var found []virtualNodeOf
	for _, virtual := range all {
		if virtual.Spec.ClusterIdentity == nil || virtual.Spec.ClusterIdentity.ClusterID != string(o.peering.Foreign) {
			continue
		}
		node, err := nodes.Get(virtual.Name)
		if err != nil && !apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("find virtual node %s: %w", virtual.Name, err)
		}
		found = append(found, virtualNodeOf{virtual, node})
	}
	return found, nil
}

// whenLabelsChange calls changed when an object comes, goes, or gets other labels or
// another spec. The status of nodes changes all the time.
func whenLabelsChange(changed func()) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { changed() },
		DeleteFunc: func(any) { changed() },
		UpdateFunc: func(before, after any) {
			was, ok1 := before.(metav1.Object)
			is, ok2 := after.(metav1.Object)
			if !ok1 || !ok2 || was.GetGeneration() != is.GetGeneration() || !maps.Equal(was.GetLabels(), is.GetLabels()) {
				changed()
			}
		},
	}
}

// byLabel answers by what Liqo made of the NamespaceOffloadings. A foreign cluster that
// consumes from this one may write its NamespaceMap, but not the labels of namespaces.
type byLabel struct {
	liqoNamespace string
	namespaces    corev1listers.NamespaceLister
	maps          liqolisters.NamespaceMapLister
}

func (b *byLabel) offloads(local, remote string) (bool, error) {
	namespace, err := b.namespaces.Get(local)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("find namespace %s: %w", local, err)
	}
	// Of Liqo's own namespace only one Service is reflected.
	if !liqo.Open(namespace) && local != b.liqoNamespace {
		return false, nil
	}
	wanted, err := b.maps.List(labels.Everything())
	if err != nil {
		return false, fmt.Errorf("list the NamespaceMaps: %w", err)
	}
	for _, namespaceMap := range wanted {
		if namespaceMap.Spec.DesiredMapping[local] == remote {
			return true, nil
		}
	}
	return false, nil
}

// readLabels follows the namespaces of this cluster and the NamespaceMap of the foreign
// one until the context ends. It returns once those are known that exist.
func (o *ownOffloadings) readLabels(ctx context.Context) (answers, error) {
	factory := informers.NewSharedInformerFactory(o.client, 0)
	namespaces := factory.Core().V1().Namespaces()
	mapFactory := liqoinformers.NewSharedInformerFactoryWithOptions(o.liqo, 0, liqoinformers.WithNamespace(o.peering.TenantNamespace),
		liqoinformers.WithTweakListOptions(func(options *metav1.ListOptions) {
			options.LabelSelector = labels.Set{liqo.LabelRemoteClusterID: string(o.peering.Foreign)}.String()
		}))
	namespaceMaps := mapFactory.Virtualkubelet().V1alpha1().NamespaceMaps()
	changed := func(object any) {
		if named, err := cache.DeletionHandlingMetaNamespaceKeyFunc(object); err == nil {
			o.changed(named)
		}
	}
	first, err1 := namespaces.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: changed, UpdateFunc: func(_, updated any) { changed(updated) }, DeleteFunc: changed,
	})
	second, err2 := namespaceMaps.Informer().AddEventHandler(whenLabelsChange(func() { o.changed("") }))
	if err := errors.Join(err1, err2); err != nil {
		return nil, fmt.Errorf("watch what this cluster offloads: %w", err)
	}
	factory.Start(ctx.Done())
	mapFactory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), first.HasSynced, second.HasSynced) {
		return nil, fmt.Errorf("watch what this cluster offloads: %w", context.Cause(ctx))
	}
	return &byLabel{o.peering.LiqoNamespace, namespaces.Lister(), namespaceMaps.Lister()}, nil
}
