// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"context"
	"net/netip"
	"slices"
	"sync"

	"github.com/go-logr/logr"
	"github.com/liqotech/liqo/pkg/virtualKubelet/reflection/manager"
	"github.com/liqotech/liqo/pkg/virtualKubelet/reflection/options"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

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
	log  logr.Logger
	// ctx is the one that reflection runs with.
	ctx context.Context
}

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
	// It fails only for an informer that runs already, and this one is made here.
	utilruntime.Must(opts.LocalFactory.Discovery().V1().EndpointSlices().Informer().SetTransform(func(object any) (any, error) {
		if slice, ok := object.(*discoveryv1.EndpointSlice); ok {
			return t.ownOnly(owner, slice), nil
		}
		return object, nil
	}))
	t.Reflector.StartNamespace(opts)
}

// ownOnly returns the slice without endpoints that are not the owner's own. A
// slice that no other cluster has put here is returned as it is.
func (t *transitEndpoints) ownOnly(owner *twinOwner, slice *discoveryv1.EndpointSlice) *discoveryv1.EndpointSlice {
	if slice.Labels[liqo.LabelManagedBy] != liqo.ManagedByShadowEndpointSlice {
		return slice
	}
	id, err := owner.get()
	if err != nil {
		t.log.Error(err, "It is not known whose twin the namespace is", "namespace", slice.Namespace)
	}
	foreign := func(endpoint discoveryv1.Endpoint) bool {
		return slices.ContainsFunc(endpoint.Addresses, func(text string) bool {
			address, err := netip.ParseAddr(text)
			return err != nil || !t.owns(id, address)
		})
	}
	if !slices.ContainsFunc(slice.Endpoints, foreign) {
		return slice
	}
	t.log.Info("Endpoints are not passed on that are not the cluster's own",
		"endpointSlice", slice.Namespace+"/"+slice.Name, "cluster", id)
	slice = slice.DeepCopy()
	slice.Endpoints = slices.DeleteFunc(slice.Endpoints, foreign)
	return slice
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
