// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/capacitorset/liqo-broker/pkg/trade/core/offer"
	"github.com/capacitorset/liqo-broker/pkg/trade/party"
	"github.com/capacitorset/liqo-broker/pkg/trade/registry/journal"
	"github.com/capacitorset/liqo-broker/pkg/trade/registry/registryv1"
	"github.com/capacitorset/liqo-broker/pkg/trade/registry/store"
)

const (
	// gather is for how long changes are gathered at least after some were told: all watchers are woken at once. To wake a thousand takes
	// some tens of milliseconds of a processor, so that it is longer where many watch, by gatherEach for each, and gatherMost at most: else,
	// while much changes, there would be no time for anything else.
	gather, gatherEach, gatherMost = 25 * time.Millisecond, 50 * time.Microsecond, 250 * time.Millisecond
	// pause is how long the follower waits after the store has failed.
	pause = time.Second
	// page is how many changes are read at once.
	page = 1000
	// remembered is how many revisions a watcher may have been away.
	remembered = 20_000
)

// follower keeps the journal as the store has it. Of one registry one goroutine runs it.
type follower struct {
	s  *Server
	ok atomic.Bool
	// revision is up to which the journal is as the store has it.
	revision int64
	// eras are those that the journal knows.
	eras map[string]bool
	// interner has offers share what they say alike.
	interner offer.Interner
}

func newFollower(s *Server) *follower { return &follower{s: s} }

// ready reports whether the store answered when it was last asked.
func (f *follower) ready() bool { return f.ok.Load() }

// followStore follows the store until ctx ends.
func (f *follower) followStore(ctx context.Context) error {
	for ctx.Err() == nil {
		err := f.follow(ctx)
		rest := f.rest()
		if err != nil && ctx.Err() == nil {
			f.s.cfg.Log.Error(err, "Cannot follow the store; trying again")
			rest = pause
		}
		f.ok.Store(err == nil)
		select {
		case <-ctx.Done():
		case <-time.After(rest):
		}
	}
	return nil
}

// rest returns for how long changes are gathered.
func (f *follower) rest() time.Duration {
	return min(gatherMost, gather+time.Duration(f.s.attached.Load())*gatherEach)
}

// follow waits for a change, and tells it.
func (f *follower) follow(ctx context.Context) error {
	waiting, cancel := context.WithTimeout(ctx, f.s.timing.Heartbeat)
	defer cancel()
	revision, err := f.s.cfg.Store.Wait(waiting, f.revision)
	switch {
	case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil:
		return nil
	case err != nil:
		return fmt.Errorf("wait for changes: %w", err)
	case revision < f.revision: // A backup was restored.
		return f.again(ctx)
	}
	return f.changes(ctx, revision)
}

// again tells everything after the store has gone back, in a new era.
func (f *follower) again(ctx context.Context) error {
	if err := f.s.cfg.Store.BeginEra(ctx); err != nil {
		return err
	}
	return f.readAll(ctx)
}

// changes tells what has changed since the follower last looked, up to a revision that the store has at least.
func (f *follower) changes(ctx context.Context, revision int64) error {
	for {
		changes, err := f.s.cfg.Store.ChangesAfter(ctx, f.revision, page)
		switch {
		case errors.Is(err, store.ErrCompacted):
			return f.readAll(ctx)
		case err != nil:
			return fmt.Errorf("read the changes after revision %d: %w", f.revision, err)
		case len(changes) == 0 && revision <= f.revision:
			return nil
		}
		eras, err := f.s.cfg.Store.Eras(ctx) // After the changes, so that those of an era come with it.
		if err != nil {
			return err
		}
		if f.wentBack(eras, f.s.journal.View().Epoch) {
			return f.again(ctx)
		}
		news := f.news()
		news.Eras = erasOf(eras)
		if len(changes) < page { // An era is a revision without a change.
			news.Revision = revision
		}
		for i := range changes {
			news.take(&changes[i])
		}
		news.Floor = max(0, news.Revision-remembered)
		f.tellWatchers(news)
		if len(changes) < page {
			return nil
		}
	}
}

// wentBack reports whether eras are of another history than what the journal has: one that it does not know has begun before what it has
// come to, or its own is missing.
func (f *follower) wentBack(eras []store.Era, own string) bool {
	return slices.ContainsFunc(eras, func(e store.Era) bool { return e.From <= f.revision && !f.eras[e.Name] }) ||
		!slices.ContainsFunc(eras, func(e store.Era) bool { return e.Name == own })
}

func erasOf(eras []store.Era) []journal.Era {
	all := make([]journal.Era, len(eras))
	for i, e := range eras {
		all[i] = journal.Era(e)
	}
	return all
}

// readAll tells everything there is, as if nothing had been known.
func (f *follower) readAll(ctx context.Context) error {
	snapshot, err := f.s.cfg.Store.Snapshot(ctx)
	if err != nil {
		return fmt.Errorf("read everything: %w", err)
	}
	f.revision = 0
	f.s.parties.all.Store(nil)
	news := f.news()
	for i := range snapshot.Parties {
		news.party(&snapshot.Parties[i])
	}
	for i := range snapshot.Offers {
		news.offer(&snapshot.Offers[i])
	}
	news.Revision, news.Floor, news.All, news.Eras = snapshot.Revision, snapshot.Revision, true, erasOf(snapshot.Eras)
	if err := f.deletions(ctx, news); err != nil {
		return err
	}
	f.tellWatchers(news)
	return nil
}

