// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package catalog is what a connector knows of the catalog: it follows the registries that Registries name, each by itself, and makes
// one catalog of what they show, in which an offer is once. It publishes there the signed offers that it is given.
//
// Registries may be dead, or lie: what is in the catalog was verified against its owner's keys, and stays until it is over or withdrawn.
// The package does not buy anything, and does not decide what this cluster sells.
package catalog

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/capacitorset/liqo-broker/pkg/conditions"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/identity"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/listings"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/offer"
	"github.com/capacitorset/liqo-broker/pkg/trade/negotiation"
	"github.com/capacitorset/liqo-broker/pkg/trade/party"
	registryclient "github.com/capacitorset/liqo-broker/pkg/trade/registry/client"
)

const (
	// sweepInterval is how often offers are looked for that are over.
	sweepInterval = 10 * time.Second
	// DefaultMemory is how much memory all that registries show takes at most, in bytes, about: with what else a connector holds, its pod has
	// enough.
	DefaultMemory = 40 << 20
	// partiesFill is how many parties that show as much as they may fill all of that.
	partiesFill = 32
)

// Config is what a Catalog needs. All but Backoff, Memory, Told, Changed and Events must be there.
type Config struct {
	// Client writes, and may read from a cache; Reader reads from the API server.
	Client client.Client
	Reader client.Reader
	// Namespace has the Secrets that Registries name.
	Namespace string
	// Identity is who this cluster is, and Announcement what it has signed to say of itself.
	Identity     identity.Identity
	Announcement string
	// Backoff is how long registries are left alone after failures.
	Backoff registryclient.Backoff
	// Memory bounds what registries show, in bytes of memory, about: each gets the same share. DefaultMemory if it is zero.
	Memory int
	// Told is called after a registry has been told of what this cluster sells, or could not be; nil does nothing. It must not block.
	Told func()
	// Changed is called after a registry has shown something new; nil does nothing. It must not block.
	Changed func()
	// Events are written about objects when their conditions change; nil writes none.
	Events conditions.Events
	Clock  clock.PassiveClock
}

// Catalog is the catalog of all registries together. It can be used concurrently.
type Catalog struct {
	cfg Config
	// woken has a registry whose state has changed.
	woken chan event.GenericEvent
	// ctx is that of all followers: it ends with Start.
	ctx context.Context //nolint:containedctx // Followers live as long as the Catalog runs.
	end context.CancelFunc

	expressions expressions

	mu sync.RWMutex
	// listings is read and written with mu.
	listings *listings.Listings
	// followers are by the names of their registries.
	followers map[string]*follower
	// own are the signed offers that this cluster wants to be listed, by their IDs; nil until they are known.
	own map[string]string
}

// New returns a Catalog without registries.
func New(cfg Config) (*Catalog, error) {
	if cfg.Client == nil || cfg.Reader == nil || cfg.Namespace == "" || cfg.Identity.ID() == "" || cfg.Announcement == "" || cfg.Clock == nil {
		return nil, errors.New("a catalog needs a client, a reader, a namespace, an identity, its announcement and a clock")
	}
	cfg.Memory = cmp.Or(cfg.Memory, DefaultMemory)
	if cfg.Told == nil {
		cfg.Told = func() {}
	}
	if cfg.Changed == nil {
		cfg.Changed = func() {}
	}
	c := &Catalog{
		cfg: cfg, woken: make(chan event.GenericEvent, 64), listings: listings.New(), followers: map[string]*follower{},
	}
	c.ctx, c.end = context.WithCancel(context.Background())
	return c, nil
}

// Start removes what is over, until ctx ends. All followers have ended when it returns.
func (c *Catalog) Start(ctx context.Context) error {
	ticker := time.NewTicker(sweepInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			c.expire()
		case <-ctx.Done():
			c.end()
			c.mu.RLock()
			followers := slices.Collect(maps.Values(c.followers))
			c.mu.RUnlock()
			for _, f := range followers {
				f.join()
			}
			return nil
		}
	}
}

