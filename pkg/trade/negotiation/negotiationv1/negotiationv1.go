// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package negotiationv1 is version 1 of what connectors say to each other to negotiate contracts: the JSON types, paths and types of
// signed documents. It has no logic, and does not know what a contract goes through.
package negotiationv1

import (
	"encoding/json"
	"time"
)

// Base is the beginning of all paths.
const Base = "/negotiation/v1"

// The types of signed documents (the header typ).
const (
	TermsType            = "terms+jws"            // Terms, signed by the buyer
	CountersignatureType = "countersignature+jws" // Countersignature, signed by the seller
)

// The types of problem documents (RFC 9457) that say why a request is refused: by the contract's state, by its terms, because the caller
// asks for too much, which it can ask for later, because its cluster is not reached, or because its key is that of nobody who is known, or
// was replaced.
const (
	ProblemUnknown  = "urn:liqo-broker:negotiation:unknown-contract"
	ProblemEarly    = "urn:liqo-broker:negotiation:too-early"
	ProblemLate     = "urn:liqo-broker:negotiation:too-late"
	ProblemRevision = "urn:liqo-broker:negotiation:revision-over"
	ProblemTerms    = "urn:liqo-broker:negotiation:other-terms"
	ProblemTooMany  = "urn:liqo-broker:negotiation:too-many"
	ProblemStranger = "urn:liqo-broker:negotiation:unknown-key"
	ProblemReplaced = "urn:liqo-broker:negotiation:replaced-key"

	ProblemNotReachable = "urn:liqo-broker:negotiation:not-reachable"
)

// Price is what is paid: offer.Price as the three texts that its schema says.
type Price struct {
	Amount   string `doc:"A decimal number."       json:"amount"   maxLength:"32"`
	Currency string `doc:"ISO 4217."               json:"currency" maxLength:"3"`
	Period   string `doc:"ISO 8601, such as PT1H." json:"period"   maxLength:"16"`
}

// Terms are what both sign. Their times are whole seconds in UTC, and their durations those of ISO 8601 with days, hours, minutes and
// seconds.
type Terms struct {
	ID            string            `doc:"Chosen by the buyer, at random; distinct among its contracts with anybody."                   json:"id"                   maxLength:"63"     minLength:"1"                   pattern:"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"`
	Buyer         string            `doc:"The party that calls."                                                                        json:"buyer"                maxLength:"52"     minLength:"52"`
	Seller        string            `doc:"The party that is called."                                                                    json:"seller"               maxLength:"52"     minLength:"52"`
	Cluster       Cluster           `doc:"The cluster of the buyer that is to use it; it cannot change."                                json:"cluster"`
	Revision      int64             `doc:"1, and higher for new terms of the same contract."                                            json:"revision"             minimum:"1"`
	Offer         string            `doc:"The ID of the offer."                                                                         json:"offer"                maxLength:"63"     minLength:"1"`
	OfferRevision int64             `json:"offerRevision"                                                                               minimum:"1"`
	OfferDigest   string            `doc:"The SHA-256 of the offer as its seller has signed it, so that it cannot change afterwards."   json:"offerDigest"          maxLength:"71"     pattern:"^sha256:[0-9a-f]{64}$"`
	Plan          string            `doc:"The ID of the plan."                                                                          json:"plan"                 maxLength:"63"     minLength:"1"`
	Resources     map[string]string `doc:"What is granted, by name of the resource."                                                    json:"resources"            maxProperties:"32" minProperties:"1"`
	Price         Price             `json:"price"`
	StartsAt      time.Time         `json:"startsAt"`
	EndsAt        time.Time         `doc:"When the seller withdraws what it grants."                                                    json:"endsAt"`
	EffectiveAt   time.Time         `doc:"From when new terms count: their signature for another size, the end before for a later one." json:"effectiveAt,omitzero"`
	Notice        string            `doc:"How long a seller that ends the contract early goes on giving, and a buyer paying."           json:"notice"               maxLength:"32"`
	Drain         string            `doc:"How long before the end the buyer begins to move its workloads away."                         json:"drain"                maxLength:"32"`
}

// Cluster is a cluster of Liqo.
type Cluster struct {
	ID   string `doc:"Liqo's cluster ID."               json:"id"   maxLength:"63" minLength:"1" pattern:"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"`
	Name string `doc:"Its name, which is not distinct." json:"name" maxLength:"63" minLength:"1" pattern:"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"`
}

// Countersignature is what the seller signs: the buyer's signed terms, as they are.
type Countersignature struct {
	Terms string `json:"terms"`
}

// QuoteRequest asks what something would cost.
type QuoteRequest struct {
	ID        string            `doc:"The ID that the contract is to have."                        json:"id"                  maxLength:"63"     minLength:"1" pattern:"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"`
	Cluster   Cluster           `doc:"The cluster of the caller that is to use it."                json:"cluster"`
	Offer     string            `json:"offer"                                                      maxLength:"63"             minLength:"1"`
	Plan      string            `json:"plan"                                                       maxLength:"63"             minLength:"1"`
	Resources map[string]string `doc:"What is needed at least; the plan's minimum if it is empty." json:"resources,omitempty" maxProperties:"32"`
	StartsAt  time.Time         `json:"startsAt"`
	EndsAt    time.Time         `json:"endsAt"`
}

