// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/liqo/line"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v1/api"
)

// reader reads Liqo's objects from a cache with the indexes of Line.
type reader struct {
	objects client.Reader
	own     cluster.ID
}

// Peers implements line.Reader.
func (r reader) Peers(ctx context.Context) ([]liqo.Peer, error) {
	all, err := r.facts(ctx)
	peers := make([]liqo.Peer, len(all))
	for i := range all {
		peers[i] = PeerOf(all[i])
	}
	return peers, err
}

// facts returns what tells of each peer, in the order of their records.
func (r reader) facts(ctx context.Context) ([]Facts, error) {
	var (
		records    api.ForeignClusterList
		namespaces corev1.NamespaceList
		tenants    api.TenantList
		identities api.IdentityList
	)
	for _, list := range []client.ObjectList{&records, &namespaces, &tenants, &identities} {
		if err := r.objects.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("list %T: %w", list, err)
		}
	}
	// What is of one peer, so that a thousand of them are not compared with each other.
	ofNamespace := map[string]string{}
	own := map[string][]corev1.Namespace{}
	for i := range namespaces.Items {
		if id, is := TenantOf(&namespaces.Items[i]); is {
			ofNamespace[namespaces.Items[i].Name] = string(id)
			own[string(id)] = append(own[string(id)], namespaces.Items[i])
		}
	}
	may := map[string][]api.Tenant{}
	for i := range tenants.Items {
		id := ofNamespace[tenants.Items[i].Namespace]
		may[id] = append(may[id], tenants.Items[i])
	}
	known := map[string][]api.Identity{}
	for i := range identities.Items {
		id := ofNamespace[identities.Items[i].Namespace]
		known[id] = append(known[id], identities.Items[i])
	}
	all := make([]Facts, len(records.Items))
	for i := range records.Items {
		id := records.Items[i].Spec.ClusterID
		all[i] = FactsAbout(&records.Items[i], own[id], may[id], known[id])
	}
	return all, nil
}

// Peer implements line.Reader.
//
//nolint:nilnil // That there is none is an answer, which every caller has to deal with.
func (r reader) Peer(ctx context.Context, id cluster.ID) (*liqo.Peer, error) {
	var records api.ForeignClusterList
	if err := r.objects.List(ctx, &records, client.MatchingFields{indexID: string(id)}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("find the foreign cluster of %s: %w", id, err)
	}
	if len(records.Items) == 0 {
		return nil, nil
	}
	var namespaces corev1.NamespaceList
	err := r.objects.List(ctx, &namespaces, client.MatchingFields{indexTenantOf: string(id)}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("find the tenant namespaces of %s: %w", id, err)
	}
	var tenants []api.Tenant
	var identities []api.Identity
	for i := range namespaces.Items {
		in := client.InNamespace(namespaces.Items[i].Name)
		var may api.TenantList
		var known api.IdentityList
		for _, list := range []client.ObjectList{&may, &known} {
			if err := r.objects.List(ctx, list, in, client.UnsafeDisableDeepCopy); err != nil {
				return nil, fmt.Errorf("list %T in namespace %s: %w", list, in, err)
			}
		}
		tenants, identities = append(tenants, may.Items...), append(identities, known.Items...)
	}
	return new(PeerOf(FactsAbout(&records.Items[0], namespaces.Items, tenants, identities))), nil
}

// PeersCalled implements line.Reader: a peer is called by its ID.
func (r reader) PeersCalled(ctx context.Context, name string) ([]liqo.Peer, error) {
	peer, err := r.Peer(ctx, cluster.ID(name))
	if err != nil || peer == nil {
		return nil, err
	}
	return []liqo.Peer{*peer}, nil
}

// Namesakes implements line.Reader: Liqo makes names of IDs, which are different.
func (reader) Namesakes(context.Context, cluster.Identity) ([]liqo.Peer, error) { return nil, nil }

// Tenant implements line.Reader.
func (r reader) Tenant(ctx context.Context, namespace string) (cluster.Identity, error) {
	var found corev1.Namespace
	if err := r.objects.Get(ctx, client.ObjectKey{Name: namespace}, &found); err != nil {
		if client.IgnoreNotFound(err) == nil {
			return cluster.Identity{}, nil
		}
		return cluster.Identity{}, fmt.Errorf("get namespace %s: %w", namespace, err)
	}
	id, tenant := TenantOf(&found)
	if !tenant {
		return cluster.Identity{}, nil
	}
	peer, err := r.Peer(ctx, id)
	if err != nil || peer == nil || peer.Tenant != namespace {
		return cluster.Identity{}, err
	}
	return peer.Identity, nil
}

