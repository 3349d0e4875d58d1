// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package journal keeps the parties and offers of a registry in memory: as views that do not change, from which many read at the
// same time, and as events that are written once for all watchers.
//
// It does not know where they come from, whether they are true, nor who may see them.
package journal

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/capacitorset/liqo-broker/pkg/serving/eventstream"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/offer"
	"github.com/capacitorset/liqo-broker/pkg/trade/registry/registryv1"
)

// Entry is a party or an offer, or that it is gone. Who has one must not change it.
type Entry struct {
	offer.Key
	// Revision is the registry's at which it became what it is.
	Revision int64
	// Party is the party; nil for offers, and if it is gone.
	Party *registryv1.Party
	// Offer is the offer; nil for parties, and if it is gone.
	Offer *offer.Signed
	// event tells a watcher of it.
	event string
}

// Gone reports whether it is not there any more.
func (e *Entry) Gone() bool { return e.Party == nil && e.Offer == nil }

// NewParty returns the entry of a party.
func NewParty(p *registryv1.Party) (*Entry, error) {
	e := &Entry{Key: offer.Key{Party: p.ID}, Revision: p.Registered, Party: p}
	return e, e.writeEvent(registryv1.EventUpsert, registryv1.Upsert{Party: p})
}

// NewOffer returns the entry of an offer that became what it is at a revision of the registry.
func NewOffer(o *offer.Signed, revision int64) (*Entry, error) {
	e := &Entry{Key: o.Key(), Revision: revision}
	err := e.writeEvent(registryv1.EventUpsert, registryv1.Upsert{
		Offer: &registryv1.Offer{Party: o.Party, ID: o.ID, Revision: o.Revision, Registered: revision, JWS: o.JWS},
	})
	kept := *o
	if at := strings.Index(e.event, o.JWS); at >= 0 { // Half of all memory is signed offers: each is kept once.
		kept.JWS = e.event[at : at+len(o.JWS)]
	}
	e.Offer = &kept
	return e, err
}

// NewGone returns the entry of a party or an offer that is gone since a revision of the registry.
func NewGone(key offer.Key, revision int64) (*Entry, error) {
	e := &Entry{Key: key, Revision: revision}
	return e, e.writeEvent(registryv1.EventDelete, registryv1.Delete{Party: key.Party, Offer: key.Offer, Registered: revision})
}

// Size is how many bytes the event of it has.
func (e *Entry) Size() int { return len(e.event) }

func (e *Entry) writeEvent(name string, of any) error {
	text, err := json.Marshal(of)
	if err != nil {
		return fmt.Errorf("write an event of %s: %w", e.Key, err)
	}
	e.event = string(eventstream.Append(make([]byte, 0, len(text)+32), eventstream.Event{Name: name, Data: text}))
	return nil
}

// Era is a part of a history, from a revision to where the next one begins. A history that goes back goes on with another era: what was
// told of the one before beyond where the next begins is no more part of it.
type Era struct {
	Name string
	From int64
}

// View is all parties and offers at a revision. It does not change.
type View struct {
	// Epoch is the name of the era in which the revision is.
	Epoch string
	// Revision is the newest one that the view knows.
	Revision int64
	// Parties and Offers are how many there are.
	Parties, Offers int

	eras  []Era
	floor int64
	byKey []*Entry // Without what is gone.
	log   []*Entry // With what is gone, by revision; of each key only the newest.

	// What has come since the revision of the view before, ready to be sent; -1 if there is no such view.
	before int64
	delta  []byte
	// next is closed when there is a newer view.
	next chan struct{}
	// late is what watchers have to know to know this view that were not at the one before, by where they are.
	late *late
}

// maxLate bounds how many texts for late watchers a view keeps, each of a chunk at most.
const maxLate = 64

// late is texts that are written for the first watcher that needs them, and sent to all others that do.
type late struct {
	mu    sync.Mutex
	texts map[int64][]byte
}

// text returns what has come since a revision, if it fits into a chunk; nil otherwise.
func (v *View) text(since int64) []byte {
	v.late.mu.Lock()
	defer v.late.mu.Unlock()
	if text, known := v.late.texts[since]; known {
		return text
	}
	var text []byte
	size, entries := 0, v.since(since)
	for _, e := range entries {
		size += len(e.event)
	}
	if size <= chunk && len(v.late.texts) < maxLate {
		text = make([]byte, 0, size+128)
		for _, e := range entries {
			text = append(text, e.event...)
		}
		text = v.bookmark(text, registryv1.EventBookmark)
	}
	if v.late.texts == nil {
		v.late.texts = map[int64][]byte{}
	}
	if text != nil || len(v.late.texts) < maxLate {
		v.late.texts[since] = text
	}
	return text
}

