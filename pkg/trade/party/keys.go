// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package party

import (
	"crypto/ed25519"
	"crypto/sha256"
	"fmt"
	"slices"
)

// The types of the documents of which a chain of keys is made.
const (
	keyType      = "key+jws"
	rotationType = "key-rotation+jws"
)

const (
	// MaxRotations is how often a party can change its key: a chain is verified as a whole by whoever meets the party.
	MaxRotations = 16
	// maxLink bounds a link of a chain, which is a key signed once or twice, in bytes.
	maxLink = 4 << 10
)

// announcement is the payload of the first link: a key that is signed by itself.
type announcement struct {
	Key []byte `json:"key"`
}

// rotation is what the old key of a party signs.
type rotation struct {
	Party    ID     `json:"party"`
	Sequence int    `json:"sequence"` // From 1.
	Key      []byte `json:"key"`      // The new one.
	// Previous is the SHA-256 of the link before, so that no link fits into another chain.
	Previous []byte `json:"previous"`
}

// acceptance is the payload of a later link: the rotation, which the new key signs too, since nobody may give a party a key that it
// does not have.
type acceptance struct {
	Rotation string `json:"rotation"`
}

// Keys are a party's keys that followed one another, verified. The zero Keys are of nobody. They can be used concurrently.
type Keys struct {
	chain []string
	keys  []ed25519.PublicKey
}

// Announce begins the chain of a party whose first key this is; empty of the zero Key.
func (k Key) Announce() string {
	link, err := k.Sign(keyType, announcement{Key: k.Public()})
	if err != nil {
		return "" // Only without a key: what is signed has always the same form.
	}
	return link
}

// ParseKeys verifies a chain. The errors are ErrSignature and ErrDocument, and name the link.
func ParseKeys(chain []string) (Keys, error) {
	if len(chain) == 0 || len(chain) > MaxRotations+1 {
		return Keys{}, fmt.Errorf("chain of %d keys, not 1 to %d: %w", len(chain), MaxRotations+1, ErrDocument)
	}
	var k Keys
	for i, link := range chain {
		key, err := k.next(link)
		if err != nil {
			return Keys{}, fmt.Errorf("key %d of a chain: %w", i+1, err)
		}
		k.chain, k.keys = append(k.chain, link), append(k.keys, key)
	}
	return k, nil
}

// FirstKey returns the keys of a party that has proved in another way, such as by TLS, that it has a key, if this is its first one. They
// have no chain. A key of the wrong size gives the zero Keys.
func FirstKey(key ed25519.PublicKey) Keys {
	if len(key) != ed25519.PublicKeySize {
		return Keys{}
	}
	return Keys{keys: []ed25519.PublicKey{slices.Clone(key)}}
}

// Rotate adds a new key to a chain. Both keys sign. The error is ErrSignature if old is not the current key, and ErrDocument if there are
// too many, or the new one was used before: what it signed then would be valid again.
func Rotate(chain Keys, old, next Key) (Keys, error) {
	if len(chain.chain) == 0 || !chain.Current().Equal(old.Public()) {
		return Keys{}, fmt.Errorf("rotate the key of party %s: the old one is not its current key: %w", chain.ID(), ErrSignature)
	}
	previous := sha256.Sum256([]byte(chain.chain[len(chain.chain)-1]))
	inner, err := old.Sign(rotationType, rotation{
		Party: chain.ID(), Sequence: len(chain.keys), Key: next.Public(), Previous: previous[:],
	})
	if err != nil {
		return Keys{}, fmt.Errorf("rotate the key of party %s: %w", chain.ID(), err)
	}
	link, err := next.Sign(keyType, acceptance{Rotation: inner})
	if err != nil {
		return Keys{}, fmt.Errorf("rotate the key of party %s: %w", chain.ID(), err)
	}
	return ParseKeys(append(chain.Chain(), link))
}

