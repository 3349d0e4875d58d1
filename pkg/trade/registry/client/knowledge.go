// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/offer"
	"github.com/capacitorset/liqo-broker/pkg/trade/party"
	"github.com/capacitorset/liqo-broker/pkg/trade/registry/registryv1"
)

// What a registry may not say. errors.Is finds them in a [MisbehaviourError].
var (
	// ErrForged means that a document is not signed with the current key of its owner, or cannot be read.
	ErrForged = errors.New("it is not what its owner has signed")
	// ErrForeign means that a document is signed by its owner, and is about another party or another offer than the registry says.
	ErrForeign = errors.New("it is about something else")
	// ErrOlder means that a document is older than one that was seen before.
	ErrOlder = errors.New("it is older than what was seen before")
	// ErrTwo means that there are two documents of one revision.
	ErrTwo = errors.New("it is another one than was seen before with the same revision")
	// ErrTooMany means that the registry shows more than anybody can want to know.
	ErrTooMany = errors.New("there are too many")
	// ErrNobody means that the registry shows an offer of a party that it does not show.
	ErrNobody = errors.New("its owner is not known")
)

var (
	// errOver means that an offer is true, and not valid any more, or that it is signed with a key that its owner has replaced.
	errOver = errors.New("it is not valid any more")
	// errLeftOut means that the owner of an offer was left out.
	errLeftOut = errors.New("its owner was left out")
)

// MisbehaviourError is something that a registry says and that is not believed.
type MisbehaviourError struct {
	// Registry is the URL of the registry.
	Registry string
	// Key is what the registry says that it is about.
	Key offer.Key
	// Reason is why it is not believed.
	Reason error
}

// Error is what the registry says, and why it is not believed.
func (m *MisbehaviourError) Error() string {
	what := fmt.Sprintf("party %.60q", m.Key.Party)
	if m.Key.Offer != "" {
		what = fmt.Sprintf("offer %.64q of %s", m.Key.Offer, what)
	}
	return fmt.Sprintf("the registry %s shows the %s, which is not believed: %v", m.Registry, what, m.Reason)
}

// Unwrap returns why it is not believed.
func (m *MisbehaviourError) Unwrap() error { return m.Reason }

// Party is a party, verified.
type Party struct {
	// Said is what the party has signed.
	Said registryv1.Announcement
	// Keys are the keys of the party.
	Keys party.Keys
	// Announcement is the signed announcement.
	Announcement string
	// Alive is whether the registry has heard of it recently: that is the registry's word alone.
	Alive bool
}

// AuthHost returns the host at which Liqo authenticates those that peer with a cluster of the party, in small letters: that of its
// endpoint, unless it has announced another one for the cluster; empty if it has announced neither.
func (p Party) AuthHost(of cluster.ID) string {
	for _, c := range p.Said.Clusters {
		if c.ID == string(of) && c.Auth != "" {
			return strings.ToLower(c.Auth)
		}
	}
	endpoint, err := party.ParseEndpoint(p.Said.Endpoint)
	if err != nil {
		return ""
	}
	return strings.ToLower(endpoint.Hostname())
}

// knowledge is what a watcher has verified. It is for one goroutine.
type knowledge struct {
	parties map[string]*seen
	offers  map[offer.Key]mark
	// goneParties and goneOffers are how many of them are gone.
	goneParties, goneOffers int
	// left is what is shown and was left out, or some of it if that is much.
	left map[offer.Key]struct{}
}

// seen is what is kept of a party.
type seen struct {
	*Party

	// there is false if the party is gone: it may come back, and not as an older one. It is left if it was left out.
	there, left bool
}

// mark is what is kept of an offer.
type mark struct {
	revision int64
	digest   [sha256.Size]byte
	// keys is how many keys its owner had that had signed it.
	keys int
	// there is false if the offer is gone: it may come back, and not as an older one.
	there bool
}

const (
	// maxParties and maxOffers bound what a registry can make a watcher keep: it can make parties of its own, as many as it likes.
	maxParties, maxOffers = 1 << 14, 1 << 17
	// maxGoneParties and maxGoneOffers bound how much of it is kept that is gone. A party has up to 32 KiB.
	maxGoneParties, maxGoneOffers = 64, 1 << 13
	// maxLeft bounds how much of what is left out is known by its name.
	maxLeft = 1 << 12
)

