// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package requests serves CapacityRequests: it looks for the cheapest offer that fits, makes a Purchase of it, and looks for another one
// if that does not serve.
//
// It does not know how contracts are negotiated, nor where offers come from.
package requests

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/conditions"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/offer"
	"github.com/capacitorset/liqo-broker/pkg/wake"
	"github.com/capacitorset/liqo-broker/pkg/wake/wakequeue"
)

// changedPause is how long requests wait for more changes of the catalog before they look at it again.
const changedPause = time.Second

// Candidate is a plan that fits a request: what has to be known of it here, where nobody knows a catalog.
type Candidate struct {
	Offer offer.Key
	// Plan is the plan's ID.
	Plan string
	// Digest is that of the offer, and Price what the wanted resources cost. Region and Notice are those of the offer and the plan.
	Digest string
	Price  offer.Price
	Region string
	Notice time.Duration
}

// Config is what a Reconciler needs. All but Changed, Events and Keep must be there.
type Config struct {
	// Client writes, and Reader reads from the API server itself, not from a cache: what was written last counts.
	Client client.Client
	Reader client.Reader
	// Offers returns the plans that pass a filter, the best one first. An error means that the filter makes no sense, and names the field.
	// It is called concurrently.
	Offers func(filter offer.Filter) ([]Candidate, error)
	// Changed is set when there may be other offers: requests that wait for one are looked at again. The zero Signal never is.
	Changed wake.Signal
	// Events are written about objects when their conditions change; nil writes none.
	Events conditions.Events
	Clock  clock.PassiveClock
	// Keep is for how long a Purchase stays that was paid for and is over: bills are made from it. Zero is for ever where it has served its
	// request to the end, and not at all where another one was bought in its place.
	Keep time.Duration
}

// Reconciler serves CapacityRequests. It can be used concurrently, for different CapacityRequests.
type Reconciler struct{ cfg Config }

// New returns a Reconciler.
func New(cfg Config) (*Reconciler, error) {
	if cfg.Client == nil || cfg.Reader == nil || cfg.Offers == nil || cfg.Clock == nil {
		return nil, errors.New("capacity requests need a client, a reader, offers and a clock")
	}
	return &Reconciler{cfg: cfg}, nil
}

// Setup registers the controller that it returns with a manager.
func Setup(mgr ctrl.Manager, cfg Config) (*Reconciler, error) {
	r, err := New(cfg)
	if err != nil {
		return nil, err
	}
	err = ctrl.NewControllerManagedBy(mgr).
		Named("capacityrequest").
		For(&connectorv1alpha1.CapacityRequest{}).
		Owns(&connectorv1alpha1.Purchase{}).
		WatchesRawSource(wakequeue.Source(cfg.Changed, r.again)).
		Complete(r)
	if err != nil {
		return nil, fmt.Errorf("set up the controller of capacity requests: %w", err)
	}
	return r, nil
}

// again has the requests that wait for an offer looked at soon, and together with what changes until then: a busy catalog changes often.
// One that is not found now is looked at in a while anyway.
func (r *Reconciler) again(ctx context.Context, queue wakequeue.Queue) {
	var all connectorv1alpha1.CapacityRequestList
	if err := r.cfg.Client.List(ctx, &all); err != nil {
		log.FromContext(ctx).Error(err, "Cannot list the capacity requests that wait for an offer")
		return
	}
	for i := range all.Items {
		if request := &all.Items[i]; request.Status.Purchase == "" && request.DeletionTimestamp.IsZero() {
			queue.AddAfter(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(request)}, changedPause)
		}
	}
}
