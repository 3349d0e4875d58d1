// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package addressing

import (
	"fmt"
	"net/netip"

	"github.com/capacitorset/liqo-broker/pkg/cluster"
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
	// Connected tells whether the tunnel to the peer carries traffic.
	Connected bool
}

// Route says that the broker sees the pods of a provider under a prefix, and
// that the consumer may reach them past the broker.
type Route struct {
	Provider cluster.ID
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
// reports. It is a value that is not changed once it is in use, so that any
// number of goroutines may read it.
//
// Routes must not overlap one another; [Table.Validate] tells.
type Table struct {
	// Broker is how the consumer sees the pods that the broker runs itself.
	Broker View
	// Routes lists the providers that may be reached past the broker. It is
	// empty when the broker is opaque.
	Routes []Route
	// Peers are the clusters that the consumer is peered with, by their ID.
	Peers map[cluster.ID]Peer
}

// Validate reports the first reason why the table could give one address to two
// pods: routes that overlap each other or the broker's own pods.
func (t *Table) Validate() error {
	if !t.Broker.IsValid() {
		return fmt.Errorf("the prefix of the broker's own pods is not known")
	}
	for i, r := range t.Routes {
		if !r.Pods.IsValid() {
			return fmt.Errorf("the prefix of provider %s is not known", r.Provider)
		}
		if r.Pods.Seen.Overlaps(t.Broker.Own) {
			return fmt.Errorf("prefix %s of provider %s overlaps the broker's own pods %s", r.Pods.Seen, r.Provider, t.Broker.Own)
		}
		for _, other := range t.Routes[:i] {
			if r.Pods.Seen.Overlaps(other.Pods.Seen) {
				return fmt.Errorf("prefix %s of provider %s overlaps prefix %s of provider %s",
					r.Pods.Seen, r.Provider, other.Pods.Seen, other.Provider)
			}
		}
	}
	return nil
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
	if t.Broker.Own.Contains(reported) {
		return PathBroker, rebase(reported, t.Broker.Seen)
	}
	for i := range t.Routes {
		route := &t.Routes[i]
		if !route.Pods.Seen.Contains(reported) {
			continue
		}
		peer := t.Peers[route.Provider]
		original := rebase(reported, route.Pods.Own)
		// The provider may announce another prefix to the consumer than to the
		// broker; then the direct address is not known.
		if !peer.Connected || !peer.Pods.Own.Contains(original) {
			break
		}
		return PathDirect, rebase(original, peer.Pods.Seen)
	}
	return PathRelay, netip.Addr{}
}
