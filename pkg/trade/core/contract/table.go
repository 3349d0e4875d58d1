// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"slices"
)

// Cell is what an event can do to a contract in a state. Where it lists several outcomes, the terms, the time and the ledger say which
// one it is.
type Cell struct {
	// To are the states after it, where the record changes: also the state it was in, for example with an earlier end.
	To []State
	// Same is whether the record can say already what is asked for.
	Same bool
	// Errs are the reasons for which it can be refused. ErrTerms is left out: terms and signatures that are not those of the contract are
	// refused in every state.
	Errs []error
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

// Lookup returns the cell of the table for a state and an event; that of an unknown event is empty. The caller must not change it.
func Lookup(state State, event Event) Cell { return table[state][event] }

// follows reports whether a state can come after another one, over any number of steps. Each can come after itself.
func follows(before, after State) bool {
	reached := []State{before}
	for i := 0; i < len(reached) && !slices.Contains(reached, after); i++ {
		for _, cell := range table[reached[i]] {
			for _, next := range cell.To {
				if !slices.Contains(reached, next) {
					reached = append(reached, next)
				}
			}
		}
	}
	return slices.Contains(reached, after)
}

// The short forms in which the table is written.
var (
	same    = Cell{Same: true}
	early   = Cell{Errs: []error{ErrEarly}}
	late    = Cell{Errs: []error{ErrLate}}
	unknown = Cell{Errs: []error{ErrUnknown}}
)

func to(states ...State) Cell { return Cell{To: states} }
func (c Cell) orSame() Cell   { return Cell{To: c.To, Same: true, Errs: c.Errs} }
func (c Cell) or(errs ...error) Cell {
	return Cell{To: c.To, Same: c.Same, Errs: slices.Concat(c.Errs, errs)}
}

// table says what every event does in every state. Apply does nothing that is not in it, and a test walks all of it.
var table = map[State]map[Event]Cell{
	None: {
		Reserve: to(Reserved, Proposed, Rejected), Sign: unknown, Peered: unknown, Resize: unknown, Renew: unknown, Confirm: unknown,
		Terminate: unknown, Drained: unknown,
		Approve: unknown, Refuse: unknown, Grant: unknown, Fail: unknown, Suspend: unknown, Resume: unknown, Notice: unknown, Withdrawn: unknown,
		Tick: same,
	},
	Proposed: {
		Reserve: same, Sign: early, Peered: early, Resize: early, Renew: early, Confirm: early, Terminate: to(Ended), Drained: early,
		Approve: to(Reserved, Rejected), Refuse: to(Rejected), Grant: early, Fail: early, Suspend: early, Resume: early, Notice: early,
		Withdrawn: early, Tick: to(Proposed, Expired).orSame(),
	},
	Reserved: {
		Reserve: same, Sign: to(Signed), Peered: early, Resize: early, Renew: early, Confirm: early, Terminate: to(Ended), Drained: early,
		Approve: same, Refuse: late, Grant: early, Fail: early, Suspend: early, Resume: early, Notice: early,
		Withdrawn: early, Tick: to(Reserved, Expired).orSame(),
	},
	Signed: {
		Reserve: same, Sign: same, Peered: early, Resize: early, Renew: early, Confirm: early, Terminate: to(Terminating), Drained: early,
		Approve: same, Refuse: late, Grant: to(Provisioning), Fail: to(Failed), Suspend: early, Resume: early,
		Notice: to(Signed, Terminating).orSame(), Withdrawn: early, Tick: to(Terminating).orSame(),
	},
	Provisioning: {
		Reserve: same, Sign: same, Peered: to(Active), Resize: early, Renew: early, Confirm: early, Terminate: to(Terminating), Drained: early,
		Approve: same, Refuse: late, Grant: same, Fail: to(Failed), Suspend: early, Resume: early, Notice: to(Provisioning, Terminating).orSame(),
		Withdrawn: early, Tick: to(Terminating).orSame(),
	},
	Active: {
		Reserve: same, Sign: same, Peered: same, Resize: to(Resizing, Active).orSame().or(ErrRevision),
		Renew: to(Resizing, Active).orSame().or(ErrRevision), Confirm: same.or(ErrRevision), Terminate: to(Terminating), Drained: early,
		Approve: same, Refuse: late, Grant: same, Fail: late, Suspend: to(Suspended), Resume: same, Notice: to(Active, Terminating).orSame(),
		Withdrawn: early, Tick: to(Terminating).orSame(),
	},
	Resizing: {
		Reserve: same, Sign: same, Peered: same, Resize: to(Resizing, Active).orSame().or(ErrRevision),
		Renew: to(Resizing, Active).orSame().or(ErrRevision), Confirm: to(Active).orSame().or(ErrEarly, ErrRevision), Terminate: to(Terminating),
		Drained: early, Approve: to(Resizing, Active).orSame(), Refuse: to(Active).or(ErrLate), Grant: same, Fail: late, Suspend: to(Suspended),
		Resume: same, Notice: to(Active, Terminating), Withdrawn: early, Tick: to(Resizing, Active, Terminating).orSame(),
	},
	Suspended: {
		Reserve: same, Sign: same, Peered: same, Resize: early, Renew: early, Confirm: same.or(ErrRevision), Terminate: to(Terminating),
		Drained: early, Approve: same, Refuse: late, Grant: same, Fail: late, Suspend: same, Resume: to(Active),
		Notice: to(Suspended, Terminating).orSame(), Withdrawn: early, Tick: to(Terminating).orSame(),
	},
	Terminating: {
		Reserve: same, Sign: same, Peered: late, Resize: late, Renew: late, Confirm: same.or(ErrRevision), Terminate: same, Drained: to(Ended),
		Approve: late, Refuse: late, Grant: late, Fail: late, Suspend: late, Resume: late, Notice: same,
		Withdrawn: early, Tick: to(Terminating, Ended).orSame(),
	},
	Ended: {
		Reserve: same, Sign: same.or(ErrLate), Peered: late, Resize: late, Renew: late, Confirm: same.or(ErrRevision), Terminate: same,
		Drained: same, Approve: late, Refuse: late, Grant: late, Fail: late, Suspend: late, Resume: late, Notice: same,
		Withdrawn: to(Ended).orSame(), Tick: same,
	},
	Rejected: {
		Reserve: same, Sign: late, Peered: late, Resize: late, Renew: late, Confirm: late, Terminate: same, Drained: same,
		Approve: late, Refuse: same, Grant: late, Fail: late, Suspend: late, Resume: late, Notice: same, Withdrawn: same, Tick: same,
	},
	Expired: {
		Reserve: same, Sign: late, Peered: late, Resize: late, Renew: late, Confirm: late, Terminate: same, Drained: same,
		Approve: late, Refuse: late, Grant: late, Fail: late, Suspend: late, Resume: late, Notice: same, Withdrawn: same, Tick: same,
	},
	Failed: {
		Reserve: same, Sign: same, Peered: late, Resize: late, Renew: late, Confirm: late, Terminate: same, Drained: same,
		Approve: late, Refuse: late, Grant: late, Fail: same, Suspend: late, Resume: late, Notice: same,
		Withdrawn: to(Failed).orSame(), Tick: same,
	},
}

// Condition is what has to hold for a Turn, in words.
type Condition string

// The conditions. Ends and drains are reached when both clocks say so, that of the seller as the last answer said it.
const (
	// Unbound: the seller cannot hold the buyer to the contract.
	Unbound Condition = "nothing is signed"
	// Unwanted: the buyer has ended it, or waits no longer for somebody to decide.
	Unwanted Condition = "nobody wants it"
	// Ending: the buyer has ended it.
	Ending Condition = "the buyer has ended it"
	// Lasts: the seller has been so for as long as it takes: unknown for 5 minutes, older for a minute, silent or wrong for a drain, a minute
	// at least.
	Lasts Condition = "it lasts"
	// Near: the drain before its end has begun.
	Near Condition = "its last drain has begun"
	// Past: a drain has passed since its end.
	Past Condition = "it has been over for a drain"
	// PastAll: so it is also by what was counted of the seller's clock, if no answer has said it since the process began.
	PastAll Condition = "it has been over for a drain by all clocks"
	// Parted: there is no peering for it.
	Parted Condition = "the clusters have parted"
)

// Turn is how a buyer stands after it has heard its seller, if all conditions hold.
type Turn struct {
	To Standing
	If []Condition
}

// Standings returns how a buyer can stand to its seller, in the order in which it leaves.
func Standings() []Standing { return []Standing{Heard, Doubting, Alone, Left, Closed} }

// Doubts returns what a seller can be heard to be.
func Doubts() []Doubt { return []Doubt{NoDoubt, SilentDoubt, WrongDoubt, UnknownDoubt, OlderDoubt} }

// Turns returns the turns of a buyer that stands so and hears its seller to be so; the first whose conditions hold counts, and there always
// is one. The caller must not change them.
func Turns(standing Standing, heard Doubt) []Turn { return leaving[standing][heard] }

func turn(to Standing, conditions ...Condition) Turn { return Turn{to, conditions} }

// leaving says how a buyer stands after it has heard its seller. Hear does what is in it, and nothing else.
var leaving = map[Standing]map[Doubt][]Turn{
	Heard: {
		NoDoubt:      {turn(Heard)},
		SilentDoubt:  {turn(Closed, Unbound, Unwanted), turn(Doubting)},
		WrongDoubt:   {turn(Closed, Unbound, Unwanted), turn(Doubting)},
		UnknownDoubt: {turn(Closed, Unbound, Unwanted), turn(Doubting)},
		OlderDoubt:   {turn(Closed, Unbound, Unwanted), turn(Doubting)},
	},
	Doubting: {
		NoDoubt: {turn(Heard)},
		SilentDoubt: {
			turn(Closed, Unbound, Unwanted), turn(Doubting, Unbound), turn(Alone, Lasts, Ending), turn(Alone, Lasts, Near), turn(Doubting),
		},
		WrongDoubt: {
			turn(Closed, Unbound, Unwanted), turn(Doubting, Unbound), turn(Alone, Lasts, Ending), turn(Alone, Lasts, Past), turn(Doubting),
		},
		UnknownDoubt: {turn(Closed, Unbound, Unwanted), turn(Closed, Unbound, Lasts), turn(Alone, Lasts), turn(Doubting)},
		OlderDoubt:   {turn(Closed, Unbound, Unwanted), turn(Heard, Lasts), turn(Doubting)},
	},
	Alone: {
		NoDoubt:      {turn(Heard)},
		SilentDoubt:  {turn(Closed, Parted, PastAll), turn(Alone)},
		WrongDoubt:   {turn(Closed, Parted, PastAll), turn(Left, Parted, Lasts), turn(Alone)},
		UnknownDoubt: {turn(Closed, Parted, PastAll), turn(Left, Parted, Lasts), turn(Alone)},
		OlderDoubt:   {turn(Heard, Lasts), turn(Closed, Parted, PastAll), turn(Alone)},
	},
	Left: {
		NoDoubt:      {turn(Heard)},
		SilentDoubt:  {turn(Closed, PastAll), turn(Left)},
		WrongDoubt:   {turn(Closed, PastAll), turn(Left)},
		UnknownDoubt: {turn(Closed, PastAll), turn(Left)},
		OlderDoubt:   {turn(Heard, Lasts), turn(Closed, PastAll), turn(Left)},
	},
	Closed: {
		NoDoubt: {turn(Closed)}, SilentDoubt: {turn(Closed)}, WrongDoubt: {turn(Closed)}, UnknownDoubt: {turn(Closed)},
		OlderDoubt: {turn(Closed)},
	},
}
