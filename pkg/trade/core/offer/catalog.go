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

const (
	// maxFloors bounds how many offers that are gone are remembered.
	maxFloors = 1 << 13
	// entryBytes is about how much memory an entry takes besides what its offer refers to.
	entryBytes = 700
)

// Seen is what a registry, by the name that its user calls it, listed last of an offer.
type Seen struct {
	Registry string
	// Revision is less than that of the entry while the registry is behind.
	Revision int64
	// Keys is the number of the key that has signed it.
	Keys int
	// Conflict is the fingerprint of what the registry lists instead of the entry's content, under the same
	// revision; empty if there is no conflict. The seller has then signed both.
	Conflict string
}

// Entry is an offer of the catalog. It is a value that nobody changes, and no Signed: the signed text would take as much memory again.
type Entry struct {
	Offer Offer
	// Keys is the number of the seller's key that has signed it.
	Keys int
	// Fingerprint is that of the offer.
	Fingerprint string
	// Seen says which registries list the offer in any revision, in the order of their names.
	Seen []Seen
}

// standing is how a sighting stands to what the catalog knows of its offer.
type standing int

const (
	// newer: it takes the place of what is listed, if anything is.
	newer standing = iota
	// known: this is listed.
	known
	// outdated: the catalog has or had a newer revision, which stays.
	outdated
	// conflicting: the catalog has or had another content under the same revision, which stays.
	conflicting
)

// Catalog is what several registries list, each offer once: in its newest revision, and never again in an older one, also when nobody lists
// the newest one any more. The zero Catalog is empty. It must not be used concurrently.
type Catalog struct {
	entries map[Key]*kept
	// interner has offers share what they say alike: a catalog fits into little memory.
	interner Interner
	// floors are what was last known of offers that no registry lists any more, so that nobody can bring back what was
	// withdrawn or replaced.
	floors map[Key]floorOf
}

// kept is an entry, which nobody changes, with what it holds of the interner.
type kept struct {
	Entry

	holding Holding
}

// size is about how many bytes of memory it takes that no other entry shares.
func (k *kept) size() int { return entryBytes + k.holding.Size() }

// floorOf is the newest revision of an offer that is gone.
type floorOf struct {
	keys        int
	revision    int64
	fingerprint string
	// until is when no older revision can be valid any more.
	until time.Time
}

// Merge takes in a valid offer that a registry lists, if that takes no more than some bytes of memory, about. What the registry listed
// before stays otherwise. It returns how many it takes, and whether there is room for them.
func (c *Catalog) Merge(registry string, s Signed, room int) (size int, fits bool) {
	if c.entries == nil {
		c.entries, c.floors = map[Key]*kept{}, map[Key]floorOf{}
	}
	var holding Holding
	s.Offer, holding = c.interner.Hold(s.Offer)
	key, fingerprint := s.Key(), s.Fingerprint()
	now := &kept{
		Entry: Entry{
			Offer: s.Offer, Keys: s.Keys, Fingerprint: fingerprint,
			Seen: []Seen{{Registry: registry, Revision: s.Revision, Keys: s.Keys}},
		},
		holding: holding,
	}
	entry := c.entries[key]
	stands := c.compare(entry, &now.Entry)
	switch stands {
	case newer:
		size = now.size()
	case known:
		size = entry.size()
	case outdated, conflicting:
		size = entryBytes
	}
	fits = size <= room
	if stands != newer || !fits {
		c.interner.Release(holding) // Of what is listed already, the first one stays.
		if fits && entry != nil {
			c.entries[key] = entry.seenBy(now, stands == conflicting)
		}
		return size, fits
	}
	delete(c.floors, key)
	c.entries[key] = now
	if entry != nil {
		c.interner.Release(entry.holding)
		now.Seen = seenWith(entry.Seen, now.Seen[0], true)
	}
	return size, fits
}

