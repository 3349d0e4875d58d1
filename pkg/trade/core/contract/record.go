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
	"github.com/capacitorset/liqo-broker/pkg/core/resources"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/ledger"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/offer"
)

const (
	// maxText bounds names in terms, which are party IDs, DNS labels and digests.
	maxText = 253
	// maxReason bounds reasons in records, in bytes.
	maxReason = 512
	// maxHistory bounds the transitions that a record remembers.
	maxHistory = 32
	// maxSuperseded bounds the terms that a record remembers which others have replaced, and maxSupersededBytes their signatures.
	maxSuperseded, maxSupersededBytes = 32, 64 << 10
	// soon is within which a contract that is signed begins when it was ordered.
	soon = time.Minute
	// maxDuration bounds notice and drain.
	maxDuration = 366 * 24 * time.Hour
)

// Key names a contract: its buyer, and the ID that the buyer has chosen.
type Key = ledger.Key

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
	// Resources are what the buyer is granted, for one of the plan's stock.
	Resources corev1.ResourceList `json:"resources"`
	Price     offer.Price         `json:"price"`

	// StartsAt is when the contract begins: when it is signed, if that is later than it was ordered for.
	StartsAt time.Time `json:"startsAt"`
	// EndsAt is when the seller withdraws what it grants.
	EndsAt time.Time `json:"endsAt"`
	// EffectiveAt is from when these terms count, and those before them no more; zero is StartsAt. Another size counts from its signature on,
	// and is zero in the proposal; a later end counts from the end before it.
	EffectiveAt time.Time `json:"effectiveAt,omitzero"`
	// Notice is how long before the end who ends the contract early must say so: a seller gives for that long, and a buyer pays.
	Notice time.Duration `json:"notice"`
	// Drain is how long before the end the buyer begins to move its workloads away.
	Drain time.Duration `json:"drain"`
}

// Key returns the name of the contract.
func (t Terms) Key() Key { return Key{Buyer: t.Buyer, ID: t.ID} }

// Equal reports whether two terms say the same, however quantities and times are written.
func (t Terms) Equal(other Terms) bool {
	same := resources.Same(t.Resources, other.Resources) &&
		t.StartsAt.Equal(other.StartsAt) && t.EndsAt.Equal(other.EndsAt) && t.EffectiveAt.Equal(other.EffectiveAt)
	return same && t.ID == other.ID && t.Cluster == other.Cluster && t.Buyer == other.Buyer && t.Seller == other.Seller &&
		t.Revision == other.Revision &&
		t.Offer == other.Offer && t.OfferRevision == other.OfferRevision && t.OfferDigest == other.OfferDigest && t.Plan == other.Plan &&
		t.Price == other.Price && t.Notice == other.Notice && t.Drain == other.Drain
}

// Counts returns from when the terms count.
func (t Terms) Counts() time.Time {
	if t.EffectiveAt.IsZero() {
		return t.StartsAt
	}
	return t.EffectiveAt
}

// orderedAs reports whether two terms of a beginning say the same, whenever it begins.
func (t Terms) orderedAs(other Terms) bool {
	other.StartsAt, other.EndsAt = t.StartsAt, t.EndsAt
	return t.Equal(other)
}

// proposedAs reports whether two new terms say the same, whenever they are signed.
func (t Terms) proposedAs(other Terms) bool {
	other.EffectiveAt = t.EffectiveAt
	return t.Equal(other)
}

