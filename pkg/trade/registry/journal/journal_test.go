// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/capacitorset/liqo-broker/pkg/serving/eventstream"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/offer"
	"github.com/capacitorset/liqo-broker/pkg/trade/registry/registryv1"
)

const epoch = "epoch"

// must returns an entry that can be made.
func must(e *Entry, err error) *Entry {
	if err != nil {
		panic(err)
	}
	return e
}

func partyEntry(id string, revision int64) *Entry {
	return must(NewParty(&registryv1.Party{ID: id, Registered: revision}))
}

func offerEntry(party, id string, revision int64) *Entry {
	o := offer.Offer{Party: party, ID: id, Revision: revision}
	return must(NewOffer(&offer.Signed{Offer: o, JWS: fmt.Sprintf("jws-%d", revision)}, revision))
}

func goneEntry(party, id string, revision int64) *Entry {
	return must(NewGone(offer.Key{Party: party, Offer: id}, revision))
}

// told is what a watcher is told, as short words.
func told(t *testing.T, text []byte) []string {
	t.Helper()
	var words []string
	reader := eventstream.NewReader(strings.NewReader(string(text)), 1<<20)
	for {
		e, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return words
		}
		if err != nil {
			t.Fatal(err)
		}
		words = append(words, word(t, e))
	}
}

func word(t *testing.T, e eventstream.Event) string {
	t.Helper()
	text := string(e.Data)
	pick := func(name string) string {
		_, rest, _ := strings.Cut(text, `"`+name+`":"`)
		value, _, _ := strings.Cut(rest, `"`)
		return value
	}
	switch {
	case e.Name == registryv1.EventUpsert && strings.HasPrefix(text, `{"party"`):
		return "+" + pick("id")
	case e.Name == registryv1.EventUpsert:
		return "+" + pick("party") + "/" + pick("id") + "=" + pick("offer")
	case e.Name == registryv1.EventDelete:
		return "-" + pick("party") + "/" + pick("offer")
	}
	return strings.TrimSpace(e.Name + " " + e.ID)
}