// Get returns the entry with a key; nil if there is none.
func (v *View) Get(key offer.Key) *Entry {
	i, found := slices.BinarySearchFunc(v.byKey, key, func(e *Entry, key offer.Key) int { return e.Compare(key) })
	if !found {
		return nil
	}
	return v.byKey[i]
}

// After returns the entries whose keys come after a key, in order.
func (v *View) After(key offer.Key) []*Entry {
	i, found := slices.BinarySearchFunc(v.byKey, key, func(e *Entry, key offer.Key) int { return e.Compare(key) })
	if found {
		i++
	}
	return v.byKey[i:]
}

// Of returns the offers of a party, in order.
func (v *View) Of(party string) []*Entry {
	after := v.After(offer.Key{Party: party})
	for i, e := range after {
		if e.Key.Party != party {
			return after[:i]
		}
	}
	return after
}

// Next is closed when there is a newer view.
func (v *View) Next() <-chan struct{} { return v.next }

// since returns what has become what it is after a revision, by revision.
func (v *View) since(revision int64) []*Entry {
	i, _ := slices.BinarySearchFunc(v.log, revision+1, func(e *Entry, revision int64) int { return cmp.Compare(e.Revision, revision) })
	return v.log[i:]
}

// Journal is what a registry knows, and what has changed. One goroutine changes it, and any number read.
type Journal struct {
	view atomic.Pointer[View]
}

// New returns a journal of nothing, whose revisions are of an era.
func New(epoch string) *Journal {
	c := &Journal{}
	c.view.Store(&View{Epoch: epoch, eras: []Era{{Name: epoch}}, next: make(chan struct{}), late: &late{}})
	return c
}

// View returns the newest view.
func (c *Journal) View() *View { return c.view.Load() }

// At returns a view that knows a revision, as soon as there is one.
func (c *Journal) At(ctx context.Context, revision int64) (*View, error) {
	for {
		view := c.View()
		if view.Revision >= revision {
			return view, nil
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for revision %d: %w", revision, ctx.Err())
		case <-view.next:
		}
	}
}

// Change is what has come since the view before.
type Change struct {
	// Revision is up to which everything is there.
	Revision int64
	// Entries are what has changed, in any order; the newest of each key counts.
	Entries []*Entry
	// Floor is the oldest revision from which a watcher can go on: of what was gone before nothing is known any more.
	Floor int64
	// Eras are those of the history, in their order; nil if they are as before.
	Eras []Era
	// All means that the entries are all that there is, also if the revision is an older one.
	All bool
}

// Apply makes a view with what has changed, and tells the watchers. A change whose revision is not newer changes nothing.
func (c *Journal) Apply(change Change) {
	current := c.View()
	old := current
	switch {
	case change.All:
		old = &View{Epoch: current.Epoch, eras: current.eras}
	case change.Revision <= old.Revision && change.Floor <= old.floor:
		return
	}
	view := &View{
		Epoch: old.Epoch, eras: old.eras, Revision: max(old.Revision, change.Revision), floor: max(old.floor, change.Floor),
		next: make(chan struct{}), late: &late{},
	}
	if change.Eras != nil {
		view.eras = slices.Clone(change.Eras)
		for _, e := range view.eras {
			if e.From <= view.Revision {
				view.Epoch = e.Name
			}
		}
	}

	// Of each key the newest, and only if it is newer than what is known.
	newest := make(map[offer.Key]*Entry, len(change.Entries))
	for _, e := range change.Entries {
		if known := newest[e.Key]; (known == nil || known.Revision < e.Revision) && e.Revision > old.Revision {
			newest[e.Key] = e
		}
	}
	fresh := make([]*Entry, 0, len(newest))
	for _, e := range newest {
		fresh = append(fresh, e)
	}
	slices.SortFunc(fresh, func(a, b *Entry) int { return cmp.Or(cmp.Compare(a.Revision, b.Revision), a.Compare(b.Key)) })

	// What stays comes before what is new.
	view.log = make([]*Entry, 0, len(old.log)+len(fresh))
	for _, e := range old.log {
		if newest[e.Key] == nil && (!e.Gone() || e.Revision > view.floor) {
			view.log = append(view.log, e)
		}
	}
	view.log = append(view.log, fresh...)
	view.byKey = make([]*Entry, 0, len(old.byKey)+len(fresh))
	view.merge(old.byKey, newest, fresh)
	if view.before = -1; !change.All {
		view.before = old.Revision
		for _, e := range fresh {
			view.delta = append(view.delta, e.event...)
		}
		view.delta = view.bookmark(view.delta, registryv1.EventBookmark)
	}
	c.view.Store(view)
	close(current.next)
}

