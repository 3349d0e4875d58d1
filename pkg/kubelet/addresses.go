// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"sync"
	"sync/atomic"

	"github.com/liqotech/liqo/pkg/liqonet/ipam"
	"google.golang.org/grpc"

	"github.com/capacitorset/liqo-broker/pkg/addressing"
	"github.com/capacitorset/liqo-broker/pkg/cluster"
)

// relay is what is needed of a broker's remote IPAM.
type relay interface {
	// Routes returns the providers that may be reached past the broker.
	Routes() []addressing.Route
	// MapRelay asks for an address that leads to a pod through the broker.
	MapRelay(ctx context.Context, address netip.Addr) (netip.Addr, error)
}

// addresses is Liqo's IPAM as the reflectors see it. It answers itself where
// the pods of the foreign cluster are, and passes everything else on to the IPAM
// of this cluster. It is safe for concurrent use.
type addresses struct {
	ipam.IpamClient

	foreign cluster.ID
	// relay is nil if no remote IPAM was configured.
	relay relay

	mu    sync.Mutex
	peers map[cluster.ID]addressing.Peer
	// table is nil until the tunnel to the foreign cluster is known.
	table atomic.Pointer[addressing.Table]
}

// newAddresses wraps the IPAM of this cluster; relay may be nil.
func newAddresses(local ipam.IpamClient, foreign cluster.ID, relay relay) *addresses {
	return &addresses{IpamClient: local, foreign: foreign, relay: relay, peers: map[cluster.ID]addressing.Peer{}}
}

// GetHomePodIP translates the address of a pod, as the foreign cluster reports
// it, into the one that reaches it from here. It fails rather than return an
// address that could be another pod's.
func (a *addresses) GetHomePodIP(
	ctx context.Context, request *ipam.GetHomePodIPRequest, options ...grpc.CallOption,
) (*ipam.GetHomePodIPResponse, error) {
	if cluster.ID(request.GetClusterID()) != a.foreign {
		return a.IpamClient.GetHomePodIP(ctx, request, options...)
	}
	reported, err := netip.ParseAddr(request.GetIp())
	if err != nil {
		return nil, fmt.Errorf("cluster %s reports a pod at %q: %w", a.foreign, request.GetIp(), err)
	}
	address, err := a.translate(ctx, reported)
	if err != nil {
		return nil, err
	}
	return &ipam.GetHomePodIPResponse{HomeIP: address.String()}, nil
}

func (a *addresses) translate(ctx context.Context, reported netip.Addr) (netip.Addr, error) {
	table := a.table.Load()
	if table == nil {
		return netip.Addr{}, fmt.Errorf("translate %s of cluster %s: the prefixes of its tunnel are not known", reported, a.foreign)
	}
	path, address := table.Resolve(reported)
	switch {
	case path == addressing.PathBroker, path == addressing.PathDirect:
		return address, nil
	case a.relay == nil:
		return netip.Addr{}, fmt.Errorf("translate %s of cluster %s: it is not in its pod CIDR %s, and no --remote-ipam is set",
			reported, a.foreign, table.Broker.Own)
	default:
		return a.relay.MapRelay(ctx, reported)
	}
}

// setPeer records what the tunnel to a cluster looks like and reports whether
// translations may have changed.
func (a *addresses) setPeer(id cluster.ID, peer addressing.Peer) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if old, ok := a.peers[id]; ok && old == peer {
		return false
	}
	a.peers[id] = peer
	a.rebuild()
	return true
}

// deletePeer forgets a tunnel and reports whether translations may have changed.
func (a *addresses) deletePeer(id cluster.ID) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, ok := a.peers[id]; !ok {
		return false
	}
	delete(a.peers, id)
	a.rebuild()
	return true
}

// routesChanged takes over the routes that the broker told.
func (a *addresses) routesChanged() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.rebuild()
}

// rebuild is called with the lock held. A table that could give one address to
// two pods is not used; the last good one would be as wrong, so that the routes
// are left out and every pod of a provider is asked of the broker.
func (a *addresses) rebuild() {
	foreign, ok := a.peers[a.foreign]
	if !ok {
		a.table.Store(nil)
		return
	}
	table := &addressing.Table{Broker: foreign.Pods, Peers: maps.Clone(a.peers)}
	if a.relay != nil {
		table.Routes = a.relay.Routes()
		if table.Validate() != nil {
			table.Routes = nil
		}
	}
	a.table.Store(table)
}
