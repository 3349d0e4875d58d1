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

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/remoteipam/broker/fair"
)

var (
	// ErrNotOffloaded means that an address is not the one of a pod that the consumer
	// offloaded.
	ErrNotOffloaded = errors.New("not the address of a pod that the consumer offloaded")
	// ErrTaken means that Liqo's IPAM gave a relay address out that does not lead to the
	// pod, or not to it alone, and that this could not be repaired.
	ErrTaken = errors.New("the relay address leads elsewhere")
	// ErrTooMany means that the consumer has as many relay addresses as one may have.
	ErrTooMany = errors.New("the consumer has as many relay addresses as one may have")
)

// DefaultLimit is how many relay addresses one consumer may have. All of them come out of
// the external CIDR, and Liqo keeps those of all clusters in one object, which etcd takes
// up to 1.5 MiB.
const DefaultLimit = 4096

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
	// HasAlias reports whether a pod that goes to the cluster calls its API server at
	// the address.
	HasAlias(target cluster.ID, address netip.Addr) bool
	Peers
}

// Peers tells where peers are seen here. It answers from memory.
type Peers interface {
	// IsPeerAddress reports whether pods of a peer are seen here under addresses
	// like this one.
	IsPeerAddress(address netip.Addr) bool
	// IsPeerService reports whether the API server of a peer is seen here under
	// addresses like this one.
	IsPeerService(address netip.Addr) bool
}

// Mappings are those that the IPAM has made, as Liqo's gateway goes by them.
type Mappings interface {
	// Behind returns the addresses to which a relay address leads a cluster.
	Behind(ctx context.Context, target cluster.ID, relay netip.Addr) ([]netip.Addr, error)
	// Of returns the relay address that leads each cluster to an address; one that is not
	// valid for a cluster that has none.
	Of(ctx context.Context, address netip.Addr) (map[cluster.ID]netip.Addr, error)
	// Held returns how many addresses a cluster reaches, and whether this one is among
	// them.
	Held(ctx context.Context, target cluster.ID, address netip.Addr) (count int, mapped bool, err error)
}

// Allocator maps and frees relay addresses. It is safe for concurrent use.
type Allocator struct {
	ipam IPAM
	pods Pods
	// cached may not have what was mapped a moment ago; live has it.
	cached, live Mappings
	limit        int

	// lock makes a look at the pods and the call that follows from it one step: an
	// address must not be freed between the two of a new pod. Consumers take turns, so
	// that none waits for all that another one asks.
	lock fair.Lock[cluster.ID]
}

// collecting has a turn of its own, beside those of the consumers.
const collecting = cluster.ID("")

// NewAllocator returns an allocator of the addresses in the IPAM, which gives a consumer about
// as many as the limit at most. It looks at the cached mappings first, and at the live
// ones where it must be sure.
func NewAllocator(ipam IPAM, pods Pods, cached, live Mappings, limit int) *Allocator {
	return &Allocator{ipam: ipam, pods: pods, cached: cached, live: live, limit: limit}
}

// MapRelay returns the relay address of a pod that the consumer offloaded, and
// refuses any other address with [ErrNotOffloaded]. It never returns one that leads
// elsewhere or nowhere: then the error is [ErrTaken]. A consumer that has too many gets no
// new one, with [ErrTooMany].
func (a *Allocator) MapRelay(ctx context.Context, consumer cluster.ID, address netip.Addr) (netip.Addr, error) {
	notOffloaded := fmt.Errorf("%s for cluster %s: %w", address, consumer, ErrNotOffloaded)
	if !a.pods.HasPod(consumer, address) {
		return netip.Addr{}, notOffloaded
	}
	release, err := a.lock.Acquire(ctx, consumer)
	if err != nil {
		return netip.Addr{}, err
	}
	defer release()
	if !a.pods.HasPod(consumer, address) {
		return netip.Addr{}, notOffloaded
	}
	if err := a.checkLimit(ctx, consumer, address); err != nil {
		return netip.Addr{}, err
	}
	relay, err := a.ipam.MapRelay(ctx, consumer, address)
	if err != nil {
		return netip.Addr{}, err
	}
	if !a.pods.IsPeerAddress(address) {
		return relay, nil // A pod on this cluster needs no mapping: its address is translated with all others.
	}
	var behind []netip.Addr
	for _, mappings := range []Mappings{a.cached, a.live} {
		if behind, err = mappings.Behind(ctx, consumer, relay); err != nil {
			return netip.Addr{}, err
		}
		if leadsTo(behind, address) {
			return relay, nil
		}
	}
	return a.repair(ctx, consumer, address, relay, behind)
}

// checkLimit fails if a consumer may not have one more relay address. What the cache does
// not have yet is not counted.
func (a *Allocator) checkLimit(ctx context.Context, consumer cluster.ID, address netip.Addr) error {
	if !a.pods.IsPeerAddress(address) {
		return nil
	}
	count, mapped, err := a.cached.Held(ctx, consumer, address)
	if err != nil {
		return err
	}
	if !mapped && count >= a.limit {
		return fmt.Errorf("%s for cluster %s, which has %d: %w", address, consumer, count, ErrTooMany)
	}
	return nil
}

// leadsTo reports whether there is one address, this one, behind a relay address.
func leadsTo(behind []netip.Addr, address netip.Addr) bool {
	return len(behind) == 1 && behind[0] == address
}

// inUse reports whether a cluster is to reach an address through the broker: it
// offloaded the pod, has a Service with that endpoint, or runs a pod whose API server is
// there.
func (a *Allocator) inUse(target cluster.ID, address netip.Addr) bool {
	return a.pods.HasPod(target, address) || a.pods.HasEndpoint(target, address) || a.pods.HasAlias(target, address)
}

// free frees a relay address unless it is in use by now, and reports whether it
// did. One that the IPAM has forgotten, so that it was freed in vain, is mapped first.
func (a *Allocator) free(ctx context.Context, target cluster.ID, address netip.Addr, forgotten bool) (bool, error) {
	release, err := a.lock.Acquire(ctx, collecting)
	if err != nil {
		return false, err
	}
	defer release()
	if a.inUse(target, address) {
		return false, nil
	}
	if forgotten {
		if _, err := a.ipam.MapRelay(ctx, target, address); err != nil {
			return false, err
		}
	}
	return true, a.ipam.UnmapRelay(ctx, target, address)
}
