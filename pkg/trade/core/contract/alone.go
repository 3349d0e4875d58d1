// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

const (
	// restoredFor is for how long a seller must show an older version than it did before, or another one of the same number, before it is
	// taken for restored.
	restoredFor = time.Minute
	// unknownFor is for how long a seller must not know a contract before its buyer leaves.
	unknownFor = 5 * time.Minute
	// aheadAgain is by how much the difference of the clocks must change before it is noted again.
	aheadAgain = time.Minute
	// toldAgain is by how much the seller's clock must have gone on, or back, before it is noted again while nothing else is.
	toldAgain = 24 * time.Hour
	// leastPatience is for how long a seller must not answer at least, where its drain is shorter.
	leastPatience = time.Minute
	// grains is how often a time is counted, and written, until it is over; coarsest is how long it may take between two of them.
	grains, coarsest = 20, time.Hour
)

// Answer is what came of asking the seller about a contract.
type Answer string

// The answers.
const (
	Answered Answer = "Answered" // it shows the contract; a newer View was observed before
	Silent   Answer = "Silent"   // none came
	Wrong    Answer = "Wrong"    // what it shows cannot be believed, or it refuses to show it
	Unknown  Answer = "Unknown"  // it does not know the contract
	Older    Answer = "Older"    // it shows an older version than was seen, or another one of the same number
)

// Doubt is what is wrong with the seller, as its buyer sees it. It is gone as soon as the seller answers as it should.
type Doubt string

// The doubts.
const (
	NoDoubt     Doubt = ""
	SilentDoubt Doubt = "Silent" // it does not answer
	// WrongDoubt: it answers, but shows what cannot be believed, or does not end what its buyer has ended, or what is over.
	WrongDoubt   Doubt = "Wrong"
	UnknownDoubt Doubt = "Unknown" // it does not know the contract
	OlderDoubt   Doubt = "Older"   // it shows an older version than was seen, or another one of the same number
)

// Clocks are what time it is for a buyer: Now by its own clock, and Seller by its seller's, as the last answer said. Where both count,
// neither of them alone decides.
type Clocks struct {
	Now, Seller time.Time
	// Guessed is whether Seller follows from Now, because no answer has said it since the process began: then both are one clock.
	Guessed bool
}

// reached reports whether both clocks say so.
func (c Clocks) reached(at time.Time) bool { return !c.Now.Before(at) && !c.Seller.Before(at) }

// ClocksAt returns what time it is for a buyer whose own clock says now. The time by its seller's clock is zero if no answer said one since
// the process began: then it is guessed from how far the seller was ahead when it said one last.
func (p Purchase) ClocksAt(now, seller time.Time) Clocks {
	if seller.IsZero() {
		return Clocks{Now: now, Seller: now.Add(p.Ahead), Guessed: true}
	}
	return Clocks{Now: now, Seller: seller}
}

// told is what time it was at least by its seller's clock. Before it was noted, the contract had begun.
func (p Purchase) told() time.Time {
	if p.Told.IsZero() {
		return p.Terms.StartsAt
	}
	return p.Told
}

// Ends is when the contract ends at the latest.
func (p Purchase) Ends() time.Time {
	if ends := p.Seen.Ends; !ends.IsZero() && ends.Before(p.Terms.EndsAt) {
		return ends
	}
	return p.Terms.EndsAt
}

// Last is when a seller must have said that the contract is over: a drain after its end, or after the end that the buyer has signed last,
// of which the seller may hold the signature.
func (p Purchase) Last() time.Time {
	last := p.Ends()
	if change := p.Proposal; change != nil && change.Signature != "" && p.Seen.Ends.Equal(p.Terms.EndsAt) {
		last = latest(last, change.Terms.EndsAt)
	}
	return last.Add(p.Terms.Drain)
}

// Committed reports whether the seller can hold the buyer to the contract.
func (p Purchase) Committed() bool { return p.Signature != "" || p.Peering != Apart }

// patience is for how long a seller may not answer before its buyer does without it.
func (p Purchase) patience() time.Duration { return max(p.Terms.Drain, leastPatience) }

