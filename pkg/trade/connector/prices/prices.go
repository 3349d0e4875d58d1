// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package prices notes at the clusters of sellers what they cost, so that who places workloads there can count it: a broker makes the price
// KPI of the provider from it.
//
// It does not know who reads it, and it decides nothing.
package prices

import (
	"context"
	"fmt"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/core/kpi"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/contract"
	"github.com/capacitorset/liqo-broker/pkg/trade/objects"
)

// Config is what the controller needs.
type Config struct {
	// Client may read from a cache.
	Client client.Client
}

// Reconciler writes on each ForeignCluster what a core there costs by the contracts in force. It can be used concurrently.
type Reconciler struct{ cfg Config }

// New returns a Reconciler.
func New(cfg Config) *Reconciler { return &Reconciler{cfg: cfg} }

// Setup registers the controller with a manager.
func Setup(mgr ctrl.Manager, cfg Config) error {
	r := New(cfg)
	err := ctrl.NewControllerManagedBy(mgr).
		Named("prices").
		For(&v09.ForeignCluster{}, builder.WithPredicates(predicate.AnnotationChangedPredicate{})).
		Watches(&connectorv1alpha1.Purchase{}, handler.EnqueueRequestsFromMapFunc(r.seller)).
		Complete(r)
	if err != nil {
		return fmt.Errorf("set up the controller of prices: %w", err)
	}
	return nil
}

// seller returns the ForeignCluster of a purchase.
func (r *Reconciler) seller(ctx context.Context, o client.Object) []reconcile.Request {
	purchase, is := o.(*connectorv1alpha1.Purchase)
	if !is || purchase.Status.Cluster.ID == "" {
		return nil
	}
	fc, err := v09.ForeignClusterOf(ctx, r.cfg.Client, cluster.ID(purchase.Status.Cluster.ID))
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Cannot find the cluster of a purchase", "purchase", purchase.Name)
	}
	if fc == nil {
		return nil // When it comes, it is looked at.
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(fc)}}
}

// Reconcile looks at a ForeignCluster.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	fc := &v09.ForeignCluster{}
	if err := r.cfg.Client.Get(ctx, req.NamespacedName, fc); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	all := &connectorv1alpha1.PurchaseList{}
	if err := r.cfg.Client.List(ctx, all); err != nil {
		return ctrl.Result{}, fmt.Errorf("list purchases: %w", err)
	}
	price, known := ofCore(all.Items, v09.Identity(fc).ID)
	text := ""
	if known {
		text = price.String()
	}
	if liqo.CorePrice(fc) == text {
		return ctrl.Result{}, nil
	}
	before := client.MergeFrom(fc.DeepCopy())
	liqo.SetCorePrice(fc, text)
	if err := r.cfg.Client.Patch(ctx, fc, before); client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, fmt.Errorf("write the price of cluster %s: %w", v09.Identity(fc), err)
	}
	return ctrl.Result{}, nil
}

// ofCore returns what a core of a cluster costs, with all that comes with it: what its contracts in force cost, by their cores. It is not
// known without cores, nor in several currencies.
func ofCore(purchases []connectorv1alpha1.Purchase, id cluster.ID) (kpi.Price, bool) {
	price, cores := kpi.Price{}, 0.0
	for i := range purchases {
		status := &purchases[i].Status
		if status.Cluster.ID != string(id) || !contract.State(status.State).InUse() {
			continue
		}
		if status.Price == nil || price.Currency != "" && price.Currency != status.Price.Currency {
			return kpi.Price{}, false
		}
		cost, err := objects.ReadPrice(*status.Price)
		if err != nil {
			return kpi.Price{}, false
		}
		hourly, _ := cost.PerHour().Float64()
		price.Currency = cost.Currency
		price.Amount += hourly
		cores += status.Resources.Cpu().AsApproximateFloat64()
	}
	if cores <= 0 || price.Currency == "" {
		return kpi.Price{}, false
	}
	price.Amount /= cores
	return price, true
}
