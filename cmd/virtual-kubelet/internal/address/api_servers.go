// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package address

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"sync"
	"time"

	"github.com/liqotech/liqo/pkg/liqonet/ipam"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
)

// NotAPIServerError says why an address is not taken for that of an API server.
type NotAPIServerError string

func (e NotAPIServerError) Error() string { return string(e) }

// MapExternal translates an address of an API server that pods of its owner name, for the foreign
// cluster; an error that it cannot be one is a NotAPIServerError. A pod says itself where its aliases lead,
// so that nothing but its own cluster may be opened for them, and of that only what
// can be its API server: each address takes one of the external CIDR of this cluster.
func (a *Addresses) MapExternal(ctx context.Context, owner cluster.ID, address string) (netip.Addr, error) {
	a.mu.Lock()
	external := a.peers[owner].External.Seen
	a.mu.Unlock()
	parsed, err := netip.ParseAddr(address)
	if err != nil || !external.Contains(parsed) {
		return netip.Addr{}, NotAPIServerError(address + " is not in the external CIDR of that cluster")
	}
	if !a.apiServers.admitAddress(owner, parsed, time.Now()) {
		return netip.Addr{}, NotAPIServerError("pods of that cluster already name other API servers than " + address)
	}
	response, err := a.IpamClient.MapEndpointIP(ctx, &ipam.MapRequest{ClusterID: string(a.foreign), Ip: address})
	if err != nil {
		return netip.Addr{}, fmt.Errorf("map %s for cluster %s: %w", address, a.foreign, err)
	}
	mapped, err := netip.ParseAddr(response.GetIp())
	if err != nil {
		return netip.Addr{}, fmt.Errorf("map %s for cluster %s: the IPAM answered %q: %w", address, a.foreign, response.GetIp(), err)
	}
	return mapped, nil
}

const (
	// apiServersPerCluster is one, and another that it may change to.
	apiServersPerCluster = 2
	// apiServerHold is how long an address of an API server counts that no new pod names.
	apiServerHold = 24 * time.Hour
)

// apiServers are the addresses that pods of each cluster name as that of its API server.
// The zero value is ready for use.
type apiServers struct {
	mu sync.Mutex
	// named is when each was named last.
	named map[cluster.ID]map[netip.Addr]time.Time
}

// admitAddress reports whether an address may be that of the API server of a cluster.
func (s *apiServers) admitAddress(owner cluster.ID, address netip.Addr, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.named == nil {
		s.named = map[cluster.ID]map[netip.Addr]time.Time{}
	}
	if s.named[owner] == nil {
		s.named[owner] = map[netip.Addr]time.Time{}
	}
	named := s.named[owner]
	if _, known := named[address]; !known && len(named) >= apiServersPerCluster {
		maps.DeleteFunc(named, func(_ netip.Addr, last time.Time) bool { return now.Sub(last) >= apiServerHold })
		if len(named) >= apiServersPerCluster {
			return false
		}
	}
	named[address] = now
	return true
}