// Endpoints are where a cluster is reached by one with which it is to peer. The other side tries them before it signs.
type Endpoints struct {
	Cluster   string `doc:"Liqo's ID of the cluster."                                                                          json:"cluster"             maxLength:"63"`
	Auth      string `doc:"Liqo's authentication service, as https://HOST[:PORT]."                                             json:"auth,omitempty"      maxLength:"300"`
	APIServer string `doc:"The API server, as https://HOST[:PORT]."                                                            json:"apiServer,omitempty" maxLength:"300"`
	Gateway   string `doc:"Liqo's gateway (UDP), as HOST:PORT. That of the buyer is not tried: one of two gateways is enough." json:"gateway,omitempty"   maxLength:"300"`
}

// Quote is what the seller would sell now. It holds nothing, and binds nobody.
type Quote struct {
	Terms Terms `doc:"The terms to reserve by, as they are." json:"terms"`
	// Offer is the signed offer.
	Offer   string `doc:"The offer, as its seller has signed it (JWS)."                               json:"offer"`
	Verdict string `doc:"Whether a rule allows it, somebody has to approve it, or a rule forbids it." enum:"Accept,Ask,Deny" json:"verdict"`
	Reason  string `json:"reason,omitempty"`
	// Endpoints are told to who may buy.
	Endpoints *Endpoints `doc:"Where the seller's cluster is reached; missing if a rule forbids the contract." json:"endpoints,omitempty"`
}

// Proposal asks to reserve by terms, or to change a contract to new ones.
type Proposal struct {
	Terms Terms `json:"terms"`
}

// Signature signs what is reserved or proposed.
type Signature struct {
	Signature string     `doc:"The terms, signed by the buyer (JWS)."                                                        json:"signature"           maxLength:"30000" minLength:"1"`
	Endpoints *Endpoints `doc:"Where the buyer's cluster is reached, which the seller tries before it signs the first time." json:"endpoints,omitempty"`
}

// Keys are the chain of a party's keys, from its first one to the one that it has shown on the connection.
type Keys struct {
	Keys []string `doc:"A signed document each, as the party announces them to registries." json:"keys" maxItems:"17" minItems:"1" nullable:"false"`
}

// Termination ends a contract.
type Termination struct {
	Reason string `json:"reason,omitempty" maxLength:"512"`
}

// Change is new terms that are being agreed.
type Change struct {
	Event    string    `enum:"Resize,Renew"                                     json:"event"`
	Terms    Terms     `json:"terms"`
	Until    time.Time `doc:"When the proposal lapses, and the old terms stay." json:"until"`
	Approval string    `json:"approval,omitempty"`
}

// Refusal is new terms that did not come into force.
type Refusal struct {
	Revision int64  `json:"revision"`
	Reason   string `json:"reason"`
}

// Pause is a time for which the seller has suspended a contract.
type Pause struct {
	From time.Time `json:"from"`
	To   time.Time `doc:"Missing if it lasts, or lasted until the contract was over." json:"to,omitzero"`
}

// Contract is what the seller shows to the buyer of a contract.
type Contract struct {
	ID      string `json:"id"`
	Version int64  `doc:"Grows with each change."                                                                                    json:"version"`
	State   string `enum:"Proposed,Reserved,Signed,Provisioning,Active,Resizing,Suspended,Terminating,Ended,Rejected,Expired,Failed" json:"state"`
	Reason  string `json:"reason,omitempty"`
	// Terms are missing of a contract that was terminated before it was reserved.
	Terms            *Terms    `doc:"The terms in force, or those that are reserved."                                           json:"terms,omitempty"`
	Signature        string    `doc:"The terms, signed by the buyer (JWS)."                                                     json:"signature,omitempty"`
	Countersignature string    `doc:"The buyer's signed terms, signed by the seller (JWS)."                                     json:"countersignature,omitempty"`
	Until            time.Time `doc:"When a proposal or a reservation lapses."                                                  json:"until,omitzero"`
	Ends             time.Time `doc:"When the seller withdraws what it grants."                                                 json:"ends,omitzero"`
	PaidUntil        time.Time `doc:"Until when the buyer pays: earlier than the end of the terms if either side has ended it." json:"paidUntil,omitzero"`
	Pauses           []Pause   `doc:"When the seller has suspended it: the buyer pays nothing for that."                        json:"pauses,omitempty"           maxItems:"64" nullable:"false"`
	Change           *Change   `json:"change,omitempty"`
	LastRevision     int64     `doc:"The highest revision that was ever proposed."                                              json:"lastRevision,omitempty"`
	Refused          *Refusal  `json:"refused,omitempty"`
}

// Credentials are what the buyer's cluster needs to peer with the seller's: opaque here.
type Credentials struct {
	Credentials json.RawMessage `json:"credentials"`
}