func newKnowledge() *knowledge {
	return &knowledge{parties: map[string]*seen{}, offers: map[offer.Key]mark{}, left: map[offer.Key]struct{}{}}
}

// keys returns what is there.
func (k *knowledge) keys() map[offer.Key]bool {
	all := make(map[offer.Key]bool, len(k.offers)+len(k.parties))
	for id, p := range k.parties {
		if p.there {
			all[offer.Key{Party: id}] = true
		}
	}
	for key, m := range k.offers {
		if m.there {
			all[key] = true
		}
	}
	return all
}

// party verifies a party. It is news unless it was known as it is.
func (k *knowledge) party(p *registryv1.Party) (verified *Party, news bool, err error) {
	keys, err := party.ParseKeys(p.Keys)
	if err != nil {
		return nil, false, fmt.Errorf("%w: its keys: %w", ErrForged, err)
	}
	if string(keys.ID()) != p.ID {
		return nil, false, fmt.Errorf("%w: the keys are those of %s", ErrForeign, keys.ID())
	}
	now := &Party{Keys: keys, Announcement: p.Announcement, Alive: p.Alive}
	if err := party.Verify(p.Announcement, registryv1.TypeAnnouncement, keys.Current(), &now.Said); err != nil {
		return nil, false, fmt.Errorf("%w: its announcement: %w", ErrForged, err)
	}
	if now.Said.Party != p.ID {
		return nil, false, fmt.Errorf("%w: the announcement is that of %.60q", ErrForeign, now.Said.Party)
	}
	before := k.parties[p.ID]
	switch {
	case before != nil:
		if err := now.follows(before.Party); err != nil {
			return nil, false, err
		}
		news = !before.there || before.Announcement != now.Announcement || before.Alive != now.Alive ||
			len(before.Keys.Chain()) != len(keys.Chain())
	case len(k.parties) >= maxParties:
		return nil, false, fmt.Errorf("%w: %d parties are known", ErrTooMany, len(k.parties))
	}
	if before != nil && !before.there {
		k.goneParties--
	}
	k.parties[p.ID] = &seen{Party: now, there: true}
	return now, news || before == nil, nil
}

// follows returns why a party cannot be what another one has become.
func (p *Party) follows(before *Party) error {
	old, chain := before.Keys.Chain(), p.Keys.Chain()
	same := len(chain) == len(old) // Who has stolen the old key, and announces the highest revision with it, is replaced with the key.
	switch {
	case len(chain) < len(old) || same && p.Said.Revision < before.Said.Revision:
		return fmt.Errorf("%w: announcement %d with %d keys, after announcement %d with %d keys", ErrOlder, p.Said.Revision, len(chain),
			before.Said.Revision, len(old))
	case !slices.Equal(chain[:len(old)], old):
		return fmt.Errorf("%w: its keys are not those that were seen before", ErrTwo)
	case same && p.Said.Revision == before.Said.Revision && p.Announcement != before.Announcement:
		return fmt.Errorf("%w: announcement %d", ErrTwo, p.Said.Revision)
	}
	return nil
}

