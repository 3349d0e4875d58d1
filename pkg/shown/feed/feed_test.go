// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package feed

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

const things, others = Kind("things"), Kind("others")

// world is things by their keys.
type world struct {
	mu     sync.Mutex
	things map[string]string
	reads  int
	err    error
}

func (w *world) set(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.err = err
}

func (w *world) source(_ context.Context, kind Kind) ([]Item, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reads++
	var items []Item
	for key, value := range w.things {
		items = append(items, Item{Key: key, Value: string(kind) + " " + value})
	}
	return items, w.err
}

// TestWatchersSeeWhatThereIs changes things at random: a watcher that goes away at random and comes back, knows in the end what there
// is, and nothing else.
func TestWatchersSeeWhatThereIs(t *testing.T) {
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			w := &world{things: map[string]string{"a": "1"}}
			f := New(w.source, things)
			ctx := t.Context()
			known := map[string]string{}
			resets := 0
			cursor, all, err := f.Watch(ctx, []Kind{things}, "", "")
			begin := func() {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
				if all != nil {
					resets++
					clear(known)
					for _, item := range all[0].Items {
						known[item.Key] = item.Value.(string)
					}
				}
			}
			begin()
			follow := func() {
				for {
					entries, err := cursor.Next(ctx, time.Nanosecond)
					if err != nil {
						t.Fatal(err)
					}
					if len(entries) == 0 {
						break
					}
					for _, e := range entries {
						if known[e.Item.Key] = e.Item.Value.(string); e.Deleted {
							delete(known, e.Item.Key)
						}
					}
				}
			}
			for range 200 {
				key := string(rune('a' + random.IntN(10)))
				if w.things[key] = fmt.Sprint(random.IntN(3)); random.IntN(3) == 0 {
					delete(w.things, key)
				}
				f.Changed(things)
				if random.IntN(2) == 0 {
					time.Sleep(2 * lag)
					if _, err := f.View(ctx, things); err != nil {
						t.Fatal(err)
					}
				}
				switch random.IntN(10) {
				case 0:
					follow()
				case 1:
					cursor, all, err = f.Watch(ctx, []Kind{things}, "", cursor.ID())
					begin()
				}
			}
			time.Sleep(2 * lag)
			if _, err := f.View(ctx, things); err != nil {
				t.Fatal(err)
			}
			follow()
			want := map[string]string{}
			for key, value := range w.things {
				want[key] = "things " + value
			}
			if diff := cmp.Diff(want, known); diff != "" {
				t.Errorf("world %d: -there is +the watcher knows\n%s", seed, diff)
			}
			if resets != 1 {
				t.Errorf("world %d: the watcher begins again %d times, though all is remembered", seed, resets)
			}
		})
	}
}

// TestBounds changes more than is remembered.
func TestBounds(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		value  string
		count  int
	}{
		"Many":  {"Changes are forgotten when there are too many ...", "", maxEntries + 1},
		"Large": {"... or too large ones.", strings.Repeat("x", maxBytes/4), 5},
	} {
		t.Run(name, func(t *testing.T) {
			w := &world{things: map[string]string{}}
			f := New(w.source, things, others)
			ctx := t.Context()
			cursor, _, err := f.Watch(ctx, []Kind{things}, "", "")
			if err != nil {
				t.Fatal(err)
			}
			for i := range tc.count {
				w.things[fmt.Sprint(i)] = tc.value
			}
			f.kinds[things].dirty = time.Now().Add(-time.Hour)
			if _, err := f.View(ctx, things); err != nil {
				t.Fatal(err)
			}
			if len(f.entries) > maxEntries || f.bytes > maxBytes {
				t.Errorf("%s\n%d entries of %d bytes are kept", tc.reason, len(f.entries), f.bytes)
			}
			if _, err := cursor.Next(ctx, time.Nanosecond); !errors.Is(err, ErrBehind) {
				t.Errorf("%s\na watcher that is behind gets %v", tc.reason, err)
			}
			if _, all, err := f.Watch(ctx, []Kind{things}, "", cursor.ID()); err != nil || len(all) != 1 {
				t.Errorf("%s\na watcher that comes back does not begin again (%v)", tc.reason, err)
			}
		})
	}
}

// TestIDsAreForOneWatcher goes on with the ID of a watcher of something else.
func TestIDsAreForOneWatcher(t *testing.T) {
	w := &world{things: map[string]string{"a": "1"}}
	f, ctx := New(w.source, things, others), t.Context()
	cursor, _, err := f.Watch(ctx, []Kind{things}, "one", "")
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		feed  *Feed
		kinds []Kind
		scope string
		again bool
	}{
		"Same":    {f, []Kind{things}, "one", false},
		"Kinds":   {f, []Kind{things, others}, "one", true},
		"Scope":   {f, []Kind{things}, "two", true},
		"Restart": {New(w.source, things), []Kind{things}, "one", true},
	} {
		if _, all, err := tc.feed.Watch(ctx, tc.kinds, tc.scope, cursor.ID()); err != nil || (all != nil) != tc.again {
			t.Errorf("%s: begins again: %t (%v)", name, all != nil, err)
		}
	}
}

