// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package firewall keeps the FirewallConfigurations by which Liqo 1.x drops packets of peers in its gateways: one for all of them, and one
// for each peer in its tenant namespace.
//
// It does not decide what is dropped: package transit of the core does.
package firewall

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/core/transit"
	v1 "github.com/capacitorset/liqo-broker/pkg/liqo/v1"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v1/api"
)

// unknown is when it looks again whether this cluster has a network by now.
const unknown = 10 * time.Second

// Reconciler keeps all FirewallConfigurations of the transit: what one peer may reach depends on all of them.
type Reconciler struct{ cfg Config }

// Config is what the controller needs.
type Config struct {
	// Client reads from a cache with the indexes of Liqo 1.x. Of FirewallConfigurations the cache needs only those of the transit.
	Client client.Client
	// Own is this cluster, Namespace where the FirewallConfiguration of all gateways is kept, and Liqo the namespace of Liqo.
	Own             cluster.ID
	Namespace, Liqo string
	// Allowed is what people let all peers reach besides.
	Allowed []netip.Prefix
}

// New returns a Reconciler.
func New(cfg Config) *Reconciler { return &Reconciler{cfg} }

// Setup registers the controller with a manager.
func Setup(mgr ctrl.Manager, cfg Config) error {
	all := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: cfg.Namespace, Name: v1.TransitFirewall}}}
	})
	own := predicate.NewPredicateFuncs(v1.IsTransit)
	inLiqo := predicate.NewPredicateFuncs(func(o client.Object) bool { return o.GetNamespace() == cfg.Liqo })
	b := ctrl.NewControllerManagedBy(mgr).Named("firewall").
		Watches(&api.FirewallConfiguration{}, all, builder.WithPredicates(own)).
		Watches(&api.Network{}, all, builder.WithPredicates(inLiqo)).
		Watches(&api.IP{}, all, builder.WithPredicates(inLiqo))
	for _, kind := range []client.Object{
		&api.ForeignCluster{}, &api.Configuration{}, &api.ResourceSlice{}, &api.Tenant{}, &api.Identity{}, &corev1.Namespace{},
	} {
		b = b.Watches(kind, all)
	}
	if err := b.Complete(New(cfg)); err != nil {
		return fmt.Errorf("set up the firewall controller: %w", err)
	}
	return nil
}

// Reconcile makes all FirewallConfigurations of the transit what they are to be. As long as it is not known what that is, those that are
// there stay. Nothing passes of a peer before its own is there.
func (r *Reconciler) Reconcile(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
	// What there is to be for each peer.
	networks, of, err := v1.TransitFacts(ctx, r.cfg.Client, r.cfg.Own, r.cfg.Liqo)
	if err != nil {
		return ctrl.Result{}, err
	}
	networks.Allowed = r.cfg.Allowed
	if err := networks.Check(); errors.Is(err, transit.ErrNoExternal) {
		ctrl.LoggerFrom(ctx).Info("Peers are not kept apart yet", "reason", err.Error())
		return ctrl.Result{RequeueAfter: unknown}, nil
	}
	wanted, err := wantedOf(networks, of)
	if err != nil {
		return ctrl.Result{}, err
	}
	var are api.FirewallConfigurationList
	if err := r.cfg.Client.List(ctx, &are); err != nil {
		return ctrl.Result{}, fmt.Errorf("list the FirewallConfigurations: %w", err)
	}
	// What is of nobody goes first, because Liqo admits a table once. Gateways forget no table, so that this opens nothing.
	everywhere := client.ObjectKey{Namespace: r.cfg.Namespace, Name: v1.TransitFirewall}
	there := map[client.ObjectKey]*api.FirewallConfiguration{}
	for i := range are.Items {
		is := &are.Items[i]
		if !v1.IsTransit(is) {
			continue
		}
		key := client.ObjectKeyFromObject(is)
		if wanted[key] == nil && key != everywhere {
			if err := r.cfg.Client.Delete(ctx, is); client.IgnoreNotFound(err) != nil {
				return ctrl.Result{}, fmt.Errorf("delete FirewallConfiguration %s: %w", key, err)
			}
			continue
		}
		there[key] = is
	}
	// That of all lets only those send that have one of their own, so it comes last. One that cannot be written keeps no other from it.
	var apart []transit.Peer
	var failed []error
	for i := range of {
		key := keyOf(&of[i])
		if err := r.ensure(ctx, there[key], wanted[key]); err != nil {
			failed = append(failed, fmt.Errorf("write FirewallConfiguration %s: %w", key, err))
			if there[key] == nil {
				continue
			}
		}
		apart = append(apart, of[i].Peer)
	}
	rules, err := transit.Everywhere(networks, apart)
	if err != nil {
		return ctrl.Result{}, errors.Join(append(failed, err)...)
	}
	if err := r.ensure(ctx, there[everywhere], v1.ForgeFirewall(r.cfg.Namespace, rules)); err != nil {
		failed = append(failed, fmt.Errorf("write FirewallConfiguration %s: %w", everywhere, err))
	}
	return ctrl.Result{}, errors.Join(failed...)
}

// keyOf returns where the FirewallConfiguration of a peer is.
func keyOf(p *v1.TransitPeer) client.ObjectKey {
	return client.ObjectKey{Namespace: p.Tenant, Name: v1.TransitFirewall}
}

// wantedOf returns what there is to be for each peer.
func wantedOf(networks transit.Networks, of []v1.TransitPeer) (map[client.ObjectKey]*api.FirewallConfiguration, error) {
	peers := make([]transit.Peer, len(of))
	for i := range of {
		peers[i] = of[i].Peer
	}
	wanted := map[client.ObjectKey]*api.FirewallConfiguration{}
	for i := range of {
		rules, err := transit.Of(networks, &of[i].Peer, peers)
		if err != nil {
			return nil, err
		}
		wanted[keyOf(&of[i])] = v1.ForgePeerFirewall(&of[i], rules)
	}
	return wanted, nil
}

// ensure writes one, in the place of what is there, which is nil if there is none in the cache with the label by which it is known:
// somebody may have taken that off, or the cache does not have yet what was written a moment ago. Liqo's webhook refuses to have such a
// one made, because its table is there, before the API server finds that it is there itself.
func (r *Reconciler) ensure(ctx context.Context, is, want *api.FirewallConfiguration) error {
	if is == nil {
		made := r.cfg.Client.Create(ctx, want.DeepCopy())
		if !apierrors.IsAlreadyExists(made) && !apierrors.IsForbidden(made) {
			return made
		}
		nothing := &api.FirewallConfiguration{}
		nothing.Namespace, nothing.Name = want.Namespace, want.Name
		err := r.cfg.Client.Patch(ctx, want.DeepCopy(), client.MergeFrom(nothing))
		if apierrors.IsNotFound(err) {
			return made // It was refused for another reason.
		}
		return err
	}
	changed := v1.Firewalled(is, want)
	if changed == nil {
		return nil
	}
	return r.cfg.Client.Patch(ctx, changed, client.MergeFromWithOptions(is, client.MergeFromWithOptimisticLock{}))
}
