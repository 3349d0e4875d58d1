// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/conditions"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/books"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/capacity"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/catalog"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/guarded"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/kpisource"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/offers"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/peering"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/peering/outofband"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/prices"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/purchases"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/requests"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/sales"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/contract"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/offer"
	"github.com/capacitorset/liqo-broker/pkg/trade/negotiation"
	"github.com/capacitorset/liqo-broker/pkg/trade/party"
	"github.com/capacitorset/liqo-broker/pkg/wake"
)

// tradeConfig is what a trade is made from, beside the manager and who calls the API server.
type tradeConfig struct {
	options options
	self    self
	log     logr.Logger
	// granted is called when what clusters are given may have changed, and refused when a request of a buyer is refused.
	granted func()
	refused func(reason string)
}

// trade is what buyers and sellers share.
type trade struct {
	cfg     tradeConfig
	mgr     ctrl.Manager
	events  conditions.Events
	clock   clock.PassiveClock
	catalog *catalog.Catalog
	driver  *outofband.Driver
	guarded *guarded.Cluster
	reach   peering.Reach
	wakes   wakes
}

// wakes are what is set when somebody is to look. They are made first: who sets one does not know who looks.
type wakes struct {
	offers   wake.Signal // What is sold, or what registries list of it, has changed.
	requests wake.Signal // Registries have shown something: perhaps an offer.
	keys     wake.Signal // Registries have shown something: perhaps a buyer's key.
}

// newTrade has registries followed, and returns what buys and sells by them.
func newTrade(mgr ctrl.Manager, direct client.Client, cfg tradeConfig) (*trade, error) {
	w := wakes{offers: wake.New(), requests: wake.New(), keys: wake.New()}
	events := mgr.GetEventRecorderFor(component)
	followed, err := catalog.Setup(mgr, catalog.Config{
		Client: mgr.GetClient(), Reader: mgr.GetAPIReader(), Namespace: cfg.options.namespace,
		Identity: cfg.self.identity, Announcement: cfg.self.announcement,
		Told: w.offers.Set, Changed: func() { w.requests.Set(); w.keys.Set() }, Events: events, Clock: clock.RealClock{},
	})
	if err != nil {
		return nil, err
	}
	// Both sides peer by the same driver, and only on a cluster that is guarded.
	driver, err := outofband.Setup(mgr, outofband.Config{Client: direct, Namespace: cfg.options.liqoNamespace, Clock: clock.RealClock{}})
	if err = errors.Join(err, prices.Setup(mgr, prices.Config{Client: mgr.GetClient()})); err != nil {
		return nil, err
	}
	return &trade{
		cfg: cfg, mgr: mgr, events: events, clock: clock.RealClock{}, catalog: followed, driver: driver, wakes: w,
		guarded: guarded.New(direct, cfg.options.liqoNamespace, clock.RealClock{}),
		reach:   outofband.NewReach(direct, cfg.options.liqoNamespace, nil),
	}, nil
}

// buy registers what buys.
func (t *trade) buy() error {
	asking, err := requests.Setup(t.mgr, requests.Config{
		Client: t.mgr.GetClient(), Reader: t.mgr.GetAPIReader(), Offers: t.candidates, Changed: t.wakes.requests, Events: t.events,
		Clock: t.clock, Keep: t.cfg.options.keepContracts,
	})
	if err != nil {
		return err
	}
	return purchases.Setup(t.mgr, purchases.Config{
		Client: t.mgr.GetClient(), Reader: t.mgr.GetAPIReader(), Parties: t.catalog, Fits: asking.Fits, Cluster: t.cfg.self.cluster,
		Keys: t.cfg.self.identity.Keys, Key: t.cfg.self.identity.Key,
		Peering: guarded.NewBuyer(t.driver, t.guarded), Reach: t.reach, Guarded: t.guarded.Check, Events: t.events, Clock: t.clock,
	})
}

// candidates returns the plans that pass a filter, the best one first.
func (t *trade) candidates(filter offer.Filter) ([]requests.Candidate, error) {
	found, err := t.catalog.Find(filter)
	if err != nil {
		return nil, err
	}
	candidates := make([]requests.Candidate, 0, len(found))
	for _, f := range found {
		candidates = append(candidates, requests.Candidate{
			Offer: f.Entry.Offer.Key(), Plan: f.Plan().ID, Digest: f.Entry.Offer.Fingerprint(), Price: f.Match.Price, Region: f.Entry.Offer.Region,
			Notice: time.Duration(f.Plan().Notice),
		})
	}
	return candidates, nil
}