// next returns what a watcher is told next, and nothing if that is a sign of life.
func next(t *testing.T, w *Watcher) []string {
	t.Helper()
	var all []byte
	if err := w.Next(t.Context(), time.Millisecond, func(events []byte) error {
		all = append(all, events...)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return told(t, all)
}

func TestWatch(t *testing.T) {
	onlyA := func(e *Entry) bool { return e.Key.Offer == "a" }
	before := Change{
		Revision: 4, Entries: []*Entry{partyEntry("p", 1), offerEntry("p", "a", 2), offerEntry("p", "b", 3), goneEntry("p", "c", 4)},
	}
	cases := map[string]struct {
		reason  string
		filter  Filter
		id      string
		changes []Change // After the watcher has begun, before it is told.
		floor   int64
		want    []string
	}{
		"New": {
			reason: "Who knows nothing gets all that there is, and nothing of what was.",
			want:   []string{"snapshot", "+p", "+p/a=jws-2", "+p/b=jws-3", "bookmark epoch.4"},
		},
		"Resumed": {
			reason: "Who goes on gets what has changed, with what is gone.", id: "epoch.2", want: []string{"+p/b=jws-3", "-p/c", "bookmark epoch.4"},
		},
		"Current": {reason: "Who knows all gets a sign of life.", id: "epoch.4", want: []string{"heartbeat epoch.4"}},
		"Change": {
			reason: "... or what comes then ...", id: "epoch.4", changes: []Change{{Revision: 5, Entries: []*Entry{offerEntry("p", "a", 5)}}},
			want: []string{"+p/a=jws-5", "bookmark epoch.5"},
		},
		"Changes": {
			reason: "... of each thing only the newest, if there are several.", id: "epoch.4",
			changes: []Change{
				{Revision: 5, Entries: []*Entry{offerEntry("p", "a", 5)}},
				{Revision: 7, Entries: []*Entry{goneEntry("p", "a", 7), offerEntry("p", "b", 6)}},
			}, want: []string{"+p/b=jws-6", "-p/a", "bookmark epoch.7"},
		},
		"Stale": {
			reason: "A change that is older than what is known changes nothing.", id: "epoch.4",
			changes: []Change{{Revision: 3, Entries: []*Entry{offerEntry("p", "a", 3)}}}, want: []string{"heartbeat epoch.4"},
		},
		"Order": {
			reason: "Of several changes of one thing in any order the newest counts.", id: "epoch.4",
			changes: []Change{{Revision: 6, Entries: []*Entry{offerEntry("p", "a", 6), offerEntry("p", "a", 5)}}},
			want:    []string{"+p/a=jws-6", "bookmark epoch.6"},
		},
		"History": {
			reason: "A revision of another history says nothing.", id: "other.4",
			want: []string{"snapshot", "+p", "+p/a=jws-2", "+p/b=jws-3", "bookmark epoch.4"},
		},
		"Future": {
			reason: "Nor does one that is not reached.", id: "epoch.9",
			want: []string{"snapshot", "+p", "+p/a=jws-2", "+p/b=jws-3", "bookmark epoch.4"},
		},
		"Junk": {
			reason: "Nor does what is no revision.", id: "epoch.-1",
			want: []string{"snapshot", "+p", "+p/a=jws-2", "+p/b=jws-3", "bookmark epoch.4"},
		},
		"Forgotten": {
			reason: "Who was away for so long that deletions are forgotten begins again.", id: "epoch.2", floor: 3,
			want: []string{"snapshot", "+p", "+p/a=jws-2", "+p/b=jws-3", "bookmark epoch.4"},
		},
		"AtFloor": {reason: "Who was away for less goes on.", id: "epoch.3", floor: 3, want: []string{"-p/c", "bookmark epoch.4"}},
		"Filter":  {reason: "A filter is about offers.", filter: onlyA, want: []string{"snapshot", "+p", "+p/a=jws-2", "bookmark epoch.4"}},
		"Filtered": {
			reason: "What does not pass is told as gone: it may have passed before.", filter: onlyA, id: "epoch.4",
			changes: []Change{{Revision: 6, Entries: []*Entry{offerEntry("p", "b", 5), offerEntry("p", "a", 6)}}},
			want:    []string{"-p/b", "+p/a=jws-6", "bookmark epoch.6"},
		},
		"All": {
			reason: "After a backup was restored all is told again, also if the revision is the same or older.", id: "epoch.4",
			changes: []Change{{All: true, Revision: 3, Floor: 3, Entries: []*Entry{partyEntry("p", 1)}}},
			want:    []string{"snapshot", "+p", "bookmark epoch.3"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := New(epoch)
			c.Apply(before)
			if tc.floor > 0 {
				c.Apply(Change{Revision: 4, Floor: tc.floor})
			}
			w := c.Watch(tc.filter, tc.id)
			for _, change := range tc.changes {
				c.Apply(change)
			}
			if diff := cmp.Diff(tc.want, next(t, w)); diff != "" {
				t.Errorf("%s\n-want +got\n%s", tc.reason, diff)
			}
		})
	}
}

// TestCutOff sends a snapshot to a watcher that goes away in the middle of it.
func TestCutOff(t *testing.T) {
	c := New(epoch)
	entries := []*Entry{partyEntry("p", 1)}
	for i := range int64(2000) {
		entries = append(entries, offerEntry("p", fmt.Sprintf("offer-%04d", i), i+2))
	}
	c.Apply(Change{Revision: 2001, Entries: entries})
	w, gone, parts := c.Watch(nil, ""), errors.New("gone"), 0
	err := w.Next(t.Context(), time.Second, func(events []byte) error {
		if len(events) > 2*chunk {
			t.Errorf("%d bytes at once", len(events))
		}
		if parts++; parts == 2 {
			return gone
		}
		if words := told(t, events); words[0] != registryv1.EventSnapshot || strings.HasPrefix(words[len(words)-1], registryv1.EventBookmark) {
			t.Errorf("the first part is %s ... %s", words[0], words[len(words)-1])
		}
		return nil
	})
	if !errors.Is(err, gone) || parts != 2 {
		t.Errorf("%d parts, and %v", parts, err)
	}
}

// TestViews compares what views and watchers know with what random changes have made.
func TestViews(t *testing.T) {
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 0))
		c, want := New(epoch), map[offer.Key]int64{}
		full, slow := c.Watch(nil, ""), c.Watch(nil, "")
		knows, slowKnows := map[string]bool{}, map[string]bool{}
		revision := int64(0)
		for range 100 {
			change := Change{}
			for range random.IntN(5) {
				revision++
				key := offer.Key{Party: fmt.Sprint("p", random.IntN(5)), Offer: fmt.Sprint("o", random.IntN(5))}
				if random.IntN(3) == 0 {
					delete(want, key)
					change.Entries = append(change.Entries, goneEntry(key.Party, key.Offer, revision))
				} else {
					want[key] = revision
					change.Entries = append(change.Entries, offerEntry(key.Party, key.Offer, revision))
				}
			}
			change.Revision, change.Floor = revision, max(0, revision-20)
			c.Apply(change)
			learn(t, full, knows)
			if random.IntN(20) == 0 {
				learn(t, slow, slowKnows)
			}
		}
		learn(t, slow, slowKnows)
		expected := map[string]bool{}
		for key, at := range want {
			expected[fmt.Sprintf("%s=jws-%d", key, at)] = true
		}
		if diff := cmp.Diff(expected, knows); diff != "" {
			t.Errorf("seed %d: the watcher -want +got\n%s", seed, diff)
		}
		if diff := cmp.Diff(expected, slowKnows); diff != "" {
			t.Errorf("seed %d: the slow watcher -want +got\n%s", seed, diff)
		}
		view := c.View()
		if view.Offers != len(want) || len(view.After(offer.Key{})) != len(want) ||
			!slices.IsSortedFunc(view.byKey, func(a, b *Entry) int { return a.Compare(b.Key) }) {
			t.Errorf("seed %d: %d offers, want %d", seed, view.Offers, len(want))
		}
		for key, at := range want {
			if e := view.Get(key); e == nil || e.Revision != at {
				t.Errorf("seed %d: %s is %v, want revision %d", seed, key, e, at)
			}
		}
		if most := len(want) + 20; len(view.log) > most {
			t.Errorf("seed %d: %d entries are kept, want at most %d", seed, len(view.log), most)
		}
	}
}