// compare returns how a sighting stands to the entry that is there, or was there before it was gone; nil if there is none.
func (c *Catalog) compare(entry *kept, now *Entry) standing {
	keys, revision, fingerprint, listed := 0, int64(0), "", entry != nil
	if listed {
		keys, revision, fingerprint = entry.Keys, entry.Offer.Revision, entry.Fingerprint
	} else if floor, gone := c.floors[now.Offer.Key()]; gone {
		keys, revision, fingerprint = floor.keys, floor.revision, floor.fingerprint
	}
	order := cmp.Or(cmp.Compare(now.Keys, keys), cmp.Compare(now.Offer.Revision, revision))
	switch {
	case order < 0:
		return outdated
	case order == 0 && now.Fingerprint != fingerprint:
		return conflicting
	case order == 0 && listed:
		return known
	default:
		return newer
	}
}

// seenBy returns the entry with what a registry lists of it, which is nothing new, but perhaps another content.
func (k *kept) seenBy(now *kept, conflicts bool) *kept {
	seen := now.Seen[0]
	if conflicts {
		seen.Conflict = now.Fingerprint
	}
	same := *k
	same.Seen = seenWith(k.Seen, seen, false)
	return &same
}

// seenWith returns who lists an offer, with one more; renewed ends what conflicts there were.
func seenWith(all []Seen, now Seen, renewed bool) []Seen {
	all = slices.Clone(all)
	if renewed {
		for i := range all {
			all[i].Conflict = ""
		}
	}
	at, known := slices.BinarySearchFunc(all, now.Registry, func(s Seen, name string) int { return cmp.Compare(s.Registry, name) })
	if known {
		all[at] = now
		return all
	}
	return slices.Insert(all, at, now)
}

// Withdraw takes in that a registry does not list an offer any more. The offer is gone once no registry lists it in its newest revision:
// who lists an older one is behind, or wants to be.
func (c *Catalog) Withdraw(registry string, key Key) {
	entry, ok := c.entries[key]
	if !ok {
		return
	}
	rest := *entry
	rest.Seen = slices.DeleteFunc(slices.Clone(entry.Seen), func(s Seen) bool { return s.Registry == registry })
	c.entries[key] = &rest
	if !slices.ContainsFunc(rest.Seen, func(s Seen) bool {
		return s.Keys == rest.Keys && s.Revision == rest.Offer.Revision && s.Conflict == ""
	}) {
		c.remove(key)
	}
}

// Forget takes in that a registry lists nothing any more.
func (c *Catalog) Forget(registry string) {
	for key := range c.entries {
		c.Withdraw(registry, key)
	}
}

// Expire removes the offers that are over at a time, and returns them in order.
func (c *Catalog) Expire(now time.Time) []Key {
	var gone []Key
	for key, entry := range c.entries {
		if !now.Before(entry.Offer.ValidUntil) {
			gone = append(gone, key)
		}
	}
	slices.SortFunc(gone, Key.Compare)
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
	c.interner.Release(entry.holding)
	if len(c.floors) >= maxFloors { // Those go first that are over first, a quarter at once.
		oldest := slices.SortedFunc(maps.Keys(c.floors), func(a, b Key) int { return c.floors[a].until.Compare(c.floors[b].until) })
		for _, other := range oldest[:maxFloors/4] {
			delete(c.floors, other)
		}
	}
	c.floors[key] = floorOf{
		keys: entry.Keys, revision: entry.Offer.Revision, fingerprint: entry.Fingerprint, until: entry.Offer.IssuedAt.Add(maxValidity),
	}
}

// Get returns an offer.
func (c *Catalog) Get(key Key) (Entry, bool) {
	if entry, ok := c.entries[key]; ok {
		return entry.Entry, true
	}
	return Entry{}, false
}

// Len returns how many offers there are.
func (c *Catalog) Len() int { return len(c.entries) }

// Entries returns the offers in no order. What it yields stays as it is when the catalog changes, which must not be meanwhile.
func (c *Catalog) Entries() iter.Seq[*Entry] {
	return func(yield func(*Entry) bool) {
		for _, entry := range c.entries {
			if !yield(&entry.Entry) {
				return
			}
		}
	}
}

// All returns the offers in the order of their keys. The catalog must not change meanwhile.
func (c *Catalog) All() iter.Seq[Entry] {
	return func(yield func(Entry) bool) {
		for _, key := range slices.SortedFunc(maps.Keys(c.entries), Key.Compare) {
			if !yield(c.entries[key].Entry) {
				return
			}
		}
	}
}
