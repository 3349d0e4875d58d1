// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package endpoints has the providers of a broker with Liqo 1.x reach the endpoints of its consumers. Liqo itself passes none of them on,
// because they are on a node that the broker does not have. Beside each EndpointSlice of a consumer there is a companion that names no
// node, and for each address an IP that opens it to peers.
//
// It does not decide which addresses those are: package transit of the core does.
package endpoints

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/core/transit"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	v1 "github.com/capacitorset/liqo-broker/pkg/liqo/v1"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v1/api"
	"github.com/capacitorset/liqo-broker/pkg/transit/namespaces"
)

// Reconciler keeps companions and IPs of one twin namespace.
type Reconciler struct{ cfg Config }

// Config is what the controller needs.
type Config struct {
	// Client reads from a cache with the indexes of Liqo 1.x.
	Client client.Client
	// Own is this cluster.
	Own cluster.ID
}

// New returns a Reconciler.
func New(cfg Config) *Reconciler { return &Reconciler{cfg} }

// Setup registers the controller with a manager.
func Setup(mgr ctrl.Manager, cfg Config) error {
	inside := namespaces.Inside()
	err := ctrl.NewControllerManagedBy(mgr).Named("endpoints").For(&corev1.Namespace{}).
		Watches(&discoveryv1.EndpointSlice{}, inside).
		Watches(&api.IP{}, inside, builder.WithPredicates(predicate.NewPredicateFuncs(v1.IsTransit))).
		Watches(&api.NamespaceOffloading{}, inside).
		Watches(&api.Configuration{}, namespaces.OfPeer(cfg.Client, v1.LeadsTo)).
		Complete(New(cfg))
	if err != nil {
		return fmt.Errorf("set up the endpoints controller: %w", err)
	}
	return nil
}

// Reconcile makes companions and IPs of a twin namespace what they are to be. Of a namespace that is offloaded nowhere nothing is opened.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var ns corev1.Namespace
	if err := r.cfg.Client.Get(ctx, client.ObjectKey{Name: req.Name}, &ns); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	consumer, is := liqo.TwinOf(&ns)
	if !is || !ns.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	var there discoveryv1.EndpointSliceList
	if err := r.cfg.Client.List(ctx, &there, client.InNamespace(ns.Name)); err != nil {
		return ctrl.Result{}, fmt.Errorf("list the EndpointSlices in namespace %s: %w", ns.Name, err)
	}
	written, companions := sorted(there.Items, consumer)
	opening, err := r.opening(ctx, ns.Name, consumer, written)
	if err != nil {
		return ctrl.Result{}, err
	}
	if opening.Left {
		ctrl.LoggerFrom(ctx).Info("Not all endpoints are opened", "namespace", ns.Name, "consumer", consumer, "most", transit.MaxAddresses)
	}
	// An address is opened before somebody is told of it, and closed when nobody is told any more: also where a consumer has taken the name
	// of what is to be written, or it could have one address after the other opened.
	open := slices.Concat(opening.Addresses, addressesIn(companions))
	failed := r.open(ctx, ns.Name, opening)
	if failed == nil {
		failed = r.tell(ctx, written, companions, opening)
	}
	if failed == nil {
		open = opening.Addresses
	}
	return ctrl.Result{}, errors.Join(failed, r.closeOthers(ctx, ns.Name, open))
}

// addressesIn returns the addresses of which companions tell.
func addressesIn(companions map[string]*discoveryv1.EndpointSlice) []netip.Addr {
	var all []netip.Addr
	for _, c := range companions {
		for i := range c.Endpoints {
			for _, text := range c.Endpoints[i].Addresses {
				if address, err := netip.ParseAddr(text); err == nil {
					all = append(all, address)
				}
			}
		}
	}
	return all
}

// sorted returns the slices of a consumer, and what is kept beside them, by name.
func sorted(
	all []discoveryv1.EndpointSlice, consumer cluster.ID,
) (written []discoveryv1.EndpointSlice, ours map[string]*discoveryv1.EndpointSlice) {
	ours = map[string]*discoveryv1.EndpointSlice{}
	for i := range all {
		switch {
		case v1.EndpointsOf(&all[i], consumer):
			written = append(written, all[i])
		case v1.IsCompanion(&all[i]):
			ours[all[i].Name] = &all[i]
		}
	}
	return written, ours
}

func (r *Reconciler) opening(
	ctx context.Context, namespace string, consumer cluster.ID, written []discoveryv1.EndpointSlice,
) (transit.Opening, error) {
	offloaded, err := v1.IsOffloaded(ctx, r.cfg.Client, namespace)
	if err != nil || !offloaded {
		return transit.Opening{}, err
	}
	pods, err := v1.PodsSeen(ctx, r.cfg.Client, r.cfg.Own, consumer)
	if err != nil {
		return transit.Opening{}, err
	}
	return transit.Open(written, pods), nil
}