// learn takes into account what a watcher is told.
func learn(t *testing.T, w *Watcher, knows map[string]bool) {
	t.Helper()
	for _, word := range next(t, w) {
		name, _, _ := strings.Cut(word[1:], "=")
		switch {
		case word == registryv1.EventSnapshot:
			clear(knows)
		case word[0] == '+' || word[0] == '-':
			maps.DeleteFunc(knows, func(known string, _ bool) bool { return strings.HasPrefix(known, name+"=") })
			if word[0] == '+' {
				knows[word[1:]] = true
			}
		}
	}
}

func TestAt(t *testing.T) {
	c := New(epoch)
	go c.Apply(Change{Revision: 3})
	if view, err := c.At(t.Context(), 3); err != nil || view.Revision != 3 {
		t.Errorf("%+v, %v", view, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := c.At(ctx, 4); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a revision that does not come: %v", err)
	}
}

// TestLate has watchers miss some views: what they are sent is written once for all of them. Who has missed too much for that gets it in
// parts.
func TestLate(t *testing.T) {
	sent := func(w *Watcher) (parts [][]byte) {
		t.Helper()
		if err := w.Next(t.Context(), time.Millisecond, func(events []byte) error {
			parts = append(parts, events)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		return parts
	}
	c := New(epoch)
	c.Apply(Change{Revision: 2, Entries: []*Entry{partyEntry("q", 2), offerEntry("p", "a", 1)}})
	one, other := c.Watch(nil, "epoch.2"), c.Watch(nil, "epoch.2")
	c.Apply(Change{Revision: 3, Entries: []*Entry{offerEntry("p", "b", 3)}})
	behind := c.Watch(nil, "epoch.3")
	c.Apply(Change{Revision: 5, Entries: []*Entry{offerEntry("p", "a", 5)}})
	c.Apply(Change{Revision: 6, Entries: []*Entry{offerEntry("p", "c", 6)}})
	a, b, d := sent(one), sent(other), sent(behind)
	if want := []string{"+p/b=jws-3", "+p/a=jws-5", "+p/c=jws-6", "bookmark epoch.6"}; len(a) != 1 || !cmp.Equal(told(t, a[0]), want) {
		t.Errorf("a late watcher is told %q, want %q", a, want)
	}
	if len(a) != 1 || len(b) != 1 || &a[0][0] != &b[0][0] {
		t.Error("what two late watchers are sent is written twice")
	}
	if want := []string{"+p/a=jws-5", "+p/c=jws-6", "bookmark epoch.6"}; len(d) != 1 || !cmp.Equal(told(t, d[0]), want) {
		t.Errorf("who is less late is told %q, want %q", d, want)
	}

	// More than a chunk.
	var many []*Entry
	for n := range int64(2000) {
		many = append(many, offerEntry("q", fmt.Sprint("o", n), 7+n))
	}
	c.Apply(Change{Revision: 2006, Entries: many})
	c.Apply(Change{Revision: 2007, Entries: []*Entry{offerEntry("p", "c", 2007)}})
	parts, words := 0, 0
	if err := one.Next(t.Context(), time.Millisecond, func(events []byte) error {
		parts, words = parts+1, words+len(told(t, events))
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if parts < 2 || words != 2002 {
		t.Errorf("%d changes in %d parts, want 2001 and a bookmark in some", words, parts)
	}
}

// TestCovers says which watchers can go on from where they were.
func TestCovers(t *testing.T) {
	c := New("")
	c.Apply(Change{
		Revision: 20, Floor: 5, All: true, Eras: []Era{{Name: "first", From: 1}, {Name: "second", From: 10}, {Name: "third", From: 15}},
	})
	view := c.View()
	if got := view.ID(); got != "third.20" {
		t.Errorf("ID() = %s", got)
	}
	for id, want := range map[string]bool{
		"first.9": true, "first.10": false, "second.9": false, "second.10": true, "second.14": true, "second.15": false, "third.15": true,
		"third.20": true, "third.21": false, "first.4": false, "fourth.20": false, "third": false, "third.-1": false, "": false, ".20": false,
	} {
		if got := view.Covers(id); got != want {
			t.Errorf("Covers(%q) = %t, want %t", id, got, want)
		}
	}

	// A watcher that is connected while the history goes back, to the same revision, begins again.
	w := c.Watch(nil, "third.20")
	c.Apply(Change{Revision: 20, All: true, Eras: []Era{{Name: "first", From: 1}, {Name: "fourth", From: 12}}})
	var told string
	if err := w.Next(t.Context(), time.Hour, func(events []byte) error { told += string(events); return nil }); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(told, "event: snapshot") || !strings.Contains(told, "fourth.20") {
		t.Errorf("it is told %s", told)
	}
}
