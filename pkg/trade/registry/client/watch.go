// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"k8s.io/utils/clock"

	"github.com/capacitorset/liqo-broker/pkg/serving/eventstream"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/offer"
	"github.com/capacitorset/liqo-broker/pkg/trade/registry/registryv1"
)

const (
	// silence is how long a registry may say nothing: some heartbeats may be missed.
	silence = 50 * time.Second
	// together is how many changes are handed on at once, and togetherBytes about how many bytes of signed documents.
	together, togetherBytes = 256, 256 << 10
	// maxOpen bounds how much a registry may show and take away again without an end, besides what is known.
	maxOpen = 1 << 13
	// askAgain is after how long what was left out is asked for again, when there is a new connection.
	askAgain = 10 * time.Minute
	// patience is how long a registry is asked again that shows all as it was before.
	patience = time.Minute
)

// errBehind means that a registry shows all as it was before the watcher was there last.
var errBehind = errors.New("it has not come yet to where it was")

// Change is a party or an offer that is new, has changed or is gone: one of its fields is set.
type Change struct {
	Party *Party
	Offer *offer.Signed
	// Gone is what is not in the registry any more. With a party its offers are gone, each with a change of its own.
	Gone *offer.Key
}

// WatcherConfig is what a watcher needs.
type WatcherConfig struct {
	// Client returns a client that shows the certificate of the party's current key. It is asked before each connection.
	Client func() *Client
	// Filter is which offers are watched, as the parameters of the API; nil for all.
	Filter url.Values
	// After is how far an earlier watcher had come, as it was handed on; empty to begin with all that there is. It counts only together with
	// what that watcher knew.
	After string
	// Deliver is handed what has changed, in order, in parts. At the end of those that belong together it gets how far the watcher has come;
	// else that is empty. Where nothing has changed while it was not connected, it is handed that alone. After an error the watcher connects
	// again, and hands the changes on that were not followed by an end. It returns what it does not keep for want of room: that is as if the
	// registry did not show it, until it changes or all is shown again. With a party its offers are gone, each with a change of its own.
	Deliver func(ctx context.Context, changes []Change, after string) (leftOut []offer.Key, err error)
	// LeftOut is told how much of what the registry shows is left out, when that has changed and changes belong together; nil to tell nobody.
	// It is a lower bound from 4,096 on. It must not block.
	LeftOut func(n int)
	// Report is told what a registry says that is not true, or what is wrong with a connection; nil to tell nobody. It must not block.
	Report func(error)
	// Backoff is how long the watcher waits after failures.
	Backoff Backoff
	// Silence is how long a registry may say nothing; 50 s if it is zero.
	Silence time.Duration
	// Patience is for how long a registry is asked again that shows all as it was before the watcher was there last, as one of its replicas
	// does that is behind: meanwhile everything stays as it is known. Then it counts, as that of a registry that has begun again. A minute if
	// it is zero.
	Patience time.Duration
	// Clock is that of this machine if it is nil.
	Clock clock.PassiveClock
}

// Watcher follows one registry, and hands on what it has verified.
type Watcher struct {
	cfg   WatcherConfig
	after string
	known *knowledge
	// open is what was handed on, or was about to be, and not followed by an end.
	open map[offer.Key]bool
	// left is how much was told that is left out, and whole when all was shown last.
	left  int
	whole time.Time
	// behind is since when the registry is behind; zero if it is not.
	behind time.Time
}

// NewWatcher returns a watcher that has not begun.
func NewWatcher(cfg WatcherConfig) *Watcher {
	if cfg.Clock == nil {
		cfg.Clock = clock.RealClock{}
	}
	if cfg.Report == nil {
		cfg.Report = func(error) {}
	}
	if cfg.LeftOut == nil {
		cfg.LeftOut = func(int) {}
	}
	if cfg.Silence <= 0 {
		cfg.Silence = silence
	}
	cfg.Patience = cmp.Or(cfg.Patience, patience)
	return &Watcher{cfg: cfg, after: cfg.After, known: newKnowledge(), open: map[offer.Key]bool{}}
}

