// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"fmt"
	"slices"
	"time"
)

// Peering is how far the buyer's cluster is with its peering for a contract.
type Peering string

const (
	// notReserved is what the seller is told by a buyer that waits no longer.
	notReserved = "not reserved in time"
	// clocksDiffer is by how much the clocks of a buyer and a seller may differ, which mean well.
	clocksDiffer = 5 * time.Minute
)

// The states of a peering.
const (
	Apart  Peering = ""       // there is none
	Begun  Peering = "Begun"  // there may be one, or parts of it
	Joined Peering = "Joined" // it can be used
)

// Proposal is new terms that the buyer wants.
type Proposal struct {
	Event     Event  `json:"event"` // Resize or Renew
	Terms     Terms  `json:"terms"`
	Signature string `json:"signature,omitempty"`
}

// Purchase is all that a buyer knows of a contract: what it wants, what it has done for it, and what its seller said last. Its state is
// that which the seller said: a buyer believes in nothing that its seller has not written.
type Purchase struct {
	// Terms are those that it wants, and since they are signed, those in force. Signature is its own; it is written before it is sent.
	Terms     Terms  `json:"terms"`
	Signature string `json:"signature,omitempty"`
	// SignBy is until when it is willing to sign; zero is for ever. Nothing that comes after its signature depends on its own clock.
	SignBy time.Time `json:"signBy,omitzero"`
	// Proposal is new terms that are not in force yet; LastRevision is the highest revision that it has used.
	Proposal     *Proposal `json:"proposal,omitempty"`
	LastRevision int64     `json:"lastRevision"`
	// EndFixed is whether the contract ends when it was ordered to, also if it begins later. Else it is as long as it was ordered for.
	EndFixed bool `json:"endFixed,omitempty"`
	// Superseded are the last terms that both had signed before Terms, the oldest first.
	Superseded []Superseded `json:"superseded,omitempty"`
	// Rates are what it has cost before Terms, the oldest first.
	Rates []Rate `json:"rates,omitempty"`
	// Ending is whether it wants the contract to end, for EndingReason.
	Ending       bool   `json:"ending,omitempty"`
	EndingReason string `json:"endingReason,omitempty"`
	// Waited is for how long it has waited for what it has signed and never used, as far as anybody has counted, and NotSetUp whether it has
	// ended it because of that.
	Waited   time.Duration `json:"waited,omitempty"`
	NotSetUp bool          `json:"notSetUp,omitempty"`
	// Peering is what there is of a peering, Drained whether its workloads have left.
	Peering Peering `json:"peering,omitempty"`
	Drained bool    `json:"drained,omitempty"`
	// Seen is the newest that its seller said, and Ahead how far its seller's clock was ahead of its own then.
	Seen  View          `json:"seen"`
	Ahead time.Duration `json:"ahead,omitempty"`
	// Told is what time it was at least by its seller's clock: what an answer said, and what has been counted since. It may lag by a day.
	Told time.Time `json:"told,omitzero"`
	// Doubt is what is wrong with its seller, and Doubted for how long it has been so, as far as anybody has counted. Once it has left, it is
	// why.
	Doubt   Doubt         `json:"doubt,omitempty"`
	Doubted time.Duration `json:"doubted,omitempty"`
	// Standing is how it stands to its seller, and Draining for how long it has moved its workloads away without it.
	Standing Standing      `json:"standing,omitempty"`
	Draining time.Duration `json:"draining,omitempty"`
	// Restored is whether its seller shows less than both have signed, as after it was restored from a copy.
	Restored bool `json:"restored,omitempty"`

	History []Transition `json:"history,omitempty"`
}

// NewPurchase returns the beginning of a purchase by terms, whose revision becomes 1.
func NewPurchase(terms Terms, signBy time.Time) (Purchase, error) {
	terms.Revision = 1
	if err := terms.Validate(); err != nil {
		return Purchase{}, fmt.Errorf("buy %s: %w", terms.Key(), err)
	}
	return Purchase{Terms: terms, SignBy: signBy, LastRevision: 1}, nil
}

