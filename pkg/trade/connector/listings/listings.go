// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package listings is what several registries show together: each party and each offer once, and what of it fits a need. What is put in was
// verified before.
//
// It does not know how registries are followed, nor what becomes of what is found.
package listings

import (
	"bytes"
	"crypto/ed25519"
	"iter"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/capacitorset/liqo-broker/pkg/trade/core/offer"
	"github.com/capacitorset/liqo-broker/pkg/trade/party"
	registryclient "github.com/capacitorset/liqo-broker/pkg/trade/registry/client"
)

// Bounds are about how many bytes of memory may be kept: of a registry, and of each party that it shows, as it is read and as it is signed.
// Zero is no bound.
type Bounds struct {
	Registry, Party int
}

// Listings is what registries show together. It must not be used concurrently, but may be read so.
type Listings struct {
	catalog offer.Catalog
	parties parties
	// used is what each registry takes, by its name.
	used map[string]*used
	// view is what there is, until that changes.
	view atomic.Pointer[View]
}

// New returns Listings of no registry.
func New() *Listings { return &Listings{parties: newParties(), used: map[string]*used{}} }

// Merge takes in what a registry has shown, in order.
func (l *Listings) Merge(registry string, changes []registryclient.Change) {
	l.MergeWithin(registry, changes, Bounds{})
}

// MergeWithin is Merge within bounds: what comes when there is no room is left out, and so is what was there of it before. It returns what
// is.
func (l *Listings) MergeWithin(registry string, changes []registryclient.Change, bounds Bounds) (leftOut []offer.Key) {
	l.view.Store(nil)
	u := l.used[registry]
	if u == nil {
		u = newUsed()
		l.used[registry] = u
	}
	for _, c := range changes {
		switch {
		case c.Party != nil:
			key := offer.Key{Party: string(c.Party.Keys.ID())}
			size := partySize(c.Party)
			if size > u.room(key, bounds) {
				l.withdraw(registry, key)
				leftOut = append(leftOut, key)
				continue
			}
			u.take(key, size)
			l.parties.merge(registry, *c.Party)
		case c.Offer != nil:
			key := c.Offer.Key()
			signed := signedSize(c.Offer.JWS) // As it is signed it is in the pages.
			size, fits := l.catalog.Merge(registry, *c.Offer, u.room(key, bounds)-signed)
			if !fits {
				l.withdraw(registry, key)
				leftOut = append(leftOut, key)
				continue
			}
			u.take(key, signed+size)
		default:
			l.withdraw(registry, *c.Gone)
		}
	}
	return leftOut
}

// withdraw takes in that a registry does not show something any more.
func (l *Listings) withdraw(registry string, key offer.Key) {
	l.used[registry].leave(key)
	if key.Offer == "" {
		l.parties.withdraw(registry, party.ID(key.Party))
	} else {
		l.catalog.Withdraw(registry, key)
	}
}

// Forget removes what only one registry has shown.
func (l *Listings) Forget(registry string) {
	l.view.Store(nil)
	delete(l.used, registry)
	l.catalog.Forget(registry)
	l.parties.forgetRegistry(registry)
}

// Shows reports whether something is there that a registry has shown, and that it has not withdrawn.
func (l *Listings) Shows(registry string, key offer.Key) bool {
	u := l.used[registry]
	return u != nil && u.sizes[key] > 0
}

// Expire removes the offers that are over.
func (l *Listings) Expire(now time.Time) {
	if len(l.catalog.Expire(now)) > 0 {
		l.view.Store(nil)
	}
}

// Offer returns an offer; false if there is none.
func (l *Listings) Offer(key offer.Key) (offer.Entry, bool) { return l.catalog.Get(key) }

// Offers returns all offers, in no order.
func (l *Listings) Offers() iter.Seq[offer.Entry] { return l.catalog.All() }

// Party returns a party; false if no registry shows it.
func (l *Listings) Party(id party.ID) (registryclient.Party, bool) { return l.parties.get(id) }

// Owns reports whether a party names a cluster in its announcement, and is the first that is shown to do so.
func (l *Listings) Owns(id party.ID, cluster string) bool { return l.parties.owns(id, cluster) }

// Parties returns the IDs of all parties, in order.
func (l *Listings) Parties() []party.ID { return slices.Sorted(maps.Keys(l.parties.known)) }

// Holder returns the party whose current key it is; false if it is nobody's.
func (l *Listings) Holder(key ed25519.PublicKey) (registryclient.Party, bool) {
	p, ok := l.parties.get(l.parties.holders[party.Fingerprint(key)])
	return p, ok && bytes.Equal(p.Keys.Current(), key)
}