// Restore takes in what an earlier watcher knew, parties before their offers, and returns what of it is verified and valid: it was handed
// on before, and is not again. The rest is passed over. It may be called any number of times before Run, and not later.
func (w *Watcher) Restore(parties []registryv1.Party, offers []registryv1.Offer) (restored []Change) {
	for i := range parties {
		if p, _, err := w.known.party(&parties[i]); err == nil { // What is wrong here comes again, and is reported then.
			restored = append(restored, Change{Party: p})
		}
	}
	for i := range offers {
		if o, _, err := w.known.offer(&offers[i], w.cfg.Clock.Now()); err == nil {
			restored = append(restored, Change{Offer: o})
		}
	}
	return restored
}

// Leave takes in that what Restore has returned was left out, for want of room. It may be called between Restore and Run.
func (w *Watcher) Leave(out []offer.Key) {
	for _, key := range out {
		w.known.leave(key)
	}
}

// Run watches until ctx ends. A connection that ends is made again, where the watcher was.
func (w *Watcher) Run(ctx context.Context) error {
	failures := pauses{Backoff: w.cfg.Backoff}
	for ctx.Err() == nil {
		err := w.connect(ctx, failures.reset)
		if ctx.Err() == nil && err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, errBehind) {
			w.cfg.Report(fmt.Errorf("watch %s: %w", w.cfg.Client().URL(), err))
		}
		sleep(ctx, failures.next(err), nil)
	}
	return nil
}

// connect watches until the connection ends.
func (w *Watcher) connect(ctx context.Context, reached func()) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	query := url.Values{}
	maps.Copy(query, w.cfg.Filter)
	if len(w.known.left) > 0 && w.cfg.Clock.Now().Sub(w.whole) >= askAgain {
		w.after = "" // There may be room by now.
	}
	if w.after != "" {
		query.Set("after", w.after)
	}
	answer, err := w.cfg.Client().rest.Send(ctx, http.MethodGet, registryv1.PathWatch+"?"+query.Encode(), nil, eventstream.MediaType)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	alive := time.AfterFunc(w.cfg.Silence, cancel)
	defer alive.Stop()
	events := eventstream.NewReader(&reading{answer.Body, func() { alive.Reset(w.cfg.Silence) }}, registryv1.MaxEvent)
	told := &telling{w: w, reached: reached}
	for {
		e, err := events.Next()
		if err != nil {
			return err
		}
		if err := told.event(ctx, e); err != nil {
			return err
		}
	}
}

// reading notes that something is read.
type reading struct {
	io.Reader

	note func()
}

// Read implements io.Reader.
func (r *reading) Read(into []byte) (int, error) {
	n, err := r.Reader.Read(into)
	if n > 0 {
		r.note()
	}
	return n, err
}

// telling is what has come in one connection and is not handed on yet.
type telling struct {
	w       *Watcher
	reached func()
	changes []Change
	// bytes is about how many bytes of signed documents the changes have.
	bytes int
	// missing is what was known when a snapshot began and has not come since; nil outside of snapshots.
	missing map[offer.Key]bool
	// arrived is whether the watcher has come to where the registry is since the connection was made.
	arrived bool
}

// event takes an event into account.
func (t *telling) event(ctx context.Context, e eventstream.Event) error {
	switch e.Name {
	case registryv1.EventSnapshot:
		if t.w.waits(e.Data) {
			return errBehind
		}
		t.missing = t.w.known.keys()
		maps.Copy(t.missing, t.w.open)
		clear(t.w.known.left)
		t.w.whole = t.w.cfg.Clock.Now()
		return nil
	case registryv1.EventUpsert:
		var u registryv1.Upsert
		if err := json.Unmarshal(e.Data, &u); err != nil {
			return fmt.Errorf("read an event %s: %w", e.Name, err)
		}
		t.upsert(&u)
	case registryv1.EventDelete:
		var d registryv1.Delete
		if err := json.Unmarshal(e.Data, &d); err != nil {
			return fmt.Errorf("read an event %s: %w", e.Name, err)
		}
		t.gone(offer.Key{Party: d.Party, Offer: d.Offer})
	// Marks of a place in the stream, at which what was shown is complete.
	case registryv1.EventBookmark:
		return t.bookmark(ctx, e.ID)
	case registryv1.EventHeartbeat:
		if t.arrived || t.missing != nil || len(t.changes) > 0 || e.ID == "" {
			return nil
		}
		return t.bookmark(ctx, e.ID) // Nothing has happened since the last connection.
	default: // An event of another version.
		return nil
	}
	// Many changes are handed over together, and no registry makes this cluster remember without bounds.
	if len(t.changes) < together && t.bytes < togetherBytes {
		return nil
	}
	if open, known := len(t.w.open), len(t.w.known.offers)+len(t.w.known.parties); open > known+maxOpen {
		t.w.after, t.w.open = "", map[offer.Key]bool{}
		return fmt.Errorf("%w: it has shown %d parties and offers without an end, %d of which it shows still", ErrTooMany, open, known)
	}
	return t.deliver(ctx, "")
}