// State returns the state of the contract as the seller said it last; None before it said anything.
func (p Purchase) State() State { return p.Seen.State }

// Deed is what a buyer does next.
type Deed string

// The deeds.
const (
	Over      Deed = "Over"      // nothing any more
	Watch     Deed = "Watch"     // ask the seller for a View that is newer than that which was seen
	Send      Deed = "Send"      // send Request, and observe the View of the answer, whether it was refused or not
	SignTerms Deed = "SignTerms" // sign Request.Terms, and give the signature to Finish
	Peer      Deed = "Peer"      // peer with the seller's cluster, and let workloads use it
	Drain     Deed = "Drain"     // move the workloads away, and let no others come
	Unpeer    Deed = "Unpeer"    // remove the peering, and what is left of one
)

// Action is a deed and what belongs to it. Every action can be done again, also when it was done in part.
type Action struct {
	Deed    Deed
	Request Request
}

// Next returns what the buyer does now. The caller writes what Begin returns, does it, and writes what Finish returns; one that is killed
// between any of these asks Next again. The time counts only for one that has not signed.
func (p Purchase) Next(now time.Time) Action {
	// What the seller has ended is left, whatever the buyer wants.
	switch state := p.State(); {
	case (p.Standing == Closed || state.Final()) && p.Peering == Apart:
		return Action{Deed: Over}
	case p.unwarned() && p.Peering != Apart && !p.Drained:
		return Action{Deed: Drain}
	case (p.Standing.Parts() || state.Final()) && p.Peering != Apart:
		return Action{Deed: Unpeer}
	case state == Terminating && p.Peering != Apart && !p.Drained:
		return Action{Deed: Drain}
	case state == Terminating && p.Peering != Apart:
		return Action{Deed: Unpeer}
	case state == Terminating:
		return p.send(Request{Event: Drained})
	case p.Ending:
		return p.send(Request{Event: Terminate, Reason: p.EndingReason})
	case p.Signature == "" && !p.SignBy.IsZero() && !now.Before(p.SignBy):
		return p.send(Request{Event: Terminate, Reason: notReserved})
	case p.Standing.Parts(), p.Restored && state == Reserved && !p.Seen.Terms.Equal(p.Terms):
		return Action{Deed: Watch}
	}
	// On the way to a contract, and in it.
	switch p.State() { //nolint:exhaustive // The others need nothing, or the default.
	case None:
		return p.send(Request{Event: Reserve, Terms: p.Terms})
	case Reserved:
		return p.sign(Sign, p.begin(now), p.Signature)
	case Provisioning:
		if p.Peering != Joined {
			return Action{Deed: Peer}
		}
		return p.send(Request{Event: Peered})
	case Active, Resizing:
		if p.Peering != Joined || p.Drained {
			return Action{Deed: Peer}
		}
		return p.negotiate(now)
	case Suspended:
		if p.Peering != Apart && !p.Drained {
			return Action{Deed: Drain}
		}
	}
	return Action{Deed: Watch}
}

// negotiate returns what to do for new terms.
func (p Purchase) negotiate(now time.Time) Action {
	switch change := p.Seen.Change; {
	case p.Proposal == nil:
		return Action{Deed: Watch}
	case change == nil || change.Terms.Revision != p.Proposal.Terms.Revision:
		return p.send(Request{Event: p.Proposal.Event, Terms: p.Proposal.Terms})
	case change.Approval == Pending:
		return Action{Deed: Watch}
	}
	terms := p.Proposal.Terms
	if p.Proposal.Event == Resize && p.Proposal.Signature == "" {
		terms.EffectiveAt = latest(now.UTC().Truncate(time.Second), terms.StartsAt)
	}
	return p.sign(Confirm, terms, p.Proposal.Signature)
}

