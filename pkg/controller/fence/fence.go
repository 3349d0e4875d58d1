// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package fence

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/capacitorset/liqo-broker/pkg/controller/conflict"
	"github.com/capacitorset/liqo-broker/pkg/controller/watch"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/liqo/line"
)

// Peers knows how peers are seen here.
type Peers interface {
	// Line returns the line of Liqo that runs.
	Line() line.Line
	// Peer returns the peer with an ID, or nil if there is none.
	Peer(ctx context.Context, id cluster.ID) (*liqo.Peer, error)
	// LinksTo returns the network towards a peer, which may be nil.
	LinksTo(ctx context.Context, peer *liqo.Peer) ([]liqo.Link, error)
}

// Config is what the controller needs.
type Config struct {
	// Client reads namespaces, nodes and Liqo's networks from a cache.
	Client client.Client
	Peers  Peers
	// Internet tells that the pods of peers may reach public addresses.
	Internet bool
}

// Reconciler keeps the NetworkPolicy of one namespace of a peer.
type Reconciler struct{ Config }

// New returns a Reconciler.
func New(cfg Config) *Reconciler { return &Reconciler{cfg} }

// Setup registers the controller with a manager.
func Setup(mgr ctrl.Manager, cfg Config) error {
	r, of := New(cfg), cfg.Peers.Line()
	kinds := of.Kinds()
	gone := predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			return e.ObjectOld.GetAnnotations()[annotationDigest] != e.ObjectNew.GetAnnotations()[annotationDigest] ||
				e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration()
		},
	}
	created := predicate.Funcs{
		UpdateFunc: func(event.UpdateEvent) bool { return false }, DeleteFunc: func(event.DeleteEvent) bool { return false },
	}
	moved := predicate.Funcs{UpdateFunc: watch.Changed(func(before, after *corev1.Node) bool {
		return fmt.Sprint(before.Status.Addresses) != fmt.Sprint(after.Status.Addresses)
	})}
	ofNamespace := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: client.ObjectKey{Name: o.GetNamespace()}}}
	})
	all := handler.EnqueueRequestsFromMapFunc(r.all)
	building := ctrl.NewControllerManagedBy(mgr).
		Named("fence").
		For(&corev1.Namespace{}, builder.WithPredicates(created)).
		Watches(&networkingv1.NetworkPolicy{}, ofNamespace, builder.WithPredicates(gone)).
		Watches(kinds.Network, all).
		Watches(kinds.OwnNetwork, all, builder.WithPredicates(ownChanged(of))).
		Watches(&corev1.Node{}, all, builder.WithPredicates(moved))
	for _, kind := range kinds.Peering { // It says which tenant namespace counts, and so which network.
		building = building.Watches(kind, all, builder.WithPredicates(predicate.GenerationChangedPredicate{}))
	}
	if err := building.Complete(conflict.Requeue(r)); err != nil {
		return fmt.Errorf("set up the fence controller: %w", err)
	}
	return nil
}

// ownChanged tells when a network of this cluster comes, changes or goes. What Liqo's IPAM writes down besides changes often.
func ownChanged(of line.Networks) predicate.Funcs {
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return len(of.OwnNetworksOf(e.Object)) > 0 },
		UpdateFunc: func(e event.UpdateEvent) bool {
			return !slices.Equal(of.OwnNetworksOf(e.ObjectOld), of.OwnNetworksOf(e.ObjectNew))
		},
		DeleteFunc: func(e event.DeleteEvent) bool { return len(of.OwnNetworksOf(e.Object)) > 0 },
	}
}

// all returns the namespaces of all peers: it is seldom that a network changes.
func (r *Reconciler) all(ctx context.Context, _ client.Object) []reconcile.Request {
	var namespaces corev1.NamespaceList
	if err := r.Client.List(ctx, &namespaces); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Cannot list the namespaces of peers")
		return nil
	}
	var requests []reconcile.Request
	for i := range namespaces.Items {
		if _, twin := liqo.TwinOf(&namespaces.Items[i]); twin {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKey{Name: namespaces.Items[i].Name}})
		}
	}
	return requests
}

// Reconcile creates the NetworkPolicy of a namespace of a peer, or changes it back.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var ns corev1.Namespace
	if err := r.Client.Get(ctx, client.ObjectKey{Name: req.Name}, &ns); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	peer, twin := liqo.TwinOf(&ns)
	if !twin || !ns.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	networks, err := r.networks(ctx, peer)
	if err != nil {
		return ctrl.Result{}, err
	}
	want, err := networks.Policy(ns.Name, peer)
	if err != nil {
		return ctrl.Result{}, err
	}
	var is networkingv1.NetworkPolicy
	err = r.Client.Get(ctx, client.ObjectKeyFromObject(want), &is)
	switch {
	case apierrors.IsNotFound(err):
		if err := r.Client.Create(ctx, want); err != nil && !apierrors.IsAlreadyExists(err) {
			return ctrl.Result{}, fmt.Errorf("create the NetworkPolicy of %s: %w", ns.Name, err)
		}
	case err != nil:
		return ctrl.Result{}, fmt.Errorf("get the NetworkPolicy of %s: %w", ns.Name, err)
	case !same(&is, want):
		before := is.DeepCopy()
		is.Spec = want.Spec
		metav1.SetMetaDataAnnotation(&is.ObjectMeta, annotationDigest, want.Annotations[annotationDigest])
		if err := r.Client.Patch(ctx, &is, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
			return ctrl.Result{}, fmt.Errorf("patch the NetworkPolicy of %s: %w", ns.Name, err)
		}
	}
	return ctrl.Result{}, nil
}

// networks returns what the fence of a peer is made of.
func (r *Reconciler) networks(ctx context.Context, peer cluster.ID) (Networks, error) {
	networks := Networks{Internet: r.Internet}
	known, err := r.Peers.Peer(ctx, peer)
	if err != nil {
		return networks, err
	}
	links, err := r.Peers.LinksTo(ctx, known)
	if err != nil {
		return networks, err
	}
	for i := range links {
		networks.Peer = append(networks.Peer, links[i].Seen...)
	}
	if networks.Own, err = line.OwnNetworks(ctx, r.Client, r.Peers.Line()); err != nil {
		return networks, err
	}
	var nodes corev1.NodeList
	if err := r.Client.List(ctx, &nodes); err != nil {
		return networks, fmt.Errorf("list nodes: %w", err)
	}
	for i := range nodes.Items {
		for _, address := range nodes.Items[i].Status.Addresses {
			if parsed, err := netip.ParseAddr(address.Address); err == nil {
				parsed = parsed.Unmap()
				networks.Own = append(networks.Own, netip.PrefixFrom(parsed, parsed.BitLen()))
			}
		}
	}
	return networks, nil
}

// same reports whether a NetworkPolicy is as it is to be. Who changes one has not changed its digest.
func same(is, want *networkingv1.NetworkPolicy) bool {
	return is.Annotations[annotationDigest] == want.Annotations[annotationDigest] && equality.Semantic.DeepEqual(is.Spec, want.Spec)
}
