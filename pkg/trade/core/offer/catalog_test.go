// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package offer

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// step is what happens to a catalog.
type step struct {
	registry string
	revision int64
	// name tells contents of one revision apart.
	name string
	// withdraw: the registry does not list the offer any more.
	withdraw bool
}

func TestMerge(t *testing.T) {
	cases := map[string]struct {
		reason string
		steps  []step
		// want are the revision, the name and who lists them at the end; revision zero is none.
		revision int64
		name     string
		seen     []Seen
	}{
		"TwoRegistries": {
			reason:   "The same offer by two registries is one.",
			steps:    []step{{registry: "b", revision: 1}, {registry: "a", revision: 1}},
			revision: 1, seen: []Seen{{Registry: "a", Revision: 1}, {Registry: "b", Revision: 1}},
		},
		"Newer": {
			reason:   "The newest revision counts, and who is behind still lists the offer.",
			steps:    []step{{registry: "a", revision: 1}, {registry: "b", revision: 2}},
			revision: 2, seen: []Seen{{Registry: "a", Revision: 1}, {Registry: "b", Revision: 2}},
		},
		"Older": {
			reason:   "It never goes back.",
			steps:    []step{{registry: "a", revision: 2}, {registry: "a", revision: 1}},
			revision: 2, seen: []Seen{{Registry: "a", Revision: 1}},
		},
		"Conflict": {
			reason:   "The first content of a revision stays, and the conflict is seen.",
			steps:    []step{{registry: "a", revision: 1}, {registry: "b", revision: 1, name: "x"}},
			revision: 1, seen: []Seen{{Registry: "a", Revision: 1}, {Registry: "b", Revision: 1, Conflict: "x"}},
		},
		"ConflictEnds": {
			reason: "A newer revision ends a conflict.",
			steps: []step{
				{registry: "a", revision: 1}, {registry: "b", revision: 1, name: "x"},
				{registry: "a", revision: 2},
			},
			revision: 2, seen: []Seen{{Registry: "a", Revision: 2}, {Registry: "b", Revision: 1}},
		},
		"ConflictResolved": {
			reason: "So does a registry that lists the content that the others list.",
			steps: []step{
				{registry: "a", revision: 1}, {registry: "b", revision: 1, name: "x"},
				{registry: "b", revision: 1},
			},
			revision: 1, seen: []Seen{{Registry: "a", Revision: 1}, {Registry: "b", Revision: 1}},
		},
		"OneWithdraws": {
			reason: "The offer stays while somebody lists it.",
			steps: []step{
				{registry: "a", revision: 1}, {registry: "b", revision: 2}, {registry: "a", revision: 2},
				{registry: "b", withdraw: true},
			},
			revision: 2, seen: []Seen{{Registry: "a", Revision: 2}},
		},
		"OlderStays": {
			reason: "It is gone when nobody lists the newest revision: who lists an older one brings back neither.",
			steps: []step{
				{registry: "a", revision: 1}, {registry: "b", revision: 2}, {registry: "b", withdraw: true},
				{registry: "a", revision: 1}, {registry: "c", revision: 1}, {registry: "a", withdraw: true},
			},
		},
		"ConflictStays": {
			reason: "Nor does who lists another content.",
			steps: []step{
				{registry: "a", revision: 1}, {registry: "b", revision: 1, name: "x"}, {registry: "a", withdraw: true},
			},
		},
		"AllWithdraw": {
			reason: "Then it is gone.",
			steps:  []step{{registry: "a", revision: 1}, {registry: "a", withdraw: true}},
		},
		"StrangerWithdraws": {
			reason:   "A registry takes back only what it listed.",
			steps:    []step{{registry: "a", revision: 1}, {registry: "b", withdraw: true}},
			revision: 1, seen: []Seen{{Registry: "a", Revision: 1}},
		},
		"Replay": {
			reason: "What is gone does not come back in an older revision.",
			steps: []step{
				{registry: "a", revision: 2}, {registry: "a", withdraw: true}, {registry: "a", revision: 1},
			},
		},
		"ReplayOfAnother": {
			reason: "Nor with another content.",
			steps: []step{
				{registry: "a", revision: 2}, {registry: "a", withdraw: true}, {registry: "a", revision: 2, name: "x"},
			},
		},
		"Return": {
			reason: "The same comes back, as after a registry has lost its state.",
			steps: []step{
				{registry: "a", revision: 2}, {registry: "a", withdraw: true}, {registry: "b", revision: 2},
			},
			revision: 2, seen: []Seen{{Registry: "b", Revision: 2}},
		},
	}
	base := parse(t, "", "")
	key := base.Key()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var c Catalog
			for _, s := range tc.steps {
				if s.withdraw {
					c.Withdraw(s.registry, key)
				} else {
					merge(t, &c, sighting{Registry: s.registry, Offer: variant(base, s.revision, s.name)})
				}
			}
			entry, ok := c.Get(key)
			if ok != (tc.revision != 0) || entry.Offer.Revision != tc.revision || entry.Offer.Zone != tc.name {
				t.Fatalf("%s\nGet() = revision %d with %q, want revision %d with %q", tc.reason, entry.Offer.Revision, entry.Offer.Zone,
					tc.revision, tc.name)
			}
			for i := range tc.seen {
				if content := tc.seen[i].Conflict; content != "" {
					tc.seen[i].Conflict = variant(base, tc.revision, content).Fingerprint()
				}
			}
			if diff := cmp.Diff(tc.seen, entry.Seen); diff != "" {
				t.Errorf("%s\nSeen: -want +got\n%s", tc.reason, diff)
			}
		})
	}
}