// merge makes the order by key from that of the view before, and counts.
func (v *View) merge(old []*Entry, newest map[offer.Key]*Entry, fresh []*Entry) {
	byKey := slices.DeleteFunc(slices.Clone(fresh), (*Entry).Gone)
	slices.SortFunc(byKey, func(a, b *Entry) int { return a.Compare(b.Key) })
	add := func(e *Entry) {
		v.byKey = append(v.byKey, e)
		if e.Party != nil {
			v.Parties++
		} else {
			v.Offers++
		}
	}
	for _, e := range old {
		if newest[e.Key] != nil {
			continue
		}
		for len(byKey) > 0 && byKey[0].Compare(e.Key) < 0 {
			add(byKey[0])
			byKey = byKey[1:]
		}
		add(e)
	}
	for _, e := range byKey {
		add(e)
	}
}

// Filter reports whether a watcher wants an offer. It must be quick, and is called concurrently.
type Filter func(*Entry) bool

// Watcher is how far one watcher has come. It is for one goroutine.
type Watcher struct {
	of     *Journal
	filter Filter
	era    string
	at     int64
	begun  bool // It goes on where it was.
}

// Watch begins to watch the offers that pass a filter, or all if it is nil, and the parties. If the ID is that of an event of this
// history, and what has gone since is known, the watcher goes on from there. Otherwise it begins with all that there is.
func (c *Journal) Watch(filter Filter, id string) *Watcher {
	w := &Watcher{of: c, filter: filter}
	view := c.View()
	if era, at, ok := parseID(id); ok && view.covers(era, at) {
		w.era, w.at, w.begun = era, at, true
	}
	return w
}

// Resumes reports whether the watcher goes on where it was.
func (w *Watcher) Resumes() bool { return w.begun }

// chunk is about how many bytes are handed out at once.
const chunk = 64 << 10

// Next hands out what the watcher has not seen, in parts, as soon as there is something, and a sign of life if there is nothing for a
// while. The text must not be changed. The error is that of ctx, or of send.
func (w *Watcher) Next(ctx context.Context, wait time.Duration, send func(events []byte) error) error {
	view := w.of.View()
	if w.begun && view.Revision == w.at && view.covers(w.era, w.at) {
		timeout := time.NewTimer(wait)
		defer timeout.Stop()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-timeout.C:
			return send(view.bookmark(nil, registryv1.EventHeartbeat))
		case <-view.next:
			view = w.of.View()
		}
	}
	if err := w.sendView(view, send); err != nil {
		return err
	}
	w.era, w.at, w.begun = view.Epoch, view.Revision, true
	return ctx.Err()
}

// sendView hands out what the watcher has to know to know a view.
func (w *Watcher) sendView(view *View, send func([]byte) error) error {
	switch {
	case !w.begun || !view.covers(w.era, w.at): // All that there is.
		head := view.bookmark(nil, registryv1.EventSnapshot)
		return w.parts(view, head, view.byKey, send)
	case w.filter == nil && w.at == view.before:
		return send(view.delta)
	case w.filter == nil:
		if text := view.text(w.at); text != nil {
			return send(text)
		}
		return w.parts(view, nil, view.since(w.at), send)
	default:
		return w.parts(view, nil, view.since(w.at), send)
	}
}

// parts hands out entries in parts, and a bookmark.
func (w *Watcher) parts(view *View, text []byte, entries []*Entry, send func([]byte) error) error {
	snapshot := len(text) > 0
	for _, e := range entries {
		event := e.event
		if e.Offer != nil && w.filter != nil && !w.filter(e) {
			if snapshot {
				continue
			}
			gone, err := NewGone(e.Key, e.Revision) // It may have passed before.
			if err != nil {
				return err
			}
			event = gone.event
		}
		if text = append(text, event...); len(text) > chunk {
			if err := send(text); err != nil {
				return err
			}
			text = text[:0]
		}
	}
	return send(view.bookmark(text, registryv1.EventBookmark))
}