// Pass returns the purchase after some time, as measured by a clock that does not leap: for how long there has been a doubt, and for how
// long workloads have been leaving without the seller, for how long it has waited for what it has signed, and how far the clock of a seller
// in doubt has gone on. It changes nothing where no time counts.
func (p Purchase) Pass(passed time.Duration) Purchase {
	p = p.passHere(passed)
	if left := p.untold(); left > 0 {
		p.Told = p.told().Add(min(max(passed, 0), left))
	}
	return p
}

// untold is how much is to be counted of the clock of a seller in doubt: until it has reached the last end, and nothing else.
func (p Purchase) untold() time.Duration {
	if p.Doubt == NoDoubt || !p.Committed() && !p.Standing.Parts() {
		return 0
	}
	return max(p.Last().Sub(p.told()), 0)
}

// Grain is how much time may pass before it is counted, and written: a part of a drain, of a second at least and a minute at most, and a
// part of what is left, up to an hour, where only the seller's clock is counted.
func (p Purchase) Grain() time.Duration {
	grain := min(max(p.Terms.Drain/grains, time.Second), time.Minute)
	here := p.passHere(time.Second)
	if left := p.untold(); left > 0 && here.Doubted == p.Doubted && here.Waited == p.Waited && here.Draining == p.Draining {
		return max(grain, min(left/grains, coarsest))
	}
	return grain
}

// passHere counts what is of the buyer alone.
func (p Purchase) passHere(passed time.Duration) Purchase {
	if most := max(p.patience(), unknownFor); p.Doubt != NoDoubt && p.Doubted < most {
		p.Doubted = min(p.Doubted+max(passed, 0), most)
	}
	if p.settingUp() && p.Waited < SetUpAtMost {
		p.Waited = min(p.Waited+max(passed, 0), SetUpAtMost)
	}
	if p.unwarned() && !p.Drained && p.Peering != Apart && p.Draining < p.Terms.Drain {
		p.Draining = min(p.Draining+max(passed, 0), p.Terms.Drain)
	}
	return p
}

// unwarned reports whether the buyer parts without a seller that gives it the time of a drain.
func (p Purchase) unwarned() bool { return p.Standing == Alone || p.Restored && p.State().Final() }

// DrainIsOver reports whether workloads that have not left by now are not waited for: their buyer parts without its seller, and a whole
// drain has passed. Otherwise the seller says when.
func (p Purchase) DrainIsOver() bool { return p.unwarned() && p.Draining >= p.Terms.Drain }

// Forks reports whether a view is another one than that which was seen under its number: the seller was restored, and has gone on from
// there.
func (p Purchase) Forks(view View) bool {
	seen := p.Seen
	return view.Version == seen.Version && (view.State != seen.State || !view.Ends.Equal(seen.Ends) || !view.Terms.Equal(seen.Terms) ||
		view.Signature != seen.Signature || view.Countersignature != seen.Countersignature)
}

// Hear returns the purchase after its seller was asked. The view counts for an older version. How the buyer stands to its seller then is
// what the table says (Turns): never by one answer does it do without its seller, and never by one clock does it ask no more. All of it is
// undone when the seller answers as it should, until nothing is left to undo. A seller that shows an older version than it did, or another
// one of the same number, for a minute was restored from a copy: from then on what it shows now counts, and the buyer follows it to the end
// of the contract.
func (p Purchase) Hear(answer Answer, view View, clocks Clocks) Purchase {
	if ahead := clocks.Seller.Sub(clocks.Now).Truncate(time.Second); answer != Silent && (ahead-p.Ahead).Abs() > aheadAgain {
		p.Ahead = ahead
	}
	heard := p.doubt(answer, view, clocks)
	// Why it has left stays, until the seller shows something.
	left := p.Standing == Left && heard != OlderDoubt && p.Doubt != OlderDoubt
	changes := heard != p.Doubt && (heard == NoDoubt || !left)
	if told := clocks.Seller.UTC().Truncate(time.Second); !clocks.Guessed && (changes || told.Sub(p.Told).Abs() > toldAgain) {
		p.Told = told
	}
	if changes {
		p.Doubt, p.Doubted = heard, 0
	}
	for _, turn := range Turns(p.Standing, heard) {
		if !slices.ContainsFunc(turn.If, func(c Condition) bool { return !p.holds(c, clocks) }) {
			return p.turn(turn.To, view, clocks.Now)
		}
	}
	return p
}

