// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package negotiation is the protocol by which connectors negotiate contracts with each other: the buyer's Client, and the seller's Server.
//
// Who calls is known by the key of the TLS connection, and by nothing that a request says. Terms are what the seller offers now, or they
// are refused; both sign them. What becomes of a contract is decided by package contract, and what is stored by a Store. It does not know
// Kubernetes, registries, nor what credentials are.
package negotiation

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/capacitorset/liqo-broker/pkg/trade/core/contract"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/ledger"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/offer"
	"github.com/capacitorset/liqo-broker/pkg/trade/negotiation/negotiationv1"
	"github.com/capacitorset/liqo-broker/pkg/trade/party"
)

// ErrNotOffered means that an offer is not published, or not any more.
var ErrNotOffered = errors.New("not offered")

// ErrTooMany means that a buyer has asked too often, or has too many contracts. It can try again later.
var ErrTooMany = errors.New("too many")

// Decide returns what becomes of a contract, from its record (nil if there is none) and the ledger, both as they are stored. It changes
// neither, and can be called several times for one Update.
type Decide func(record *contract.Record, books ledger.Ledger) (contract.Result, error)

// Store keeps the records of a seller and its ledger. It is called concurrently, also by several processes.
type Store interface {
	// Get returns a record; nil if there is none.
	Get(ctx context.Context, key contract.Key) (*contract.Record, error)
	// Recent returns a record as this process has seen or written it last, and false if it does not know, or the contract is over. It asks
	// nobody: what another process has just written may be missing.
	Recent(key contract.Key) (contract.Record, bool)
	// Update writes what Decide returns as contract.Result says: Before, Record and After, each only if it differs and only over what
	// Decide was given, which is called again if that has changed meanwhile. A record of version 0 is none, and is not written. It returns
	// the record that is stored then, and the error of Decide; what Decide returned beside its error is written as well.
	// It reads the ledger before the record: so what another process has written in between is found when it writes.
	Update(ctx context.Context, key contract.Key, decide Decide) (contract.Record, error)
	// Count returns how many contracts there are. What this process has written is counted, and what another one has may lag a little behind.
	Count(ctx context.Context, buyer string) (Count, error)
	// Wait returns when a record has a higher version than after, or with the error of ctx.
	Wait(ctx context.Context, key contract.Key, after int64) error
}

// CountedFor is for how long a contract that is over counts as kept, from its last change on, however long it is stored.
const CountedFor = 7 * 24 * time.Hour

// Count is how many contracts there are. Open are those in no final state, Kept all that are stored and have not been over for CountedFor,
// and Lapsed those of them as contract.Record.Lapsed.
type Count struct {
	// Open, Kept and Lapsed are those of one buyer.
	Open, Kept, Lapsed int
	// AllOpen and AllKept are those of all buyers.
	AllOpen, AllKept int
	// Bytes are those of the records that are kept of one buyer, as this process has them in memory, and AllBytes those of all.
	Bytes, AllBytes int
}

// Offers knows what this seller sells. It is called concurrently.
type Offers interface {
	// Offer returns an offer that is published now; ErrNotOffered if there is none.
	Offer(ctx context.Context, id string) (offer.Signed, error)
	// Limits returns what holds of a plan must fit into. Of a plan that is not offered any more the error is ErrNotOffered.
	Limits(ctx context.Context, offer, plan string) (ledger.Limits, error)
}

// Application is what a buyer asks for, and the offer that it is asked of: the zero one if that is not for sale any more.
type Application struct {
	Buyer party.ID
	Terms contract.Terms
	Offer offer.Offer
	// Held is what is sold to the buyer, and reserved for it, by all its other contracts.
	Held corev1.ResourceList
}

// Admission decides who may buy what. It is called concurrently.
type Admission interface {
	// Admit returns a verdict, and for Deny the reason, which the buyer is told. The error is ErrNotOffered if the offer is gone.
	Admit(ctx context.Context, application Application) (verdict contract.Verdict, reason string, err error)
}

// Credentials makes what a buyer's cluster needs to peer: a JSON value that nobody here looks at. Its errors are logged, and must not show
// a part of them; it is contract.ErrLate if the contract has begun to end meanwhile. It is called concurrently, and gives the same contract
// what is as good as before.
type Credentials interface {
	Credentials(ctx context.Context, record contract.Record) (json.RawMessage, error)
}

// Reach knows where the seller's cluster is, and tries where those of buyers are. It is called concurrently.
type Reach interface {
	// Own returns where the seller's cluster is reached. What is not known is empty.
	Own(ctx context.Context) negotiationv1.Endpoints
	// Try returns which endpoints of a buyer's cluster are not reached, by names that people know: for some seconds at most, and only where
	// the cluster of that buyer can be.
	Try(ctx context.Context, buyer party.ID, at negotiationv1.Endpoints) (unreached []string, err error)
}

// ErrNotReachable means that the seller does not reach the buyer's cluster.
var ErrNotReachable = errors.New("not reachable")

// Audit is told of each transition once it is written and before it is answered. The records have the last ones in their history: a process
// that is killed between tells nobody. It is called concurrently and must not block.
type Audit interface {
	Transition(ctx context.Context, key contract.Key, transition contract.Transition)
}

// Identify returns the party that has a key, with the longest chain of its keys that was seen: the key may be one that was replaced. The
// error is ErrStranger, or says that nobody can tell.
type Identify func(ctx context.Context, key ed25519.PublicKey) (party.Keys, error)

// ErrStranger means that no party is known to have a key.
var ErrStranger = errors.New("no known party has this key")

// ErrReplaced means that a party has had a key, and has another one now.
var ErrReplaced = errors.New("this key was replaced")
