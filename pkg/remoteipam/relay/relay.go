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

var (
	// ErrNotOffloaded means that an address is not the one of a pod that the consumer
	// offloaded.
	ErrNotOffloaded = errors.New("not the address of a pod that the consumer offloaded")
	// ErrTaken means that Liqo's IPAM gave a relay address out that does not lead to the
	// pod, or not to it alone, and that this could not be repaired.
	ErrTaken = errors.New("the relay address leads elsewhere")
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

// Mappings are those that the IPAM has made, as Liqo's gateway goes by them.
type Mappings interface {
	// Behind returns the addresses to which a relay address leads a cluster.
	Behind(ctx context.Context, target cluster.ID, relay netip.Addr) ([]netip.Addr, error)
	// Of returns the relay address that leads each cluster to an address; one that is not
	// valid for a cluster that has none.
	Of(ctx context.Context, address netip.Addr) (map[cluster.ID]netip.Addr, error)
}

// Keeper maps and frees relay addresses. It is safe for concurrent use.
type Keeper struct {
	ipam IPAM
	pods Pods
	// cached may not have what was mapped a moment ago; live has it.
	cached, live Mappings

	// mu makes a look at the pods and the call that follows from it one step: an
	// address must not be freed between the two of a new pod.
	mu sync.Mutex
}

// NewKeeper returns a keeper of the addresses in the IPAM. It looks at the cached
// mappings first, and at the live ones where it must be sure.
func NewKeeper(ipam IPAM, pods Pods, cached, live Mappings) *Keeper {
	return &Keeper{ipam: ipam, pods: pods, cached: cached, live: live}
}

// MapRelay returns the relay address of a pod that the consumer offloaded, and
// refuses any other address with [ErrNotOffloaded]. It never returns one that leads
// elsewhere or nowhere: then the error is [ErrTaken].
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
	if !k.pods.IsPeerAddress(address) {
		return relay, nil // A pod on this cluster needs no mapping: its address is translated with all others.
	}
	var behind []netip.Addr
	for _, mappings := range []Mappings{k.cached, k.live} {
		if behind, err = mappings.Behind(ctx, consumer, relay); err != nil {
			return netip.Addr{}, err
		}
		if leadsTo(behind, address) {
			return relay, nil
		}
	}
	return k.repair(ctx, consumer, address, relay, behind)
}

// leadsTo tells whether there is one address, this one, behind a relay address.
func leadsTo(behind []netip.Addr, address netip.Addr) bool {
	return len(behind) == 1 && behind[0] == address
}

// inUse reports whether a cluster is to reach an address through the broker: it
// offloaded the pod, or has a Service with that endpoint.
func (k *Keeper) inUse(target cluster.ID, address netip.Addr) bool {
	return k.pods.HasPod(target, address) || k.pods.HasEndpoint(target, address)
}

// free frees a relay address unless it is in use by now, and reports whether it
// did. One that the IPAM has forgotten, so that it was freed in vain, is mapped first.
func (k *Keeper) free(ctx context.Context, target cluster.ID, address netip.Addr, forgotten bool) (bool, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.inUse(target, address) {
		return false, nil
	}
	if forgotten {
		if _, err := k.ipam.MapRelay(ctx, target, address); err != nil {
			return false, err
		}
	}
	return true, k.ipam.UnmapRelay(ctx, target, address)
}
