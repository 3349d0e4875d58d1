// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package offer

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"time"
)

// maxFloors bounds the memory for offers that are gone.
const maxFloors = 1 << 16

// Sighting is an offer as one registry lists it. Its signature was verified, and it is valid: the catalog looks
// at neither.
type Sighting struct {
	// Registry is the name of the registry, as its user calls it.
	Registry string
	Offer    Offer
	// Signed is the document as its seller signed it. The catalog keeps it and does not read it.
	Signed string
}

// Seen is what a registry listed last of an offer.
type Seen struct {
	Registry string
	// Revision is less than that of the entry while the registry is behind.
	Revision int64
	// Conflict is the fingerprint of what the registry lists instead of the entry's content, under the same
	// revision; empty if there is no conflict. The seller has then signed both.
	Conflict string
}

// Entry is an offer of the catalog. It is a value that nobody changes.
type Entry struct {
	Offer  Offer
	Signed string
	// Fingerprint is that of the offer.
	Fingerprint string
	// Seen says which registries list the offer in any revision, in the order of their names.
	Seen []Seen
}

// Outcome is what a sighting meant.
type Outcome string

// Outcomes of sightings.
const (
	// Added: the offer was not in the catalog.
	Added Outcome = "Added"
	// Updated: the offer replaces an older revision.
	Updated Outcome = "Updated"
	// Known: another registry listed it before, or the same one.
	Known Outcome = "Known"
	// Outdated: the catalog has or had a newer revision, which stays.
	Outdated Outcome = "Outdated"
	// Conflicting: the catalog has or had another content under the same revision, which stays.
	Conflicting Outcome = "Conflicting"
)

// Catalog is what several registries list, each offer once: in its newest revision, and never again in an older one.
// The zero Catalog is empty. It must not be used concurrently.
type Catalog struct {
	entries map[Key]Entry
	// interner has offers share what they say alike: a catalog fits into little memory.
	interner Interner
	// floors are what was last known of offers that no registry lists any more, so that nobody can bring back what was
	// withdrawn or replaced.
	floors map[Key]floorOf
}

// floorOf is the newest revision of an offer that is gone.
type floorOf struct {
	revision    int64
	fingerprint string
	// until is when no older revision can be valid any more.
	until time.Time
}

// Merge takes in what a registry lists.
func (c *Catalog) Merge(s Sighting) Outcome {
	if c.entries == nil {
		c.entries, c.floors = map[Key]Entry{}, map[Key]floorOf{}
	}
	s.Offer = c.interner.Intern(s.Offer)
	key, fingerprint := s.Offer.Key(), s.Offer.Fingerprint()
	entry, listed := c.entries[key]
	if !listed {
		floor, gone := c.floors[key]
		switch {
		case gone && s.Offer.Revision < floor.revision:
			return Outdated
		case gone && s.Offer.Revision == floor.revision && fingerprint != floor.fingerprint:
			return Conflicting
		}
		delete(c.floors, key)
		c.entries[key] = Entry{
			Offer: s.Offer, Signed: s.Signed, Fingerprint: fingerprint, Seen: []Seen{{Registry: s.Registry, Revision: s.Offer.Revision}},
		}
		return Added
	}
	outcome, seen := Known, Seen{Registry: s.Registry, Revision: s.Offer.Revision}
	entry.Seen = slices.Clone(entry.Seen)
	switch {
	case s.Offer.Revision < entry.Offer.Revision:
		outcome = Outdated
	case s.Offer.Revision > entry.Offer.Revision:
		outcome = Updated
		entry.Offer, entry.Signed, entry.Fingerprint = s.Offer, s.Signed, fingerprint
		for i := range entry.Seen {
			entry.Seen[i].Conflict = ""
		}
	case fingerprint != entry.Fingerprint:
		outcome, seen.Conflict = Conflicting, fingerprint
	}
	at, known := slices.BinarySearchFunc(entry.Seen, s.Registry, func(s Seen, name string) int { return cmp.Compare(s.Registry, name) })
	if known {
		entry.Seen[at] = seen
	} else {
		entry.Seen = slices.Insert(entry.Seen, at, seen)
	}
	c.entries[key] = entry
	return outcome
}

// Withdraw takes in that a registry does not list an offer any more, and reports whether the offer is gone
// for that: no other registry lists it.
func (c *Catalog) Withdraw(registry string, key Key) bool {
	entry, ok := c.entries[key]
	if !ok {
		return false
	}
	entry.Seen = slices.DeleteFunc(slices.Clone(entry.Seen), func(s Seen) bool { return s.Registry == registry })
	if len(entry.Seen) > 0 {
		c.entries[key] = entry
		return false
	}
	c.remove(key)
	return true
}

// Retain takes in that a registry lists no other offers than these, as after a snapshot of all that it has, and
// returns the offers that are gone for that, in order.
func (c *Catalog) Retain(registry string, listed map[Key]bool) []Key {
	var gone []Key
	for _, key := range slices.SortedFunc(maps.Keys(c.entries), compareKeys) {
		if !listed[key] && c.Withdraw(registry, key) {
			gone = append(gone, key)
		}
	}
	return gone
}

// Expire removes the offers that are over at a time, and returns them in order.
func (c *Catalog) Expire(now time.Time) []Key {
	var gone []Key
	for key, entry := range c.entries {
		if !now.Before(entry.Offer.ValidUntil) {
			gone = append(gone, key)
		}
	}
	slices.SortFunc(gone, compareKeys)
	for _, key := range gone {
		c.remove(key)
	}
	maps.DeleteFunc(c.floors, func(_ Key, floor floorOf) bool { return !now.Before(floor.until) })
	return gone
}

// remove removes an entry, and remembers its revision for as long as an older one that was issued before it can be valid.
func (c *Catalog) remove(key Key) {
	entry := c.entries[key]
	delete(c.entries, key)
	if len(c.floors) >= maxFloors {
		oldest := Key{}
		for other, floor := range c.floors {
			if oldest == (Key{}) || floor.until.Before(c.floors[oldest].until) {
				oldest = other
			}
		}
		delete(c.floors, oldest)
	}
	c.floors[key] = floorOf{revision: entry.Offer.Revision, fingerprint: entry.Fingerprint, until: entry.Offer.IssuedAt.Add(maxValidity)}
}

// Get returns an offer.
func (c *Catalog) Get(key Key) (Entry, bool) {
	entry, ok := c.entries[key]
	return entry, ok
}

// Len returns how many offers there are.
func (c *Catalog) Len() int { return len(c.entries) }

// All returns the offers in the order of their keys. The catalog must not change meanwhile.
func (c *Catalog) All() iter.Seq[Entry] {
	return func(yield func(Entry) bool) {
		for _, key := range slices.SortedFunc(maps.Keys(c.entries), compareKeys) {
			if !yield(c.entries[key]) {
				return
			}
		}
	}
}

func compareKeys(a, b Key) int { return cmp.Or(cmp.Compare(a.Party, b.Party), cmp.Compare(a.ID, b.ID)) }
