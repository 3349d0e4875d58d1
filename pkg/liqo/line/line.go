// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package line says what the daemon asks of Liqo, whichever line of its versions runs: which kinds there are to watch, and what they mean
// as the values of package liqo.
//
// It has no answers: package v09 has those of Liqo 0.9, and package v1 those of Liqo 1.x.
package line

import (
	"cmp"
	"context"
	"net/netip"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
)

// Line is one line of Liqo's versions, as far as the daemon has to do with it. It holds no state, and may be used concurrently.
type Line interface {
	Watched
	Read
	Told
}

// Watched is what there is to watch, and how it is kept.
type Watched interface {
	// Name is what people call the line, as "0.9".
	Name() string
	// AddToScheme registers the kinds that a broker reads and writes.
	AddToScheme(s *runtime.Scheme) error
	// Kinds returns new objects of the kinds that are watched.
	Kinds() Kinds
	// Dropped takes away of some kinds' objects what nobody here reads, so that a cache does not keep it.
	Dropped(compactor *liqo.Compactor) map[client.Object]func(client.Object)
	// Indexes are those that the cache of a Reader must have.
	Indexes() []Index
}

// Read is who reads.
type Read interface {
	// OwnIdentity returns what this cluster is called, as Liqo in a namespace has it.
	OwnIdentity(ctx context.Context, objects client.Reader, namespace string) (cluster.Identity, error)
	// Reader reads from a cache that has the Indexes, on the cluster with an ID.
	Reader(objects client.Reader, own cluster.ID) Reader
}

// Told is what one object says by itself.
type Told interface {
	// IdentityOf returns what a cluster is called, of which an object of Kinds.Record is the record.
	IdentityOf(record client.Object) cluster.Identity
	// OfferOf returns what an object of Kinds.Offer says, without whose tenant namespace that is: With and Wrong are empty.
	OfferOf(offer client.Object) liqo.Offer
	// SeenOf returns the prefixes under which pods of a peer are seen here, as an object of Kinds.Network says.
	SeenOf(network client.Object) []netip.Prefix
	// AccountChanged reports whether an update of a Record, an Offer or a Peering of Kinds changes who is a peer, or what is offered for which
	// node, also because it counts now or counts no more. It is true for objects of other kinds.
	AccountChanged(before, after any) bool
}

// Kinds are the kinds of Liqo's objects that are watched, each as an empty object.
type Kinds struct {
	// Record is how Liqo knows a peer: one object for each, in no namespace.
	Record client.Object
	// Offer is what one cluster offers to another, in the tenant namespace of the other one.
	Offer client.Object
	// Network has the prefixes of a peer, and Tunnels besides say how the way there is; all of them in its tenant namespace.
	Network client.Object
	Tunnels []client.Object
	// Peering says how far peerings have come, in the tenant namespace of a peer; empty if the Record says it.
	Peering []client.Object
}

// Index is how the objects of one kind are found by one field.
type Index struct {
	Object  client.Object
	Field   string
	Extract client.IndexerFunc
}

// NonEmpty returns the one value by which an Index finds an object; none if it is empty.
func NonEmpty(value string) []string {
	if value == "" {
		return nil
	}
	return []string{value}
}

// Reader reads Liqo's objects as values, which may share memory with a cache and are not to be changed. It may be used concurrently.
type Reader interface {
	Peers
	Offers
	Links
	// Catalog returns what people may see of the peers, in order of name.
	Catalog(ctx context.Context) ([]Entry, error)
}

// Peers are the clusters that this one knows.
type Peers interface {
	// Peers returns all peers, and PeersCalled those that call themselves by a name.
	Peers(ctx context.Context) ([]liqo.Peer, error)
	PeersCalled(ctx context.Context, name string) ([]liqo.Peer, error)
	// Peer returns the peer with an ID, or nil if there is none.
	Peer(ctx context.Context, id cluster.ID) (*liqo.Peer, error)
	// Namesakes returns the other peers that Liqo cannot tell apart from a cluster, because it makes the same name of what they are called.
	Namesakes(ctx context.Context, of cluster.Identity) ([]liqo.Peer, error)
	// Tenant returns what the peer is called whose tenant namespace a namespace is; empty if it is none.
	Tenant(ctx context.Context, namespace string) (cluster.Identity, error)
}

// Offers are what clusters offer each other.
type Offers interface {
	// Offers returns all of them.
	Offers(ctx context.Context) ([]liqo.Offer, error)
	// OffersWith returns the offers in the tenant namespace of a peer.
	OffersWith(ctx context.Context, peer *liqo.Peer) ([]liqo.Offer, error)
	// OffersOfNode returns the offers of peers for a virtual node, right and wrong ones.
	OffersOfNode(ctx context.Context, name string) ([]liqo.Offer, error)
	// UsualOwners returns the peers whose virtual node has a name if they do not say otherwise.
	UsualOwners(ctx context.Context, node string) ([]cluster.ID, error)
}

// Links are the networks towards the peers.
type Links interface {
	// Links returns all of them, and LinksWith those in the tenant namespace of one peer.
	Links(ctx context.Context) ([]liqo.Link, error)
	LinksWith(ctx context.Context, peer *liqo.Peer) ([]liqo.Link, error)
}

// Entry is what people may see of a peer, as the API of the catalog answers.
type Entry struct {
	// Peer is what Liqo's record says of it: at least who it is, and whether it provides.
	Peer liqo.Peer
	// Whole is for those who may know what the broker knows, and Provider for strangers: not whether the peer consumes. Both are written as
	// JSON. Provider is nil if strangers are not to learn of the peer.
	Whole, Provider any
}

// Tenants returns the peers by their tenant namespaces.
func Tenants(peers []liqo.Peer) map[string]cluster.Identity {
	tenants := make(map[string]cluster.Identity, len(peers))
	for i := range peers {
		if peers[i].Tenant != "" {
			tenants[peers[i].Tenant] = peers[i].Identity
		}
	}
	return tenants
}

// Sort puts entries into the order of their records' names: a client that asks twice gets them in the same one.
func Sort(entries []Entry) {
	slices.SortFunc(entries, func(a, b Entry) int { return cmp.Compare(a.Peer.Record, b.Peer.Record) })
}
