// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package feed

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ErrBehind means that a watcher is slower than the changes come, so that those that it has missed are not remembered any more.
var ErrBehind = errors.New("the watcher is too slow")

// most is how many entries a watcher gets at once.
const most = 256

// Entry is a change.
type Entry struct {
	Number  uint64
	Kind    Kind
	Item    Item // As it is now, or was before it was deleted.
	Deleted bool
}

// Cursor is how far a watcher has come. It is for one goroutine.
type Cursor struct {
	feed  *Feed
	kinds []Kind
	scope string
	at    uint64
}

// Watch begins to watch some kinds. The scope is a word for what else makes the watcher's view of them another than others'. If
// the ID is that of a cursor of the same kinds and scope, and what has changed since is remembered, the cursor goes on from
// there. Otherwise all that there is comes as views, in the order of the kinds.
func (f *Feed) Watch(ctx context.Context, kinds []Kind, scope, id string) (cursor *Cursor, all []*View, err error) {
	for _, kind := range kinds {
		if _, err := f.View(ctx, kind); err != nil {
			return nil, nil, err
		}
	}
	names := make([]string, len(kinds))
	for i, kind := range kinds {
		names[i] = string(kind)
	}
	c := &Cursor{feed: f, kinds: kinds, scope: Tag([]byte(strings.Join(names, ",") + "/" + scope))}
	f.mu.Lock()
	defer f.mu.Unlock()
	if at, ok := c.parse(id); ok && at <= f.last && at >= f.last-uint64(len(f.entries)) {
		c.at = at
		return c, nil, nil
	}
	c.at = f.last
	for _, kind := range kinds {
		all = append(all, f.kinds[kind].view)
	}
	return c, all, nil
}

// ID is by which Watch goes on from here.
func (c *Cursor) ID() string { return c.IDOf(c.at) }

// IDOf is by which Watch goes on after an entry.
func (c *Cursor) IDOf(number uint64) string {
	return fmt.Sprintf("%s.%d.%s", c.feed.epoch, number, c.scope)
}

func (c *Cursor) parse(id string) (at uint64, ok bool) {
	parts := strings.Split(id, ".")
	if len(parts) != 3 || parts[0] != c.feed.epoch || parts[2] != c.scope {
		return 0, false
	}
	at, err := strconv.ParseUint(parts[1], 10, 64)
	return at, err == nil
}

// Next returns what has changed, as soon as there is something, and nothing after a while. The error is [ErrBehind], that of ctx, or why it
// cannot be said what is of one of the kinds now: nobody who watches is to take what was for what is.
func (c *Cursor) Next(ctx context.Context, wait time.Duration) ([]Entry, error) {
	timeout := time.NewTimer(wait)
	defer timeout.Stop()
	for {
		found, more, err := c.readEntries()
		if err != nil || len(found) > 0 {
			return found, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-timeout.C:
			return nil, nil
		case <-more:
		}
	}
}

// readEntries returns the entries that are there, and what is closed when there are further ones.
func (c *Cursor) readEntries() (found []Entry, more <-chan struct{}, err error) {
	f, now := c.feed, time.Now()
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, kind := range c.kinds {
		k := f.kinds[kind]
		k.read = now
		if k.failed != nil {
			return nil, nil, k.failed
		}
	}
	missing := f.last - c.at
	if missing > uint64(len(f.entries)) {
		return nil, nil, ErrBehind
	}
	for _, e := range f.entries[uint64(len(f.entries))-missing:] {
		if slices.Contains(c.kinds, e.Kind) {
			found = append(found, e)
		}
		if c.at = e.Number; len(found) == most {
			break
		}
	}
	return found, f.appended.Next(), nil
}
