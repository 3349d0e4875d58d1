// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package party is how clusters and registries of the catalog know each other: by Ed25519 keys, chains of keys that followed
// one another, documents that are signed by them, and TLS connections whose ends prove that they have them.
//
// It does not know what is signed, nor which parties there are and what they may do. No certificate authority has a part in it.
package party

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base32"
	"errors"
)

// Errors for errors.Is. An error of this package is one of these, or of the caller's own arguments.
var (
	// ErrSignature: a signature, a chain of keys or a certificate is not that of the key in question.
	ErrSignature = errors.New("not signed by the key")
	// ErrDocument: something is not of the form that it has to have.
	ErrDocument = errors.New("malformed document")
)

// letters is the alphabet of IDs: base32 (RFC 4648, section 6), in lower case.
var letters = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// subjectPublicKeyInfo is what comes before the 32 bytes of an Ed25519 key in DER (RFC 8410, section 4).
const subjectPublicKeyInfo = "\x30\x2a\x30\x05\x06\x03\x2b\x65\x70\x03\x21\x00"

// ID names a party for ever: the fingerprint of its first key. It is valid as a DNS label and as a label's value in Kubernetes.
type ID string

// Fingerprint returns the SHA-256 of a key's DER SubjectPublicKeyInfo, in the form of an ID: that of a party's first key is its ID. It is
// empty if the key does not have the size of one.
func Fingerprint(key ed25519.PublicKey) string {
	if len(key) != ed25519.PublicKeySize {
		return ""
	}
	sum := sha256.Sum256(append([]byte(subjectPublicKeyInfo), key...))
	return letters.EncodeToString(sum[:])
}