// offerWith returns what a ResourceSlice says in the tenant namespace of a peer, or of nobody.
func (r reader) offerWith(peer cluster.ID, s *api.ResourceSlice) liqo.Offer {
	offer := OfferOf(s)
	offer.With, offer.Wrong = peer, CheckSlice(s, peer, r.own)
	return offer
}

// Offers implements line.Reader.
func (r reader) Offers(ctx context.Context) ([]liqo.Offer, error) {
	var all api.ResourceSliceList
	if err := r.objects.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list resource slices: %w", err)
	}
	peers, err := r.Peers(ctx)
	if err != nil {
		return nil, err
	}
	tenants := line.Tenants(peers)
	offers := make([]liqo.Offer, len(all.Items))
	for i := range all.Items {
		offers[i] = r.offerWith(tenants[all.Items[i].Namespace].ID, &all.Items[i])
	}
	return offers, nil
}

// OffersWith implements line.Reader.
func (r reader) OffersWith(ctx context.Context, peer *liqo.Peer) ([]liqo.Offer, error) {
	if peer.Tenant == "" {
		return nil, nil
	}
	var all api.ResourceSliceList
	if err := r.objects.List(ctx, &all, client.InNamespace(peer.Tenant), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list the resource slices in namespace %s: %w", peer.Tenant, err)
	}
	offers := make([]liqo.Offer, len(all.Items))
	for i := range all.Items {
		offers[i] = r.offerWith(peer.ID, &all.Items[i])
	}
	return offers, nil
}

// OffersOfNode implements line.Reader.
func (r reader) OffersOfNode(ctx context.Context, name string) ([]liqo.Offer, error) {
	var all api.ResourceSliceList
	if err := r.objects.List(ctx, &all, client.MatchingFields{indexNode: name}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list the resource slices of node %s: %w", name, err)
	}
	var offers []liqo.Offer
	for i := range all.Items {
		if FromConsumer(&all.Items[i]) {
			continue // Its node is the consumer's.
		}
		tenant, err := r.Tenant(ctx, all.Items[i].Namespace)
		if err != nil {
			return nil, err
		}
		offers = append(offers, r.offerWith(tenant.ID, &all.Items[i]))
	}
	return offers, nil
}

// UsualOwners implements line.Reader: liqoctl calls the ResourceSlice that it makes, and so the node, like the provider.
func (r reader) UsualOwners(ctx context.Context, node string) ([]cluster.ID, error) {
	called, err := r.PeersCalled(ctx, node)
	if err != nil || len(called) == 0 {
		return nil, err
	}
	return []cluster.ID{called[0].ID}, nil
}

// Links implements line.Reader.
func (r reader) Links(ctx context.Context) ([]liqo.Link, error) { return r.linksIn(ctx) }

// LinksWith implements line.Reader.
func (r reader) LinksWith(ctx context.Context, peer *liqo.Peer) ([]liqo.Link, error) {
	if peer.Tenant == "" {
		return nil, nil
	}
	return r.linksIn(ctx, client.InNamespace(peer.Tenant))
}

func (r reader) linksIn(ctx context.Context, where ...client.ListOption) ([]liqo.Link, error) {
	all, err := configurationsIn(ctx, r.objects, where...)
	if err != nil {
		return nil, err
	}
	var connections api.ConnectionList
	if err := r.objects.List(ctx, &connections, append(slices.Clone(where), client.UnsafeDisableDeepCopy)...); err != nil {
		return nil, fmt.Errorf("list the connections: %w", err)
	}
	return LinksOf(all, connections.Items), nil
}

// Catalog implements line.Reader. It reads Liqo's records alone, so that who shows them needs no right to read what grants rights.
// Strangers see who provides: Liqo makes a record of whomever a Configuration names, and peers may write these.
func (r reader) Catalog(ctx context.Context) ([]line.Entry, error) {
	var records api.ForeignClusterList
	if err := r.objects.List(ctx, &records, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list the foreign clusters: %w", err)
	}
	entries := make([]line.Entry, len(records.Items))
	for i := range records.Items {
		f := Facts{Record: &records.Items[i]}
		whole := Publish(f.Record)
		entries[i] = line.Entry{Peer: PeerOf(f), Whole: whole}
		if entries[i].Peer.Outgoing.Exists {
			entries[i].Provider = whole.AsProvider()
		}
	}
	line.Sort(entries)
	return entries, nil
}
