// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
)

// What a peer says of itself is in objects that it writes, or of which Liqo makes others:
// which cluster an offer is from, or a node stands for. A peer can write only in its own
// tenant namespace, so that the namespace says which peer it is; what says otherwise
// counts for nothing.

// TenantOf returns the cluster whose tenant namespace a namespace is; empty if it is none.
func (r *Reader) TenantOf(ctx context.Context, namespace string) (cluster.ID, error) {
	tenant, err := r.liqo.Tenant(ctx, namespace)
	return tenant.ID, err
}

// Refusal is why an offer counts for nothing.
type Refusal struct {
	Offer  string
	Reason error
}

// String returns what people are told.
func (r Refusal) String() string { return fmt.Sprintf("offer %s: %v", r.Offer, r.Reason) }

// OffersBy returns what a peer offers, and the offers in its name that count
// for nothing. The peer may be nil.
func (r *Reader) OffersBy(ctx context.Context, peer *liqo.Peer) (offers []liqo.Offer, refused []Refusal, err error) {
	all, err := r.offersWith(ctx, peer)
	for i := range all {
		switch o := &all[i]; {
		case !o.FromPeer:
		case o.Wrong != nil:
			refused = append(refused, Refusal{o.Name, o.Wrong})
		default:
			offers = append(offers, *o)
		}
	}
	slices.SortFunc(refused, func(a, b Refusal) int { return strings.Compare(a.Offer, b.Offer) })
	return offers, refused, err
}

// OffersTo returns what this cluster offers to a peer, which may be nil.
func (r *Reader) OffersTo(ctx context.Context, peer *liqo.Peer) ([]liqo.Offer, error) {
	all, err := r.offersWith(ctx, peer)
	return slices.DeleteFunc(all, func(o liqo.Offer) bool { return o.To() != peer.ID }), err
}

// offersWith returns all offers in the tenant namespace of a peer, which may be nil.
func (r *Reader) offersWith(ctx context.Context, peer *liqo.Peer) ([]liqo.Offer, error) {
	if peer == nil {
		return nil, nil
	}
	return r.liqo.OffersWith(ctx, peer)
}

// Links returns the networks towards all peers.
func (r *Reader) Links(ctx context.Context) ([]liqo.Link, error) { return r.liqo.Links(ctx) }

// LinksTo returns the network towards a peer, which may be nil.
func (r *Reader) LinksTo(ctx context.Context, peer *liqo.Peer) ([]liqo.Link, error) {
	if peer == nil {
		return nil, nil
	}
	links, err := r.liqo.LinksWith(ctx, peer)
	return slices.DeleteFunc(links, func(l liqo.Link) bool { return l.Peer != peer.ID }), err
}

// Owners are the clusters that offer a virtual node, by the names of the nodes. One that
// has two owners is no good to either, but it is not for one of them to say so.
type Owners map[string][]cluster.ID

// Of returns the cluster that a virtual node is of: the one that offers a node of that
// name, and what the node says of itself only if nobody does, because the offer has
// gone before the node. It is empty for a node of this cluster, and for one of which
// nobody knows.
func (o Owners) Of(node *corev1.Node) cluster.ID {
	says, owners := liqo.NodeCluster(node), o[node.Name]
	switch {
	case len(owners) == 0 || slices.Contains(owners, says):
		return says
	case len(owners) == 1:
		return owners[0]
	default:
		return ""
	}
}

// Offer reports whether a virtual node is of the cluster that it says it is of, which has
// made an offer of it.
func (o Owners) Offer(node *corev1.Node) bool {
	return slices.Contains(o[node.Name], liqo.NodeCluster(node))
}

// Owners returns the owners of all virtual nodes.
func (r *Reader) Owners(ctx context.Context) (Owners, error) {
	offers, err := r.liqo.Offers(ctx)
	if err != nil {
		return nil, err
	}
	return ownersOf(offers), nil
}

func ownersOf(offers []liqo.Offer) Owners {
	owners := make(Owners, len(offers))
	for i := range offers {
		if by, name := offers[i].By(), offers[i].Node; by != "" && !slices.Contains(owners[name], by) {
			owners[name] = append(owners[name], by)
		}
	}
	return owners
}

