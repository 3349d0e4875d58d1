// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"errors"
	"time"
)

// Errors that callers tell apart with errors.Is. The message around them names the party, the offer or the token.
var (
	// ErrInvalid is about a value that the store takes from nobody: too long, empty, or not text.
	ErrInvalid = errors.New("invalid")
	// ErrNotFound is about a party, an offer or a token that is not there.
	ErrNotFound = errors.New("not found")
	// ErrExists is about a token that is there already.
	ErrExists = errors.New("exists already")
	// ErrStale is about a document that is older than the one that is stored, or another one with the same revision.
	ErrStale = errors.New("the revision must grow")
	// ErrChain is about a chain of keys that does not continue the one that is stored.
	ErrChain = errors.New("the chain of keys does not continue the one that is known")
	// ErrKey is about a key that is another party's current or first one.
	ErrKey = errors.New("the key is another party's")
	// ErrNotApproved is about a party that waits for approval.
	ErrNotApproved = errors.New("the party is not approved")
	// ErrRevoked is about a party that was revoked, which is final.
	ErrRevoked = errors.New("the party is revoked")
	// ErrLimit is about one more than there may be.
	ErrLimit = errors.New("limit reached")
	// ErrToken is about a token that is unknown, expired or used up; the message says which.
	ErrToken = errors.New("the token admits nobody")
	// ErrCompacted is about a revision from which changes cannot be told any more, or that this database has not reached: take a Snapshot.
	ErrCompacted = errors.New("changes after this revision are not known")
	// ErrForeign is about a database that holds something else.
	ErrForeign = errors.New("not the database of a registry")
	// ErrNewer is about a database that a newer program has migrated.
	ErrNewer = errors.New("the schema of the database is newer than this program")
)

// What the store takes at most, in bytes. Whoever calls has smaller bounds: these keep a mistake there from filling the database.
const (
	MaxDocument = 64 << 10 // a signed document, and a chain of keys
	MaxText     = 1 << 10  // IDs, names, endpoints, comments
)

// MaxWaitingEach is how many parties of one network wait for approval at most.
const MaxWaitingEach = 16

const (
	// OpenRegistry is by which a party is enrolled that nobody has let in.
	OpenRegistry = "open registry"
	// MaxOpen is how many such parties there are at most.
	MaxOpen = 16_384
	// MaxOpenEach is how many of them there are of one network at most.
	MaxOpenEach = 1024
)

// State says what a party may do.
type State string

// The states of a party.
const (
	Pending  State = "Pending"  // It waits for an administrator, and may publish nothing.
	Approved State = "Approved" // It may publish.
	Revoked  State = "Revoked"  // It was put out, for ever: it comes back with another first key only.
)

// Party is a cluster or a user as the registry knows it.
type Party struct {
	ID    string
	State State

	Announcement string   // the signed announcement, as it came
	Revision     int64    // of the announcement; it grows, and begins again with each key
	Keys         []string // the chain of keys, which only grows at its end
	CurrentKey   string   // the fingerprint of the last of them; no other party's, and no other party's ID
	Name         string
	Endpoint     string

	EnrolledBy string    // how it was admitted, for people
	EnrolledAt time.Time // when it was first seen
	Network    string    // from which it was first seen; empty if that is not known
	LeaseUntil time.Time // zero: it never had a lease
	Silent     bool      // its lease ran out, and MarkSilent has noted it

	RegistryRevision int64 // of its last change; a renewed lease is none
}

// StoredOffer is a signed offer of a party, as a row. It is no offer.Signed: a store reads no document, and verifies nothing.
type StoredOffer struct {
	Party, ID  string
	Keys       int    // the length of the party's chain, at whose end is the key that has signed the document
	Revision   int64  // of the document; it grows, and begins again with each key
	JWS        string // the signed document, as it came
	Digest     string // SHA-256 of JWS in hexadecimal digits; the store computes it
	ValidUntil time.Time

	RegistryRevision int64 // of its last change
}

// Token admits parties without an administrator. The store knows the digest of its secret only.
type Token struct {
	Digest    string // as Digest returns it
	Uses      int64  // how many parties it still admits
	ExpiresAt time.Time
	CreatedAt time.Time
	Comment   string
}

// Kind says what a Change is about.
type Kind string

// The kinds of changes.
const (
	Upsert       Kind = "upsert"        // An offer is new, or has a new revision.
	Delete       Kind = "delete"        // An offer is gone: deleted, expired, or dropped with its party.
	PartyUpsert  Kind = "party"         // A party is new, or something that it says or may do has changed.
	PartyDeleted Kind = "party-deleted" // A party that was never approved is forgotten.
)

// Change is the last thing that happened to an offer or to a party.
type Change struct {
	RegistryRevision int64
	Kind             Kind
	PartyID          string
	OfferID          string // empty if Kind is about a party

	Offer *StoredOffer // if Kind is Upsert
	Party *Party       // if Kind is PartyUpsert
}

// Snapshot is all parties and all offers at one revision, in the order of their IDs.
type Snapshot struct {
	Eras     []Era // as Store.Eras
	Revision int64
	Parties  []Party
	Offers   []StoredOffer
}