// sell registers what sells, and returns what clusters are granted, and what answers buyers: nil if nothing is sold.
func (t *trade) sell(ctx context.Context) (*sales.Grants, *negotiation.Server, error) {
	// Contracts are stored as Sales, and what they hold is no longer offered.
	store, err := t.openBooks(ctx)
	if err != nil {
		return nil, nil, err
	}
	offered, err := offers.Setup(t.mgr, t.offersConfig(store))
	if err != nil {
		return nil, nil, err
	}

	// What the time and people want of a contract is done by a controller, by the same rules as what its buyer wants.
	issuer, err := t.issuer()
	if err != nil {
		return nil, nil, err
	}
	peerings := sales.NewPeerings(t.mgr.GetAPIReader(), store, issuer)
	waits := contract.Seller{ReserveFor: t.cfg.options.reserveFor, DecideFor: t.cfg.options.decideFor}
	written := audit{t.cfg.log.WithName("contracts")}
	err = sales.Setup(t.mgr, sales.Config{
		Client: t.mgr.GetClient(), Reader: t.mgr.GetAPIReader(), Peerings: peerings, Retention: t.retention(),
		Applier: negotiation.Applier{Store: store, Offers: offered, Seller: waits, Audit: written, Clock: t.clock},
		Changed: func() { t.wakes.offers.Set(); t.cfg.granted() },
		Tidy:    t.tidy(store),
		Ledger:  store.Lately,
		Covered: t.covered(),
		Events:  t.events,
	})
	if err != nil || t.cfg.options.address == "0" {
		return sales.NewGrants(store), nil, err
	}

	// Buyers are answered last, when all that they are answered by is there.
	log := t.cfg.log.WithName("negotiation")
	server, err := negotiation.NewServer(negotiation.Config{
		Party: t.cfg.self.identity.ID(), Key: t.cfg.self.identity.Key, Keys: t.cfg.self.identity.Keys,
		Identify: identify(t.catalog.Identify, store), Learn: store.Learn,
		Store: store, Offers: offered, Admission: negotiation.Owners{Admission: offered, Owns: owns(t.catalog, store)},
		Credentials: peerings, Reach: buyers{t.reach, t.catalog, log},
		Audit: written, Seller: waits, Drain: t.cfg.options.drain, Limits: t.limits(), Log: log, Refused: t.cfg.refused,
	})
	return sales.NewGrants(store), server, err
}

// retention is how long contracts are kept.
func (t *trade) retention() sales.Retention {
	keep := sales.DefaultRetention()
	keep.Signed = t.cfg.options.keepContracts
	return keep
}

// limits are how much buyers may have.
func (t *trade) limits() negotiation.Limits {
	limits := negotiation.DefaultLimits()
	limits.Open, limits.Kept = t.cfg.options.maxOpen, t.cfg.options.maxKept
	return limits
}

// tidy returns what tidies the ledger, and forgets what takes too much memory. What cannot be forgotten now is later.
func (t *trade) tidy(store *books.Store) func(context.Context, time.Time, time.Duration) error {
	return func(ctx context.Context, now time.Time, longest time.Duration) error {
		gone, err := store.Forget(ctx, now, t.cfg.options.keepMebibytes<<20)
		for _, k := range gone {
			t.cfg.log.Info("Deleted a sale before --keep-contracts, as what is kept takes more than --keep-mebibytes", "sale", k.Name,
				"buyer", k.Key.Buyer, "contract", k.Key.ID)
		}
		if err != nil {
			t.cfg.log.Error(err, "Cannot delete what takes too much memory; it is tried again")
		}
		return store.Tidy(ctx, now, longest)
	}
}