// next returns the key that a link adds to a chain.
func (k Keys) next(link string) (ed25519.PublicKey, error) {
	if len(link) > maxLink {
		return nil, fmt.Errorf("it has %d bytes, more than %d: %w", len(link), maxLink, ErrDocument)
	}
	// Read by which key it says that it is signed, and believe it when that key has.
	payload, err := Payload(link)
	if err != nil {
		return nil, err
	}
	if len(k.keys) == 0 {
		var first announcement
		if err := Decode(payload, &first); err != nil {
			return nil, err
		}
		return first.Key, Verify(link, keyType, first.Key, &first)
	}
	var outer acceptance
	if err := Decode(payload, &outer); err != nil {
		return nil, err
	}
	var inner rotation
	if err := Verify(outer.Rotation, rotationType, k.Current(), &inner); err != nil {
		return nil, fmt.Errorf("signature of the old key: %w", err)
	}
	if err := Verify(link, keyType, inner.Key, &outer); err != nil {
		return nil, fmt.Errorf("signature of the new key: %w", err)
	}
	return inner.Key, k.fits(inner)
}

// fits returns an error if a rotation is not one of this chain's current key.
func (k Keys) fits(r rotation) error {
	previous := sha256.Sum256([]byte(k.chain[len(k.chain)-1]))
	switch {
	case r.Party != k.ID() || !slices.Equal(r.Previous, previous[:]):
		return fmt.Errorf("it belongs to another chain of keys, of party %.60q: %w", r.Party, ErrSignature)
	case r.Sequence != len(k.keys):
		return fmt.Errorf("it is rotation %d, not %d: %w", r.Sequence, len(k.keys), ErrDocument)
	case slices.ContainsFunc(k.keys, func(used ed25519.PublicKey) bool { return used.Equal(ed25519.PublicKey(r.Key)) }):
		return fmt.Errorf("its key was used before: %w", ErrDocument)
	}
	return nil
}

// ID returns the ID of the party; empty of the zero Keys.
func (k Keys) ID() ID {
	if len(k.keys) == 0 {
		return ""
	}
	return ID(Fingerprint(k.keys[0]))
}

// Current returns the newest key; nil of the zero Keys.
func (k Keys) Current() ed25519.PublicKey {
	if len(k.keys) == 0 {
		return nil
	}
	return k.keys[len(k.keys)-1]
}

// Key returns the key of a fingerprint, if the party has it now or has had it: for documents that were signed before a rotation.
func (k Keys) Key(fingerprint string) (ed25519.PublicKey, bool) {
	for _, key := range k.keys {
		if Fingerprint(key) == fingerprint {
			return key, true
		}
	}
	return nil, false
}

// Verify is the function Verify for a document that the current key has signed. It returns how many keys there are.
func (k Keys) Verify(jws, typ string, into any) (int, error) {
	return len(k.keys), Verify(jws, typ, k.Current(), into)
}

// VerifyAny is Verify for a document that any of the keys has signed. It returns how many keys there were then.
func (k Keys) VerifyAny(jws, typ string, into any) (int, error) {
	signer, err := Signer(jws)
	if err != nil {
		return 0, err
	}
	at := slices.IndexFunc(k.keys, func(key ed25519.PublicKey) bool { return Fingerprint(key) == signer })
	if at < 0 {
		return 0, fmt.Errorf("of the key %.60q, which is not one of party %s: %w", signer, k.ID(), ErrSignature)
	}
	return at + 1, Verify(jws, typ, k.keys[at], into)
}

// Chain returns what ParseKeys reads.
func (k Keys) Chain() []string { return slices.Clone(k.chain) }

// Continues reports whether these keys are those of an earlier chain, or follow them. Who remembers a chain takes another in its place
// only if it continues it: not a shorter one, whose current key may be stolen, nor one that a stolen key has led elsewhere. Every chain
// continues the zero Keys.
func (k Keys) Continues(earlier Keys) bool {
	return len(k.chain) >= len(earlier.chain) && slices.Equal(k.chain[:len(earlier.chain)], earlier.chain)
}

// Retired reports whether a document says that it is signed by a key of the party that was replaced since.
func (k Keys) Retired(jws string) bool {
	signer, err := Signer(jws)
	if err != nil || len(k.keys) == 0 {
		return false
	}
	return slices.ContainsFunc(k.keys[:len(k.keys)-1], func(key ed25519.PublicKey) bool { return Fingerprint(key) == signer })
}
