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

// The types of problem documents (RFC 9457) that say why a contract's state does not allow a request.
const (
	ProblemUnknown  = "urn:liqo-broker:negotiation:unknown-contract"
	ProblemEarly    = "urn:liqo-broker:negotiation:too-early"
	ProblemLate     = "urn:liqo-broker:negotiation:too-late"
	ProblemRevision = "urn:liqo-broker:negotiation:revision-over"
	ProblemTerms    = "urn:liqo-broker:negotiation:other-terms"
)

// Price is what is paid, as in the plan of an offer.
type Price struct {
	Amount   string `json:"amount" maxLength:"32" doc:"A decimal number."`
	Currency string `json:"currency" maxLength:"3" doc:"ISO 4217."`
	Period   string `json:"period" maxLength:"16" doc:"ISO 8601, such as PT1H."`
}

// Terms are what both sign. Their times are whole seconds in UTC, and their durations those of ISO 8601 with days, hours, minutes and seconds.
type Terms struct {
	ID            string            `json:"id" minLength:"1" maxLength:"63" pattern:"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$" doc:"Chosen by the buyer, at random; distinct among its contracts with anybody."`
	Buyer         string            `json:"buyer" minLength:"52" maxLength:"52" doc:"The party that calls."`
	Seller        string            `json:"seller" minLength:"52" maxLength:"52" doc:"The party that is called."`
	Revision      int64             `json:"revision" minimum:"1" doc:"1, and higher for new terms of the same contract."`
	Offer         string            `json:"offer" minLength:"1" maxLength:"63" doc:"The ID of the offer."`
	OfferRevision int64             `json:"offerRevision" minimum:"1"`
	OfferDigest   string            `json:"offerDigest" maxLength:"71" pattern:"^sha256:[0-9a-f]{64}$" doc:"The SHA-256 of the offer as its seller has signed it, so that it cannot change afterwards."`
	Plan          string            `json:"plan" minLength:"1" maxLength:"63" doc:"The ID of the plan."`
	Units         int64             `json:"units" minimum:"1" maximum:"1" doc:"A contract takes one of the plan's stock."`
	Resources     map[string]string `json:"resources" minProperties:"1" maxProperties:"32" doc:"What is granted, by name of the resource."`
	Price         Price             `json:"price"`
	StartsAt      time.Time         `json:"startsAt"`
	EndsAt        time.Time         `json:"endsAt" doc:"When the seller withdraws what it grants."`
	Notice        string            `json:"notice" maxLength:"32" doc:"How long before the end a seller that ends the contract says so."`
	Drain         string            `json:"drain" maxLength:"32" doc:"How long before the end the buyer begins to move its workloads away."`
	Mode          string            `json:"mode,omitempty" maxLength:"63" doc:"The mode that a broker grants."`
	Reserved      map[string]string `json:"reserved,omitempty" maxProperties:"32" doc:"What a broker reserves."`
	Limit         map[string]string `json:"limit,omitempty" maxProperties:"32" doc:"What a broker grants at most."`
}

// Countersignature is what the seller signs: the buyer's signed terms, as they are.
type Countersignature struct {
	Terms string `json:"terms"`
}

// QuoteRequest asks what something would cost.
type QuoteRequest struct {
	ID        string            `json:"id" minLength:"1" maxLength:"63" pattern:"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$" doc:"The ID that the contract is to have."`
	Offer     string            `json:"offer" minLength:"1" maxLength:"63"`
	Plan      string            `json:"plan" minLength:"1" maxLength:"63"`
	Resources map[string]string `json:"resources,omitempty" maxProperties:"32" doc:"What is needed at least; the plan's minimum if it is empty."`
	StartsAt  time.Time         `json:"startsAt"`
	EndsAt    time.Time         `json:"endsAt"`
}

// Quote is what the seller would sell now. It holds nothing, and binds nobody.
type Quote struct {
	Terms Terms `json:"terms" doc:"The terms to reserve by, as they are."`
	// Offer is the signed offer.
	Offer   string `json:"offer" doc:"The offer, as its seller has signed it (JWS)."`
	Verdict string `json:"verdict" enum:"Accept,Ask,Deny" doc:"Whether a rule allows it, somebody has to approve it, or a rule forbids it."`
	Reason  string `json:"reason,omitempty"`
}

// Proposal asks to reserve by terms, or to change a contract to new ones.
type Proposal struct {
	Terms Terms `json:"terms"`
}

// Signature signs what is reserved or proposed.
type Signature struct {
	Signature string `json:"signature" minLength:"1" maxLength:"30000" doc:"The terms, signed by the buyer (JWS)."`
}

// Termination ends a contract.
type Termination struct {
	Reason string `json:"reason,omitempty" maxLength:"512"`
}

// Change is new terms that are being agreed.
type Change struct {
	Event    string    `json:"event" enum:"Resize,Renew"`
	Terms    Terms     `json:"terms"`
	Until    time.Time `json:"until" doc:"When the proposal lapses, and the old terms stay."`
	Approval string    `json:"approval,omitempty"`
}

// Refusal is new terms that did not come into force.
type Refusal struct {
	Revision int64  `json:"revision"`
	Reason   string `json:"reason"`
}

// Contract is what the seller shows to the buyer of a contract.
type Contract struct {
	ID      string `json:"id"`
	Version int64  `json:"version" doc:"Grows with each change."`
	State   string `json:"state" enum:"Proposed,Reserved,Signed,Provisioning,Active,Resizing,Suspended,Terminating,Ended,Rejected,Expired,Failed"`
	Reason  string `json:"reason,omitempty"`
	// Terms are missing of a contract that was terminated before it was reserved.
	Terms            *Terms    `json:"terms,omitempty" doc:"The terms in force, or those that are reserved."`
	Signature        string    `json:"signature,omitempty" doc:"The terms, signed by the buyer (JWS)."`
	Countersignature string    `json:"countersignature,omitempty" doc:"The buyer's signed terms, signed by the seller (JWS)."`
	Until            time.Time `json:"until,omitzero" doc:"When a proposal or a reservation lapses."`
	Ends             time.Time `json:"ends,omitzero" doc:"When the seller withdraws what it grants."`
	Change           *Change   `json:"change,omitempty"`
	LastRevision     int64     `json:"lastRevision,omitempty" doc:"The highest revision that was ever proposed."`
	Refused          *Refusal  `json:"refused,omitempty"`
}

// Credentials are what the buyer's cluster needs to peer with the seller's: opaque here.
type Credentials struct {
	Credentials json.RawMessage `json:"credentials"`
}