// sighting is an offer as one registry lists it.
type sighting struct {
	Registry string
	Offer    Offer
	Keys     int
}

// merge takes in what a registry lists, for which there is room.
func merge(t *testing.T, c *Catalog, s sighting) {
	t.Helper()
	if size, fits := c.Merge(s.Registry, Signed{Offer: s.Offer, Keys: s.Keys}, 1<<20); !fits {
		t.Fatalf("an offer takes %d bytes", size)
	}
}

// variant returns an offer in a revision, with other content if it has a name.
func variant(o Offer, revision int64, name string) Offer {
	o.Revision, o.Zone = revision, name
	return o
}

func TestForgetAndExpire(t *testing.T) {
	base := parse(t, "", "")
	of := func(id string, until time.Duration) Offer {
		o := base
		o.ID, o.ValidUntil = id, base.IssuedAt.Add(until)
		return o
	}
	var c Catalog
	for _, s := range []sighting{
		{Registry: "a", Offer: of("one", time.Hour)}, {Registry: "a", Offer: of("two", time.Hour)}, {Registry: "b", Offer: of("two", time.Hour)},
		{Registry: "b", Offer: of("three", time.Hour)}, {Registry: "b", Offer: of("four", 2*time.Hour)},
		{Registry: "a", Offer: of("five", 2*time.Hour)},
	} {
		merge(t, &c, s)
	}
	key := func(id string) Key { return Key{Party: base.Party, Offer: id} }
	c.Forget("c")
	if c.Len() != 5 {
		t.Errorf("after Forget() of who lists nothing there are %d, want 5", c.Len())
	}
	c.Forget("a")
	var left []Key
	for entry := range c.All() {
		left = append(left, entry.Offer.Key())
	}
	if diff := cmp.Diff([]Key{key("four"), key("three"), key("two")}, left); diff != "" {
		t.Errorf("Forget(): what nobody else lists is gone: -want +got\n%s", diff)
	}
	if gone := c.Expire(base.IssuedAt.Add(time.Hour - 1)); gone != nil {
		t.Errorf("Expire() before the end = %v", gone)
	}
	if diff := cmp.Diff([]Key{key("three"), key("two")}, c.Expire(base.IssuedAt.Add(time.Hour))); diff != "" {
		t.Errorf("Expire(): -want +got\n%s", diff)
	}
	merge(t, &c, sighting{Registry: "a", Offer: variant(of("two", 3*time.Hour), 1, "")})
	if entry, found := c.Get(key("two")); found || c.Len() != 1 {
		t.Errorf("an older revision than one that is over has come back: %+v, of %d", entry, c.Len())
	}
	c.Expire(base.IssuedAt.Add(maxValidity))
	if len(c.floors) != 0 {
		t.Errorf("%d revisions are remembered that nobody can bring back", len(c.floors))
	}
}

