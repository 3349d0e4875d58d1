// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"iter"
	"slices"
)

// Cell is what an event can do to a contract in a state. One that lists several outcomes leaves it to the terms, the time and the
// ledger which one it is.
type Cell struct {
	// To are the states after it, where the record changes: also the same state, for example with a new end.
	To []State
	// Same is whether the record can say already what is asked for.
	Same bool
	// Errs are the reasons for which it can be refused. ErrTerms is not among them: terms or signatures that are not those of the
	// contract are refused in every state that compares them.
	Errs []error
}

func to(states ...State) Cell             { return Cell{To: states} }
func (c Cell) orSame() Cell               { c.Same = true; return c }
func (c Cell) or(errs ...error) Cell      { c.Errs = slices.Concat(c.Errs, errs); return c }
func (c Cell) allows(s State) bool        { return slices.Contains(c.To, s) }
func row(cells map[Event]Cell) [17]Cell   { return fill(cells, Events()) }
func fill(cells map[Event]Cell, events []Event) (all [17]Cell) {
	for i, event := range events {
		all[i] = cells[event]
	}
	return all
}

// States returns all states, in the order of a contract's life, and then the exits.
func States() []State {
	return []State{None, Proposed, Reserved, Signed, Provisioning, Active, Resizing, Suspended, Terminating, Ended, Rejected, Expired, Failed}
}

// Events returns all events: those of the buyer, of the seller, and the time.
func Events() []Event {
	return []Event{
		Reserve, Sign, Peered, Resize, Renew, Confirm, Terminate, Drained,
		Approve, Refuse, Grant, Fail, Suspend, Resume, Notice, Withdrawn, Tick,
	}
}
