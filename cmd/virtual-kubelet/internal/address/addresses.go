// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package address tells under which address the pods of a foreign cluster are reached from this
// one, and what addresses here are called there. It does not know what names an address: pods,
// slices, or specs.
package address

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/liqotech/liqo/pkg/liqonet/ipam"
	"google.golang.org/grpc"

	"github.com/capacitorset/liqo-broker/pkg/core/addressing"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/remoteipam"
	"github.com/capacitorset/liqo-broker/pkg/serving/source"
)

// Relay is what is needed of a broker's remote IPAM. Implementations may be used
// concurrently.
type Relay interface {
	Relayed
	Reports

	// Routes returns the providers that may be reached past the broker; nil before the broker has told any.
	Routes() []addressing.Route
}

// Relayed are the pods that are reached through the broker.
type Relayed interface {
	// MapRelay returns an address that leads to a pod through the broker.
	MapRelay(ctx context.Context, address netip.Addr) (netip.Addr, error)
	// Reported is the inverse of MapRelay, for the pods that are held.
	Reported(relay netip.Addr) (netip.Addr, bool)
	// Hold and Release tell which pods have which addresses.
	Hold(pod string, address netip.Addr)
	Release(pod string)
}

// Reports is what a broker is told of this cluster.
type Reports interface {
	// SetTunnels tells under which prefixes other clusters see the pods of this one.
	SetTunnels(prefixes map[cluster.ID]netip.Prefix)
	// SetRoundTrip tells what was measured in the tunnel to another cluster, and when.
	SetRoundTrip(id cluster.ID, took time.Duration, at time.Time)
}

// Addresses is Liqo's IPAM as the reflectors see it. It answers itself where
// the pods of the foreign cluster are, and passes everything else on to the IPAM
// of this cluster. It is safe for concurrent use.
type Addresses struct {
	ipam.IpamClient

	foreign cluster.ID
	// relay is nil if no remote IPAM is in use.
	relay Relay
	// checkTunnel is whether the tunnel to the foreign cluster matters; without it,
	// Liqo is told to leave networks alone.
	checkTunnel bool
	// measured is told how long it took to translate the address of a pod, and of the error; nil if nobody wants to know.
	measured func(time.Duration, error)

	mu    sync.Mutex
	peers map[cluster.ID]addressing.Peer
	// direct are the clusters that reach the foreign cluster past this one.
	direct remoteipam.DirectConsumers
	// apiServers are those that pods of other clusters call.
	apiServers apiServers
	// shown are the pods that are not reached by the foreign cluster's own prefix.
	shown shownPods
	// lost is whether the tunnel to the foreign cluster is known to carry nothing.
	lost atomic.Bool
	// table is nil until the tunnel to the foreign cluster is known.
	table atomic.Pointer[addressing.Table]
	// detours hold what follows of direct and peers: how this cluster sees the pods
	// of each of them, and how the foreign cluster does.
	detours atomic.Pointer[[]addressing.View]
}

// New wraps the IPAM of this cluster, which is asked for what it does not answer itself;
// relay is nil if no remote IPAM is in use. It knows no tunnel yet.
func New(local ipam.IpamClient, foreign cluster.ID, relay Relay) *Addresses {
	return &Addresses{IpamClient: local, foreign: foreign, relay: relay, peers: map[cluster.ID]addressing.Peer{}}
}

// Measure has a function told how long it takes to translate the address of a pod, or to fail. It must be called before the addresses
// are in use.
func (a *Addresses) Measure(measured func(time.Duration, error)) { a.measured = measured }

