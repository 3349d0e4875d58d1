// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package contract

import "errors"

// State is how far a contract is.
type State string

// The states. None is that of a contract that the seller does not know; the last four are final.
const (
	None         State = ""
	Proposed     State = "Proposed"     // somebody at the seller has to approve it; nothing is held
	Reserved     State = "Reserved"     // held until the reservation lapses; the buyer may sign
	Signed       State = "Signed"       // both have signed; the seller prepares what it grants
	Provisioning State = "Provisioning" // the seller grants it; the buyer peers
	Active       State = "Active"       // in use
	Resizing     State = "Resizing"     // in use, and new terms are being agreed: another size or plan, or a later end
	Suspended    State = "Suspended"    // the seller grants nothing for now; the buyer keeps its workloads away
	Terminating  State = "Terminating"  // the buyer drains; the seller withdraws when it has, or at a fixed time
	Ended        State = "Ended"        // over as agreed, by either side
	Rejected     State = "Rejected"     // the seller does not want to sell it, or cannot
	Expired      State = "Expired"      // not approved or not signed in time
	Failed       State = "Failed"       // signed, but the seller could not grant it
)

// Final reports whether nothing follows a state.
func (s State) Final() bool {
	return s == Ended || s == Rejected || s == Expired || s == Failed
}

// InUse reports whether a buyer may run workloads by the contract.
func (s State) InUse() bool { return s == Active || s == Resizing }

// Standing is how a buyer stands to its seller: whether it goes by what the seller says, or does without it.
type Standing string

// The standings.
const (
	Heard    Standing = ""         // the seller answers as it should
	Doubting Standing = "Doubting" // it does not, and what runs goes on
	Alone    Standing = "Alone"    // the buyer moves its workloads away and parts without the seller, and goes on asking
	Left     Standing = "Left"     // it has parted, from a seller that does not know the contract or does not end it, and asks seldom
	Closed   Standing = "Closed"   // it asks no more
)

// Parts reports whether a buyer does without its seller.
func (s Standing) Parts() bool { return s == Alone || s.Over() }

// Over reports whether the buyer takes the contract for over, whatever its seller says.
func (s Standing) Over() bool { return s == Left || s == Closed }

// Event is what can happen to a contract on the seller's side.
type Event string

// The events: requests of the buyer, decisions and deeds of the seller, and the time.
const (
	Reserve   Event = "Reserve"   // buyer: hold this for me
	Sign      Event = "Sign"      // buyer: here is my signature of what is reserved
	Peered    Event = "Peered"    // buyer: I have peered
	Resize    Event = "Resize"    // buyer: I propose another size, or another plan
	Renew     Event = "Renew"     // buyer: I propose a later end
	Confirm   Event = "Confirm"   // buyer: here is my signature of the new terms
	Terminate Event = "Terminate" // buyer: I want it to end
	Drained   Event = "Drained"   // buyer: I do not use it any more, and have unpeered

	Approve   Event = "Approve"   // seller: somebody allows what is proposed
	Refuse    Event = "Refuse"    // seller: somebody refuses what is proposed
	Grant     Event = "Grant"     // seller: what was sold can be used
	Fail      Event = "Fail"      // seller: it cannot be granted
	Suspend   Event = "Suspend"   // seller: nothing is granted for now
	Resume    Event = "Resume"    // seller: it is granted again
	Notice    Event = "Notice"    // seller: it ends after the time of notice
	Withdrawn Event = "Withdrawn" // seller: nothing is left of what was granted

	Tick Event = "Tick" // time has passed
)

// The reasons for which a request is refused.
var (
	// ErrUnknown: the seller has no such contract.
	ErrUnknown = errors.New("unknown contract")
	// ErrEarly: the contract is not that far; the request may succeed later.
	ErrEarly = errors.New("too early")
	// ErrLate: the contract is past this for ever.
	ErrLate = errors.New("too late")
	// ErrRevision: these new terms are over, or others are being agreed.
	ErrRevision = errors.New("revision is over")
	// ErrTerms: the terms or signatures are not those of the contract, or make no sense.
	ErrTerms = errors.New("other terms")
)

// Outcome is how a request was answered.
type Outcome string

// The outcomes.
const (
	Done Outcome = "Done" // the record has changed
	Same Outcome = "Same" // the record says already what was asked for
	No   Outcome = "No"   // refused, with an error
)
