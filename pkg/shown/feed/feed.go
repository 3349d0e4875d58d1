// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package feed keeps what an API shows in order and ready, so that reading costs no more than the page that is read, and tells
// watchers what has changed, from where they left off.
//
// It does not know what is shown, nor to whom.
package feed

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/capacitorset/liqo-broker/pkg/wake"
)

const (
	// lag is how old a change may be that a reader does not see yet.
	lag = time.Second
	// oldest is how old what is shown may be though nothing has changed: some of it depends on the time.
	oldest = 30 * time.Second
	// interest is how long after the last reader it is kept ready.
	interest = time.Minute
	// pause is the shortest time between two rounds; a round of some length is followed by a pause of so many times that.
	pause, pauseFactor = 300 * time.Millisecond, 10
	// maxEntries and maxBytes bound the changes that are remembered for watchers.
	maxEntries, maxBytes = 4096, 8 << 20
)

// Kind is what some items are.
type Kind string

// Item is one thing that is shown. Who reads it must not change it.
type Item struct {
	// Key is distinct within the kind. Items are in order of their keys.
	Key string
	// Consumer is whose it is; empty if nobody's.
	Consumer string
	Value    any
	// Tag changes with the value. The feed sets it.
	Tag string

	size int
}

// Source returns all items of a kind, in any order.
type Source func(ctx context.Context, kind Kind) ([]Item, error)

// View is the items of a kind at one moment, in order.
type View struct {
	Items []Item
}

// Get returns the item with a key; false if there is none.
func (v *View) Get(key string) (Item, bool) {
	i, found := slices.BinarySearchFunc(v.Items, key, func(item Item, key string) int { return cmp.Compare(item.Key, key) })
	if !found {
		return Item{}, false
	}
	return v.Items[i], true
}

// After returns the items whose keys come after a key.
func (v *View) After(key string) []Item {
	i, found := slices.BinarySearchFunc(v.Items, key, func(item Item, key string) int { return cmp.Compare(item.Key, key) })
	if found {
		i++
	}
	return v.Items[i:]
}

// Feed is the feed. It may be used concurrently.
type Feed struct {
	source Source
	epoch  string
	kick   wake.Signal
	kinds  map[Kind]*kept // Its keys do not change.

	mu       sync.Mutex
	last     uint64 // The number of the last entry; the first is 1.
	entries  []Entry
	bytes    int
	appended wake.Broadcast // There are further entries.
}

// kept is what is kept of a kind.
type kept struct {
	building sync.Mutex // Held while the view is made.

	// With the feed's lock:
	view               *View
	built, read, dirty time.Time // dirty is when the first change came that is not in the view; zero if there is none.
	failed             error     // Why the view could not be made again; nil if it was.
}

// New returns a feed of some kinds.
func New(source Source, kinds ...Kind) *Feed {
	f := &Feed{source: source, epoch: rand.Text(), kick: wake.New(), kinds: map[Kind]*kept{}}
	for _, kind := range kinds {
		f.kinds[kind] = &kept{}
	}
	return f
}

// Changed tells that items of some kinds may have changed.
func (f *Feed) Changed(kinds ...Kind) {
	now := time.Now()
	f.mu.Lock()
	for _, kind := range kinds {
		if k := f.kinds[kind]; k != nil && k.dirty.IsZero() {
			k.dirty = now
		}
	}
	f.mu.Unlock()
	f.kick.Set()
}

// View returns the items of a kind, which are at most a second behind.
func (f *Feed) View(ctx context.Context, kind Kind) (*View, error) {
	k := f.kinds[kind]
	if k == nil {
		return nil, fmt.Errorf("nothing is of the kind %s", kind)
	}
	f.mu.Lock()
	k.read = time.Now()
	f.mu.Unlock()
	if view := f.fresh(k, lag); view != nil {
		return view, nil
	}
	return f.refresh(ctx, kind, k, lag)
}