// holds reports whether a condition does.
func (p Purchase) holds(condition Condition, clocks Clocks) bool {
	switch condition {
	case Unbound:
		return !p.Committed()
	case Unwanted:
		return p.Ending || !p.SignBy.IsZero() && !clocks.Now.Before(p.SignBy)
	case Ending:
		return p.Ending
	case Lasts:
		return p.Doubted >= p.lasting()
	case Near:
		return clocks.reached(p.Ends().Add(-p.Terms.Drain))
	case Past:
		return clocks.reached(p.Last())
	case PastAll: // Nothing undoes what follows from it: a guess is not enough.
		return clocks.reached(p.Last()) && (!clocks.Guessed || !p.told().Before(p.Last()))
	case Parted:
		return p.Peering == Apart
	}
	return false
}

// lasting is for how long there must be a doubt until the buyer acts on it.
func (p Purchase) lasting() time.Duration {
	switch p.Doubt { //nolint:exhaustive // The others are as the default.
	case UnknownDoubt:
		return unknownFor
	case OlderDoubt:
		return restoredFor
	}
	return p.patience()
}

// turn returns the purchase of a buyer that stands so from now on.
func (p Purchase) turn(to Standing, view View, now time.Time) Purchase {
	was := p.Standing
	switch {
	case to == Heard && p.Doubt == OlderDoubt:
		return p.follow(view, now)
	case to == was:
		return p
	case to == Heard && was.Parts():
		p.Draining = 0
		p = p.note(now, p.State(), "the seller answers")
	case to == Alone:
		p.Draining = 0
		p = p.note(now, p.State(), "the buyer leaves alone: the seller is "+strings.ToLower(string(p.Doubt)))
	case to == Left:
		p = p.note(now, p.State(), "the buyer has left")
	}
	p.Standing = to
	return p
}

// doubt is what an answer means. What is over cannot be doubted.
func (p Purchase) doubt(answer Answer, view View, clocks Clocks) Doubt {
	state := p.State()
	if state.Final() {
		return NoDoubt
	}
	switch answer {
	case Silent:
		return SilentDoubt
	case Unknown:
		return UnknownDoubt
	case Older:
		if p.restored(view) {
			return OlderDoubt
		}
		return WrongDoubt
	case Wrong:
		return WrongDoubt
	case Answered:
	}
	told := state == Terminating && p.Peering == Apart
	if told || state != Terminating && (p.Ending || p.holds(Past, clocks)) {
		return WrongDoubt
	}
	return NoDoubt
}

// restored reports whether a view is one that a seller can show again after it was restored. Its signatures the caller has verified.
func (p Purchase) restored(view View) bool {
	unsigned := slices.Contains([]State{Proposed, Reserved, Ended, Rejected, Expired}, view.State)
	return view.Key == p.Terms.Key() && slices.Contains(States(), view.State) && view.State != None && (view.Signed() || unsigned)
}

// follow takes what a restored seller shows for what counts.
func (p Purchase) follow(view View, now time.Time) Purchase {
	p = p.note(now, view.State, fmt.Sprintf("the seller was restored: version %d after %d", view.Version, p.Seen.Version))
	p.Doubt, p.Doubted, p.Standing, p.Draining = NoDoubt, 0, Heard, 0
	p.Proposal, p.Restored = nil, true
	p.Seen = p.dated(view, now)
	return p.settled()
}

// settled returns a purchase whose seller is not called restored any more, if it shows again what both have signed.
func (p Purchase) settled() Purchase {
	if p.State().InUse() && p.Seen.Signed() && p.Seen.Terms.Equal(p.Terms) {
		p.Restored = false
	}
	return p
}

// note adds to the history.
func (p Purchase) note(now time.Time, to State, reason string) Purchase {
	p.History = remember(p.History, Transition{
		At: now.UTC().Truncate(time.Second), From: p.State(), To: to, Revision: p.Terms.Revision, Reason: short(reason),
	})
	return p
}