// deletions adds what was deleted recently, so that watchers can go on that were cut off when a registry ended.
func (f *follower) deletions(ctx context.Context, n *news) error {
	floor := max(0, n.Revision-remembered)
	for after := floor; after < n.Revision; {
		changes, err := f.s.cfg.Store.ChangesAfter(ctx, after, page)
		switch {
		case errors.Is(err, store.ErrCompacted):
			return nil // Somebody remembers less: watchers that were cut off begin with a snapshot.
		case err != nil:
			return fmt.Errorf("read what was deleted after revision %d: %w", after, err)
		}
		for _, c := range changes {
			if c.Kind == store.Delete && c.RegistryRevision <= n.Revision {
				n.gone(offer.Key{Party: c.PartyID, Offer: c.OfferID}, c.RegistryRevision)
			}
			after = c.RegistryRevision
		}
		if len(changes) < page {
			break
		}
	}
	n.Floor = floor
	return nil
}

// tellWatchers makes what is new what everybody sees.
func (f *follower) tellWatchers(n *news) {
	f.s.parties.all.Store(&n.parties)
	f.s.journal.Apply(n.Change)
	f.revision = n.Revision
	f.eras = make(map[string]bool, len(n.Eras))
	for _, e := range n.Eras {
		f.eras[e.Name] = true
	}
	f.ok.Store(true)
}

// news is what has changed since the follower last looked.
type news struct {
	journal.Change

	follower *follower
	parties  directory
}

func (f *follower) news() *news {
	n := &news{follower: f, parties: directory{byID: map[string]*known{}, byKey: map[string]*known{}}}
	if all := f.s.parties.all.Load(); all != nil {
		n.parties = directory{byID: maps.Clone(all.byID), byKey: maps.Clone(all.byKey)}
	}
	return n
}

// take takes a change into account.
func (n *news) take(c *store.Change) {
	n.Revision = max(n.Revision, c.RegistryRevision)
	switch {
	case c.Kind == store.Upsert && c.Offer != nil:
		n.offer(c.Offer)
	case c.Kind == store.PartyUpsert && c.Party != nil:
		n.party(c.Party)
	case c.Kind == store.Delete:
		n.gone(offer.Key{Party: c.PartyID, Offer: c.OfferID}, c.RegistryRevision)
	case c.Kind == store.PartyDeleted: // It was never shown.
		n.forgetParty(c.PartyID)
	}
}

// forgetParty forgets a party.
func (n *news) forgetParty(id string) {
	old := n.parties.byID[id]
	if old == nil {
		return
	}
	delete(n.parties.byID, id)
	if n.parties.byKey[old.fingerprint] == old {
		delete(n.parties.byKey, old.fingerprint)
	}
}

// party takes what a party is into account. One that cannot be read is as if it were not there.
func (n *news) party(p *store.Party) {
	n.forgetParty(p.ID)
	keys, err := party.ParseKeys(p.Keys)
	if err != nil {
		n.skip(err, offer.Key{Party: p.ID}, p.RegistryRevision)
		return
	}
	k := &known{Party: partyOf(p), keys: keys, fingerprint: party.Fingerprint(keys.Current()), clusters: clustersOf(p.Announcement)}
	n.parties.byID[k.ID], n.parties.byKey[k.fingerprint] = k, k
	switch k.State { //nolint:exhaustive // A party that waits is not shown.
	case registryv1.Approved:
		n.add(journal.NewParty(&k.Party))
	case registryv1.Revoked:
		n.gone(offer.Key{Party: k.ID}, p.RegistryRevision)
	}
}

// offer takes what an offer is into account. One that cannot be read is as if it were not there.
func (n *news) offer(o *store.StoredOffer) {
	read, err := offer.ReadSigned(o.JWS, func(jws, _ string, into any) (int, error) { // It was verified when it came.
		payload, err := party.Payload(jws)
		if err == nil {
			err = json.Unmarshal(payload, into)
		}
		return o.Keys, err
	})
	if err != nil {
		n.skip(err, offer.Key{Party: o.Party, Offer: o.ID}, o.RegistryRevision)
		return
	}
	read.Offer = n.follower.interner.Intern(read.Offer)
	n.add(journal.NewOffer(&read, o.RegistryRevision))
}

// gone takes into account that something is not there any more.
func (n *news) gone(key offer.Key, revision int64) { n.add(journal.NewGone(key, revision)) }

func (n *news) add(e *journal.Entry, err error) {
	if err != nil {
		n.follower.s.cfg.Log.Error(err, "Cannot show what the store has")
		return
	}
	n.Entries = append(n.Entries, e)
	n.Revision = max(n.Revision, e.Revision)
}

// skip leaves out what cannot be read, such as what another version of the program wrote.
func (n *news) skip(err error, key offer.Key, revision int64) {
	n.follower.s.cfg.Log.Error(err, "Cannot read what the store has; it is left out", "party", key.Party, "offer", key.Offer)
	n.gone(key, revision)
}

// partyOf returns a party as the API shows it to all.
func partyOf(p *store.Party) registryv1.Party {
	return registryv1.Party{
		ID: p.ID, State: registryv1.State(p.State), Alive: !p.Silent, Keys: p.Keys, Announcement: p.Announcement,
		Name: p.Name, Endpoint: p.Endpoint, Revision: p.Revision, Registered: p.RegistryRevision,
	}
}
