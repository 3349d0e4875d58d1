// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package line says what the daemon and the plugin ask of Liqo, whichever line of its versions runs: which kinds there are to watch, and
// what they mean as the values of package liqo.
//
// It has no answers: package v09 has those of Liqo 0.9, and package v1 those of Liqo 1.x.
package line

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	Offloaded
	Ruled
}

// Offloaded is all about namespaces of one cluster that run in another one.
type Offloaded interface {
	Offloads
	ByPeople
	Twins
}

// Known is by what a line is known, and how it differs from others in the large.
type Known interface {
	// Name is what people call the line, as "0.9".
	Name() string
	// AddToScheme registers the kinds that a broker reads and writes.
	AddToScheme(s *runtime.Scheme) error
	// HasPlugin reports whether Liqo asks a resource plugin what to offer, and our virtual kubelet runs pods. Otherwise consumers ask by
	// objects, which a controller answers, and webhooks do for pods what the virtual kubelet does not.
	HasPlugin() bool
	// DirectPaths reports whether consumers that peer with a provider themselves reach past the broker what it has placed there. Otherwise
	// they reach all of that through the broker, whoever they peer with.
	DirectPaths() bool
}

// Watched is what there is to watch, and how it is kept.
type Watched interface {
	Known
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
	// Gateways returns those of Liqo in a namespace, wherever they are.
	Gateways(ctx context.Context, objects client.Reader, namespace string) ([]Gateway, error)
}

// Gateway is a Deployment in whose pods tunnels to peers end.
type Gateway struct {
	appsv1.Deployment
	// To is the peer to which the tunnel leads. It is empty where the tunnels to all peers end.
	To cluster.Identity
}

// Told is what one object says by itself.
type Told interface {
	// IdentityOf returns what a cluster is called, of which an object of Kinds.Record is the record.
	IdentityOf(record client.Object) cluster.Identity
	// OfferOf returns what an object of Kinds.Offer says, without whose tenant namespace that is: With and Wrong are empty.
	OfferOf(offer client.Object) liqo.Offer
	// WishOf returns what an object of Kinds.Wish asks for. It shares memory with the object.
	WishOf(wish client.Object) liqo.Wish
	Networks
	// AccountChanged reports whether an update of a Namespace, or of a Record, an Offer or a Peering of Kinds, changes who is a peer, or what
	// is offered for which node, also because it counts now or counts no more. It is true for objects of other kinds.
	AccountChanged(before, after any) bool
}

// Networks is what single objects say of networks.
type Networks interface {
	// SeenOf returns the prefixes under which pods of a peer are seen here, masked, as an object of Kinds.Network says.
	SeenOf(network client.Object) []netip.Prefix
	// OwnNetworksOf returns which networks this cluster itself has, as an object of Kinds.OwnNetwork says; none if that is about a peer's,
	// or Liqo has not written it down yet.
	OwnNetworksOf(o client.Object) []netip.Prefix
}

// Offloads is how namespaces of this cluster are offloaded to others.
type Offloads interface {
	// OffloadingOf returns what an object of Kinds.Offloading says.
	OffloadingOf(o client.Object) liqo.Offloading
	// Selects reports whether it selects a cluster.
	Selects(o client.Object, id cluster.ID) bool
	// ReceptionOf returns what became of its namespace on a cluster.
	ReceptionOf(o client.Object, at cluster.Identity) liqo.Reception
	// NewOffloading returns an object of that kind that the broker is to keep, to send all pods of a namespace of this cluster, own, to
	// others. It selects none yet, and has the preferred mapping if the names of that are legal.
	NewOffloading(namespace string, preferred liqo.Mapping, own cluster.Identity) client.Object
	// Select makes such an object select clusters, in order, of which there must be at least one, and no others, and notes on which of them
	// new pods are placed.
	Select(o client.Object, selected, placing []cluster.ID)
}

// ByPeople is how people offload namespaces of this cluster, and no broker does.
type ByPeople interface {
	// NewOffloadingTo returns an object of Kinds.Offloading by which pods of a namespace of this cluster, own, may run here and on one other
	// cluster.
	NewOffloadingTo(namespace string, own cluster.Identity, to cluster.ID) client.Object
}

// Twins is what the twin namespaces say that peers have here.
type Twins interface {
	// Passed reports whether a twin namespace came from a cluster or through it, as far as that can be told from here.
	Passed(twin *corev1.Namespace, id cluster.Identity) bool
	// TwinOfLiqo reports whether a twin namespace is what a peer shows of its own Liqo, and has no pods that are to run here.
	TwinOfLiqo(twin *corev1.Namespace, peer cluster.Identity) bool
	// Forward adds to a new pod of a consumer what it must have to run on another cluster still.
	Forward(pod *corev1.Pod)
}

