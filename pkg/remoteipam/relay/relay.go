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
	"slices"
	"sync"

	"github.com/capacitorset/liqo-broker/pkg/cluster"
)

var (
	// ErrNotOffloaded means that an address is not the one of a pod that the consumer
	// offloaded.
	ErrNotOffloaded = errors.New("not the address of a pod that the consumer offloaded")
	// ErrTaken means that Liqo's IPAM gave a relay address out that leads to another pod.
	ErrTaken = errors.New("the relay address leads to another pod")
)

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

// Mappings are those that the IPAM has made.
type Mappings interface {
	// Behind returns the addresses to which a relay address leads a cluster.
	Behind(ctx context.Context, target cluster.ID, relay netip.Addr) ([]netip.Addr, error)
}

// Keeper maps and frees relay addresses. It is safe for concurrent use.
type Keeper struct {
	ipam     IPAM
	pods     Pods
	mappings Mappings

	// mu makes a look at the pods and the call that follows from it one step: an
	// address must not be freed between the two of a new pod.
	mu sync.Mutex
}

// NewKeeper returns a keeper of the addresses in the IPAM.
func NewKeeper(ipam IPAM, pods Pods, mappings Mappings) *Keeper {
	return &Keeper{ipam: ipam, pods: pods, mappings: mappings}
}

// MapRelay returns the relay address of a pod that the consumer offloaded, and
// refuses any other address with [ErrNotOffloaded]. It never returns one that leads
// elsewhere: then the error is [ErrTaken].
func (k *Keeper) MapRelay(ctx context.Context, consumer cluster.ID, address netip.Addr) (netip.Addr, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.pods.HasPod(consumer, address) {
		return netip.Addr{}, fmt.Errorf("%s for cluster %s: %w", address, consumer, ErrNotOffloaded)
	}
	relay, err := k.ipam.MapRelay(ctx, consumer, address)
	if err != nil {
		return netip.Addr{}, err
	}
	behind, err := k.mappings.Behind(ctx, consumer, relay)
	if err != nil {
		return netip.Addr{}, err
	}
	others := slices.DeleteFunc(behind, func(other netip.Addr) bool { return other == address })
	if len(others) == 0 {
		return relay, nil
	}
	return k.part(ctx, consumer, address, relay, others)
}

// part deals with a relay address that leads to others too. When a peering ends while
// addresses come and go, Liqo's IPAM can lose one of two writes, and take a relay address
// for free that is not (terminateNatMappingsPerCluster takes no lock, in
// pkg/liqonet/ipam/ipam.go@v0.9.4). What nobody uses makes way, and the address is mapped
// anew. What is in use stays right: Liqo's gateway goes by the older mapping. The newer
// one stays too, unused, so that the IPAM does not give the relay address to the next pod.
func (k *Keeper) part(ctx context.Context, consumer cluster.ID, address, relay netip.Addr, others []netip.Addr) (netip.Addr, error) {
	for _, other := range others {
		if k.inUse(consumer, other) || !k.pods.IsPeerAddress(other) { // Others are Liqo's own business.
			return netip.Addr{}, fmt.Errorf("%s for cluster %s: %s leads to %s: %w", address, consumer, relay, other, ErrTaken)
		}
	}
	for _, unused := range append(others, address) {
		if err := k.ipam.UnmapRelay(ctx, consumer, unused); err != nil {
			return netip.Addr{}, err
		}
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