// fresh returns what is kept of a kind; nil if that is too old.
func (f *Feed) fresh(k *kept, lag time.Duration) *View {
	now := time.Now()
	f.mu.Lock()
	defer f.mu.Unlock()
	if k.view == nil || now.Sub(k.built) > oldest || !k.dirty.IsZero() && now.Sub(k.dirty) >= lag {
		return nil
	}
	return k.view
}

// refresh makes the view of a kind again, unless somebody else just has.
func (f *Feed) refresh(ctx context.Context, kind Kind, k *kept, lag time.Duration) (*View, error) {
	k.building.Lock()
	defer k.building.Unlock()
	if view := f.fresh(k, lag); view != nil {
		return view, nil
	}
	began := time.Now()
	f.mu.Lock()
	k.dirty = time.Time{} // What changes from here on may be missed.
	f.mu.Unlock()
	items, err := f.source(ctx, kind)
	if err == nil {
		err = tag(items)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if err != nil {
		k.dirty = began
		err = fmt.Errorf("read all %s: %w", kind, err)
		if ctx.Err() == nil { // Else it is only who asked that has gone.
			k.failed = err
			f.appended.Send() // Who waits for what changes is told that nobody knows.
		}
		return nil, err
	}
	k.failed = nil
	slices.SortFunc(items, func(a, b Item) int { return cmp.Compare(a.Key, b.Key) })
	before := k.view
	k.view, k.built = &View{Items: items}, began
	if before != nil {
		f.compare(kind, before.Items, items)
	}
	return k.view, nil
}

// tag sets the tags of items.
func tag(items []Item) error {
	for i := range items {
		text, err := json.Marshal(items[i].Value)
		if err != nil {
			return fmt.Errorf("write %s as JSON: %w", items[i].Key, err)
		}
		items[i].Tag, items[i].size = Tag(text), len(text)
	}
	return nil
}

// Tag returns a tag of a text: other texts have other tags.
func Tag(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:12])
}

// compare writes down what has changed between two views.
func (f *Feed) compare(kind Kind, before, after []Item) {
	add := func(item Item, deleted bool) {
		f.last++
		f.entries = append(f.entries, Entry{Number: f.last, Kind: kind, Item: item, Deleted: deleted})
		f.bytes += item.size
	}
	// Both views are in the order of their keys, so that one pass over both finds what came, went and changed.
	last := f.last
	for len(before) > 0 || len(after) > 0 {
		switch {
		case len(after) == 0 || len(before) > 0 && before[0].Key < after[0].Key:
			add(before[0], true)
			before = before[1:]
		case len(before) == 0 || after[0].Key < before[0].Key:
			add(after[0], false)
			after = after[1:]
		default:
			if before[0].Tag != after[0].Tag {
				add(after[0], false)
			}
			before, after = before[1:], after[1:]
		}
	}
	if f.last == last {
		return
	}
	// The oldest changes make room. A watcher that has missed them has to begin again.
	drop := max(0, len(f.entries)-maxEntries)
	for i := range f.entries {
		if i >= drop && f.bytes <= maxBytes {
			break
		}
		f.bytes -= f.entries[i].Item.size
		drop = max(drop, i+1)
	}
	f.entries = slices.Clone(f.entries[drop:])
	// All who wait are woken at once.
	f.appended.Send()
}

// Run keeps ready what is read, until ctx ends.
func (f *Feed) Run(ctx context.Context) error {
	var rest time.Duration
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(rest):
		}
		select {
		case <-ctx.Done():
			return nil
		case <-f.kick.Taken():
		case <-time.After(oldest / 2):
		}
		began := time.Now()
		for kind, k := range f.kinds {
			if f.wanted(k) {
				_, _ = f.refresh(ctx, kind, k, 0) // Who reads or watches it gets the error.
			}
		}
		rest = max(pause, pauseFactor*time.Since(began))
	}
}

// wanted reports whether a kind is read these days, and has to be made again.
func (f *Feed) wanted(k *kept) bool {
	now := time.Now()
	f.mu.Lock()
	defer f.mu.Unlock()
	return k.view != nil && now.Sub(k.read) < interest && (!k.dirty.IsZero() || now.Sub(k.built) > oldest/2)
}