// waits reports whether the registry is to be asked again that begins to show all: it is behind, and not for long.
func (w *Watcher) waits(snapshot []byte) bool {
	var of registryv1.Bookmark
	number := w.after[strings.LastIndexByte(w.after, '.')+1:]
	at, err := strconv.ParseInt(number, 10, 64)
	if err != nil || json.Unmarshal(snapshot, &of) != nil || of.Revision >= at {
		w.behind = time.Time{}
		return false
	}
	now := w.cfg.Clock.Now()
	if w.behind.IsZero() {
		w.behind = now
	}
	return now.Sub(w.behind) < w.cfg.Patience
}

// upsert takes into account that something is there. What is not true is reported, and what was known before stays.
func (t *telling) upsert(u *registryv1.Upsert) {
	known := t.w.known
	switch {
	case u.Party != nil:
		key := offer.Key{Party: u.Party.ID}
		delete(t.missing, key)
		p, news, err := known.party(u.Party)
		if t.believes(key, news, err) {
			t.addChange(Change{Party: p}, len(p.Announcement))
			if len(p.Keys.Chain()) > 1 {
				for _, of := range known.replaced(p) {
					t.gone(of)
				}
			}
		}
	case u.Offer != nil:
		key := offer.Key{Party: u.Offer.Party, Offer: u.Offer.ID}
		delete(t.missing, key)
		o, news, err := known.offer(u.Offer, t.w.cfg.Clock.Now())
		switch {
		case errors.Is(err, errOver):
			t.gone(key)
		case errors.Is(err, errLeftOut):
			known.leave(key)
		case t.believes(key, news, err):
			t.addChange(Change{Offer: o}, len(o.JWS))
		}
	}
}

// addChange adds what is to be handed on.
func (t *telling) addChange(c Change, bytes int) {
	t.changes, t.bytes = append(t.changes, c), t.bytes+bytes
}

// believes reports whether something is to be handed on, and reports why it is not believed.
func (t *telling) believes(key offer.Key, news bool, err error) bool {
	switch {
	case err != nil:
		t.w.cfg.Report(&MisbehaviourError{Registry: t.w.cfg.Client().URL(), Key: key, Reason: err})
		return false
	case !news && !t.w.open[key]:
		return false
	}
	delete(t.w.known.left, key)
	t.w.open[key] = true
	return true
}

// gone takes into account that something is not there any more.
func (t *telling) gone(key offer.Key) {
	delete(t.w.known.left, key)
	for _, of := range t.w.known.forgetKey(key) {
		t.w.open[of] = true
	}
	if key.Offer != "" {
		if t.w.open[key] {
			t.changes = append(t.changes, Change{Gone: &key})
		}
		return
	}
	for of := range t.w.open {
		if of.Party == key.Party {
			t.changes = append(t.changes, Change{Gone: &of})
		}
	}
}

// bookmark hands on what has come.
func (t *telling) bookmark(ctx context.Context, after string) error {
	for key := range t.missing {
		t.gone(key)
	}
	t.missing = nil
	for more := true; more; more = len(t.changes) > 0 { // With a party that is left out its offers are gone.
		if err := t.deliver(ctx, after); err != nil {
			return err
		}
	}
	t.w.behind = time.Time{}
	t.w.after, t.w.open, t.arrived = after, map[offer.Key]bool{}, true
	if left := len(t.w.known.left); left != t.w.left {
		t.w.left = left
		t.w.cfg.LeftOut(left)
	}
	t.reached()
	return nil
}

func (t *telling) deliver(ctx context.Context, after string) error {
	leftOut, err := t.w.cfg.Deliver(ctx, t.changes, after)
	if err != nil {
		return fmt.Errorf("hand on %d changes: %w", len(t.changes), err)
	}
	t.changes, t.bytes = nil, 0
	for _, key := range leftOut {
		for _, of := range t.w.known.leave(key) {
			if of != key {
				t.changes = append(t.changes, Change{Gone: &of})
			}
		}
	}
	return nil
}