// Kinds are the kinds of Liqo's objects that are watched, each as an empty object.
type Kinds struct {
	// Record is how Liqo knows a peer: one object for each, in no namespace.
	Record client.Object
	// Offer is what one cluster offers to another, in the tenant namespace of the other one, and Offers is an empty list of those.
	Offer  client.Object
	Offers client.ObjectList
	// Network has the prefixes of a peer, and Tunnels besides say how the way there is; all of them in its tenant namespace.
	Network client.Object
	Tunnels []client.Object
	// Peering says how far peerings have come, in the tenant namespace of a peer; empty if the Record says it.
	Peering []client.Object
	// Offloading says to which clusters the pods of its namespace go, and Offloadings is an empty list of those.
	Offloading  client.Object
	Offloadings client.ObjectList
	// Shadow is the metadata of how a consumer asks for a pod in a twin namespace. Liqo keeps a pod of the same name and namespace. Wish is
	// the whole object, and Wishes an empty list of those.
	Shadow *metav1.PartialObjectMetadata
	Wish   client.Object
	Wishes client.ObjectList
	// OwnNetwork has networks of this cluster itself, and OwnNetworks is an empty list of those.
	OwnNetwork  client.Object
	OwnNetworks client.ObjectList
	// Saying are the kinds that say which peers are brokers of this cluster, without which there are no Ways; none where its nodes say it.
	// Views are those that besides say what is reached through brokers: who may not read them sees less.
	Saying, Views []client.Object
}

// Empty returns a new object of the kind of one of the Kinds, which is empty itself.
func Empty(kind client.Object) client.Object {
	return kind.DeepCopyObject().(client.Object) //nolint:revive // A copy is of the same type.
}

// Shadows returns an empty list of the metadata of what consumers ask for.
func (k *Kinds) Shadows() *metav1.PartialObjectMetadataList {
	return &metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: k.Shadow.APIVersion, Kind: k.Shadow.Kind + "List"}}
}

// Index is how the objects of one kind are found by one field.
type Index struct {
	Object  client.Object
	Field   string
	Extract client.IndexerFunc
}

// AddIndexes registers indexes. Who reads nothing but peers, and whose a node is, needs those of a line alone.
func AddIndexes(ctx context.Context, indexer client.FieldIndexer, indexes []Index) error {
	for _, i := range indexes {
		if err := indexer.IndexField(ctx, i.Object, i.Field, i.Extract); err != nil {
			return fmt.Errorf("index %T by %s: %w", i.Object, i.Field, err)
		}
	}
	return nil
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
	// Ways returns how this cluster reaches its pods at brokers. Of brokers about which the caller may not read more, it has no prefixes.
	Ways(ctx context.Context) (liqo.Ways, error)
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

// ReadOffloading reads the offloading of a namespace, with an object that may be changed; nil if it has none. The kind is Kinds.Offloading
// of the line.
//
//nolint:nilnil // That there is none is an answer, which every caller has to deal with.
func ReadOffloading(
	ctx context.Context, objects client.Reader, of Offloads, kind client.Object, namespace string,
) (*liqo.Offloading, error) {
	o, key := Empty(kind), client.ObjectKey{Namespace: namespace, Name: liqo.OffloadingName}
	if err := objects.Get(ctx, key, o); apierrors.IsNotFound(err) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("get NamespaceOffloading %s: %w", key, err)
	}
	return new(of.OffloadingOf(o)), nil
}

// OffloadedTo returns the namespaces whose offloading selects a cluster, in any order.
func OffloadedTo(ctx context.Context, objects client.Reader, of Line, id cluster.ID) ([]string, error) {
	all := of.Kinds().Offloadings
	if err := objects.List(ctx, all, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list the NamespaceOffloadings: %w", err)
	}
	var namespaces []string
	err := Each(all, func(o client.Object) {
		if of.Selects(o, id) {
			namespaces = append(namespaces, o.GetNamespace())
		}
	})
	return namespaces, err
}

// Offloadings returns what the NamespaceOffloadings say that there are somewhere, with objects that may be changed.
func Offloadings(ctx context.Context, objects client.Reader, of Line, where ...client.ListOption) ([]liqo.Offloading, error) {
	all := of.Kinds().Offloadings
	if err := objects.List(ctx, all, where...); err != nil {
		return nil, fmt.Errorf("list the NamespaceOffloadings: %w", err)
	}
	var offloadings []liqo.Offloading
	err := Each(all, func(o client.Object) { offloadings = append(offloadings, of.OffloadingOf(o)) })
	return offloadings, err
}

// OwnNetworks returns the networks of this cluster itself, in any order: those of its pods and Services, and those that Liqo has besides;
// none while Liqo has not written them down.
func OwnNetworks(ctx context.Context, objects client.Reader, of Line) ([]netip.Prefix, error) {
	all := of.Kinds().OwnNetworks
	if err := objects.List(ctx, all, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list the networks of this cluster: %w", err)
	}
	var own []netip.Prefix
	err := Each(all, func(o client.Object) { own = append(own, of.OwnNetworksOf(o)...) })
	return own, err
}

// Each calls a function with each object of a list, as it is in the list.
func Each(list client.ObjectList, do func(client.Object)) error {
	err := meta.EachListItem(list, func(item runtime.Object) error {
		if o, is := item.(client.Object); is {
			do(o)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("read a list of %T: %w", list, err)
	}
	return nil
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
