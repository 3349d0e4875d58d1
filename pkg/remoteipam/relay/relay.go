// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package relay keeps the relay addresses of a broker: it has them made when a
// consumer asks, and frees them when their pod is gone.
//
// Liqo's IPAM makes the addresses and remembers them; this package decides only
// which of them are needed. It talks to no peer.
package relay

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"

	"github.com/capacitorset/liqo-broker/pkg/cluster"
)

// ErrNotOffloaded means that an address is not the one of a pod that the consumer
// offloaded.
var ErrNotOffloaded = errors.New("not the address of a pod that the consumer offloaded")

// IPAM makes and frees mappings; both are idempotent.
type IPAM interface {
	// MapRelay returns the address that leads the consumer to the given one.
	MapRelay(ctx context.Context, consumer cluster.ID, address netip.Addr) (netip.Addr, error)
	// UnmapRelay frees that address.
	UnmapRelay(ctx context.Context, consumer cluster.ID, address netip.Addr) error
}

// Pods tells which addresses are in use. It answers from memory.
type Pods interface {
	// HasPod reports whether a pod that the consumer offloaded has the address.
	HasPod(consumer cluster.ID, address netip.Addr) bool
	// HasOther reports whether a pod that another consumer offloaded has the
	// address.
	HasOther(consumer cluster.ID, address netip.Addr) bool
	// HasEndpoint reports whether an endpoint that is reflected to the cluster has
	// the address.
	HasEndpoint(target cluster.ID, address netip.Addr) bool
	// IsPeerAddress reports whether pods of a peer are seen here under addresses
	// like this one.
	IsPeerAddress(address netip.Addr) bool
}

// Keeper maps and frees relay addresses. It is safe for concurrent use.
type Keeper struct {
	ipam IPAM
	pods Pods

	// mu makes a look at the pods and the call that follows from it one step: an
	// address must not be freed between the two of a new pod.
	mu sync.Mutex
}

// NewKeeper returns a keeper of the addresses in the IPAM.
func NewKeeper(ipam IPAM, pods Pods) *Keeper { return &Keeper{ipam: ipam, pods: pods} }

// MapRelay returns the relay address of a pod that the consumer offloaded, and
// refuses any other address with [ErrNotOffloaded].
func (k *Keeper) MapRelay(ctx context.Context, consumer cluster.ID, address netip.Addr) (netip.Addr, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.pods.HasPod(consumer, address) {
		return netip.Addr{}, fmt.Errorf("%s for cluster %s: %w", address, consumer, ErrNotOffloaded)
	}
	return k.ipam.MapRelay(ctx, consumer, address)
}

// inUse reports whether a cluster is to reach an address through the broker: it
// offloaded the pod, or has a Service with that endpoint.
func (k *Keeper) inUse(target cluster.ID, address netip.Addr) bool {
	return k.pods.HasPod(target, address) || k.pods.HasEndpoint(target, address)
}

// free frees a relay address unless it is in use by now, and reports whether it
// did.
func (k *Keeper) free(ctx context.Context, target cluster.ID, address netip.Addr) (bool, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.inUse(target, address) {
		return false, nil
	}
	return true, k.ipam.UnmapRelay(ctx, target, address)
}