// begin returns the terms as they are signed at a time: nobody pays for the wait for somebody's approval.
func (p Purchase) begin(now time.Time) Terms {
	terms := p.Terms
	if p.Signature != "" || now.Before(terms.StartsAt.Add(soon)) {
		return terms
	}
	lasts := terms.EndsAt.Sub(terms.StartsAt)
	if terms.StartsAt = now.UTC().Truncate(time.Second); !p.EndFixed {
		terms.EndsAt = terms.StartsAt.Add(lasts)
	}
	return terms
}

// latest returns the later one of two times.
func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// sign asks for a signature first, and sends it when it is written.
func (p Purchase) sign(event Event, terms Terms, signature string) Action {
	action := p.send(Request{Event: event, Terms: terms, Signature: signature})
	if signature == "" {
		action.Deed = SignTerms
	}
	return action
}

func (p Purchase) send(request Request) Action {
	request.Key = p.Terms.Key()
	return Action{Deed: Send, Request: request}
}

// Begin returns the purchase as it is to be written before an action is done.
func (p Purchase) Begin(action Action) Purchase {
	switch {
	case action.Deed == Peer:
		p.Drained = false
		if p.Peering == Apart {
			p.Peering = Begun
		}
	case action.Deed == Drain || action.Deed == Unpeer: // Whoever is to use it again has to peer again.
		p.Peering = Begun
	case action.Deed == Send && action.Request.Event == Terminate:
		p.Ending, p.EndingReason = true, short(action.Request.Reason)
	}
	return p
}

// Finish returns the purchase as it is to be written after an action has succeeded; signature is what SignTerms made, and empty otherwise.
func (p Purchase) Finish(action Action, signature string) Purchase {
	switch action.Deed { //nolint:exhaustive // The others need nothing, or the default.
	case Peer:
		p.Peering = Joined
	case Drain:
		p.Drained = true
	case Unpeer:
		p.Peering = Apart
	case SignTerms:
		if action.Request.Event == Sign {
			p.Terms, p.Signature = action.Request.Terms, signature
			break
		}
		if p.Proposal == nil || p.Proposal.Terms.Revision != action.Request.Terms.Revision {
			break // It was settled meanwhile.
		}
		proposal := *p.Proposal
		proposal.Terms, proposal.Signature = action.Request.Terms, signature
		p.Proposal = &proposal
	}
	return p
}

// End returns the purchase of a buyer that wants the contract to end.
func (p Purchase) End(reason string) Purchase {
	if !p.Ending {
		p.Ending, p.EndingReason = true, short(reason)
	}
	return p
}

// Propose returns the purchase of a buyer that wants other terms, by Resize or Renew; it gives them the next revision. The error is
// ErrEarly if the contract is not active or other terms have been signed and not answered, ErrLate if it is at its end, and ErrTerms
// if the terms make no sense.
func (p Purchase) Propose(event Event, terms Terms) (Purchase, error) {
	var err error
	terms.Revision = max(p.LastRevision, p.Seen.LastRevision) + 1
	terms.EffectiveAt = time.Time{} // It is known when they are signed.
	if event == Renew {
		terms.EffectiveAt = p.Terms.EndsAt
	}
	switch {
	case p.Ending || p.State() == Terminating || p.State().Final():
		err = ErrLate
	case !p.State().InUse() || p.Proposal != nil && p.Proposal.Signature != "":
		err = ErrEarly
	case event != Resize && event != Renew || terms.Key() != p.Terms.Key() || terms.Cluster != p.Terms.Cluster:
		err = ErrTerms
	default:
		err = terms.Validate()
	}
	if err != nil {
		return p, fmt.Errorf("propose to %s contract %s in state %s: %w", event, p.Terms.Key(), stateName(p.State()), err)
	}
	p.LastRevision = terms.Revision
	p.Proposal = &Proposal{Event: event, Terms: terms}
	return p, nil
}

