// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package addressing

import (
	"fmt"
	"net/netip"
	"slices"
	"sort"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
)

// Peer is a cluster with which the consumer itself is peered.
type Peer struct {
	// Pods is how the consumer sees the pods of the peer.
	Pods View
	// Home is how the peer sees the pods of the consumer; not valid if the peer
	// has not told.
	Home View
	// External is how the consumer sees the external CIDR of the peer; not valid if
	// it is not known.
	External View
	// HomeExternal is how the peer sees the external CIDR of the consumer; not valid if
	// the peer has not told.
	HomeExternal View
	// Connected reports whether the tunnel to the peer carries traffic.
	Connected bool
}

// Route says that the broker sees the pods of a provider under a prefix, and
// that the consumer may reach them past the broker.
type Route struct {
	Provider cluster.ID
	// Name is what the provider calls itself, for people; empty if that is not known.
	Name string
	// Pods is how the broker sees the pods of the provider.
	Pods View
}

// Path is the way that packets take from the consumer to a pod.
type Path int

const (
	// PathUnknown is the zero value: no address can be told.
	PathUnknown Path = iota
	// PathBroker leads to a pod that the broker runs itself.
	PathBroker
	// PathDirect leads through the consumer's own tunnel to the provider.
	PathDirect
	// PathRelay leads through the broker; its address must be asked of it.
	PathRelay
)

// String returns the path as shown to people.
func (p Path) String() string {
	switch p {
	case PathBroker:
		return "broker"
	case PathDirect:
		return "direct"
	case PathRelay:
		return "relay"
	case PathUnknown:
	}
	return "unknown"
}

// Table holds all that a consumer knows about the addresses that one broker
// reports. It does not change, so that any number of goroutines may use it.
type Table struct {
	broker View
	// ways are ordered by the prefix that the broker sees, and do not overlap.
	ways []way
}

// way is what is known about the pods of one provider.
type way struct {
	provider cluster.Identity
	// broker is how the broker sees them, consumer how the consumer does; the
	// latter is not valid without a connected tunnel.
	broker, consumer View
}

// NewTable returns the table of a consumer. The first argument is how the
// consumer sees the pods that the broker runs itself. The routes are the
// providers that may be reached past the broker, none when it is opaque; the
// peers are the clusters that the consumer is peered with.
//
// The error is the first reason why the table could give one address to two pods:
// routes that overlap each other or the broker's own pods.
func NewTable(broker View, routes []Route, peers map[cluster.ID]Peer) (*Table, error) {
	if !broker.IsValid() {
		return nil, fmt.Errorf("the prefix of the broker's own pods is not known")
	}
	routes = slices.SortedFunc(slices.Values(routes), func(a, b Route) int {
		return a.Pods.Seen.Addr().Compare(b.Pods.Seen.Addr())
	})
	table := &Table{broker: broker, ways: make([]way, len(routes))}
	for i, r := range routes {
		switch {
		case !r.Pods.IsValid():
			return nil, fmt.Errorf("the prefix of provider %s is not known", r.Provider)
		case r.Pods.Seen.Overlaps(broker.Own):
			return nil, fmt.Errorf("prefix %s of provider %s overlaps the broker's own pods %s", r.Pods.Seen, r.Provider, broker.Own)
		case i > 0 && r.Pods.Seen.Overlaps(routes[i-1].Pods.Seen):
			// Of prefixes in this order, neighbours overlap if any two do.
			return nil, fmt.Errorf("prefix %s of provider %s overlaps prefix %s of provider %s",
				r.Pods.Seen, r.Provider, routes[i-1].Pods.Seen, routes[i-1].Provider)
		}
		table.ways[i].provider, table.ways[i].broker = cluster.Identity{ID: r.Provider, Name: r.Name}, r.Pods
		if peer := peers[r.Provider]; peer.Connected {
			table.ways[i].consumer = peer.Pods
		}
	}
	return table, nil
}

// Resolve tells by which path, and under which address, the consumer reaches
// the pod that the broker reports at the given address. The address is only
// valid for [PathBroker] and [PathDirect]; the one of [PathRelay] is the
// broker's to choose.
//
// An address that is in no known prefix is a relay, because an opaque broker
// tells none: the broker answers only for addresses of pods that the consumer
// offloaded.
func (t *Table) Resolve(reported netip.Addr) (Path, netip.Addr) {
	if t.broker.Own.Contains(reported) {
		return PathBroker, rebase(reported, t.broker.Seen)
	}
	way := t.find(reported)
	if way == nil || !way.consumer.IsValid() {
		return PathRelay, netip.Addr{}
	}
	// The provider may announce another prefix to the consumer than to the broker;
	// then the direct address is not known.
	original := rebase(reported, way.broker.Own)
	if !way.consumer.Own.Contains(original) {
		return PathRelay, netip.Addr{}
	}
	return PathDirect, rebase(original, way.consumer.Seen)
}

// Provider returns the provider that runs the pod which the broker reports at the given address; empty if no route says.
func (t *Table) Provider(reported netip.Addr) cluster.Identity {
	if way := t.find(reported); way != nil {
		return way.provider
	}
	return cluster.Identity{}
}

// Reported is the inverse of [Table.Resolve] for [PathBroker] and [PathDirect]: it tells at which address the broker reports, or
// would report, the pod that the consumer reaches at the given one. It is false if that is no such pod.
func (t *Table) Reported(address netip.Addr) (netip.Addr, bool) {
	if t.broker.Seen.Contains(address) {
		return rebase(address, t.broker.Own), true
	}
	for i := range t.ways {
		way := &t.ways[i]
		if !way.consumer.IsValid() || !way.consumer.Seen.Contains(address) {
			continue
		}
		if original := rebase(address, way.consumer.Own); way.broker.Own.Contains(original) {
			return rebase(original, way.broker.Seen), true
		}
	}
	return netip.Addr{}, false
}

// find returns the way to a pod that the broker reports at an address; nil if none
// is known.
func (t *Table) find(reported netip.Addr) *way {
	after := sort.Search(len(t.ways), func(i int) bool {
		return reported.Less(t.ways[i].broker.Seen.Addr())
	})
	if after == 0 || !t.ways[after-1].broker.Seen.Contains(reported) {
		return nil
	}
	return &t.ways[after-1]
}
