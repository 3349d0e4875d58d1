// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package transit

import (
	"context"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/liqotech/liqo/pkg/liqonet/ipam"
	"github.com/liqotech/liqo/pkg/virtualKubelet/reflection/exposition"
	"github.com/liqotech/liqo/pkg/virtualKubelet/reflection/generic"
	"github.com/liqotech/liqo/pkg/virtualKubelet/reflection/manager"
	"github.com/liqotech/liqo/pkg/virtualKubelet/reflection/options"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/capacitorset/liqo-broker/cmd/virtual-kubelet/internal/address"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
)

// transitEndpoints is a reflector of EndpointSlices that passes on, of a slice
// which another cluster has put into its twin namespace, only that cluster's own
// endpoints.
//
// The other cluster writes into it what it likes, and each address that is passed
// on is made one that leads there from the foreign cluster: it could open any
// address that this cluster reaches.
//
// What is left out is left out where Liqo reads a slice, and not of what is kept of it:
// an endpoint that cannot be passed on yet is when the slice is reflected again.
type transitEndpoints struct {
	manager.Reflector

	known Known
	// budget bounds how many addresses are passed on, and refused counts those that are
	// not for this reason.
	budget  *endpointBudget
	refused prometheus.Counter
	log     logr.Logger
	// ctx is the one that reflection runs with.
	ctx context.Context
}

// Known is what this cluster knows of addresses. Implementations may be used concurrently.
type Known interface {
	// Owns reports whether an address is one by which this cluster reaches into
	// another one.
	Owns(owner cluster.ID, address netip.Addr) bool
	// Place tells what this cluster knows of an address.
	Place(address netip.Addr) address.Place
}

// NewEndpoints returns a reflector of EndpointSlices that passes on what may be passed on,
// as client translates it: of each cluster that offloads to this one, at most perCluster addresses.
// What is more is counted by refused.
func NewEndpoints(
	client ipam.IpamClient, known Known, perCluster int, refused prometheus.Counter, config *generic.ReflectorConfig, log logr.Logger,
) manager.Reflector {
	t := &transitEndpoints{known: known, budget: newEndpointBudget(perCluster), refused: refused, log: log}
	t.reflect(client, config)
	return t
}

// reflect makes Liqo's reflector of EndpointSlices the one that passes them on.
func (t *transitEndpoints) reflect(client ipam.IpamClient, config *generic.ReflectorConfig) {
	// As exposition.NewEndpointSliceReflector does.
	t.Reflector = generic.NewReflector(exposition.EndpointSliceReflectorName,
		t.namespaced(exposition.NewNamespacedEndpointSliceReflector(client)),
		generic.WithoutFallback(), config.NumWorkers, config.Type, generic.ConcurrencyModeLeader)
}

// Start begins the reflection.
func (t *transitEndpoints) Start(ctx context.Context, opts *options.ReflectorOpts) {
	t.ctx = ctx
	t.Reflector.Start(ctx, opts)
}

// StopNamespace ends the reflection of a namespace.
func (t *transitEndpoints) StopNamespace(local, remote string) {
	t.Reflector.StopNamespace(local, remote)
	t.budget.forgetSlice(local+"/", time.Now())
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

// owner returns the owner; an empty one if the namespace is no twin. It reads the
// namespace once.
func (o *twinOwner) owner() (cluster.ID, error) {
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
