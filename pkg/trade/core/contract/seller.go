// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/capacitorset/liqo-broker/pkg/core/resources"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/ledger"
)

// Verdict is what the seller's policy says of terms that a buyer asks for.
type Verdict string

// The verdicts. The zero Verdict is not one, so that forgetting to ask the policy sells nothing.
const (
	Accept Verdict = "Accept" // a rule allows it
	Ask    Verdict = "Ask"    // somebody has to approve it
	Deny   Verdict = "Deny"   // a rule forbids it; Reason says which
)

// Request is what happens to a contract: what the buyer asks for, what the seller has decided or done, or that time has passed. The
// caller has authenticated who asks: Key.Buyer is the buyer that it spoke to, and the events of the seller never come from outside.
type Request struct {
	Event Event
	Key   Key
	// Terms are those that are asked for (Reserve, Resize, Renew) or signed (Sign, Confirm).
	Terms Terms
	// Signature is the buyer's over Terms, which the caller has verified; Countersignature is the seller's over that (Sign, Confirm). The
	// caller makes it before, and lets it out only with a record that has it.
	Signature, Countersignature string
	// Verdict is what the policy says of Terms (Reserve, Resize, Renew).
	Verdict Verdict
	// Documents are those of the offer of Terms, for people (Reserve, Resize, Renew).
	Documents map[string]string
	// Reason is said to the buyer (Refuse, Deny, Fail, Suspend, Notice) or by it (Terminate).
	Reason string
}

// About returns the terms that a request is about, of a contract whose record is stored: those that it brings, or those that are being
// agreed, or those in force. The limits of their plan are those that Apply needs.
func (r Request) About(record *Record) Terms {
	switch {
	case r.Terms.Plan != "" || record == nil:
		return r.Terms
	case record.Change != nil:
		return record.Change.Terms
	}
	return record.Terms
}

// Seller is how long a seller waits. All must be positive.
type Seller struct {
	// ReserveFor is how long a reservation, and a proposal of new terms, waits for the buyer's signature.
	ReserveFor time.Duration
	// DecideFor is how long terms wait for somebody to approve them.
	DecideFor time.Duration
}

// Result is what follows from a request. The caller writes Before, then Record, then After, each only if it differs from what is stored,
// and answers the buyer last. So the ledger holds at any time what the stored record needs, whenever the caller is killed; what it holds
// too much is taken back by the next request for that contract, of which a Tick is enough.
//
// A request that is refused can have changed the record as well, since the time is applied before it.
type Result struct {
	Before  ledger.Ledger
	Record  Record
	After   ledger.Ledger
	Outcome Outcome
}

// step is one call of Apply on its way.
type step struct {
	seller Seller
	now    time.Time
	books  ledger.Ledger
	limits ledger.Limits
	was    Record // as it is stored
	record Record
}

// Apply returns what becomes of a contract by a request. The record is that which is stored, nil if there is none; books is the ledger
// that is stored, and limits are those of the plan of the terms that the request is About. Every request can be repeated, late and in any
// order: the answer is the same, or says that the contract is past it.
//
// The errors are ErrUnknown, ErrEarly, ErrLate, ErrRevision and ErrTerms. Terms that are not sold are no error: the record then says so, in
// State Rejected or in Refused. None of the arguments is changed.
func (s Seller) Apply(record *Record, request Request, now time.Time, books ledger.Ledger, limits ledger.Limits) (Result, error) {
	c := &step{seller: s, now: now.UTC().Truncate(time.Second), books: books, limits: limits}
	if record != nil {
		c.was = *record
	} else {
		c.was.Key = request.Key
	}
	c.record = c.was
	if len(request.Key.ID) > maxText || len(request.Key.Buyer) > maxText || request.Key.ID == "" || request.Key.Buyer == "" {
		return c.result(No), fmt.Errorf("key of a contract has %d bytes: %w", len(request.Key.String()), ErrTerms)
	}
	if request.Key != c.was.Key {
		return c.result(No), fmt.Errorf("contract %s is not %s: %w", request.Key, c.was.Key, ErrUnknown)
	}
	request.Reason = short(request.Reason)
	c.tick()
	ticked := c.record
	err := c.apply(request)
	switch {
	case err != nil:
		c.record = ticked
		return c.result(No), fmt.Errorf("%s contract %s in state %s: %w", request.Event, request.Key, stateName(ticked.State), err)
	case c.record.Version == c.was.Version:
		return c.result(Same), nil
	}
	return c.result(Done), nil
}

