// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package reports writes down, on a broker, what the virtual kubelets of consumers report:
// through which tunnels a consumer reaches a provider past the broker, where the broker's
// virtual kubelet for that provider reads it, and how far providers are from the consumer,
// where the choice for this consumer, and no other, reads it.
//
// It does not know who tells it, nor what the prefixes and the times are used for.
package reports

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/remoteipam/broker/fair"
	"github.com/capacitorset/liqo-broker/pkg/roundtrips"
)

// Config is what a Recorder needs. All must be there.
type Config struct {
	// Client lists namespaces, reads Consumers and patches their status, and reads and writes
	// the ConfigMaps named [remoteipam.DirectName]; it must not read these from a cache.
	Client client.Client
	Clock  clock.PassiveClock
}

// Recorder writes into ConfigMaps and into the status of Consumers. It is safe for
// concurrent use, and a reconciler of Consumers: the tunnels that a consumer reported are
// removed with it, and the times are part of it.
type Recorder struct {
	client client.Client
	clock  clock.PassiveClock

	// lock protects what is known of the ConfigMaps, and the paces. It is held for one
	// namespace at a time, so that no consumer waits for all that another one tells.
	lock  fair.Lock[cluster.ID]
	known map[types.UID]*entries
	// writes are the paces of the consumers whose tunnels are written and that are not forgotten.
	writes map[cluster.ID]*rate.Limiter

	roundTrips *roundtrips.Recorder
}

// New returns a Recorder that has not read any ConfigMap yet.
func New(cfg Config) (*Recorder, error) {
	if cfg.Client == nil || cfg.Clock == nil {
		return nil, errors.New("a recorder of reports needs a client and a clock")
	}
	return &Recorder{
		client: cfg.Client, clock: cfg.Clock, known: map[types.UID]*entries{}, writes: map[cluster.ID]*rate.Limiter{},
		roundTrips: roundtrips.New(cfg.Client, cfg.Clock),
	}, nil
}

// Setup registers the Recorder that it returns with a manager.
func Setup(mgr ctrl.Manager, cfg Config) (*Recorder, error) {
	r, err := New(cfg)
	if err != nil {
		return nil, err
	}
	if err := ctrl.NewControllerManagedBy(mgr).Named("reports").For(&v1alpha1.Consumer{}).Complete(r); err != nil {
		return nil, fmt.Errorf("set up the recorder of reports: %w", err)
	}
	return r, nil
}

// Reconcile forgets a consumer that is gone.
func (r *Recorder) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	var consumer v1alpha1.Consumer
	err := r.client.Get(ctx, request.NamespacedName, &consumer)
	if client.IgnoreNotFound(err) != nil || err == nil {
		return reconcile.Result{}, err
	}
	gone := cluster.ID(request.Name)
	r.roundTrips.Forget(gone)
	if err := r.RecordTunnels(ctx, gone, nil); err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{}, r.forgetPace(ctx, gone) // Last, because tunnels are removed at its pace.
}

// RecordRoundTrips replaces what is written about a consumer: how far each provider is, as [roundtrips.Recorder.Record] does.
func (r *Recorder) RecordRoundTrips(ctx context.Context, consumer cluster.ID, took map[cluster.ID]time.Duration) error {
	return r.roundTrips.Record(ctx, consumer, took)
}
