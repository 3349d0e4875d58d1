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
	"fmt"
	"net/netip"
	"sync"

	"github.com/capacitorset/liqo-broker/pkg/cluster"
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
	// IsProviderAddress reports whether pods of a provider are seen here under
	// addresses like this one.
	IsProviderAddress(address netip.Addr) bool
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
// refuses any other address.
func (k *Keeper) MapRelay(ctx context.Context, consumer cluster.ID, address netip.Addr) (netip.Addr, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.pods.HasPod(consumer, address) {
		return netip.Addr{}, fmt.Errorf("%s is not the address of a pod that cluster %s offloaded", address, consumer)
	}
	return k.ipam.MapRelay(ctx, consumer, address)
}

// free frees a relay address unless a pod has it by now, and reports whether it
// did.
func (k *Keeper) free(ctx context.Context, consumer cluster.ID, address netip.Addr) (bool, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.pods.HasPod(consumer, address) {
		return false, nil
	}
	return true, k.ipam.UnmapRelay(ctx, consumer, address)
}
