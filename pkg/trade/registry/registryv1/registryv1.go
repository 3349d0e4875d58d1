// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package registryv1 has what passes between a registry and its parties: version 1 of the registry's API, as JSON.
//
// It is types and names alone. It does not know who may do what, nor what is in an offer.
package registryv1

import (
	"encoding/json"
	"time"
)

// Base is the beginning of all paths of version 1.
const Base = "/v1"

// The paths below the base.
const (
	PathRegistry = "/registry"
	PathParties  = "/parties"
	PathParty    = "/parties/{party}"
	PathLease    = "/parties/{party}/lease"
	PathOffers   = "/offers"
	PathOffer    = "/parties/{party}/offers/{offer}"
	PathWatch    = "/watch"
)

// PathV0 is where what is offered is in the form of the first prototype, which older user interfaces read.
const PathV0 = "/catalog"

// The paths of REAR, version 2.
const (
	PathREARFlavors      = "/api/v2/flavors"
	PathREARReservations = "/api/v2/reservations"
	PathREARPurchase     = "/api/v2/transactions/{transaction}/purchase"
)

// Bounds of what is sent.
const (
	// MaxBody bounds the body of a request, in bytes.
	MaxBody = 32 << 10
	// MaxEvent bounds an event of a watch, in bytes: an offer or a party with all its keys, with what the registry says of it.
	MaxEvent = 128 << 10
)

// TypeAnnouncement is the type of the signed document that is an [Announcement].
const TypeAnnouncement = "announcement+jws"

// Announcement is what a party says of itself, and signs with its current key.
type Announcement struct {
	// Party is its ID, which follows from its first key.
	Party string `json:"party"`
	// Revision grows with each announcement of the party.
	Revision int64 `json:"revision"`
	// Name is for people. It is not distinct.
	Name string `json:"name"`
	// Endpoint is the https URL at which its connector negotiates; empty if it sells nothing.
	Endpoint string `json:"endpoint,omitempty"`
	// Clusters are those that the party has, at most MaxClusters: with others it neither buys nor sells. No other party may name them.
	Clusters []Cluster `json:"clusters,omitempty"`
	IssuedAt time.Time `json:"issuedAt"`
}

// MaxClusters is how many clusters an announcement names at most.
const MaxClusters = 16

// Cluster is a cluster of Liqo of a party.
type Cluster struct {
	// ID is Liqo's.
	ID string `json:"id"`
	// Auth is the host, without a port, at which Liqo authenticates those that peer with it; empty if it is that of the party's endpoint.
	Auth string `json:"auth,omitempty"`
}

// Enrolment is the body by which a party announces itself.
type Enrolment struct {
	Keys         []string `doc:"The chain of the party's keys, from its first one: a signed document each, as the connector writes them."                                                               json:"keys"                   maxItems:"17"     minItems:"1"  nullable:"false"`
	Announcement string   `doc:"The announcement: a compact JWS of type announcement+jws, signed with the party's current key. Its payload has party, revision, name, endpoint, clusters and issuedAt." json:"announcement"           maxLength:"8192"  minLength:"1"`
	Token        string   `doc:"An enrolment token of the registry. With it, the party is approved at once."                                                                                            json:"token,omitempty"        maxLength:"256"`
	Certificates string   `doc:"A certificate of the party's current key, and what leads from it to one of the registry's authorities, as PEM. With it, the party is approved at once."                 json:"certificates,omitempty" maxLength:"16384"`
}

// State is what the registry has decided about a party.
type State string

// The states of a party.
const (
	Pending  State = "Pending"
	Approved State = "Approved"
	Revoked  State = "Revoked"
)

// Party is a party, as the registry knows it.
type Party struct {
	ID           string     `doc:"What the first of the party's keys makes its name."                                                             json:"id"`
	State        State      `enum:"Pending,Approved,Revoked"                                                                                      json:"state"`
	Alive        bool       `doc:"Whether the party has renewed its lease in time. What a silent party offers is withdrawn after a further time." json:"alive"`
	Keys         []string   `doc:"The chain of the party's keys."                                                                                 json:"keys"                 nullable:"false"`
	Announcement string     `doc:"What the party says of itself, as it has signed it."                                                            json:"announcement"`
	Name         string     `doc:"As announced."                                                                                                  json:"name"`
	Endpoint     string     `doc:"As announced."                                                                                                  json:"endpoint,omitempty"`
	Revision     int64      `doc:"That of the announcement."                                                                                      json:"revision"`
	Registered   int64      `doc:"The registry's revision at which it became what it is."                                                         json:"registryRevision"`
	LeaseUntil   *time.Time `doc:"Until when the party counts as alive; only the party itself is told."                                           json:"leaseUntil,omitempty"`
}