// GetHomePodIP translates the address of a pod, as the foreign cluster reports
// it, into the one that reaches it from here. It fails rather than return an
// address that could be another pod's.
func (a *Addresses) GetHomePodIP(
	ctx context.Context, request *ipam.GetHomePodIPRequest, options ...grpc.CallOption,
) (*ipam.GetHomePodIPResponse, error) {
	if cluster.ID(request.GetClusterID()) != a.foreign {
		return a.IpamClient.GetHomePodIP(ctx, request, options...)
	}
	reported, err := netip.ParseAddr(request.GetIp())
	if err != nil {
		return nil, fmt.Errorf("cluster %s reports a pod at %q: %w", a.foreign, request.GetIp(), err)
	}
	begun := time.Now()
	address, err := a.translate(ctx, reported)
	if a.measured != nil {
		a.measured(time.Since(begun), err)
	}
	if err != nil {
		return nil, err
	}
	return &ipam.GetHomePodIPResponse{HomeIP: address.String()}, nil
}

func (a *Addresses) translate(ctx context.Context, reported netip.Addr) (netip.Addr, error) {
	table := a.table.Load()
	if table == nil {
		return netip.Addr{}, fmt.Errorf("translate %s of cluster %s: the prefixes of its tunnel are not known", reported, a.foreign)
	}
	path, address := table.Resolve(reported)
	switch {
	case path == addressing.PathBroker:
		return address, nil
	case path == addressing.PathDirect:
		a.shown.show(reported, address)
		return address, nil
	case a.relay == nil:
		return netip.Addr{}, fmt.Errorf("translate %s of cluster %s: it is not in its pod CIDR, and no remote IPAM is in use",
			reported, a.foreign)
	}
	relay, err := a.relay.MapRelay(ctx, reported)
	if err != nil {
		return netip.Addr{}, err
	}
	// A broker leads only into itself; any other address is a pod of somebody else.
	if !a.Owns(a.foreign, relay) {
		return netip.Addr{}, fmt.Errorf("translate %s of cluster %s: it answers with %s, which is not in its pod or external CIDR",
			reported, a.foreign, relay)
	}
	a.shown.show(reported, relay)
	return relay, nil
}

// MapEndpointIP translates the address of an endpoint in this cluster into the one
// under which the foreign cluster reaches it. An endpoint of a consumer that the
// foreign cluster reaches past this one is not relayed here, and what the foreign cluster
// runs itself it is told by its own address.
func (a *Addresses) MapEndpointIP(
	ctx context.Context, request *ipam.MapRequest, options ...grpc.CallOption,
) (*ipam.MapResponse, error) {
	detours := a.detours.Load()
	endpoint, err := netip.ParseAddr(request.GetIp())
	if err != nil || cluster.ID(request.GetClusterID()) != a.foreign {
		return a.IpamClient.MapEndpointIP(ctx, request, options...)
	}
	if there, ok := a.atForeign(endpoint); ok {
		return &ipam.MapResponse{Ip: there.String()}, nil
	}
	if detours == nil {
		return a.IpamClient.MapEndpointIP(ctx, request, options...)
	}
	for _, detour := range *detours {
		if there, err := detour.ToObserver(endpoint); err == nil {
			return &ipam.MapResponse{Ip: there.String()}, nil
		}
	}
	return a.IpamClient.MapEndpointIP(ctx, request, options...)
}

// relayed reports whether a pod at an address is reached through the broker.
func (a *Addresses) relayed(address netip.Addr) bool {
	table := a.table.Load()
	if table == nil {
		return false
	}
	path, _ := table.Resolve(address)
	return path == addressing.PathRelay
}

// reachedDirectly reports whether a pod at an address is reached past the foreign
// cluster; one without an address is not.
func (a *Addresses) reachedDirectly(address string) bool {
	table := a.table.Load()
	parsed, err := netip.ParseAddr(address)
	if table == nil || err != nil {
		return false
	}
	path, _ := table.Resolve(parsed)
	return path == addressing.PathDirect
}

// Hold notes the address of a pod of the foreign cluster, which is known by its UID; an empty one
// is none.
func (a *Addresses) Hold(pod, address string) {
	if a.relay == nil {
		return
	}
	// What cannot be parsed is refused where it is to be translated.
	parsed, err := netip.ParseAddr(address)
	if err != nil {
		parsed = netip.Addr{}
	}
	a.shown.hold(pod, parsed)
	a.relay.Hold(pod, parsed)
}

