// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/core/ledger"
)

const (
	// maxText bounds names in terms, which are party IDs, DNS labels and digests.
	maxText = 253
	// maxReason bounds reasons in records, in bytes.
	maxReason = 512
	// maxHistory bounds the transitions that a record remembers.
	maxHistory = 32
	// maxDuration bounds notice and drain.
	maxDuration = 366 * 24 * time.Hour
)

// Key names a contract: its buyer, and the ID that the buyer has chosen.
type Key = ledger.Key

// Price is what a buyer pays, as the plan says it.
type Price struct {
	Amount   string `json:"amount"`
	Currency string `json:"currency"`
	Period   string `json:"period"`
}

// Terms are what both sign. Times are in whole seconds, in UTC.
type Terms struct {
	ID     string `json:"id"`
	Buyer  string `json:"buyer"`
	Seller string `json:"seller"`
	// Revision counts the terms of this contract, from 1: new terms have a higher one.
	Revision int64 `json:"revision"`
	// Cluster is for which of the buyer's clusters it is: a contract gives nothing to others.
	Cluster cluster.Identity `json:"cluster"`

	Offer         string `json:"offer"`
	OfferRevision int64  `json:"offerRevision"`
	OfferDigest   string `json:"offerDigest"`
	Plan          string `json:"plan"`
	// Units is how many of the plan's stock the buyer takes, and Resources what it is granted for all of them.
	Units     int64               `json:"units"`
	Resources corev1.ResourceList `json:"resources"`
	Price     Price               `json:"price"`

	StartsAt time.Time `json:"startsAt"`
	// EndsAt is when the seller withdraws what it grants.
	EndsAt time.Time `json:"endsAt"`
	// Notice is how long before the end a seller that ends the contract must say so.
	Notice time.Duration `json:"notice"`
	// Drain is how long before the end the buyer begins to move its workloads away.
	Drain time.Duration `json:"drain"`

	// Mode, Reserved and Limit are what a broker that sells what it aggregates grants its consumer beside Resources.
	Mode     string              `json:"mode,omitempty"`
	Reserved corev1.ResourceList `json:"reserved,omitempty"`
	Limit    corev1.ResourceList `json:"limit,omitempty"`
}

// Key returns the name of the contract.
func (t Terms) Key() Key { return Key{Buyer: t.Buyer, ID: t.ID} }

// Size returns what the terms take from stock and capacity.
func (t Terms) Size() ledger.Size { return ledger.Size{Units: t.Units, Resources: t.Resources} }

// Equal reports whether two terms say the same, however quantities and times are written.
func (t Terms) Equal(other Terms) bool {
	same := t.Size().Equal(other.Size()) && equal(t.Reserved, other.Reserved) && equal(t.Limit, other.Limit) &&
		t.StartsAt.Equal(other.StartsAt) && t.EndsAt.Equal(other.EndsAt)
	return same && t.ID == other.ID && t.Cluster == other.Cluster && t.Buyer == other.Buyer && t.Seller == other.Seller && t.Revision == other.Revision &&
		t.Offer == other.Offer && t.OfferRevision == other.OfferRevision && t.OfferDigest == other.OfferDigest && t.Plan == other.Plan &&
		t.Price == other.Price && t.Notice == other.Notice && t.Drain == other.Drain && t.Mode == other.Mode
}

func equal(a, b corev1.ResourceList) bool {
	return ledger.Size{Resources: a}.Equal(ledger.Size{Resources: b})
}

// Validate returns an error that is ErrTerms if the terms make no sense by themselves. Whether they are those of an offer is for
// whoever knows it.
func (t Terms) Validate() error {
	for name, text := range map[string]string{
		"id": t.ID, "buyer": t.Buyer, "seller": t.Seller, "offer": t.Offer, "plan": t.Plan, "offerDigest": t.OfferDigest,
	} {
		if text == "" || len(text) > maxText || !utf8.ValidString(text) {
			return fmt.Errorf("%s has %d bytes, not 1 to %d of UTF-8: %w", name, len(text), maxText, ErrTerms)
		}
	}
	for name, text := range map[string]string{"mode": t.Mode, "amount": t.Price.Amount, "currency": t.Price.Currency, "period": t.Price.Period} {
		if len(text) > maxText || !utf8.ValidString(text) {
			return fmt.Errorf("%s has %d bytes, not up to %d of UTF-8: %w", name, len(text), maxText, ErrTerms)
		}
	}
	for name, list := range map[string]corev1.ResourceList{"resources": t.Resources, "reserved": t.Reserved, "limit": t.Limit} {
		if err := (ledger.Size{Units: t.Units, Resources: list}).Validate(); err != nil {
			return fmt.Errorf("%s: %w: %w", name, err, ErrTerms)
		}
	}
	for name, text := range map[string]string{"cluster.id": string(t.Cluster.ID), "cluster.name": t.Cluster.Name} {
		if len(validation.IsDNS1123Label(text)) > 0 {
			return fmt.Errorf("%s %.63q is not a label of DNS: %w", name, text, ErrTerms)
		}
	}
	switch {
	case len(t.Resources) == 0:
		return fmt.Errorf("resources are empty: %w", ErrTerms)
	case t.Revision < 1:
		return fmt.Errorf("revision is %d, not above 0: %w", t.Revision, ErrTerms)
	case t.Notice < 0 || t.Notice > maxDuration:
		return fmt.Errorf("notice is %s, not 0 to %s: %w", t.Notice, maxDuration, ErrTerms)
	case t.Drain < 0 || t.Drain > maxDuration:
		return fmt.Errorf("drain is %s, not 0 to %s: %w", t.Drain, maxDuration, ErrTerms)
	case !t.EndsAt.Add(-t.Drain).After(t.StartsAt):
		return fmt.Errorf("endsAt %s leaves no time after startsAt %s and before a drain of %s: %w", t.EndsAt, t.StartsAt, t.Drain, ErrTerms)
	}
	return nil
}