// beginsAs returns why terms are not those that were reserved, signed at a time: they begin then or a little earlier or later, and not
// before they were ordered for, and end when they were to, or are as long as they were to be.
func (t Terms) beginsAs(reserved Terms, now time.Time, within time.Duration) error {
	shift := t.StartsAt.Sub(reserved.StartsAt)
	late := shift > 0 && t.StartsAt.After(now.Add(within))
	if !t.orderedAs(reserved) || shift < 0 || late || !t.EndsAt.Equal(reserved.EndsAt) && !t.EndsAt.Equal(reserved.EndsAt.Add(shift)) {
		return fmt.Errorf("from %s to %s, not as reserved from %s to %s: %w", t.StartsAt, t.EndsAt, reserved.StartsAt, reserved.EndsAt, ErrTerms)
	}
	return t.Validate()
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
	if err := t.Price.Validate(); err != nil {
		return fmt.Errorf("%w: %w", offer.In("price", err), ErrTerms)
	}
	if err := ledger.Validate(t.Resources); err != nil {
		return fmt.Errorf("resources: %w: %w", err, ErrTerms)
	}
	for name, text := range map[string]string{"cluster.id": string(t.Cluster.ID), "cluster.name": t.Cluster.Name} {
		if len(validation.IsDNS1123Label(text)) > 0 {
			return fmt.Errorf("%s %.63q is not a label of DNS: %w", name, text, ErrTerms)
		}
	}
	switch {
	case t.Revision < 1:
		return fmt.Errorf("revision is %d, not above 0: %w", t.Revision, ErrTerms)
	case t.Notice < 0 || t.Notice > maxDuration:
		return fmt.Errorf("notice is %s, not 0 to %s: %w", t.Notice, maxDuration, ErrTerms)
	case t.Drain < 0 || t.Drain > maxDuration:
		return fmt.Errorf("drain is %s, not 0 to %s: %w", t.Drain, maxDuration, ErrTerms)
	case !t.EndsAt.Add(-t.Drain).After(t.StartsAt):
		return fmt.Errorf("endsAt %s leaves no time after startsAt %s and before a drain of %s: %w", t.EndsAt, t.StartsAt, t.Drain, ErrTerms)
	case !t.EffectiveAt.IsZero() && (t.EffectiveAt.Before(t.StartsAt) || !t.EffectiveAt.Before(t.EndsAt)):
		return fmt.Errorf("effectiveAt %s is not between startsAt %s and endsAt %s: %w", t.EffectiveAt, t.StartsAt, t.EndsAt, ErrTerms)
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
	// Documents are those of the offer of the terms, which only their seller knows here.
	Documents map[string]string `json:"documents,omitempty"`
}

// Refusal is new terms that did not come into force, and why.
type Refusal struct {
	Revision int64  `json:"revision"`
	Reason   string `json:"reason"`
}

// Superseded is terms that both had signed before they signed others. They count until the terms after them do.
type Superseded struct {
	Terms Terms `json:"terms"`
	// Countersignature is the seller's, of what the buyer has signed: it has both signatures.
	Countersignature string `json:"countersignature"`
}

// supersede adds to superseded terms, and forgets the oldest beyond the bounds.
func supersede(all []Superseded, terms Terms, countersignature string) []Superseded {
	all = append(slices.Clone(all), Superseded{Terms: terms, Countersignature: countersignature})
	bytes := 0
	for i, each := range slices.Backward(all) {
		if bytes += len(each.Countersignature); bytes > maxSupersededBytes || len(all)-i > maxSuperseded {
			return all[i+1:]
		}
	}
	return all
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
	Ends time.Time `json:"ends,omitzero"`
	// PaidUntil is until when the buyer pays, but for Pauses: the end of the terms, or earlier if either side has ended the contract. Zero if
	// both have not signed, it has failed, or it was ended because it was not granted in time.
	PaidUntil time.Time `json:"paidUntil,omitzero"`
	// Pauses are when the seller has suspended it, the oldest first: the buyer pays nothing for them. One of a contract that was over before
	// it was resumed has no end.
	Pauses []Pause `json:"pauses,omitempty"`
	Change *Change `json:"change,omitempty"`
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
	Withdrawn bool `json:"withdrawn,omitempty"`
	// Documents are those of the offer of the terms, for people: the terms have the digest of the offer.
	Documents map[string]string `json:"documents,omitempty"`
	// Superseded are the last terms before those in force, the oldest first.
	Superseded []Superseded `json:"superseded,omitempty"`
	// Rates are what it has cost before the terms in force, the oldest first.
	Rates   []Rate       `json:"rates,omitempty"`
	History []Transition `json:"history,omitempty"`
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

// Idle reports whether the time changes nothing of a contract that both have signed and that is not over, so that nobody need apply it.
func (r Record) Idle(now time.Time) bool {
	switch r.State { //nolint:exhaustive // The others wait for something, or are over.
	case Signed, Provisioning, Active, Suspended:
		return now.Before(r.Due())
	case Terminating:
		return now.Before(r.Ends) && !r.Ends.After(now.Add(r.Terms.Drain))
	}
	return false
}

// Lapsed reports whether a contract was over before its buyer had signed, and has held stock and capacity until then.
func (r Record) Lapsed() bool {
	return r.State.Final() && !r.Signed() && slices.ContainsFunc(r.History, func(t Transition) bool { return t.To == Reserved })
}

// Rests reports whether a Tick would write nothing: the time changes nothing of the contract, and the ledger holds what it needs and no
// more.
func (r Record) Rests(now time.Time, books ledger.Ledger) bool {
	needed, holds := r.hold()
	held, found := books.Get(r.Key)
	return r.Idle(now) && holds && found && held.Equal(needed)
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
	hold := ledger.Hold{Key: r.Key, Offer: r.Terms.Offer, Plan: r.Terms.Plan, Resources: r.Terms.Resources}
	switch {
	case r.State == Reserved:
		hold.Until = r.Until
	case r.State == None || r.State == Proposed || r.State.Final() && r.Duty() != WithdrawDuty:
		return ledger.Hold{}, false
	case r.Change != nil && r.Change.Approval != Pending:
		hold.Next, hold.NextUntil = r.Change.Terms.Resources, r.Change.Until
		if plan := r.Change.Terms.Plan; plan != hold.Plan {
			hold.NextPlans = []string{plan}
		}
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