// Publication is the body by which a party publishes an offer.
type Publication struct {
	Offer string `doc:"The offer: a compact JWS of type offer+jws, signed with the party's current key." json:"offer" maxLength:"31744" minLength:"1"`
}

// Offer is an offer, as the registry says that it is: who verifies it has an offer.Signed.
type Offer struct {
	Party      string          `json:"party"`
	ID         string          `doc:"Distinct among the offers of the party."                                              json:"id"`
	Revision   int64           `doc:"As the party counts."                                                                 json:"revision"`
	Registered int64           `doc:"The registry's revision at which it became what it is."                               json:"registryRevision"`
	JWS        string          `doc:"The offer as the party has signed it. What is trusted is this alone."                 json:"offer"`
	Alive      *bool           `doc:"Whether the party is alive. It is not in events, which have the party itself."        json:"alive,omitempty"`
	Document   json.RawMessage `doc:"What is signed, readable. It is not in events, and in lists only if it is asked for." json:"document,omitempty"`
}

// Lease is until when a party counts as alive.
type Lease struct {
	Until   time.Time `json:"until"`
	Seconds int64     `doc:"How long a lease is. Who renews it three times in that is safe."                          json:"seconds"`
	Offers  int       `doc:"How many offers of the party the registry has: one that has lost some can be told again." json:"offers"`
}

// Registry is what a registry says of itself.
type Registry struct {
	Epoch        string `doc:"Which history the revisions are of. It changes when the registry begins again." json:"epoch"`
	Revision     int64  `doc:"How often something has changed."                                               json:"revision"`
	Parties      int    `json:"parties"`
	Offers       int    `json:"offers"`
	LeaseSeconds int64  `json:"leaseSeconds"`
	MaxOffers    int    `doc:"How many offers a party may have."                                              json:"maxOffers"`
	Version      string `json:"version"`
	// Caller is who asks.
	Caller *Caller `doc:"Who asks, by the key of its certificate; missing without one." json:"caller,omitempty"`
}

// Caller is who asks.
type Caller struct {
	Fingerprint string `doc:"That of the certificate's key."           json:"fingerprint"`
	Party       string `doc:"Whose key it is; empty if it is unknown." json:"party,omitempty"`
	State       State  `enum:"Pending,Approved,Revoked"                json:"state,omitempty"`
}

// The events of a watch. Those that say how far a watcher has come have an ID, which is the parameter after, or the header
// Last-Event-ID, of the watch that goes on there.
const (
	// EventSnapshot says that what the watcher knows is no more: all that there is follows, to the next bookmark. The data is a [Bookmark].
	EventSnapshot = "snapshot"
	// EventUpsert says that something is new or has changed. The data is an [Upsert].
	EventUpsert = "upsert"
	// EventDelete says that something is gone, or does not pass the watcher's filter any more. It may name what the watcher never
	// had. The data is a [Delete].
	EventDelete = "delete"
	// EventBookmark says that the watcher knows everything up to a revision. The data is a [Bookmark].
	EventBookmark = "bookmark"
	// EventHeartbeat says that nothing has happened. The data is a [Bookmark].
	EventHeartbeat = "heartbeat"
)

// Upsert is that a party or an offer is new or has changed: it has the one or the other. The party comes before its offers.
type Upsert struct {
	Party *Party `json:"party,omitempty"`
	Offer *Offer `json:"offer,omitempty"`
}

// Delete is that a party or an offer is gone. With a party all its offers are gone.
type Delete struct {
	Party      string `json:"party"`
	Offer      string `doc:"Empty if the party itself is gone." json:"offer,omitempty"`
	Registered int64  `json:"registryRevision"`
}

// Bookmark is how far a watcher has come.
type Bookmark struct {
	Revision int64 `json:"revision"`
}
