// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package transit

import (
	"context"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"github.com/liqotech/liqo/pkg/virtualKubelet/reflection/generic"
	"github.com/liqotech/liqo/pkg/virtualKubelet/reflection/manager"
	"github.com/liqotech/liqo/pkg/virtualKubelet/reflection/options"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/informers/core"
	"k8s.io/client-go/informers/discovery"
	discoveryv1informers "k8s.io/client-go/informers/discovery/v1"
	"k8s.io/client-go/kubernetes/scheme"
	corev1listers "k8s.io/client-go/listers/core/v1"
	discoveryv1listers "k8s.io/client-go/listers/discovery/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"

	"github.com/capacitorset/liqo-broker/pkg/liqo"
)

const (
	// ReasonTooMany is the reason of the event on an EndpointSlice of which not all
	// endpoints are passed on. It is for the cluster that the endpoints belong to.
	ReasonTooMany = "TooManyEndpoints"
	// tooManyRetry is after what time such a slice is looked at again. Other slices may have
	// left it more, and an address counts for an hour after it has left the last one.
	tooManyRetry = 5 * time.Minute
)

// transitSlices reflects the EndpointSlices of one namespace.
type transitSlices struct {
	manager.NamespacedReflector

	transit   *transitEndpoints
	namespace string
	owner     *twinOwner
	// all are the slices with all of their endpoints.
	all discoveryv1listers.EndpointSliceNamespaceLister
	// nodes are those of this cluster.
	nodes  corev1listers.NodeLister
	events record.EventRecorder
	// pods are those of the namespace. Liqo's reflector of events watches them as well.
	pods corev1listers.PodNamespaceLister

	mu sync.Mutex
	// leftOut is what of each slice was left out last.
	leftOut map[string]leftOut
	// beside are the addresses in each slice of another cluster that are pods of the
	// namespace, as it was when the slice was handled last; of slices that name any.
	beside map[string]map[netip.Addr]struct{}
}

// leftOut counts what of a slice is not passed on: endpoints that may not be or that nobody
// knows, and addresses that are too many. It also says after what time endpoints must be
// looked at again because pods come and go; zero if they need not.
type leftOut struct {
	strange, tooMany int
	again            time.Duration
}

// namespaced restricts what reflects the slices of a namespace. It must not wait: until it
// returns, Liqo takes the pods of this and the next namespaces for strays.
func (t *transitEndpoints) namespaced(inner generic.NamespacedReflectorFactoryFunc) generic.NamespacedReflectorFactoryFunc {
	return func(opts *options.NamespacedOpts) manager.NamespacedReflector {
		namespace := opts.LocalNamespace
		informer := opts.LocalFactory.Discovery().V1().EndpointSlices()
		s := &transitSlices{
			transit: t, namespace: namespace,
			owner: &twinOwner{read: func() (*corev1.Namespace, error) {
				return opts.LocalClient.CoreV1().Namespaces().Get(t.ctx, namespace, metav1.GetOptions{})
			}},
			all:     informer.Lister().EndpointSlices(namespace),
			nodes:   opts.LocalFactory.Core().V1().Nodes().Lister(),
			pods:    opts.LocalFactory.Core().V1().Pods().Lister().Pods(namespace),
			events:  opts.EventBroadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "liqo-endpointslice-reflection"}),
			leftOut: map[string]leftOut{}, beside: map[string]map[netip.Addr]struct{}{},
		}
		// While another replica leads, Liqo handles nothing.
		_, err := informer.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{DeleteFunc: func(object any) {
			if unknown, ok := object.(cache.DeletedFinalStateUnknown); ok {
				object = unknown.Obj
			}
			if slice, ok := object.(*discoveryv1.EndpointSlice); ok {
				s.forgetSlice(slice.Name)
			}
		}})
		utilruntime.Must(err) // It fails only for an informer that has ended.
		opts.LocalFactory = ownEndpointsFactory{opts.LocalFactory, s}
		s.NamespacedReflector = inner(opts)
		return s
	}
}

// Handle reflects a slice. It fails, so that Liqo tries again, as long as it is not known
// whose the endpoints must be; what was passed on before stays until then.
func (s *transitSlices) Handle(ctx context.Context, name string) error {
	if slice, err := s.all.Get(name); err == nil {
		switch {
		case fromPeer(slice):
			err = s.ask(slice)
		case s.reflectedByHand(slice):
			err = s.await(slice)
		}
		if err != nil {
			return err
		}
	}
	if err := s.NamespacedReflector.Handle(ctx, name); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch left := s.leftOut[name]; {
	case left.again > 0:
		return generic.EnqueueAfter(left.again)
	case left.tooMany > 0:
		return generic.EnqueueAfter(tooManyRetry)
	}
	return nil
}

// ask finds what must be known of a slice of another cluster.
func (s *transitSlices) ask(slice *discoveryv1.EndpointSlice) error {
	id, err := s.owner.owner()
	if err != nil {
		// Liqo does not say why it tries again.
		s.transit.log.Error(err, "Cannot find the owner of a twin namespace", "namespace", slice.Namespace)
		return fmt.Errorf("find the owner of namespace %s: %w", slice.Namespace, err)
	}
	s.findBeside(id, slice)
	return nil
}