// Release notes that a pod of the foreign cluster is gone.
func (a *Addresses) Release(pod string) {
	if a.relay != nil {
		a.shown.hold(pod, netip.Addr{})
		a.relay.Release(pod)
	}
}

// setDirect records which clusters reach the foreign cluster past this one, and
// reports whether translations may have changed.
func (a *Addresses) setDirect(direct remoteipam.DirectConsumers) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if maps.Equal(a.direct, direct) {
		return false
	}
	a.direct = direct
	a.rebuild()
	return true
}

// SetPeer records what the tunnel to a cluster looks like and reports whether
// translations may have changed.
func (a *Addresses) SetPeer(id cluster.ID, peer addressing.Peer) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if old, ok := a.peers[id]; ok && old == peer {
		return false
	}
	a.peers[id] = peer
	a.rebuild()
	return true
}

// source returns for whom a caller counts: for the cluster whose address it has, or else
// for its network.
func (a *Addresses) source(caller netip.Addr) source.Source {
	a.mu.Lock()
	defer a.mu.Unlock()
	for id, peer := range a.peers {
		if peer.Pods.Seen.Contains(caller) || peer.External.Seen.Contains(caller) {
			return source.Peer(string(id))
		}
	}
	return source.Network(caller)
}

// setRoundTrip passes on what was measured in the tunnel to a cluster, and when; zero
// if there is nothing to measure.
func (a *Addresses) setRoundTrip(id cluster.ID, took time.Duration, at time.Time) {
	if a.relay != nil && id != a.foreign {
		a.relay.SetRoundTrip(id, took, at)
	}
}

// deletePeer forgets a tunnel and reports whether translations may have changed.
func (a *Addresses) deletePeer(id cluster.ID) bool {
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
func (a *Addresses) routesChanged() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.rebuild()
}

// rebuild is called with the lock held. A table that could give one address to
// two pods is not used; the last good one would be as wrong, so that the routes
// are left out and every pod of a provider is asked of the broker.
func (a *Addresses) rebuild() {
	a.rebuildDetours()
	foreign, ok := a.peers[a.foreign]
	a.lost.Store(a.checkTunnel && !foreign.Connected)
	if !ok {
		a.table.Store(nil)
		return
	}
	var routes []addressing.Route
	if a.relay != nil {
		routes = a.relay.Routes()
	}
	table, err := addressing.NewTable(foreign.Pods, routes, a.peers)
	if err != nil {
		// Without routes there is nothing that could overlap.
		table, _ = addressing.NewTable(foreign.Pods, nil, a.peers)
	}
	a.table.Store(table)
	if a.relay == nil {
		return
	}
	prefixes := map[cluster.ID]netip.Prefix{}
	for id, peer := range a.peers {
		if peer.Connected && peer.Home.IsValid() && id != a.foreign {
			prefixes[id] = peer.Home.Seen
		}
	}
	a.relay.SetTunnels(prefixes)
}

// rebuildDetours is called with the lock held. A consumer is relayed that tells a
// prefix of another length than its pod CIDR, or one that it cannot have.
func (a *Addresses) rebuildDetours() {
	detours := make([]addressing.View, 0, len(a.direct))
	foreign, known := a.peers[a.foreign]
	for id, there := range a.direct {
		peer, ok := a.peers[id]
		if !ok || !known || id == a.foreign || addressing.CheckReport(there, a.takenFrom(id, foreign)...) != nil {
			continue
		}
		here := peer.Pods.Seen
		if here.Bits() == there.Bits() && here.Addr().Is4() == there.Addr().Is4() {
			detours = append(detours, addressing.View{Own: here, Seen: there})
		}
	}
	a.detours.Store(&detours)
}

// takenFrom returns the prefixes that a consumer cannot have in the foreign cluster; it
// is called with the lock held. Of two consumers that tell the same, nobody knows which
// one lies.
func (a *Addresses) takenFrom(consumer cluster.ID, foreign addressing.Peer) []netip.Prefix {
	taken := foreign.Taken()
	for id, prefix := range a.direct {
		if id != consumer {
			taken = append(taken, prefix)
		}
	}
	return taken
}
