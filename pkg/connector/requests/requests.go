// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package requests serves CapacityRequests: it looks for the cheapest offer that fits, makes a Purchase of it, and looks for another one
// if that does not serve.
//
// It does not know how contracts are negotiated, nor where offers come from.
package requests

import (
	"errors"
	"fmt"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/offer"
)

// Candidate is a plan that fits a request.
type Candidate struct {
	Offer offer.Key
	// Plan is the plan's ID.
	Plan string
}

// Config is what a Reconciler needs. Client, Reader and Offers must be there.
type Config struct {
	// Client writes, and Reader reads from the API server itself, not from a cache: what was written last counts.
	Client client.Client
	Reader client.Reader
	// Offers returns the plans that pass a filter, the best one first. An error means that the filter makes no sense, and names the field.
	// It is called concurrently.
	Offers func(filter offer.Filter) ([]Candidate, error)
	// Changed has a value when requests for which there was no offer should be looked at again; nil if nobody says so. The event's object is
	// the CapacityRequest.
	Changed <-chan event.GenericEvent
	// Now is the clock; nil is time.Now.
	Now func() time.Time
}

// Reconciler serves CapacityRequests. It can be used concurrently, for different CapacityRequests.
type Reconciler struct {
	cfg Config
}

// New returns a Reconciler.
func New(cfg Config) (*Reconciler, error) {
	if cfg.Client == nil || cfg.Reader == nil || cfg.Offers == nil {
		return nil, errors.New("capacity requests need a client, a reader and offers")
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &Reconciler{cfg: cfg}, nil
}

// SetupWithManager registers the controller with a manager.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	b := ctrl.NewControllerManagedBy(mgr).
		Named("capacityrequest").
		For(&connectorv1alpha1.CapacityRequest{}).
		Owns(&connectorv1alpha1.Purchase{})
	if r.cfg.Changed != nil {
		b = b.WatchesRawSource(&source.Channel{Source: r.cfg.Changed}, &handler.EnqueueRequestForObject{})
	}
	if err := b.Complete(r); err != nil {
		return fmt.Errorf("set up the controller of capacity requests: %w", err)
	}
	return nil
}