// TestReads counts how often things are read: seldom, and again after an error.
func TestReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{things: map[string]string{"b": "1", "a": "2"}}
		f, ctx := New(w.source, things), t.Context()
		view := func(reads int, reason string) *View {
			t.Helper()
			v, err := f.View(ctx, things)
			w.mu.Lock()
			defer w.mu.Unlock()
			if w.reads != reads || (err != nil) != (w.err != nil) {
				t.Errorf("%s\nread %d times, want %d (%v)", reason, w.reads, reads, err)
			}
			return v
		}
		first := view(1, "At first they are read.")
		if i, found := first.Get("b"); !found || i.Value != "things 1" || len(first.After("a")) != 1 || len(first.After("aa")) != 1 ||
			len(first.After("b")) != 0 {
			t.Errorf("the view is %+v", first)
		}
		if _, found := first.Get("c"); found {
			t.Error("there is no c")
		}
		view(1, "Nothing has changed.")
		f.Changed(things, others)
		view(1, "What has changed a moment ago may be missing ...")
		time.Sleep(lag)
		view(2, "... and not for longer.")
		view(2, "Once.")
		time.Sleep(oldest + 1)
		view(3, "The time passes for what was not changed too.")
		f.Changed(things)
		time.Sleep(lag)
		w.err = errors.New("down")
		view(4, "An error is told.")
		w.err = nil
		time.Sleep(lag)
		view(5, "And not remembered.")
		if _, err := f.View(ctx, "nothing"); err == nil {
			t.Error("there are items of a kind that there is not")
		}

		ctx, cancel := context.WithCancel(ctx)
		done := make(chan error)
		go func() { done <- f.Run(ctx) }()
		w.mu.Lock()
		w.things["c"] = "3"
		w.mu.Unlock()
		f.Changed(things)
		time.Sleep(lag)
		synctest.Wait()
		if v := view(6, "What is read these days is kept ready."); len(v.Items) != 3 ||
			!slices.IsSortedFunc(v.Items, func(a, b Item) int { return strings.Compare(a.Key, b.Key) }) {
			t.Errorf("the view is %+v", v.Items)
		}
		time.Sleep(2 * interest)
		synctest.Wait()
		w.mu.Lock()
		reads := w.reads
		w.mu.Unlock()
		f.Changed(things)
		time.Sleep(2 * interest)
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if w.reads != reads {
			t.Error("what nobody reads is read again")
		}
	})
}

// TestWatchersLearnThatNobodyKnows has the source fail under a watcher, which must not take what was for what is.
func TestWatchersLearnThatNobodyKnows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{things: map[string]string{"a": "1"}}
		f := New(w.source, things)
		ctx, end := context.WithCancel(t.Context())
		running := make(chan error)
		go func() { running <- f.Run(ctx) }()
		cursor, _, err := f.Watch(ctx, []Kind{things}, "", "")
		if err != nil {
			t.Fatal(err)
		}
		w.set(errors.New("the API server is gone"))
		f.Changed(things)
		if found, err := cursor.Next(ctx, time.Minute); err == nil || errors.Is(err, ErrBehind) {
			t.Errorf("a watcher gets %v, %v", found, err)
		}
		w.set(nil)
		time.Sleep(oldest)
		if _, _, err := f.Watch(ctx, []Kind{things}, "", cursor.ID()); err != nil {
			t.Errorf("it does not come back: %v", err)
		}
		if found, err := cursor.Next(ctx, time.Second); err != nil || len(found) != 0 {
			t.Errorf("a watcher gets %v, %v though all is well again", found, err)
		}
		end()
		if err := <-running; err != nil {
			t.Error(err)
		}
	})
}

// TestReaderWhoHasGone asks with a context that has ended: others do not learn of it.
func TestReaderWhoHasGone(t *testing.T) {
	f := New(func(ctx context.Context, _ Kind) ([]Item, error) { return nil, ctx.Err() }, things)
	cursor, _, err := f.Watch(t.Context(), []Kind{things}, "", "")
	if err != nil {
		t.Fatal(err)
	}
	f.kinds[things].dirty = time.Now().Add(-time.Hour)
	gone, leave := context.WithCancel(t.Context())
	leave()
	if _, err := f.View(gone, things); !errors.Is(err, context.Canceled) {
		t.Errorf("who has gone gets %v", err)
	}
	if _, err := cursor.Next(t.Context(), time.Nanosecond); err != nil {
		t.Errorf("somebody else gets %v", err)
	}
}
