// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"context"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/liqotech/liqo/pkg/virtualKubelet/reflection/manager"
	"github.com/liqotech/liqo/pkg/virtualKubelet/reflection/options"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"

	"github.com/capacitorset/liqo-broker/pkg/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
)

// transitEndpoints is a reflector of EndpointSlices that passes on, of a slice
// which another cluster has put into its twin namespace, only that cluster's own
// endpoints.
//
// The other cluster writes into it what it likes, and each address that is passed
// on is made one that leads there from the foreign cluster: it could open any
// address that this cluster reaches.
type transitEndpoints struct {
	manager.Reflector

	// owns reports whether an address is one by which this cluster reaches into
	// another one.
	owns func(owner cluster.ID, address netip.Addr) bool
	// budget bounds how many addresses are passed on, and refused counts those that are
	// not for this reason.
	budget  *endpointBudget
	refused prometheus.Counter
	log     logr.Logger
	// ctx is the one that reflection runs with.
	ctx context.Context
}

// reasonTooMany is the reason of the event on an EndpointSlice of which not all
// endpoints are passed on.
const reasonTooMany = "TooManyEndpoints"

// Start begins the reflection.
func (t *transitEndpoints) Start(ctx context.Context, opts *options.ReflectorOpts) {
	t.ctx = ctx
	t.Reflector.Start(ctx, opts)
}

// StartNamespace begins the reflection of a namespace. It must not wait: until it
// returns, Liqo takes the pods of this and the next namespaces for strays.
func (t *transitEndpoints) StartNamespace(opts *options.NamespacedOpts) {
	owner := &twinOwner{read: func() (*corev1.Namespace, error) {
		return opts.LocalClient.CoreV1().Namespaces().Get(t.ctx, opts.LocalNamespace, metav1.GetOptions{})
	}}
	events := opts.EventBroadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "liqo-endpointslice-reflection"})
	informer := opts.LocalFactory.Discovery().V1().EndpointSlices().Informer()
	// Both fail only for an informer that runs already, and this one is made here.
	utilruntime.Must(informer.SetTransform(func(object any) (any, error) {
		if slice, ok := object.(*discoveryv1.EndpointSlice); ok {
			return t.ownOnly(owner, slice, events), nil
		}
		return object, nil
	}))
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{DeleteFunc: func(object any) {
		if key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(object); err == nil {
			t.budget.forget(key, time.Now())
		}
	}})
	utilruntime.Must(err)
	t.Reflector.StartNamespace(opts)
}

// StopNamespace ends the reflection of a namespace.
func (t *transitEndpoints) StopNamespace(local, remote string) {
	t.Reflector.StopNamespace(local, remote)
	t.budget.forget(local+"/", time.Now())
}

// ownOnly returns the slice without endpoints that are not the owner's own, or that
// are too many. A slice that no other cluster has put here is returned as it is.
func (t *transitEndpoints) ownOnly(owner *twinOwner, slice *discoveryv1.EndpointSlice, events record.EventRecorder) *discoveryv1.EndpointSlice {
	if slice.Labels[liqo.LabelManagedBy] != liqo.ManagedByShadowEndpointSlice {
		return slice
	}
	id, err := owner.get()
	if err != nil {
		t.log.Error(err, "It is not known whose twin the namespace is", "namespace", slice.Namespace)
	}
	key := slice.Namespace + "/" + slice.Name
	passed := without(slice, func(address netip.Addr) bool { return !t.owns(id, address) })
	if passed != slice {
		t.log.Info("Endpoints are not passed on that are not the cluster's own", "endpointSlice", key, "cluster", id)
	}
	tooMany := t.budget.admit(id, key, addressesOf(passed), time.Now())
	if len(tooMany) == 0 {
		return passed
	}
	t.refused.Add(float64(len(tooMany)))
	events.Eventf(slice, corev1.EventTypeWarning, reasonTooMany,
		"%d addresses are not passed on: the cluster that they belong to may have %d", len(tooMany), t.budget.limit)
	return without(passed, func(address netip.Addr) bool {
		_, is := tooMany[address]
		return is
	})
}

// without returns the slice without the endpoints that have one of some addresses, or
// something that is no address; the slice itself if there are none.
func without(slice *discoveryv1.EndpointSlice, those func(netip.Addr) bool) *discoveryv1.EndpointSlice {
	unwanted := func(endpoint discoveryv1.Endpoint) bool {
		return slices.ContainsFunc(endpoint.Addresses, func(text string) bool {
			address, err := netip.ParseAddr(text)
			return err != nil || those(address)
		})
	}
	if !slices.ContainsFunc(slice.Endpoints, unwanted) {
		return slice
	}
	slice = slice.DeepCopy()
	slice.Endpoints = slices.DeleteFunc(slice.Endpoints, unwanted)
	return slice
}

// addressesOf returns the addresses of the endpoints of a slice.
func addressesOf(slice *discoveryv1.EndpointSlice) (addresses []netip.Addr) {
	for i := range slice.Endpoints {
		for _, text := range slice.Endpoints[i].Addresses {
			if address, err := netip.ParseAddr(text); err == nil {
				addresses = append(addresses, address)
			}
		}
	}
	return addresses
}

// twinOwner tells whose twin a namespace is. Of slices, the cluster that puts them
// here writes the labels; of its twin namespace it does not.
type twinOwner struct {
	read func() (*corev1.Namespace, error)

	mu    sync.Mutex
	known bool
	id    cluster.ID
}

// get returns the owner; an empty one if the namespace is no twin. It reads the
// namespace once.
func (o *twinOwner) get() (cluster.ID, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.known {
		return o.id, nil
	}
	namespace, err := o.read()
	if err != nil {
		return "", err
	}
	o.id, _ = liqo.TwinOf(namespace)
	o.known = true
	return o.id, nil
}

// owns reports whether an address is one by which this cluster reaches a pod of
// another one, or into its external CIDR.
func (a *addresses) owns(owner cluster.ID, address netip.Addr) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	peer := a.peers[owner]
	return peer.Pods.Seen.Contains(address) || peer.External.Seen.Contains(address)
}