// TestLaterKey holds that who had a key that was replaced, and offered the largest revision with it, keeps nothing from being offered with
// the next.
func TestLaterKey(t *testing.T) {
	base := parse(t, "", "")
	for name, withdrawn := range map[string]bool{"Listed": false, "Withdrawn": true} {
		var c Catalog
		merge(t, &c, sighting{Registry: "a", Offer: variant(base, maxRevision, ""), Keys: 1})
		if withdrawn {
			c.Withdraw("a", base.Key())
		}
		merge(t, &c, sighting{Registry: "a", Offer: variant(base, 3, ""), Keys: 2})
		merge(t, &c, sighting{Registry: "b", Offer: variant(base, maxRevision, ""), Keys: 1}) // The key before has signed it.
		if entry, _ := c.Get(base.Key()); entry.Offer.Revision != 3 {
			t.Errorf("%s: the entry is revision %d", name, entry.Offer.Revision)
		}
	}
}

// TestRoom holds that what has no room changes nothing, and that nothing is held for what is gone.
func TestRoom(t *testing.T) {
	base := parse(t, "", "")
	large := variant(base, 9, "")
	large.Description = strings.Repeat("x", maxString)
	var c Catalog
	size, fits := c.Merge("a", Signed{Offer: base}, 4<<10)
	if !fits || size <= entryBytes || size > 4<<10 {
		t.Fatalf("Merge() = %d bytes, %t", size, fits)
	}
	if more, fits := c.Merge("a", Signed{Offer: large}, size); fits || more < size+maxString {
		t.Errorf("Merge() of a larger revision = %d bytes, %t", more, fits)
	}
	if same, fits := c.Merge("b", Signed{Offer: base}, size); !fits || same != size {
		t.Errorf("Merge() of what is there = %d bytes, %t, want %d", same, fits, size)
	}
	if _, fits := c.Merge("c", Signed{Offer: base}, size-1); fits {
		t.Error("Merge() of what is there fits into less than it takes")
	}
	if entry, _ := c.Get(base.Key()); entry.Offer.Revision != base.Revision || len(entry.Seen) != 2 {
		t.Errorf("the entry is revision %d, listed by %v", entry.Offer.Revision, entry.Seen)
	}
	c.Withdraw("a", base.Key())
	merge(t, &c, sighting{Registry: "b", Offer: large})
	c.Withdraw("b", base.Key())
	if len(c.interner.pool) != 0 {
		t.Errorf("%d values are held for nobody", len(c.interner.pool))
	}
	for i := range 2 * maxFloors {
		o := base
		o.ID = fmt.Sprint("o", i)
		merge(t, &c, sighting{Registry: "a", Offer: o})
		c.Withdraw("a", o.Key())
	}
	if len(c.floors) > maxFloors {
		t.Errorf("%d offers that are gone are remembered", len(c.floors))
	}
}

// TestOrderDoesNotMatter checks that registries in any order lead to the same offers, unless a seller contradicts itself.
func TestOrderDoesNotMatter(t *testing.T) {
	base, r := parse(t, "", ""), rand.New(rand.NewPCG(1, 2))
	var sightings []sighting
	for id := range 5 {
		for revision := range int64(3) {
			o := variant(base, revision+1, "")
			o.ID = fmt.Sprintf("offer-%d", id)
			sightings = append(sightings, sighting{Registry: fmt.Sprintf("registry-%d", revision), Offer: o})
		}
	}
	list := func() (entries []Entry) {
		var c Catalog
		for _, s := range sightings {
			merge(t, &c, s)
		}
		return slices.Collect(c.All())
	}
	want := list()
	if len(want) != 5 {
		t.Fatalf("%d entries, want 5", len(want))
	}
	for range 100 {
		r.Shuffle(len(sightings), func(i, j int) { sightings[i], sightings[j] = sightings[j], sightings[i] })
		if diff := cmp.Diff(want, list()); diff != "" {
			t.Fatalf("another order of sightings: -want +got\n%s", diff)
		}
	}
}

func TestEntriesDoNotChange(t *testing.T) {
	base := parse(t, "", "")
	var c Catalog
	merge(t, &c, sighting{Registry: "b", Offer: base})
	before, _ := c.Get(base.Key())
	merge(t, &c, sighting{Registry: "b", Offer: variant(base, 9, "")})
	merge(t, &c, sighting{Registry: "a", Offer: variant(base, 9, "x")})
	if diff := cmp.Diff([]Seen{{Registry: "b", Revision: 7}}, before.Seen); diff != "" {
		t.Errorf("an entry that was returned has changed: -want +got\n%s", diff)
	}
}
