// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package relay

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
)

// repairTimeout bounds a repair, which does not end with the call that it is for.
const repairTimeout = 10 * time.Second

// repair maps an address again whose relay address does not lead to it alone.
//
// When a peering ends while addresses come and go, Liqo's IPAM can lose one of two
// writes (terminateNatMappingsPerCluster takes no lock, in
// pkg/liqonet/ipam/ipam.go@v0.9.4). Then it remembers a mapping that is gone, or has
// forgotten one that is there, and gives a relay address out again that is in use.
//
// What is in use keeps its relay address; what nobody uses makes way.
func (a *Allocator) repair(ctx context.Context, consumer cluster.ID, address, relay netip.Addr, behind []netip.Addr) (netip.Addr, error) {
	// What is unmapped on the way has to be mapped again.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), repairTimeout)
	defer cancel()
	taken := fmt.Errorf("%s for cluster %s: %s leads to %s: %w", address, consumer, relay, behind, ErrTaken)

	var used []netip.Addr
	unused := []netip.Addr{address}
	for _, other := range behind {
		switch {
		case other == address:
		case other.IsLinkLocalUnicast(): // The end of a tunnel, which has a fixed relay address.
			return netip.Addr{}, taken
		case !a.pods.IsPeerAddress(other), a.inUse(consumer, other): // What is no pod of a peer, Liqo itself has mapped.
			used = append(used, other)
		default:
			unused = append(unused, other)
		}
	}
	if len(used) > 1 {
		return netip.Addr{}, taken
	}
	// Liqo's IPAM forgets what nobody uses, so that it has the relay address to give.
	for _, other := range unused {
		if _, err := a.align(ctx, other); err != nil {
			return netip.Addr{}, err
		}
		if err := a.ipam.UnmapRelay(ctx, consumer, other); err != nil {
			return netip.Addr{}, err
		}
	}
	got, err := a.ipam.MapRelay(ctx, consumer, address)
	if err == nil && got == relay && len(used) == 1 {
		got, err = a.remap(ctx, consumer, address, used[0])
	}
	if err != nil {
		return netip.Addr{}, err
	}
	// Only an address at which the right pod answers is given out.
	behind, err = a.live.Behind(ctx, consumer, got)
	if err != nil {
		return netip.Addr{}, err
	}
	if !leadsTo(behind, address) {
		return netip.Addr{}, taken
	}
	return got, nil
}

// remap makes the IPAM remember that a relay address is in use which it takes for
// free: both addresses give it up, and the one that uses it gets it back, because the
// IPAM gives out the lowest that is free (Acquire in go-ipam). Liqo's gateway learns of
// that when it is over.
func (a *Allocator) remap(ctx context.Context, consumer cluster.ID, address, used netip.Addr) (netip.Addr, error) {
	if err := a.ipam.UnmapRelay(ctx, consumer, address); err != nil {
		return netip.Addr{}, err
	}
	elsewhere, err := a.align(ctx, address)
	if err != nil {
		return netip.Addr{}, err
	}
	if len(elsewhere) > 0 {
		return netip.Addr{}, fmt.Errorf("%s for cluster %s: others reach it at %v: %w", address, consumer, elsewhere, ErrTaken)
	}
	held, err := a.align(ctx, used)
	if err != nil {
		return netip.Addr{}, err
	}
	var failures []error
	for target := range held {
		failures = append(failures, a.ipam.UnmapRelay(ctx, target, used))
	}
	for target, had := range held {
		got, err := a.ipam.MapRelay(ctx, target, used)
		if err == nil && got != had {
			err = fmt.Errorf("%s, which cluster %s reached at %s, is at %s now", used, target, had, got)
		}
		failures = append(failures, err)
	}
	if err := errors.Join(failures...); err != nil {
		return netip.Addr{}, err
	}
	return a.ipam.MapRelay(ctx, consumer, address)
}

// align unmaps an address for the clusters for which only the IPAM believes that it is
// mapped, and returns the relay addresses that lead the others to it.
func (a *Allocator) align(ctx context.Context, address netip.Addr) (map[cluster.ID]netip.Addr, error) {
	of, err := a.live.Of(ctx, address)
	if err != nil {
		return nil, err
	}
	for target, relay := range of {
		if relay.IsValid() {
			continue
		}
		if err := a.ipam.UnmapRelay(ctx, target, address); err != nil {
			return nil, err
		}
		delete(of, target)
	}
	return of, nil
}