// fromPeer reports whether another cluster has put a slice into its twin namespace.
func fromPeer(slice *discoveryv1.EndpointSlice) bool {
	return slice.Labels[liqo.LabelManagedBy] == liqo.ManagedByShadowEndpointSlice
}

// get returns a slice as Liqo is to see it.
func (s *transitSlices) get(name string) (*discoveryv1.EndpointSlice, error) {
	slice, err := s.all.Get(name)
	switch {
	case err == nil && fromPeer(slice):
		return s.ownOnly(slice), nil
	case err == nil && s.reflectedByHand(slice):
		return s.podsOnly(slice), nil
	}
	s.forgetSlice(name)
	return slice, err
}

// ownOnly returns a slice of another cluster without endpoints that are not its owner's
// own, or that are too many.
func (s *transitSlices) ownOnly(slice *discoveryv1.EndpointSlice) *discoveryv1.EndpointSlice {
	id, err := s.owner.owner()
	if err != nil {
		return without(slice, func(netip.Addr) bool { return true })
	}
	passed := without(slice, func(address netip.Addr) bool {
		return !s.transit.known.Owns(id, address) && !s.isBeside(slice.Name, address)
	})
	tooMany := s.transit.budget.admitAddresses(id, s.key(slice.Name), addressesOf(passed), time.Now())
	s.reportLeftOut(slice, leftOut{
		strange: len(slice.Endpoints) - len(passed.Endpoints), tooMany: len(tooMany), again: s.siblingsRetry(slice.Name),
	})
	return without(passed, func(address netip.Addr) bool {
		_, is := tooMany[address]
		return is
	})
}

// reportLeftOut says what is left out of a slice, once.
func (s *transitSlices) reportLeftOut(slice *discoveryv1.EndpointSlice, now leftOut) {
	was := s.noteLeftOut(slice.Name, now)
	if now.strange > 0 && now.strange != was.strange {
		s.transit.log.Info("Endpoints that are not the cluster's own are not passed on", "endpointSlice", s.key(slice.Name), "endpoints",
			now.strange)
	}
	if now.tooMany > was.tooMany {
		s.transit.refused.Add(float64(now.tooMany - was.tooMany))
		s.events.Eventf(slice, corev1.EventTypeWarning, ReasonTooMany,
			"%d addresses are not passed on: the cluster that they belong to may have %d", now.tooMany, s.transit.budget.limit)
	}
}

// noteLeftOut notes what is left out of a slice, and returns what was before.
func (s *transitSlices) noteLeftOut(name string, now leftOut) (was leftOut) {
	s.mu.Lock()
	defer s.mu.Unlock()
	was, s.leftOut[name] = s.leftOut[name], now
	return was
}

// forgetSlice notes that nothing of a slice is left out or counts.
func (s *transitSlices) forgetSlice(name string) {
	s.mu.Lock()
	delete(s.leftOut, name)
	delete(s.beside, name)
	s.mu.Unlock()
	s.transit.budget.forgetSlice(s.key(name), time.Now())
}

// key names a slice to the budget.
func (s *transitSlices) key(name string) string { return s.namespace + "/" + name }

// ownEndpointsFactory is the factory of informers as Liqo sees it: its lister of slices
// leaves out what is not to be passed on.
type ownEndpointsFactory struct {
	informers.SharedInformerFactory
	slices *transitSlices
}

// Core adds a node, see [nodeOfAny].
func (f ownEndpointsFactory) Core() core.Interface {
	return manualCore{f.SharedInformerFactory.Core()}
}

// Discovery restricts EndpointSlices.
func (f ownEndpointsFactory) Discovery() discovery.Interface {
	return ownEndpointsDiscovery{f.SharedInformerFactory.Discovery(), f.slices}
}

type ownEndpointsDiscovery struct {
	discovery.Interface
	slices *transitSlices
}

func (d ownEndpointsDiscovery) V1() discoveryv1informers.Interface {
	return ownEndpointsV1{d.Interface.V1(), d.slices}
}

type ownEndpointsV1 struct {
	discoveryv1informers.Interface
	slices *transitSlices
}

func (v ownEndpointsV1) EndpointSlices() discoveryv1informers.EndpointSliceInformer {
	return ownEndpointsInformer{v.Interface.EndpointSlices(), v.slices}
}

type ownEndpointsInformer struct {
	discoveryv1informers.EndpointSliceInformer
	slices *transitSlices
}

func (i ownEndpointsInformer) Lister() discoveryv1listers.EndpointSliceLister {
	return ownEndpointsLister{i.EndpointSliceInformer.Lister(), i.slices}
}

type ownEndpointsLister struct {
	discoveryv1listers.EndpointSliceLister
	slices *transitSlices
}

func (l ownEndpointsLister) EndpointSlices(namespace string) discoveryv1listers.EndpointSliceNamespaceLister {
	return ownEndpoints{l.EndpointSliceLister.EndpointSlices(namespace), l.slices}
}

type ownEndpoints struct {
	discoveryv1listers.EndpointSliceNamespaceLister
	slices *transitSlices
}

// Get returns a slice with what is passed on of it. Of lists Liqo needs only the names.
func (e ownEndpoints) Get(name string) (*discoveryv1.EndpointSlice, error) { return e.slices.get(name) }
