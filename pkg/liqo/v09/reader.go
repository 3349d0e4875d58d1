// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package v09

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/liqo/line"
)

// reader reads Liqo's objects from a cache with the indexes of Line.
type reader struct{ objects client.Reader }

// Peers implements line.Reader.
func (r reader) Peers(ctx context.Context) ([]liqo.Peer, error) { return Peers(ctx, r.objects) }

// peersBy returns the peers that an index finds, first the one that this cluster knows for longest: of two records of one cluster Liqo
// takes the older one too (GetOlderForeignCluster in liqo/pkg/utils/foreignCluster/getForeignCluster.go@v0.9.4).
func (r reader) peersBy(ctx context.Context, index, value string) ([]liqo.Peer, error) {
	var all ForeignClusterList
	if err := r.objects.List(ctx, &all, client.MatchingFields{index: value}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list the foreign clusters whose %s is %s: %w", index, value, err)
	}
	peers := peersOf(&all)
	slices.SortFunc(peers, func(a, b liqo.Peer) int { return cmp.Or(a.Known.Compare(b.Known), cmp.Compare(a.Record, b.Record)) })
	return peers, nil
}

func peersOf(all *ForeignClusterList) []liqo.Peer {
	peers := make([]liqo.Peer, len(all.Items))
	for i := range all.Items {
		peers[i] = PeerOf(&all.Items[i])
	}
	return peers
}

// PeersCalled implements line.Reader.
func (r reader) PeersCalled(ctx context.Context, name string) ([]liqo.Peer, error) {
	return r.peersBy(ctx, indexName, name)
}

// Peer implements line.Reader.
func (r reader) Peer(ctx context.Context, id cluster.ID) (*liqo.Peer, error) {
	peers, err := r.peersBy(ctx, indexID, string(id))
	if err != nil || len(peers) == 0 {
		return nil, err
	}
	return &peers[0], nil
}

// Namesakes implements line.Reader.
func (r reader) Namesakes(ctx context.Context, of cluster.Identity) ([]liqo.Peer, error) {
	peers, err := r.peersBy(ctx, indexUniqueName, UniqueName(of))
	return slices.DeleteFunc(peers, func(p liqo.Peer) bool { return p.ID == of.ID }), err
}

// Tenant implements line.Reader.
func (r reader) Tenant(ctx context.Context, namespace string) (cluster.Identity, error) {
	peers, err := r.peersBy(ctx, indexTenant, namespace)
	if err != nil || len(peers) == 0 {
		return cluster.Identity{}, err
	}
	return peers[0].Identity, nil
}

// Offers implements line.Reader.
func (r reader) Offers(ctx context.Context) ([]liqo.Offer, error) {
	var all ResourceOfferList
	if err := r.objects.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list offers: %w", err)
	}
	peers, err := r.Peers(ctx)
	if err != nil {
		return nil, err
	}
	tenants := line.Tenants(peers)
	offers := make([]liqo.Offer, len(all.Items))
	for i := range all.Items {
		offers[i] = offerWith(tenants[all.Items[i].Namespace], &all.Items[i])
	}
	return offers, nil
}

// OffersWith implements line.Reader.
func (r reader) OffersWith(ctx context.Context, peer *liqo.Peer) ([]liqo.Offer, error) {
	if peer.Tenant == "" {
		return nil, nil
	}
	var all ResourceOfferList
	if err := r.objects.List(ctx, &all, client.InNamespace(peer.Tenant), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list the offers in namespace %s: %w", peer.Tenant, err)
	}
	offers := make([]liqo.Offer, len(all.Items))
	for i := range all.Items {
		offers[i] = offerWith(peer.Identity, &all.Items[i])
	}
	return offers, nil
}

// OffersOfNode implements line.Reader.
func (r reader) OffersOfNode(ctx context.Context, name string) ([]liqo.Offer, error) {
	// The offers that name the node.
	var all ResourceOfferList
	if err := r.objects.List(ctx, &all, client.MatchingFields{indexNode: name}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list the offers of node %s: %w", name, err)
	}
	var offers []liqo.Offer
	found := make(map[types.NamespacedName]bool, len(all.Items))
	for i := range all.Items {
		tenant, err := r.Tenant(ctx, all.Items[i].Namespace)
		if err != nil {
			return nil, err
		}
		found[client.ObjectKeyFromObject(&all.Items[i])] = true
		offers = append(offers, offerWith(tenant, &all.Items[i]))
	}
	// The nodes of others have names that end with what their cluster calls itself. A peer may write any name, also one that no node can have.
	for i := range name {
		if name[i] != '-' || len(name) > validation.DNS1123SubdomainMaxLength {
			continue
		}
		called, err := r.PeersCalled(ctx, name[i+1:])
		if err != nil {
			return nil, err
		}
		for j := range called {
			with, err := r.OffersWith(ctx, &called[j])
			if err != nil {
				return nil, err
			}
			for i := range with {
				if o := &with[i]; !found[types.NamespacedName{Namespace: o.Tenant, Name: o.Name}] {
					offers = append(offers, *o)
				}
			}
		}
	}
	return slices.DeleteFunc(offers, func(o liqo.Offer) bool { return !o.FromPeer || o.Node != name }), nil
}

// UsualOwners implements line.Reader.
func (r reader) UsualOwners(ctx context.Context, node string) ([]cluster.ID, error) {
	name, is := UsualNode(node)
	if !is {
		return nil, nil
	}
	called, err := r.PeersCalled(ctx, name)
	ids := make([]cluster.ID, len(called))
	for i := range called {
		ids[i] = called[i].ID
	}
	return ids, err
}

// Links implements line.Reader.
func (r reader) Links(ctx context.Context) ([]liqo.Link, error) { return Links(ctx, r.objects) }

// LinksWith implements line.Reader.
func (r reader) LinksWith(ctx context.Context, peer *liqo.Peer) ([]liqo.Link, error) {
	if peer.Tenant == "" {
		return nil, nil
	}
	return Links(ctx, r.objects, client.InNamespace(peer.Tenant))
}

// Catalog implements line.Reader.
func (r reader) Catalog(ctx context.Context) ([]line.Entry, error) {
	var all ForeignClusterList
	if err := r.objects.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list the foreign clusters: %w", err)
	}
	entries := make([]line.Entry, len(all.Items))
	for i := range all.Items {
		whole := Publish(&all.Items[i])
		entries[i] = line.Entry{Peer: PeerOf(&all.Items[i]), Whole: whole, Provider: whole.AsProvider()}
	}
	line.Sort(entries)
	return entries, nil
}

// Ways implements line.Reader: virtual kubelets of this project note the paths.
func (reader) Ways(context.Context) (liqo.Ways, error) { return liqo.Ways{Noted: true}, nil }