// stateName is a state in an error.
func stateName(s State) string {
	if s == None {
		return "None"
	}
	return string(s)
}

// apply does what the table says of the event in this state.
func (c *step) apply(request Request) error {
	cell, known := table[c.record.State][request.Event]
	switch {
	case !known:
		return fmt.Errorf("event %q does not exist: %w", request.Event, ErrTerms)
	case len(cell.To) == 0 && !cell.Same:
		return cell.Errs[0]
	}
	// Events that need more than another state have rules of their own.
	switch request.Event { //nolint:exhaustive // The others need nothing, or the default.
	case Reserve:
		return c.reserve(request)
	case Sign:
		return c.sign(request)
	case Resize, Renew:
		return c.propose(request)
	// What becomes of terms that wait, and of a contract that one side gives up.
	case Confirm:
		return c.confirm(request)
	case Approve:
		c.approve()
		return nil
	case Refuse:
		return c.refuse(request)
	case Notice:
		c.notice(request)
		return nil
	case Withdrawn:
		if c.record.Duty() == WithdrawDuty {
			c.record.Withdrawn = true
			c.move(Withdrawn, c.record.State, "")
		}
		return nil
	case Terminate:
		c.terminate(request)
		return nil
	}
	// Of all others, the table says all: which state follows, and terms that were being agreed are dropped.
	if len(cell.To) > 0 && request.Event != Tick {
		c.drop(cell.To[0], request.Reason)
		if request.Event == Suspend || request.Event == Resume || request.Event == Fail {
			c.record.Reason = request.Reason
		}
		if request.Event == Fail {
			c.record.PaidUntil = time.Time{}
		}
		c.move(request.Event, cell.To[0], request.Reason)
	}
	return nil
}

// move writes a transition into the record.
func (c *step) move(event Event, state State, reason string) {
	c.record.History = remember(c.record.History, Transition{
		At: c.now, Event: event, From: c.record.State, To: state, Revision: c.record.Terms.Revision, Reason: short(reason),
	})
	switch {
	case state == Suspended && c.record.State != Suspended:
		c.record.Pauses = paused(c.record.Pauses, c.now)
	case event == Resume:
		c.record.Pauses = resumed(c.record.Pauses, c.now)
	}
	c.record.State = state
	if paid := c.record.PaidUntil; state == Ended && !paid.IsZero() && paid.Before(c.now) {
		c.record.PaidUntil = earliest(c.now, c.record.Terms.EndsAt) // It has used it until now.
	}
	c.record.Version++
}