// expire removes what is over.
func (c *Catalog) expire() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.listings.Expire(c.cfg.Clock.Now())
}

// bounds returns how much may be kept of each of a number of registries.
func (c *Catalog) bounds(registries int) listings.Bounds {
	return listings.Bounds{Registry: c.cfg.Memory / max(1, registries), Party: c.cfg.Memory / partiesFill}
}

// merge takes in what a registry has shown, and returns what of it there is no room for.
func (c *Catalog) merge(f *follower, changes []registryclient.Change) (leftOut []offer.Key) {
	if len(changes) == 0 {
		return nil
	}
	defer c.cfg.Changed() // When others can read it.
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.listings.MergeWithin(f.name, changes, f.bounds)
}

// shows reports whether a registry shows something that is kept.
func (c *Catalog) shows(registry string, key offer.Key) bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.listings.Shows(registry, key)
}

// forgetRegistry removes what only one registry has shown.
func (c *Catalog) forgetRegistry(registry string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.listings.Forget(registry)
}

// Party returns a party as registries have shown it; false if none has.
func (c *Catalog) Party(id party.ID) (registryclient.Party, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.listings.Party(id)
}

// Owns reports whether a party has a cluster: it names it, and no other one that registries show has named it before.
func (c *Catalog) Owns(id party.ID, cluster cluster.ID) bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.listings.Owns(id, string(cluster))
}

// Identify returns the party whose current key it is. It is a negotiation.Identify: the error is negotiation.ErrStranger.
func (c *Catalog) Identify(_ context.Context, key ed25519.PublicKey) (party.Keys, error) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if p, ok := c.listings.Holder(key); ok {
		return p.Keys, nil
	}
	return party.Keys{}, negotiation.ErrStranger
}

// Find returns the plans of others that pass a filter, the best one first: see [listings.View.Find]. The error names the field of the
// filter that makes no sense, or is listings.ErrCurrencies. Others can change the catalog meanwhile.
func (c *Catalog) Find(filter offer.Filter) ([]listings.Found, error) {
	matcher, err := c.expressions.compile(filter)
	if err != nil {
		return nil, err
	}
	c.mu.RLock()
	view := c.listings.View()
	c.mu.RUnlock()
	found := view.Find(matcher, c.cfg.Identity.ID(), c.cfg.Clock.Now())
	if err := listings.OneCurrency(found); err != nil {
		return nil, err
	}
	return found, nil
}

// Offer returns an offer of the catalog.
func (c *Catalog) Offer(key offer.Key) (offer.Entry, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.listings.Offer(key)
}

// SetOffers replaces the signed offers that this cluster wants to be listed, by their IDs. Until it is called, registries keep what they
// list.
func (c *Catalog) SetOffers(signed map[string]string) {
	signed = maps.Clone(signed)
	if signed == nil {
		signed = map[string]string{}
	}
	c.mu.Lock()
	c.own = signed
	followers := slices.Collect(maps.Values(c.followers))
	c.mu.Unlock()
	for _, f := range followers {
		f.want(signed)
	}
}

// Standing is how an offer of this cluster stands at a registry.
type Standing struct {
	// Listed is whether the registry lists it as it is signed. Otherwise Why says why not.
	Listed bool
	Why    string
	// Refused is whether the registry does not want it, and Outdated whether it would want a higher revision: it had this one, and does
	// not take it again.
	Refused, Outdated bool
}

// Standings returns how an offer of this cluster, as it is signed, stands at each registry in which this cluster publishes.
func (c *Catalog) Standings(id, signed string) map[string]Standing {
	c.mu.RLock()
	defer c.mu.RUnlock()
	all := map[string]Standing{}
	for name, f := range c.followers {
		if f.publishes {
			all[name] = f.standing(id, signed)
		}
	}
	return all
}
