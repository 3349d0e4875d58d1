// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package address

import (
	"net/netip"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
)

// Place is what this cluster knows of an address.
type Place int

const (
	// PlaceUnknown is the zero value: nobody knows a pod with that address.
	PlaceUnknown Place = iota
	// PlaceFixed is that of a pod which the address leads to as long as it is there.
	PlaceFixed
	// PlacePassing is that of a pod behind the foreign cluster, or of a peer; what it is
	// translated to may change.
	PlacePassing
)

// Place tells what is known of an address.
func (a *Addresses) Place(address netip.Addr) Place {
	a.mu.Lock()
	defer a.mu.Unlock()
	foreign := a.peers[a.foreign]
	switch _, shown := a.shown.reported(address); {
	case shown:
		return PlacePassing
	case foreign.Home.Own.Contains(address), foreign.Pods.Seen.Contains(address):
		return PlaceFixed
	case foreign.External.Seen.Contains(address):
		return PlaceUnknown
	}
	for _, peer := range a.peers {
		if peer.Pods.Seen.Contains(address) || peer.External.Seen.Contains(address) {
			return PlacePassing
		}
	}
	return PlaceUnknown
}

// atForeign returns what the foreign cluster calls a pod that it runs, or that another
// cluster runs for it.
func (a *Addresses) atForeign(address netip.Addr) (netip.Addr, bool) {
	if reported, ok := a.shown.reported(address); ok {
		return reported, true
	}
	a.mu.Lock()
	pods := a.peers[a.foreign].Pods
	a.mu.Unlock()
	there, err := pods.ToOwner(address)
	return there, err == nil
}

// Owns reports whether an address is one by which this cluster reaches a pod of
// another one, or into its external CIDR.
func (a *Addresses) Owns(owner cluster.ID, address netip.Addr) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	peer := a.peers[owner]
	return peer.Pods.Seen.Contains(address) || peer.External.Seen.Contains(address)
}