// open creates the IPs that are missing, and deletes those that somebody has changed, which are created again: what one opens never
// changes.
func (r *Reconciler) open(ctx context.Context, namespace string, opening transit.Opening) error {
	for _, address := range opening.Addresses {
		want, is := v1.ForgeIP(namespace, address), &api.IP{}
		key := client.ObjectKeyFromObject(want)
		switch err := r.cfg.Client.Get(ctx, key, is); {
		case apierrors.IsNotFound(err):
			if err := r.cfg.Client.Create(ctx, want); err != nil {
				return fmt.Errorf("create IP %s: %w", key, err)
			}
		case err != nil:
			return fmt.Errorf("get IP %s: %w", key, err)
		case !v1.Opens(is, want):
			if err := r.cfg.Client.Delete(ctx, is); client.IgnoreNotFound(err) != nil {
				return fmt.Errorf("delete IP %s: %w", key, err)
			}
		}
	}
	return nil
}

// closeOthers deletes the IPs of addresses that are not to be open.
func (r *Reconciler) closeOthers(ctx context.Context, namespace string, open []netip.Addr) error {
	wanted := map[string]bool{}
	for _, address := range open {
		wanted[v1.ForgeIP(namespace, address).Name] = true
	}
	var are api.IPList
	if err := r.cfg.Client.List(ctx, &are, client.InNamespace(namespace)); err != nil {
		return fmt.Errorf("list the IPs in namespace %s: %w", namespace, err)
	}
	for i := range are.Items {
		is := &are.Items[i]
		if !v1.IsTransit(is) || wanted[is.Name] || !is.DeletionTimestamp.IsZero() {
			continue
		}
		if err := r.cfg.Client.Delete(ctx, is); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete IP %s: %w", client.ObjectKeyFromObject(is), err)
		}
	}
	return nil
}

// tell writes the companions, and deletes those that are not wanted any more. One that cannot be written keeps no other from it.
func (r *Reconciler) tell(
	ctx context.Context, written []discoveryv1.EndpointSlice, there map[string]*discoveryv1.EndpointSlice, opening transit.Opening,
) error {
	var failed []error
	for i := range written {
		endpoints := opening.Slices[written[i].Name]
		if len(endpoints) == 0 {
			continue
		}
		want := companion(&written[i], endpoints)
		is := there[want.Name]
		delete(there, want.Name)
		if err := r.write(ctx, is, want); err != nil {
			failed = append(failed, fmt.Errorf("write EndpointSlice %s: %w", client.ObjectKeyFromObject(want), err))
		}
	}
	for _, is := range there {
		if err := r.cfg.Client.Delete(ctx, is); client.IgnoreNotFound(err) != nil {
			failed = append(failed, fmt.Errorf("delete EndpointSlice %s: %w", client.ObjectKeyFromObject(is), err))
		}
	}
	return errors.Join(failed...)
}

// write writes one companion, in the place of what is there, which is nil if there is none. One of its name that somebody else has made
// stays, and is an error. The family of addresses, which never changes, is the same for all.
func (r *Reconciler) write(ctx context.Context, is, want *discoveryv1.EndpointSlice) error {
	if is == nil {
		return r.cfg.Client.Create(ctx, want)
	}
	changed := is.DeepCopy()
	changed.Labels, changed.OwnerReferences, changed.Endpoints, changed.Ports = want.Labels, want.OwnerReferences, want.Endpoints, want.Ports
	if equality.Semantic.DeepEqual(is, changed) {
		return nil
	}
	return r.cfg.Client.Patch(ctx, changed, client.MergeFromWithOptions(is, client.MergeFromWithOptimisticLock{}))
}

// companion returns what is kept beside a slice. It goes with it.
func companion(of *discoveryv1.EndpointSlice, endpoints []discoveryv1.Endpoint) *discoveryv1.EndpointSlice {
	digest := sha256.Sum256([]byte(of.Name))
	c := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: of.Namespace, Name: v1.TransitPrefix + hex.EncodeToString(digest[:8]),
			Labels: map[string]string{liqo.LabelBrokerManaged: liqo.BrokerManaged, discoveryv1.LabelManagedBy: liqo.BrokerManaged},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: discoveryv1.SchemeGroupVersion.String(), Kind: "EndpointSlice", Name: of.Name, UID: of.UID,
			}},
		},
		AddressType: of.AddressType, Endpoints: endpoints, Ports: of.Ports,
	}
	if service := of.Labels[discoveryv1.LabelServiceName]; service != "" {
		c.Labels[discoveryv1.LabelServiceName] = service
	}
	return c
}
