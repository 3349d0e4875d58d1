// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package party

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
)

const (
	pemType = "PRIVATE KEY"
	// maxPEM is more than the PKCS#8 form of a key, in bytes.
	maxPEM = 4 << 10
)

// Key is a private Ed25519 key. However it is printed, logged or encoded, only its fingerprint is shown; PEM gives the key itself. The
// zero Key is none: it has no fingerprint and signs nothing. It can be used concurrently.
type Key struct{ private ed25519.PrivateKey }

// GenerateKey makes a key from what it reads, such as crypto/rand.Reader.
func GenerateKey(random io.Reader) (Key, error) {
	seed := make([]byte, ed25519.SeedSize)
	if _, err := io.ReadFull(random, seed); err != nil {
		return Key{}, fmt.Errorf("generate a key: %w", err)
	}
	return Key{ed25519.NewKeyFromSeed(seed)}, nil
}

// ParseKey reads a key in the form that PEM writes: PKCS#8. Its errors are ErrDocument and do not show what was read.
func ParseKey(text []byte) (Key, error) {
	if len(text) > maxPEM {
		return Key{}, fmt.Errorf("a private key has %d bytes, more than %d: %w", len(text), maxPEM, ErrDocument)
	}
	block, _ := pem.Decode(text)
	if block == nil || block.Type != pemType {
		return Key{}, fmt.Errorf("a private key is not a PEM block %q: %w", pemType, ErrDocument)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return Key{}, fmt.Errorf("a private key is not PKCS#8: %w", ErrDocument)
	}
	private, ok := parsed.(ed25519.PrivateKey)
	if !ok {
		return Key{}, fmt.Errorf("a private key is a %T, not Ed25519: %w", parsed, ErrDocument)
	}
	return Key{private}, nil
}

// PEM returns the key itself, as PKCS#8 in PEM; nil of the zero Key.
func (k Key) PEM() []byte {
	if k.IsZero() {
		return nil
	}
	der, err := x509.MarshalPKCS8PrivateKey(k.private)
	if err != nil {
		return nil // Not of an Ed25519 key.
	}
	return pem.EncodeToMemory(&pem.Block{Type: pemType, Bytes: der})
}

// IsZero reports whether there is no key.
func (k Key) IsZero() bool { return len(k.private) != ed25519.PrivateKeySize }

// Public returns the public key; nil of the zero Key.
func (k Key) Public() ed25519.PublicKey {
	if k.IsZero() {
		return nil
	}
	public, _ := k.private.Public().(ed25519.PublicKey)
	return public
}

// ID returns the ID of the party whose first key this is; empty of the zero Key.
func (k Key) ID() ID { return ID(Fingerprint(k.Public())) }

// Fingerprint returns that of the public key; empty of the zero Key.
func (k Key) Fingerprint() string { return Fingerprint(k.Public()) }

// String returns the fingerprint.
func (k Key) String() string { return "key " + k.Fingerprint() }

// Format implements fmt.Formatter for every verb, since some show what a String method hides.
func (k Key) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, k.String()) }

// MarshalLog implements logr.Marshaler.
func (k Key) MarshalLog() any { return k.String() }

// MarshalText returns an error: a key is written by PEM, on purpose.
func (k Key) MarshalText() ([]byte, error) {
	return nil, errors.New("a private key is not written into documents")
}
