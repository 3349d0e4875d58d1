// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package purchases is the buyer's side in Kubernetes: it drives each Purchase from the quote to its end, has the clusters peer while the
// contract lasts, and has them part after it.
//
// What to do next is decided by package contract, from what stands in status.record. It is written there before it is done, and what came
// of it after: a connector that is killed goes on from there. The package does not know registries, nor which offer is a good one.
package purchases

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/conditions"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/peering"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/offer"
	"github.com/capacitorset/liqo-broker/pkg/trade/party"
	registryclient "github.com/capacitorset/liqo-broker/pkg/trade/registry/client"
)

const (
	// workers is how many purchases are driven at once: each can wait for a seller.
	workers = 8
	// firstPause and mostPause bound how long it waits before it asks a seller again that did not answer.
	firstPause = time.Second
	mostPause  = 10 * time.Second
	// guardedAgain is how often a cluster is looked at that is not guarded.
	guardedAgain = 5 * time.Second
)

// Parties knows the parties of the catalog. It is called concurrently.
type Parties interface {
	// Party returns a party as it was shown last; false if it was never shown.
	Party(id party.ID) (registryclient.Party, bool)
	// Owns reports whether a party has a cluster: it names it, and no other one that registries show has named it before.
	Owns(id party.ID, cluster cluster.ID) bool
}

// Config is what a Reconciler needs. All but Guarded, Events and Elapsed must be there.
type Config struct {
	// Client writes, and Reader reads from the API server itself, not from a cache: what was written last counts.
	Client client.Client
	Reader client.Reader
	// Parties are those that sell. Without any registry the connector goes on with those that stand in status.seller.
	Parties Parties
	// Peering has this cluster peer and part.
	Peering peering.Buyer
	// Reach tells where this cluster is reached, and tries where those of sellers are, before anything is signed.
	Reach peering.Reach
	// Cluster is this one.
	Cluster cluster.Identity
	// Keys returns the chain of this cluster's party, and Key its current key. They are called concurrently.
	Keys func() party.Keys
	Key  func() party.Key
	// Fits reports whether an offer fits what a Purchase was made for. The offer is the purchase's, as the seller has it now.
	Fits func(ctx context.Context, purchase *connectorv1alpha1.Purchase, now offer.Offer) (bool, error)
	// Guarded returns an error that says what would not keep a seller in bounds here, which is peering.ErrUnguarded: nothing is bought then.
	// Nil is for a cluster that is guarded.
	Guarded func(ctx context.Context) error
	// Events are written about objects when their conditions change; nil writes none.
	Events conditions.Events
	Clock  clock.PassiveClock
	// Elapsed is a clock that never leaps: how much time has passed since some moment; nil is that of the process.
	Elapsed func() time.Duration
}

// Reconciler drives Purchases. It can be used concurrently, for different Purchases.
type Reconciler struct {
	cfg     Config
	watches *watches
	sellers sellers
	passed  passed
	// joining is held while it is looked who uses a peering, and the peering is changed after that.
	joining sync.Mutex
}

// New returns a Reconciler.
func New(cfg Config) (*Reconciler, error) {
	if cfg.Client == nil || cfg.Reader == nil || cfg.Parties == nil || cfg.Peering == nil || cfg.Reach == nil || cfg.Keys == nil ||
		cfg.Key == nil ||
		cfg.Fits == nil || cfg.Cluster.ID == "" || cfg.Clock == nil {
		return nil, errors.New(
			"purchases need a client, a reader, parties, peerings, what reaches clusters, the party's keys, what fits, the cluster's ID and a clock",
		)
	}
	if cfg.Guarded == nil {
		cfg.Guarded = func(context.Context) error { return nil }
	}
	if cfg.Elapsed == nil {
		began := time.Now()
		cfg.Elapsed = func() time.Duration { return time.Since(began) }
	}
	return &Reconciler{
		cfg: cfg, watches: newWatches(), sellers: sellers{clients: map[string]connection{}},
		passed: passed{counted: map[types.UID]time.Duration{}},
	}, nil
}

// Setup registers the controller with a manager, and what waits for the answers of sellers.
func Setup(mgr ctrl.Manager, cfg Config) error {
	r, err := New(cfg)
	if err == nil {
		err = mgr.Add(r.watches)
	}
	if err == nil {
		err = ctrl.NewControllerManagedBy(mgr).
			Named("purchase").
			For(&connectorv1alpha1.Purchase{}, builder.WithPredicates(wanted())).
			WatchesRawSource(source.Channel(r.watches.woken, &handler.EnqueueRequestForObject{})).
			WithOptions(controller.Options{MaxConcurrentReconciles: workers, RateLimiter: pauses()}).
			Complete(r)
	}
	if err != nil {
		return fmt.Errorf("set up the controller of purchases: %w", err)
	}
	return nil
}

// wanted lets those updates pass that change what people want: not those of what the controller writes itself.
func wanted() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() ||
			!e.ObjectNew.GetDeletionTimestamp().Equal(e.ObjectOld.GetDeletionTimestamp())
	}}
}

// pauses is how long the controller waits after failures.
func pauses() workqueue.TypedRateLimiter[ctrl.Request] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[ctrl.Request](firstPause, mostPause)
}

// Reconcile drives a Purchase as far as it goes without waiting for anybody but one answer of its seller at a time.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	object := &connectorv1alpha1.Purchase{}
	err := r.cfg.Reader.Get(ctx, req.NamespacedName, object)
	switch {
	case apierrors.IsNotFound(err):
		r.watches.stop(req.Name)
		return ctrl.Result{}, nil
	case err != nil:
		return ctrl.Result{}, fmt.Errorf("get purchase %s: %w", req.Name, err)
	case object.DeletionTimestamp.IsZero() && controllerutil.AddFinalizer(object, connectorv1alpha1.Finalizer):
		err = r.cfg.Client.Update(ctx, object)
	case !controllerutil.ContainsFinalizer(object, connectorv1alpha1.Finalizer):
		r.watches.stop(req.Name)
		r.passed.forgetPurchase(object.UID)
		return ctrl.Result{}, nil
	}
	var result ctrl.Result
	if err == nil {
		result, err = (&drive{purchases: r, object: object, stored: object.Status.DeepCopy()}).run(ctx)
	}
	switch {
	case apierrors.IsConflict(err), apierrors.IsNotFound(err):
		return ctrl.Result{Requeue: true}, nil // Somebody else has changed it meanwhile.
	case err != nil:
		return ctrl.Result{}, fmt.Errorf("drive purchase %s: %w", req.Name, err)
	}
	return result, nil
}
