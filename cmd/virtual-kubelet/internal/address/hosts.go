// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package address

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/capacitorset/liqo-broker/pkg/core/addressing"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
)

// ErrHostUnknown says that the foreign cluster cannot be told how to reach an address.
var ErrHostUnknown = errors.New("the foreign cluster cannot be told how to reach it")

// MapHost returns under which address the foreign cluster reaches what this one reaches at an
// address: the same if that is not one of Liqo's. The origin is where the pod comes from that names
// it; empty for a pod of this cluster. An error is ErrHostUnknown, or passes by itself.
//
// It does so by arithmetic alone: a mapping in the IPAM would be nobody's to free. So it opens
// nothing to the foreign cluster that was closed before.
func (a *Addresses) MapHost(origin cluster.ID, here netip.Addr) (netip.Addr, error) {
	a.mu.Lock()
	foreign, known := a.peers[a.foreign]
	consumers, ofPeers := a.consumersAt(origin, here), a.isLiqos(here)
	a.mu.Unlock()
	switch {
	case !known && a.checkTunnel:
		return netip.Addr{}, fmt.Errorf("the prefixes of the tunnel to cluster %s are not known", a.foreign)
	case !known:
		return here, nil // The network between the two is not Liqo's.
	}
	if there, err := foreign.Home.ToObserver(here); err == nil {
		return there, nil // A pod of this cluster.
	}
	if table := a.table.Load(); table != nil {
		if there, ok := table.Reported(here); ok {
			return there, nil // A pod of the foreign cluster, or one that is reached past it.
		}
	}
	if a.relay != nil {
		if there, ok := a.relay.Reported(here); ok {
			return there, nil // A pod to which the foreign cluster leads.
		}
	}
	if detours := a.detours.Load(); detours != nil && consumers {
		for _, detour := range *detours {
			if there, err := detour.ToObserver(here); err == nil {
				return there, nil // A pod of a consumer that the foreign cluster reaches itself.
			}
		}
	}
	if ofPeers {
		return netip.Addr{}, ErrHostUnknown
	}
	return here, nil
}

// consumersAt reports whether a pod from an origin may name a pod of a consumer at an
// address: one of this cluster may, and another only its own consumer's. It is called with
// the lock held.
func (a *Addresses) consumersAt(origin cluster.ID, here netip.Addr) bool {
	own := a.peers[origin].Pods.Seen
	return origin == "" || own.IsValid() && own.Contains(here)
}

// isLiqos reports whether an address is one that only this cluster's Liqo gives a meaning
// to: of a pod of this cluster or of a peer, or of an external CIDR. It is called with the
// lock held.
func (a *Addresses) isLiqos(here netip.Addr) bool {
	contains := func(view addressing.View, prefix netip.Prefix) bool { return view.IsValid() && prefix.Contains(here) }
	for _, peer := range a.peers {
		if contains(peer.Pods, peer.Pods.Seen) || contains(peer.External, peer.External.Seen) ||
			contains(peer.Home, peer.Home.Own) || contains(peer.HomeExternal, peer.HomeExternal.Own) {
			return true
		}
	}
	return false
}