// earliest returns the earlier one of two times.
func earliest(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// tick applies the time. Limits of time that lie further away than they can are of a clock that has been set back since; they are cut.
func (c *step) tick() {
	r := &c.record
	switch r.State { //nolint:exhaustive // The others need nothing, or the default.
	case Proposed, Reserved:
		longest := c.seller.ReserveFor
		if r.State == Proposed {
			longest = c.seller.DecideFor
		}
		switch last := c.now.Add(longest); {
		case !c.now.Before(r.Until):
			c.exit(Tick, Expired, "not "+map[State]string{Proposed: "approved", Reserved: "signed"}[r.State]+" in time")
		case r.Until.After(last):
			r.Until = last
			r.Version++
		}
		if r.State == Reserved {
			if err := c.room(*r); err != nil {
				c.exit(Tick, Expired, "the reservation was lost: "+err.Error())
			}
		}
	// The same for terms that are being agreed: without them the contract goes on as it is.
	case Resizing:
		longest := c.seller.ReserveFor
		if r.Change.Approval == Pending {
			longest = c.seller.DecideFor
		}
		switch last := c.now.Add(longest); {
		case !c.now.Before(r.Change.Until):
			c.refused(Tick, "not agreed in time")
		case r.Change.Until.After(last):
			change := *r.Change
			change.Until = last
			r.Change = &change
			r.Version++
		}
		if r.State == Resizing {
			if err := c.room(*r); err != nil {
				c.refused(Tick, err.Error())
			}
		}
	}
	// Whatever else happens, a contract ends at its end.
	c.end()
}

// end begins the end of a contract when its time has come, and completes it. The seller withdraws at the agreed time, but never earlier
// than a whole drain after the record says so: also a seller that was away cuts no workload without warning.
func (c *step) end() {
	r := &c.record
	switch r.State { //nolint:exhaustive // The others need nothing, or the default.
	case Signed, Provisioning, Active, Resizing, Suspended:
		switch {
		case !c.now.Before(r.Ends.Add(-r.Terms.Drain)):
			c.terminating(Tick, "the contract ends")
		case r.unusedFor(c.now, SetUpAtMost):
			c.leave(0)
			c.terminating(Tick, notSetUp)
		}
	case Terminating:
		switch last := c.now.Add(r.Terms.Drain); {
		case !c.now.Before(r.Ends):
			c.exit(Tick, Ended, "withdrawn at the end")
		case r.Ends.After(last):
			r.Ends = last
			r.Version++
		}
	}
}

// terminating begins the end.
func (c *step) terminating(event Event, reason string) {
	c.record.Ends = c.now.Add(c.record.Terms.Drain)
	c.drop(Terminating, reason)
	c.record.Reason = short(reason)
	c.move(event, Terminating, reason)
}

// exit ends a contract.
func (c *step) exit(event Event, state State, reason string) {
	c.record.Until = time.Time{}
	c.record.Reason = short(reason)
	c.move(event, state, reason)
}

// drop forgets new terms that were being agreed, when the state does.
func (c *step) drop(state State, reason string) {
	if c.record.Change == nil || state == Resizing {
		return
	}
	c.record.Refused = &Refusal{Revision: c.record.Change.Terms.Revision, Reason: short(reason)}
	c.record.Change = nil
}

// refused returns to the terms in force.
func (c *step) refused(event Event, reason string) {
	c.drop(Active, reason)
	c.move(event, Active, reason)
}

// room returns why the ledger cannot hold what a record needs, or nil. Reservations of others that have lapsed make room.
func (c *step) room(candidate Record) error {
	hold, needed := candidate.hold()
	if existing, found := c.books.Get(hold.Key); !needed || found && existing.Equal(hold) {
		return nil
	}
	held, err := c.books.Reserve(hold, c.limits, c.now)
	if err != nil {
		return err
	}
	if existing, found := c.books.Get(hold.Key); found {
		c.books = held.Keep(existing)
	} else {
		c.books = held.Release(hold.Key)
	}
	return nil
}

// result returns what to write: first a ledger that holds what both the old and the new record need, then the record, then a ledger that
// holds only what the new one needs. A ledger that shrinks always follows a record that is written, with a new version if need be: another
// process of the seller, which counts on what shrinks, then finds that the record is not the one that it has read.
func (c *step) result(outcome Outcome) Result {
	result := Result{Before: c.books, After: c.books, Outcome: outcome}
	existing, found := c.books.Get(c.was.Key)
	hold, needed := c.record.hold()
	shrinks := false
	switch {
	case needed && !found:
		result.Before = c.books.Keep(hold)
		result.After = result.Before
	case needed && !existing.Equal(hold):
		result.After = c.books.Keep(hold)
		if shrinks = !covers(hold, existing); !shrinks {
			result.Before = result.After
		} else if both := union(hold, existing); !covers(existing, both) {
			result.Before = c.books.Keep(both)
		}
	case found && !needed:
		result.After = c.books.Release(c.was.Key)
		shrinks = true
	}
	if shrinks && c.record.Version > 0 && c.record.Version == c.was.Version {
		c.record.Version++
	}
	result.Record = c.record
	return result
}

// covers reports whether a hold keeps all that another does, for as long.
func covers(hold, other ledger.Hold) bool {
	return resources.Covers(hold.Resources, other.Resources) && resources.Covers(hold.Counts(), other.Counts()) &&
		without(lasting(other), lasting(hold)) == nil && without(other.Plans(), hold.Plans()) == nil &&
		(hold.Until.IsZero() || !other.Until.IsZero())
}

// union returns a hold that covers two, and does not lapse.
func union(a, b ledger.Hold) ledger.Hold {
	a.Resources, a.Until, a.Next, a.NextUntil = resources.Max(a.Counts(), b.Counts()), time.Time{}, nil, time.Time{}
	a.NextPlans = slices.Concat(a.NextPlans, without(b.Plans(), a.Plans()))
	return a
}

// lasting returns the plans of which a hold takes one each that does not lapse by itself.
func lasting(hold ledger.Hold) []string {
	if hold.NextUntil.IsZero() {
		return hold.Plans()
	}
	return []string{hold.Plan}
}

// without returns the plans that are not among others; nil if all are.
func without(plans, others []string) []string {
	var rest []string
	for _, plan := range plans {
		if !slices.Contains(others, plan) {
			rest = append(rest, plan)
		}
	}
	return rest
}

// reserve begins a contract, or finds that it has begun.
func (c *step) reserve(request Request) error {
	r := &c.record
	if request.Terms.Revision != 1 {
		return ErrTerms
	}
	if r.State != None {
		// A contract with new terms has forgotten the first.
		if r.Terms.Revision == request.Terms.Revision && !r.Terms.orderedAs(request.Terms) {
			return ErrTerms
		}
		return nil
	}
	terms := request.Terms
	if err := terms.Validate(); err != nil {
		return err
	}
	if terms.Key() != request.Key || !c.now.Before(terms.EndsAt.Add(-terms.Drain)) {
		return fmt.Errorf("terms of %s that end at %s: %w", terms.Key(), terms.EndsAt, ErrTerms)
	}
	r.Terms, r.Ends, r.LastRevision, r.Documents = terms, terms.EndsAt, terms.Revision, request.Documents
	switch request.Verdict { //nolint:exhaustive // The others need nothing, or the default.
	case Accept:
		c.hold(Reserve)
	case Ask:
		r.Approval, r.Until = Pending, c.now.Add(c.seller.DecideFor)
		c.move(Reserve, Proposed, "")
	default:
		c.exit(Reserve, Rejected, cmp.Or(request.Reason, "not for sale"))
	}
	return nil
}

// hold reserves the terms of the record, or rejects them.
func (c *step) hold(event Event) {
	candidate := c.record
	candidate.State, candidate.Until = Reserved, c.now.Add(c.seller.ReserveFor)
	if err := c.room(candidate); err != nil {
		c.exit(event, Rejected, err.Error())
		return
	}
	c.record.Until = candidate.Until
	c.move(event, Reserved, "")
}

// sign makes a reservation a contract, or finds that it is one.
func (c *step) sign(request Request) error {
	r := &c.record
	switch {
	case r.State != Reserved && !r.Signed():
		return ErrLate
	case r.State != Reserved && r.Terms.Revision > request.Terms.Revision:
		return nil // Its terms have been replaced since.
	case r.State != Reserved && (r.Signature != request.Signature || !r.Terms.Equal(request.Terms)):
		return ErrTerms
	case r.State != Reserved:
		return nil
	case request.Signature == "" || request.Countersignature == "":
		return ErrTerms
	}
	if err := request.Terms.beginsAs(r.Terms, c.now, c.seller.ReserveFor); err != nil {
		return err
	}
	r.Terms, r.Ends = request.Terms, request.Terms.EndsAt
	// The tick before this has found that the ledger still holds it, or can hold it again.
	r.Until, r.Signature, r.Countersignature = time.Time{}, request.Signature, request.Countersignature
	r.PaidUntil = r.Terms.EndsAt
	c.move(Sign, Signed, "")
	return nil
}

// propose begins to agree on new terms, in the place of others that are being agreed.
func (c *step) propose(request Request) error {
	r, terms := &c.record, request.Terms
	switch {
	case terms.Revision == r.Terms.Revision:
		return c.compare(terms, r.Terms)
	case r.Change != nil && terms.Revision == r.Change.Terms.Revision:
		return c.compare(terms, r.Change.Terms)
	case r.Refused != nil && terms.Revision == r.Refused.Revision:
		return nil
	case terms.Revision <= r.LastRevision:
		return ErrRevision
	}
	// Terms that cannot be of this contract are an error, and leave everything as it is.
	if err := errors.Join(terms.Validate(), c.changes(request)); err != nil {
		return err
	}
	c.drop(Active, "replaced by other terms")
	r.LastRevision = terms.Revision
	// What the seller says to them is a decision that is kept: who asks again is told the same.
	candidate := *r
	candidate.State = Resizing
	candidate.Change = &Change{Event: request.Event, Terms: terms, Until: c.now.Add(c.seller.ReserveFor), Documents: request.Documents}
	refusal := ""
	switch {
	case r.Notified:
		refusal = "notice has been given"
	case crowded(*r, terms, c.now) != "":
		refusal = crowded(*r, terms, c.now)
	case request.Verdict == Ask:
		candidate.Change.Approval, candidate.Change.Until = Pending, c.now.Add(c.seller.DecideFor)
	case request.Verdict != Accept:
		refusal = cmp.Or(request.Reason, "not for sale")
	default:
		if err := c.room(candidate); err != nil {
			refusal = err.Error()
		}
	}
	// With terms that are refused, the contract goes on as before.
	if refusal != "" {
		r.Refused = &Refusal{Revision: terms.Revision, Reason: short(refusal)}
		c.move(request.Event, Active, refusal)
		return nil
	}
	r.Change = candidate.Change
	c.move(request.Event, Resizing, "")
	return nil
}

func (c *step) compare(a, b Terms) error {
	if !a.proposedAs(b) {
		return ErrTerms
	}
	return nil
}

// changes returns an error if new terms change what they must not: Resize the size, or the plan of the offer, and the price, which count
// when they are signed, Renew the end and its price, which count from the end before it. Another plan can bring a longer notice, and no
// shorter one: otherwise whoever has signed one would be rid of it by a move.
func (c *step) changes(request Request) error {
	was, terms := c.record.Terms, request.Terms
	allowed := was
	allowed.Revision, allowed.Price, allowed.OfferRevision, allowed.OfferDigest = terms.Revision, terms.Price, terms.OfferRevision,
		terms.OfferDigest
	if request.Event == Resize {
		allowed.Plan, allowed.Resources, allowed.EffectiveAt = terms.Plan, terms.Resources, time.Time{}
		if terms.Plan != was.Plan {
			allowed.Notice = max(was.Notice, terms.Notice)
		}
	} else {
		allowed.EffectiveAt, allowed.EndsAt = was.EndsAt, terms.EndsAt
	}
	if !allowed.Equal(terms) || !c.now.Before(terms.EndsAt.Add(-terms.Drain)) {
		return fmt.Errorf("new terms change more than a %s can: %w", request.Event, ErrTerms)
	}
	return nil
}

// confirm puts new terms into force, or finds that they are.
func (c *step) confirm(request Request) error {
	r := &c.record
	switch {
	case request.Terms.Revision == r.Terms.Revision && r.Signed():
		if !r.Terms.Equal(request.Terms) || r.Signature != request.Signature {
			return ErrTerms
		}
		return nil
	case r.Change == nil || r.Change.Terms.Revision != request.Terms.Revision:
		return ErrRevision
	case r.Change.Approval == Pending:
		return ErrEarly
	case request.Signature == "" || request.Countersignature == "" || !c.confirms(request.Terms):
		return ErrTerms
	}
	r.Superseded = supersede(r.Superseded, r.Terms, r.Countersignature)
	r.Rates = outdated(r.Rates, r.Terms)
	if r.Change.Terms.OfferDigest != r.Terms.OfferDigest {
		r.Documents = r.Change.Documents
	}
	r.Terms, r.Ends, r.PaidUntil, r.Change = request.Terms, request.Terms.EndsAt, request.Terms.EndsAt, nil
	r.Signature, r.Countersignature = request.Signature, request.Countersignature
	c.move(Confirm, Active, "")
	return nil
}

// confirms reports whether terms are those that are being agreed, signed now: another size counts from the signature on.
func (c *step) confirms(terms Terms) bool {
	proposed := c.record.Change.Terms
	if c.record.Change.Event == Renew {
		return terms.Equal(proposed)
	}
	off := c.now.Sub(terms.EffectiveAt).Abs()
	return terms.proposedAs(proposed) && terms.Validate() == nil && off <= c.seller.ReserveFor &&
		!terms.Counts().Before(c.record.Terms.StartsAt)
}

// approve allows what waits for somebody's approval.
func (c *step) approve() {
	r := &c.record
	switch {
	case r.State == Proposed:
		r.Approval = Approved
		c.hold(Approve)
	case r.Change != nil && r.Change.Approval == Pending:
		candidate, change := *r, *r.Change
		change.Approval, change.Until = Approved, c.now.Add(c.seller.ReserveFor)
		candidate.Change = &change
		if err := c.room(candidate); err != nil {
			c.refused(Approve, err.Error())
			return
		}
		r.Change = &change
		c.move(Approve, Resizing, "")
	}
}

// refuse ends the wait for somebody's approval.
func (c *step) refuse(request Request) error {
	switch {
	case c.record.State == Proposed:
		c.exit(Refuse, Rejected, request.Reason)
	case c.record.Change != nil && c.record.Change.Approval == Pending:
		c.refused(Refuse, request.Reason)
	case c.record.State != Rejected:
		return ErrLate
	}
	return nil
}

// notice ends the contract after the time of notice, or after a drain if that is longer, and not later than its terms do.
func (c *step) notice(request Request) {
	r := &c.record
	if r.Notified || !slices.Contains([]State{Signed, Provisioning, Active, Resizing, Suspended}, r.State) {
		return
	}
	r.Notified = true
	if ends := c.now.Add(max(r.Terms.Notice, r.Terms.Drain)); ends.Before(r.Ends) {
		r.Ends, r.PaidUntil = ends, earliest(r.PaidUntil, ends)
	}
	state := r.State
	if state == Resizing {
		c.drop(Active, "notice has been given")
		state = Active
	}
	r.Reason = request.Reason
	c.move(Notice, state, request.Reason)
	c.end()
}

// terminate ends the contract for the buyer, which may leave at once, and pays until the time of notice is over. It owes none for what the
// seller does not give, or has ended itself, nor for what it has waited for and never used. One that is not signed ends at once. One that
// has not arrived yet is unknown, and nothing is written of it: a reservation that arrives later lapses.
func (c *step) terminate(request Request) {
	switch c.record.State { //nolint:exhaustive // The others need nothing, or the default.
	case Proposed, Reserved:
		c.exit(Terminate, Ended, request.Reason)
	case Signed, Provisioning, Active, Resizing, Suspended:
		notice := c.record.Terms.Notice
		if c.record.State == Signed || c.record.State == Suspended || c.record.Notified || c.record.unusedFor(c.now, SetUpFor) {
			notice = 0
		}
		c.leave(notice)
		c.terminating(Terminate, request.Reason)
	}
}

// leave has the buyer pay until the time of notice is over, and nothing for what the seller has not granted in time.
func (c *step) leave(notice time.Duration) {
	r := &c.record
	if r.PaidUntil = earliest(r.PaidUntil, c.now.Add(notice)); r.State == Signed && r.unusedFor(c.now, SetUpFor) {
		r.PaidUntil = time.Time{}
	}
}
