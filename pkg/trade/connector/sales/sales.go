// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package sales does what a seller has to do for its contracts: it applies what time and people bring, grants and withdraws, and tells the
// resource plugin what clusters are given. It does not talk to buyers, and does not know how clusters peer.
package sales

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/conditions"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/books"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/capacity"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/contract"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/ledger"
	"github.com/capacitorset/liqo-broker/pkg/trade/negotiation"
)

// Retention is for how long contracts are kept that are over and of which nothing is left.
type Retention struct {
	// Signed is for those that both have signed, and Unsigned for the others, which anybody can make many of.
	Signed, Unsigned time.Duration
}

// DefaultRetention keeps what was sold for 62 days, so that all of a month is there in the month after it, and for buyers that were away.
func DefaultRetention() Retention {
	return Retention{Signed: 62 * 24 * time.Hour, Unsigned: time.Hour}
}

// Config is what the controller needs. All but Covered, Tidy, Changed, Ledger and Events must be there.
type Config struct {
	// Client writes, and may read from a cache that keeps books.Kept.
	Client client.Client
	// Reader reads from the API server.
	Reader client.Reader
	// Applier writes what becomes of contracts.
	Applier negotiation.Applier
	// Peerings lets clusters peer. It is shared with who answers with credentials.
	Peerings  *Peerings
	Retention Retention
	// Covered returns what the cluster lacks of what it has sold, which the Sales say that it concerns; nil says nothing of it.
	Covered capacity.Covered
	// Tidy is called when this process has become the leader, and then every ten minutes, with the time and for how long something can be
	// reserved; nil does nothing. It is for books.Store.Tidy.
	Tidy func(ctx context.Context, now time.Time, longest time.Duration) error
	// Changed is called when the grants may have changed; nil does nothing. It must not block. It is for Server.Changed of the resource
	// plugin.
	Changed func()
	// Ledger returns the ledger, as it was a moment ago, to find out that a contract rests; nil applies the time to each contract that is
	// looked at, which reads all from the API server. It is for books.Store.Lately.
	Ledger func(ctx context.Context) (ledger.Ledger, error)
	// Events are written about objects when their conditions change; nil writes none.
	Events conditions.Events
}

// Reconciler drives the sales. It is for one worker, so that two contracts for one cluster are not granted at once.
type Reconciler struct{ cfg Config }

// New returns a Reconciler.
func New(cfg Config) (*Reconciler, error) {
	if cfg.Client == nil || cfg.Reader == nil || cfg.Peerings == nil ||
		cfg.Applier.Store == nil || cfg.Applier.Offers == nil || cfg.Applier.Clock == nil {
		return nil, errors.New("sales need a client, a reader, an applier and peerings")
	}
	if cfg.Retention.Signed <= 0 || cfg.Retention.Unsigned <= 0 {
		return nil, fmt.Errorf("sales are kept for %s, and for %s if nobody signed: it must be positive", cfg.Retention.Signed,
			cfg.Retention.Unsigned)
	}
	return &Reconciler{cfg: cfg}, nil
}

// Setup registers the controller with a manager.
func Setup(mgr ctrl.Manager, cfg Config) error {
	r, err := New(cfg)
	if err != nil {
		return err
	}
	if cfg.Tidy != nil {
		if err := mgr.Add(tidier{cfg.tidy, mgr.GetLogger().WithName("ledger")}); err != nil {
			return fmt.Errorf("set up the tidying of the ledger: %w", err)
		}
	}
	if cfg.Covered != nil {
		if err := mgr.Add(coverer{cfg, mgr.GetLogger().WithName("covered")}); err != nil {
			return fmt.Errorf("set up the comparison of what is sold with what there is: %w", err)
		}
	}
	if err := ctrl.NewControllerManagedBy(mgr).Named("sale").For(&connectorv1alpha1.Sale{}).
		WithOptions(controller.Options{RateLimiter: retries()}).Complete(r); err != nil {
		return fmt.Errorf("set up the sale controller: %w", err)
	}
	return nil
}

// firstRetry and lastRetry are how soon what has failed for a contract is tried again: it is not left alone for long after Liqo was away.
const firstRetry, lastRetry = 100 * time.Millisecond, 30 * time.Second

// retries says when what has failed is tried again.
func retries() workqueue.TypedRateLimiter[ctrl.Request] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[ctrl.Request](firstRetry, lastRetry)
}

// tidyAgain is how often the ledger is tidied.
const tidyAgain = 10 * time.Minute

// tidy tidies the ledger. What waits for somebody's approval is not in it, so that nothing is reserved for longer than a signature may
// take.
func (c Config) tidy(ctx context.Context) error {
	return c.Tidy(ctx, c.Applier.Clock.Now(), c.Applier.Seller.ReserveFor)
}

// tidier tidies the ledger in the leader alone.
type tidier struct {
	tidy func(ctx context.Context) error
	log  logr.Logger
}

// Start implements manager.Runnable. Only what fails at the start ends the process: later it is tried again.
func (t tidier) Start(ctx context.Context) error {
	if err := t.tidy(ctx); err != nil {
		return err
	}
	again := time.NewTicker(tidyAgain)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-again.C:
		}
		if err := t.tidy(ctx); err != nil && ctx.Err() == nil {
			t.log.Error(err, "Cannot tidy the ledger now")
		}
	}
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (tidier) NeedLeaderElection() bool { return true }

// withdrawPause is how long the controller waits before it looks again whether a cluster has left.
const withdrawPause = 5 * time.Second

// abandoned is how long a Sale may have no record before it is removed: its reservation was never written.
const abandoned = 10 * time.Minute

// sold is a contract, and its place among all.
type sold struct {
	record  contract.Record
	name    string
	created time.Time
}

// register is all contracts, in the order in which they were made.
type register []sold

// Contracts knows all contracts: a books.Store. It is called concurrently.
type Contracts interface {
	// All returns all Sales, as this process has seen or written them last.
	All(ctx context.Context) ([]books.Known, error)
	// Changes returns a number that is another one when what All returns has changed, and false if that is not known.
	Changes() (int64, bool)
}

// registerOf returns all contracts.
func registerOf(ctx context.Context, from Contracts) (register, error) {
	known, err := from.All(ctx)
	if err != nil {
		return nil, err
	}
	all := make(register, 0, len(known))
	for _, each := range known {
		if each.Record != nil {
			all = append(all, sold{record: *each.Record, name: each.Name, created: each.Created})
		}
	}
	return all.sorted(), nil
}

// list reads all contracts. One that cannot be read excludes itself.
func list(ctx context.Context, reader client.Reader) (register, error) {
	var sales connectorv1alpha1.SaleList
	if err := reader.List(ctx, &sales); err != nil {
		return nil, fmt.Errorf("list sales: %w", err)
	}
	return newRegister(sales.Items, books.Record), nil
}