// Approval is whether somebody at the seller has to allow terms by hand.
type Approval string

// The approvals; that of terms which a rule has allowed is empty.
const (
	Pending  Approval = "Pending"
	Approved Approval = "Approved"
)

// Change is new terms that are being agreed.
type Change struct {
	Event Event `json:"event"` // Resize or Renew
	Terms Terms `json:"terms"`
	// Until is when the proposal lapses, and the old terms stay.
	Until    time.Time `json:"until"`
	Approval Approval  `json:"approval,omitempty"`
}

// Refusal is new terms that did not come into force, and why.
type Refusal struct {
	Revision int64  `json:"revision"`
	Reason   string `json:"reason"`
}

// Transition is an entry of the audit trail.
type Transition struct {
	At       time.Time `json:"at"`
	Event    Event     `json:"event"`
	From     State     `json:"from,omitempty"`
	To       State     `json:"to"`
	Revision int64     `json:"revision,omitempty"` // of the terms in force
	Reason   string    `json:"reason,omitempty"`
}

// View is what a seller shows to the buyer of a contract: all that both have to agree about. The zero View is that of a contract that
// the seller does not know.
type View struct {
	Key Key `json:"key"`
	// Version counts what was written, so that an older view that arrives later is known as such.
	Version int64  `json:"version"`
	State   State  `json:"state"`
	Reason  string `json:"reason,omitempty"`
	// Terms are those in force, or those that are reserved. Signature is the buyer's, Countersignature the seller's.
	Terms            Terms  `json:"terms"`
	Signature        string `json:"signature,omitempty"`
	Countersignature string `json:"countersignature,omitempty"`
	// Until is when a proposal or reservation lapses.
	Until time.Time `json:"until,omitzero"`
	// Ends is when the seller withdraws: the end of the terms, or earlier after notice.
	Ends   time.Time `json:"ends,omitzero"`
	Change *Change   `json:"change,omitempty"`
	// LastRevision is the highest that was ever proposed; it never comes again. Refused is the last that did not come into force.
	LastRevision int64    `json:"lastRevision,omitempty"`
	Refused      *Refusal `json:"refused,omitempty"`
}

// Signed reports whether both have signed.
func (v View) Signed() bool { return v.Countersignature != "" }

// Record is all that a seller knows of a contract.
type Record struct {
	View     `json:",inline"`
	Approval Approval `json:"approval,omitempty"`
	// Notified is whether the seller has given notice.
	Notified bool `json:"notified,omitempty"`
	// Withdrawn is whether nothing is left of what was granted; until then a contract that is over still holds it.
	Withdrawn bool         `json:"withdrawn,omitempty"`
	History   []Transition `json:"history,omitempty"`
}

// Granted returns what the seller gives the buyer now; nil is nothing. Nothing is granted before both have signed, after the end, and
// while the contract is suspended.
func (r Record) Granted() corev1.ResourceList {
	switch r.State { //nolint:exhaustive // The others need nothing, or the default.
	case Signed, Provisioning, Active, Resizing, Terminating:
		return r.Terms.Resources
	}
	return nil
}

// Duty is what a seller has to do for a contract, and then to tell it by an event.
type Duty string

// The duties.
const (
	NoDuty         Duty = ""
	GrantDuty      Duty = "Grant"      // grant it, then Grant or Fail
	WithdrawDuty   Duty = "Withdraw"   // withdraw what was granted, then Withdrawn
	SuspensionDuty Duty = "Suspension" // give nothing, until it is resumed; tells nothing
)

// Duty returns what the seller has to do.
func (r Record) Duty() Duty {
	switch {
	case r.State == Signed:
		return GrantDuty
	case r.State == Suspended:
		return SuspensionDuty
	case r.State.Final() && r.Signed() && !r.Withdrawn:
		return WithdrawDuty
	}
	return NoDuty
}

// hold returns what the record needs in the ledger, if anything.
func (r Record) hold() (ledger.Hold, bool) {
	hold := ledger.Hold{Key: r.Key, Offer: r.Terms.Offer, Plan: r.Terms.Plan, Size: r.Terms.Size()}
	switch {
	case r.State == Reserved:
		hold.Until = r.Until
	case r.State == None || r.State == Proposed || r.State.Final() && r.Duty() != WithdrawDuty:
		return ledger.Hold{}, false
	case r.Change != nil && r.Change.Approval != Pending:
		next := r.Change.Terms.Size()
		hold.Next, hold.NextUntil = &next, r.Change.Until
	}
	return hold, true
}

// remember adds to a history, and forgets the oldest.
func remember(history []Transition, entry Transition) []Transition {
	history = append(slices.Clone(history), entry)
	return history[max(0, len(history)-maxHistory):]
}

// short bounds a reason, and keeps it text.
func short(reason string) string {
	if len(reason) <= maxReason {
		return reason
	}
	end := maxReason
	for end > 0 && !utf8.RuneStart(reason[end]) {
		end--
	}
	return reason[:end]
}