// OwnersOf returns the clusters that offer a virtual node of a name.
func (r *Reader) OwnersOf(ctx context.Context, name string) ([]cluster.ID, error) {
	offers, err := r.liqo.OffersOfNode(ctx, name)
	if err != nil {
		return nil, err
	}
	return ownersOf(offers)[name], nil
}

// ClusterOf returns the cluster that a virtual node is of, as [Owners.Of] does.
func (r *Reader) ClusterOf(ctx context.Context, node *corev1.Node) (cluster.ID, error) {
	owners, err := r.OwnersOf(ctx, node.Name)
	if err != nil {
		return "", err
	}
	return Owners{node.Name: owners}.Of(node), nil
}

// VirtualNode is a virtual node of a provider, or one that says that it is.
type VirtualNode struct {
	corev1.Node

	// Offered tells that the provider has made an offer of the node. Without one the node
	// is about to go, or another cluster's.
	Offered bool
	// Own tells that pods there are with the provider, whatever the node says.
	Own bool
}

// NodesOf returns the virtual nodes that say they are of a provider, and those that it
// has offered. Its peer may be nil.
func (r *Reader) NodesOf(ctx context.Context, id cluster.ID, peer *liqo.Peer) ([]VirtualNode, error) {
	var labelled corev1.NodeList
	if err := r.reader.List(ctx, &labelled, client.MatchingFields{IndexNodeCluster: string(id)}); err != nil {
		return nil, fmt.Errorf("list the virtual nodes of %s: %w", id, err)
	}
	nodes := labelled.Items
	offers, _, err := r.OffersBy(ctx, peer)
	if err != nil {
		return nil, err
	}
	for i := range offers {
		name := offers[i].Node
		if slices.ContainsFunc(nodes, func(n corev1.Node) bool { return n.Name == name }) {
			continue
		}
		var node corev1.Node
		if err := r.reader.Get(ctx, client.ObjectKey{Name: name}, &node); apierrors.IsNotFound(err) {
			continue
		} else if err != nil {
			return nil, fmt.Errorf("get node %s: %w", name, err)
		}
		nodes = append(nodes, node)
	}
	known := make([]VirtualNode, len(nodes))
	for i := range nodes {
		owners, err := r.OwnersOf(ctx, nodes[i].Name)
		if err != nil {
			return nil, err
		}
		known[i] = VirtualNode{
			Node: nodes[i], Offered: slices.Contains(owners, id), Own: Owners{nodes[i].Name: owners}.Of(&nodes[i]) == id,
		}
	}
	return known, nil
}

// OfferedNodesOf returns the virtual nodes that a provider has offered: those whose labels
// and conditions say something of it. Its peer may be nil.
func (r *Reader) OfferedNodesOf(ctx context.Context, id cluster.ID, peer *liqo.Peer) ([]corev1.Node, error) {
	nodes, err := r.NodesOf(ctx, id, peer)
	if err != nil {
		return nil, err
	}
	offered := make([]corev1.Node, 0, len(nodes))
	for i := range nodes {
		if nodes[i].Offered && nodes[i].Own {
			offered = append(offered, nodes[i].Node)
		}
	}
	return offered, nil
}

// ErrNodeTaken means that a virtual node cannot have a name, because another one has it.
var ErrNodeTaken = errors.New("the name is taken")

// CheckNodeName returns [ErrNodeTaken] if a virtual node of a peer cannot have a name. The
// reader of nodes must know also those that are not virtual.
func (r *Reader) CheckNodeName(ctx context.Context, nodes client.Reader, peer cluster.ID, name string) error {
	owners, err := r.OwnersOf(ctx, name)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(owners, func(id cluster.ID) bool { return id != peer }) {
		return fmt.Errorf("node %s is another cluster's: %w", name, ErrNodeTaken)
	}
	// A cluster that offers nothing yet is to find its usual name free.
	usual, err := r.liqo.UsualOwners(ctx, name)
	if err != nil {
		return err
	}
	if len(usual) > 0 && !slices.Contains(usual, peer) {
		return fmt.Errorf("node %s is what Liqo calls the node of another cluster: %w", name, ErrNodeTaken)
	}
	var node corev1.Node
	switch err := nodes.Get(ctx, client.ObjectKey{Name: name}, &node); {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("get node %s: %w", name, err)
	case !slices.Contains(owners, peer) && liqo.NodeCluster(&node) != peer:
		return fmt.Errorf("node %s exists: %w", name, ErrNodeTaken)
	default:
		return nil
	}
}