// openBooks returns the books, which learn the keys that registries show of buyers.
func (t *trade) openBooks(ctx context.Context) (*books.Store, error) {
	store, err := books.New(books.Config{Client: t.mgr.GetClient(), Reader: t.mgr.GetAPIReader(), Parties: t.catalog})
	if err != nil {
		return nil, err
	}
	follow := manager.RunnableFunc(func(ctx context.Context) error {
		store.Follow(ctx, t.wakes.keys.Taken(), func(err error) {
			t.cfg.log.Error(err, "Cannot write the keys of buyers into their sales; it is tried again")
		})
		return nil
	})
	if err := t.mgr.Add(follow); err != nil {
		return nil, fmt.Errorf("add what follows the keys of buyers: %w", err)
	}
	return store, store.Watch(ctx, t.mgr.GetCache())
}

// issuer returns what lets the clusters of buyers peer.
func (t *trade) issuer() (peering.Seller, error) {
	issuer := guarded.NewSeller(t.driver, t.guarded)
	if !t.cfg.options.broker {
		return issuer, nil
	}
	// With a broker, its Consumers are granted what was sold, before a buyer is let in.
	consumers, err := sales.SetupConsumers(t.mgr, sales.ConsumersConfig{
		Client: t.mgr.GetClient(), Reader: t.mgr.GetAPIReader(), Peers: t.driver,
	})
	if err != nil {
		return nil, err
	}
	return consumers.Seller(issuer), nil
}

// offersConfig returns what sells the offers of this cluster.
func (t *trade) offersConfig(store *books.Store) offers.Config {
	o := &t.cfg.options
	share := capacity.Share{Rest: int32(o.share), Devices: int32(o.shareDevices)} //nolint:gosec // They are percentages.
	config := offers.Config{
		Client: t.mgr.GetClient(), Reader: t.mgr.GetAPIReader(), Party: t.cfg.self.identity.ID(), Key: t.cfg.self.identity.Key,
		Ledger: store.Lately, Registries: t.catalog, Guarded: t.guarded.Check, Changed: t.wakes.offers, Events: t.events, Clock: t.clock,
		Kind: connectorv1alpha1.KindCluster, Capacity: capacity.OfCluster(t.mgr.GetClient(), share),
		Covered: t.covered(),
	}
	if len(o.nodeLabels) > 0 {
		config.Attributes = capacity.AttributesOfCluster(t.mgr.GetClient(), o.nodeLabels)
	}
	if t.cfg.options.broker {
		config.Measured = kpisource.OfBroker(t.mgr.GetClient(), t.cfg.self.identity.ID())
		config.Kind, config.Capacity = connectorv1alpha1.KindBroker, capacity.OfBroker(t.mgr.GetClient(), share)
	}
	return config
}

// covered returns what this cluster lacks of what it has sold.
func (t *trade) covered() capacity.Covered {
	if t.cfg.options.broker {
		return capacity.CoveredByBroker(t.mgr.GetClient())
	}
	return capacity.CoveredByCluster(t.mgr.GetClient())
}

// identify asks who has a key: registries, and else with whom there are contracts. The longest chain of keys counts that either of them
// has seen.
func identify(shown negotiation.Identify, store *books.Store) negotiation.Identify {
	return func(ctx context.Context, key ed25519.PublicKey) (party.Keys, error) {
		keys, err := shown(ctx, key)
		switch {
		case errors.Is(err, negotiation.ErrStranger):
			return store.Identify(ctx, key)
		case err != nil:
			return party.Keys{}, err
		}
		return store.Longest(ctx, keys)
	}
}

// owns tells which clusters parties have: by registries, or of those that none shows any more, by their contracts.
func owns(
	registries purchases.Parties, store *books.Store,
) func(ctx context.Context, id party.ID, of cluster.ID) (owns, known bool, err error) {
	return func(ctx context.Context, id party.ID, of cluster.ID) (owns, known bool, err error) {
		if _, shown := registries.Party(id); shown {
			return registries.Owns(id, of), true, nil
		}
		bought, err := store.Bought(ctx, id, of)
		return bought, bought, err
	}
}

// audit logs what becomes of contracts. Their records have it too.
type audit struct{ log logr.Logger }

// Transition implements negotiation.Audit.
func (a audit) Transition(_ context.Context, key contract.Key, t contract.Transition) {
	a.log.Info("Contract", "buyer", key.Buyer, "id", key.ID, "from", t.From, "to", t.To, "why", t.Reason)
}