// offer verifies an offer. It is news unless it was known as it is. The error is errOver if it is true, and of no use.
func (k *knowledge) offer(o *registryv1.Offer, now time.Time) (verified *offer.Signed, news bool, err error) {
	owner := k.parties[o.Party]
	switch {
	case owner != nil && owner.there:
	case owner != nil && owner.left || owner == nil && len(k.left) > 0: // Of those that are left out not all are known.
		return nil, false, errLeftOut
	default:
		return nil, false, ErrNobody
	}
	key, digest := offer.Key{Party: o.Party, Offer: o.ID}, sha256.Sum256([]byte(o.JWS))
	before, known := k.offers[key]
	chain := len(owner.Keys.Chain())
	read, err := verify(o, owner.Party)
	switch {
	case errors.Is(err, errOver) && before.there && before.keys == chain:
		return nil, false, fmt.Errorf("%w: it is signed with a key that was replaced", ErrOlder)
	case err != nil:
		return nil, false, err
	case known && before.keys == chain && read.Revision < before.revision:
		return nil, false, fmt.Errorf("%w: revision %d after %d", ErrOlder, read.Revision, before.revision)
	case known && before.keys == chain && read.Revision == before.revision && digest != before.digest:
		return nil, false, fmt.Errorf("%w: revision %d", ErrTwo, read.Revision)
	case !known && !k.room():
		return nil, false, fmt.Errorf("%w: %d offers are known", ErrTooMany, len(k.offers))
	}
	if known && !before.there {
		k.goneOffers--
	}
	k.offers[key] = mark{revision: read.Revision, digest: digest, keys: chain, there: true}
	if err := read.Validate(now); err != nil {
		return nil, false, errOver
	}
	return &read, !known || !before.there || before.digest != digest, nil
}

// verify reads what the owner of an offer has signed.
func verify(o *registryv1.Offer, owner *Party) (offer.Signed, error) {
	read, err := offer.ReadSigned(o.JWS, owner.Keys.Verify)
	switch {
	case err != nil && owner.Keys.Retired(o.JWS):
		return offer.Signed{}, errOver
	case err != nil:
		return offer.Signed{}, fmt.Errorf("%w: %w", ErrForged, err)
	case read.Party != o.Party || read.ID != o.ID:
		return offer.Signed{}, fmt.Errorf("%w: offer %.64q of party %.60q", ErrForeign, read.ID, read.Party)
	}
	return read, nil
}

// room reports whether one more offer may be kept. Those that are gone make room.
func (k *knowledge) room() bool {
	if len(k.offers) >= maxOffers {
		k.prune(0, 0)
	}
	return len(k.offers) < maxOffers
}

// prune removes what is gone, until no more than that is left of it.
func (k *knowledge) prune(parties, offers int) {
	for key, m := range k.offers {
		if k.goneOffers <= offers {
			break
		}
		if !m.there {
			delete(k.offers, key)
			k.goneOffers--
		}
	}
	for id, p := range k.parties {
		if k.goneParties <= parties {
			break
		}
		if !p.there {
			delete(k.parties, id)
			k.goneParties--
		}
	}
}

// leave notes that something was left out, and returns what was there.
func (k *knowledge) leave(key offer.Key) []offer.Key {
	if len(k.left) < maxLeft {
		k.left[key] = struct{}{}
	}
	gone := k.forgetKey(key)
	if p := k.parties[key.Party]; p != nil && key.Offer == "" {
		p.left = true
	}
	return gone
}

// replaced returns the offers that a party has signed with keys that it has replaced.
func (k *knowledge) replaced(p *Party) (all []offer.Key) {
	for key, m := range k.offers {
		if key.Party == p.Said.Party && m.there && m.keys < len(p.Keys.Chain()) {
			all = append(all, key)
		}
	}
	return all
}

// forgetKey notes that something is not there any more, and returns what was.
func (k *knowledge) forgetKey(key offer.Key) []offer.Key {
	var gone []offer.Key
	if key.Offer != "" {
		if !k.forgetOffer(key) {
			return nil
		}
		gone = []offer.Key{key}
	} else {
		p := k.parties[key.Party]
		if p == nil || !p.there {
			return nil
		}
		p.there = false
		k.goneParties++
		gone = []offer.Key{key}
		for of, m := range k.offers {
			if of.Party == key.Party && m.there && k.forgetOffer(of) {
				gone = append(gone, of)
			}
		}
	}
	if k.goneParties > maxGoneParties || k.goneOffers > maxGoneOffers { // Half of it, so that this is seldom.
		k.prune(maxGoneParties/2, maxGoneOffers/2)
	}
	return gone
}

// forgetOffer notes that an offer is not there any more, and reports whether it was.
func (k *knowledge) forgetOffer(key offer.Key) bool {
	m := k.offers[key]
	if !m.there {
		return false
	}
	m.there = false
	k.offers[key] = m
	k.goneOffers++
	return true
}