// Observe returns the purchase after the seller has shown a view, whose signatures the caller has verified. One that is not newer than what
// was seen changes nothing. The error is ErrTerms if the seller shows what this buyer has not signed, or a state that cannot follow.
func (p Purchase) Observe(view View, now time.Time) (Purchase, error) {
	if view.Version <= p.Seen.Version {
		return p, nil
	}
	if err := p.checkView(view); err != nil {
		return p, fmt.Errorf("observe contract %s in state %s: %w", p.Terms.Key(), stateName(view.State), err)
	}
	if view.State != p.Seen.State {
		p.History = remember(p.History, Transition{
			At: now.UTC().Truncate(time.Second), From: p.Seen.State, To: view.State, Revision: view.Terms.Revision, Reason: short(view.Reason),
		})
	}
	p.LastRevision = max(p.LastRevision, view.LastRevision)
	if proposal := p.Proposal; proposal != nil {
		open := view.Change != nil && view.Change.Terms.Revision == proposal.Terms.Revision
		switch {
		case view.Signed() && view.Terms.Revision == proposal.Terms.Revision:
			if p.Seen.Signed() {
				p.Superseded = supersede(p.Superseded, p.Seen.Terms, p.Seen.Countersignature)
				p.Rates = outdated(p.Rates, p.Seen.Terms)
			}
			p.Terms, p.Signature, p.Proposal = proposal.Terms, proposal.Signature, nil
		case !open && view.LastRevision >= proposal.Terms.Revision, view.State == Terminating, view.State.Final():
			p.Proposal = nil
		}
	}
	p.Seen = p.dated(view, now)
	return p.settled(), nil
}

// dated returns a view with when the contract ended, where the seller has ended it early and does not say so. When that was the buyer's
// clock says: a drain before the end, and what two clocks may differ by, is not early.
func (p Purchase) dated(view View, now time.Time) View {
	says := !view.Ends.IsZero() && view.Ends.Before(p.Terms.EndsAt)
	if view.State == Ended && !says && now.Before(p.Terms.EndsAt.Add(-p.Terms.Drain-clocksDiffer)) {
		view.Ends = now.UTC().Truncate(time.Second)
	}
	return view
}

// checkView returns an error if a view is not of a contract that this buyer could have.
func (p Purchase) checkView(view View) error {
	if !slices.Contains(States(), view.State) || view.State == None {
		return fmt.Errorf("unknown state: %w", ErrTerms)
	}
	if view.Key != p.Terms.Key() {
		return fmt.Errorf("contract %s was asked for: %w", p.Terms.Key(), ErrTerms)
	}
	if !follows(p.State(), view.State) {
		return fmt.Errorf("was %s: %w", p.State(), ErrTerms)
	}
	if change := view.Change; change != nil && p.Proposal != nil && change.Terms.Revision == p.Proposal.Terms.Revision &&
		!change.Terms.proposedAs(p.Proposal.Terms) {
		return fmt.Errorf("other terms of revision %d than were proposed: %w", change.Terms.Revision, ErrTerms)
	}
	if !view.Signed() {
		unsigned := slices.Contains([]State{Proposed, Reserved, Ended, Rejected, Expired}, view.State)
		if !unsigned || p.Seen.Signed() {
			return fmt.Errorf("no signature of the seller: %w", ErrTerms)
		}
		if view.Terms.Revision != 0 && !view.Terms.orderedAs(p.Terms) && !p.Restored {
			return fmt.Errorf("not the terms that were asked for: %w", ErrTerms)
		}
		return nil
	}
	signed := p.Restored || p.Signature != "" && view.Signature == p.Signature && view.Terms.Equal(p.Terms)
	if proposal := p.Proposal; proposal != nil && !signed {
		signed = proposal.Signature != "" && view.Signature == proposal.Signature && view.Terms.Equal(proposal.Terms)
	}
	if !signed {
		return fmt.Errorf("terms of revision %d that this buyer has not signed: %w", view.Terms.Revision, ErrTerms)
	}
	return nil
}
