// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package contract_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/core/resources"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/contract"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/ledger"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/offer/offertest"
)

// begin is when all worlds begin.
var begin = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// Times of the worlds.
const (
	day        = 24 * time.Hour
	reserveFor = 10 * time.Minute
	decideFor  = 30 * time.Minute
	drainFor   = 5 * time.Minute
)

// resourcesOf returns cores and gibibytes.
func resourcesOf(cpu, memory int64) corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewQuantity(cpu, resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(memory<<30, resource.BinarySI),
	}
}

// termsOf returns terms for 30 days.
func termsOf(buyer string, cpu, memory int64) contract.Terms {
	return contract.Terms{
		ID: "c1", Buyer: buyer, Seller: "seller", Revision: 1, Cluster: cluster.Identity{ID: "edge-id", Name: "edge"}, Offer: "o",
		OfferRevision: 1, OfferDigest: "d", Plan: "small", Resources: resourcesOf(cpu, memory), Price: offertest.Price("1"),
		StartsAt: begin, EndsAt: begin.Add(30 * day), Notice: time.Hour, Drain: drainFor,
	}
}

// task is what a process does, step by step; one that is killed forgets it.
type task []func() task

// process runs one task at a time, by its own clock.
type process struct {
	task  task
	clock time.Duration
}

// run does one step.
func (p *process) run() {
	if len(p.task) == 0 {
		return
	}
	step := p.task[0]
	p.task = p.task[1:]
	if more := step(); more != nil {
		p.task = more
	}
}

// side is a buyer with what it has written, and what its driver has done.
type side struct {
	process
	stored        contract.Purchase
	peered, using bool
	// asked counts what it has asked, and answered is the last of that to which there was an answer.
	asked, answered int
	// counted is until when it has counted the time, and right when it last had no doubt of its seller. ahead is how far its seller's clock
	// was ahead of the right one at the last answer, and said whether there was one since its process began.
	counted, right time.Time
	ahead          time.Duration
	said           bool
	// most is how far its seller's clock was ahead at most.
	most time.Duration
}

// message is a request that asks for a view (without an event) or for more, or the answer.
type message struct {
	buyer   int
	request contract.Request
	view    *contract.View
	// answer is what kind of answer it is; empty for a request.
	answer contract.Answer
	// asked is which question of the buyer it is, or answers, and at when it was answered by the seller's clock.
	asked int
	at    time.Time
}

// world is a seller that runs twice, its buyers, and the network between them.
type world struct {
	random  *rand.Rand
	trace   func(string, ...any)
	time    time.Time
	seller  contract.Seller
	workers [2]process
	books   ledger.Ledger
	booksAt int // how often the ledger was written
	records map[contract.Key]contract.Record
	grants  map[contract.Key]bool
	buyers  []*side
	network []message
	honest  bool // nothing goes wrong any more
	// absent is what the seller is while it does not answer as it should; empty while it does.
	absent contract.Answer
	// left and back count the buyers that left, and that came back after that.
	left, back int
	progress   bool
	err        error
}

func newWorld(seed uint64, trace func(string, ...any)) *world {
	w := &world{
		random: rand.New(rand.NewPCG(seed, 0)), trace: trace, time: begin,
		seller:  contract.Seller{ReserveFor: reserveFor, DecideFor: decideFor},
		records: map[contract.Key]contract.Record{}, grants: map[contract.Key]bool{},
	}
	for i := range 4 {
		terms := termsOf(fmt.Sprintf("buyer-%d", i), 1+w.random.Int64N(3), 1+w.random.Int64N(3))
		purchase, err := contract.NewPurchase(terms, begin.Add(time.Duration(w.random.IntN(180))*time.Minute))
		if err != nil {
			w.failf("%v", err)
		}
		w.buyers = append(w.buyers, &side{stored: purchase, counted: begin, right: begin})
	}
	return w
}

// limits returns how many contracts of a plan there are, and the capacity for all of them.
func limits(plan string) ledger.Limits {
	stock := map[string]int64{"small": 3, "large": 2, "huge": 1}[plan]
	return ledger.Limits{Plan: plan, Stock: &stock, Capacity: resourcesOf(6, 6)}
}

func (w *world) failf(format string, values ...any) {
	if w.err == nil {
		w.err = fmt.Errorf(format, values...)
		w.trace("FAILED: %v", w.err)
	}
}

// chance is true once in n times, and never when all is honest.
func (w *world) chance(n int) bool { return !w.honest && w.random.IntN(n) == 0 }

// writeBooks is refused if another process has written since, as an API server does.
func (w *world) writeBooks(books ledger.Ledger, at *int) bool {
	if books.Equal(w.books) {
		return true
	}
	if *at != w.booksAt {
		return false
	}
	w.books = books
	w.booksAt++
	*at = w.booksAt
	w.progress = true
	w.trace("ledger %v", books)
	w.check()
	return true
}

func (w *world) writeRecord(record contract.Record, was int64) bool {
	stored := w.records[record.Key]
	if record.Version == was {
		return true
	}
	if stored.Version != was {
		return false
	}
	w.records[record.Key] = record
	w.progress = true
	w.trace("seller %s v%d %s rev %d %s", record.Key, record.Version, record.State, record.Terms.Revision, record.Reason)
	w.check()
	return true
}

func (w *world) writePurchase(b *side, purchase contract.Purchase) {
	if purchase.Seen.Version != b.stored.Seen.Version || purchase.Peering != b.stored.Peering || purchase.Signature != b.stored.Signature ||
		purchase.Drained != b.stored.Drained || purchase.Ending != b.stored.Ending || purchase.Proposal != b.stored.Proposal ||
		purchase.Standing != b.stored.Standing {
		w.progress = true
		w.trace("buyer %s v%d %s peering %q drained %t ending %t %s", purchase.Terms.Buyer, purchase.Seen.Version, purchase.State(),
			purchase.Peering, purchase.Drained, purchase.Ending, purchase.Standing)
	}
	b.stored = purchase
	w.check()
}

// handle is the task of a seller for one request: it reads, decides, writes in order, and answers last.
func (w *world) handle(worker *process, request contract.Request, answer func(contract.View)) task {
	var result contract.Result
	var was int64
	var at int
	return task{
		func() task {
			stored, found := w.records[request.Key]
			var record *contract.Record
			if found {
				record = &stored
			}
			was, at = stored.Version, w.booksAt
			var err error
			result, err = w.seller.Apply(record, request, w.time.Add(worker.clock), w.books, limits(request.About(record).Plan))
			w.trace("apply %s %s in %q: %s %v", request.Event, request.Key, stored.State, result.Outcome, err)
			if result.Outcome == contract.Done && result.Record.Version == was {
				w.failf("%s of %s is done, and nothing is written", request.Event, request.Key)
			}
			w.covered(result)
			return nil
		},
		func() task { return w.unless(w.writeBooks(result.Before, &at)) },
		func() task { return w.unless(w.writeRecord(result.Record, was)) },
		func() task { return w.unless(w.writeBooks(result.After, &at)) },
		func() task {
			if answer != nil {
				answer(result.Record.View)
			}
			return nil
		},
	}
}

// holds reports whether a hold keeps what both have signed, and does not lapse.
func holds(hold ledger.Hold, terms contract.Terms) bool {
	plans := hold.Plans()
	if !hold.NextUntil.IsZero() {
		plans = plans[:1]
	}
	return hold.Until.IsZero() && resources.Covers(hold.Resources, terms.Resources) && slices.Contains(plans, terms.Plan)
}

// covered holds for each result: both ledgers, the one that is written before the record and the one after, hold what the record needs.
func (w *world) covered(result contract.Result) {
	record := result.Record
	if !record.Signed() && record.State != contract.Reserved || record.State.Final() && record.Duty() != contract.WithdrawDuty {
		return
	}
	for _, books := range []ledger.Ledger{result.Before, result.After} {
		hold, found := books.Get(record.Key)
		if !record.Signed() {
			hold.Until = time.Time{}
		}
		if !found || !holds(hold, record.Terms) {
			w.failf("contract %s in state %s would hold %v, less than %v", record.Key, record.State, hold, record.Terms)
		}
		if change := record.Change; change != nil && change.Approval != contract.Pending && !slices.Contains(hold.Plans(), change.Terms.Plan) {
			w.failf("contract %s would hold %v, and nothing of plan %s", record.Key, hold, change.Terms.Plan)
		}
	}
}

// unless forgets a task that lost a conflict.
func (w *world) unless(written bool) task {
	if written {
		return nil
	}
	w.trace("conflict")
	return task{func() task { return nil }}
}

// duty is the task of the one process of the seller that has the driver.
func (w *world) duty(worker *process, key contract.Key) task {
	duty := w.records[key].Duty()
	switch duty { //nolint:exhaustive // The others need nothing, or the default.
	case contract.GrantDuty, contract.WithdrawDuty:
	default:
		return nil
	}
	event := map[contract.Duty]contract.Event{contract.GrantDuty: contract.Grant, contract.WithdrawDuty: contract.Withdrawn}[duty]
	return append(task{func() task {
		w.grants[key] = duty == contract.GrantDuty
		return nil
	}}, w.handle(worker, contract.Request{Event: event, Key: key}, nil)...)
}

// decide is something that people at the seller do.
func (w *world) decide(worker *process, key contract.Key) task {
	events := []contract.Event{
		contract.Approve, contract.Approve, contract.Approve, contract.Refuse, contract.Notice, contract.Suspend, contract.Resume,
		contract.Resume, contract.Fail,
	}
	return w.handle(worker, contract.Request{Event: events[w.random.IntN(len(events))], Key: key, Reason: "somebody wants it"}, nil)
}

// receive delivers a message.
func (w *world) receive(m message) {
	b := w.buyers[m.buyer]
	worker := &w.workers[w.random.IntN(2)]
	answer := func(view contract.View) {
		reply := message{buyer: m.buyer, answer: cmp.Or(w.absent, contract.Answered), asked: m.asked, at: w.time.Add(worker.clock)}
		switch {
		case reply.answer != contract.Answered:
		case view.Version > 0:
			reply.view = &view
		default:
			reply.answer = contract.Unknown
		}
		w.network = append(w.network, reply)
	}
	switch {
	case m.view == nil && m.answer != "":
		w.hear(b, m)
		return
	case m.view != nil && b.stored.Standing == contract.Closed:
		return
	case m.view != nil:
		purchase, err := b.stored.Observe(*m.view, w.time.Add(b.clock))
		if err != nil {
			w.failf("%v", err)
		}
		w.writePurchase(b, purchase)
		if m.view.Version == purchase.Seen.Version { // Else it was overtaken.
			w.hear(b, m)
		}
		return
	case w.absent == contract.Silent:
		return
	case w.absent != "":
		answer(contract.View{})
		return
	case m.request.Event == "":
		answer(w.records[m.request.Key].View)
		return
	}
	if len(worker.task) > 0 {
		w.network = append(w.network, m)
		return
	}
	request := m.request
	if request.Signature != "" {
		request.Countersignature = "seller over " + request.Signature
	}
	request.Verdict = contract.Accept
	switch roll := w.random.IntN(10); {
	case roll < 2:
		request.Verdict = contract.Ask
	case roll == 2 && w.chance(2):
		request.Verdict, request.Reason = contract.Deny, "a rule"
	}
	worker.task = w.handle(worker, request, answer)
}

// hear has a buyer take an answer to what it has asked last.
func (w *world) hear(b *side, m message) {
	if m.asked != b.asked {
		return // It does not wait for that any more.
	}
	if m.answer != contract.Silent {
		b.answered, b.ahead, b.said = m.asked, m.at.Sub(w.time), true
		b.most = max(b.most, b.ahead)
	}
	seller := time.Time{}
	if b.said {
		seller = w.time.Add(b.ahead)
	}
	before, doubt := b.stored.Standing, b.stored.Doubt
	now := w.time.Add(b.clock)
	after := b.stored.Hear(m.answer, b.stored.Seen, b.stored.ClocksAt(now, seller))
	if after.Doubt != doubt || after.Standing != before {
		b.counted = w.time // What has lasted counts from now on.
	}
	switch {
	case after.Standing == contract.Heard:
		b.right = w.time
	case after.Standing == contract.Alone && before != contract.Alone && w.time.Sub(b.right) < time.Minute:
		w.failf("buyer of %s leaves alone %s after a right answer", after.Terms.Key(), w.time.Sub(b.right))
	case after.Standing == contract.Left && before != contract.Left:
		w.left++
	// A buyer that asks no more cannot be told that it is wrong: its own clock is not enough.
	case after.Standing == contract.Closed && before != contract.Closed && after.Committed() && w.time.Add(b.most).Before(after.Last()):
		w.failf("buyer of %s asks no more %s before it is over", after.Terms.Key(), after.Last().Sub(w.time))
	}
	if before == contract.Left && after.Standing == contract.Heard {
		w.back++
	}
	w.writePurchase(b, after)
}

// act is the task of a buyer: it writes what it will do, does it, and writes that it has.
func (w *world) act(index int) task {
	b := w.buyers[index]
	b.stored = b.stored.Pass(w.time.Sub(b.counted)).SetUpWithin(20 * time.Minute)
	if b.counted = w.time; b.answered < b.asked {
		w.hear(b, message{answer: contract.Silent, asked: b.asked})
		b.answered = b.asked
	}
	action := b.stored.Next(w.time.Add(b.clock))
	if action.Deed == contract.Over {
		return nil
	}
	return task{
		func() task { w.writePurchase(b, b.stored.Begin(action)); return nil },
		func() task {
			switch action.Deed { //nolint:exhaustive // The others need nothing, or the default.
			case contract.Send:
				b.asked++
				w.network = append(w.network, message{buyer: index, request: action.Request, asked: b.asked})
			case contract.Watch:
				b.asked++
				w.network = append(w.network, message{buyer: index, request: contract.Request{Key: b.stored.Terms.Key()}, asked: b.asked})
			case contract.Peer:
				b.peered, b.using = true, true
			case contract.Drain:
				b.using = false
			case contract.Unpeer:
				b.peered, b.using = false, false
			}
			w.check()
			return nil
		},
		func() task {
			signature := ""
			if action.Deed == contract.SignTerms {
				signature = fmt.Sprintf("%s of revision %d", b.stored.Terms.Buyer, action.Request.Terms.Revision)
			}
			w.writePurchase(b, b.stored.Finish(action, signature))
			return nil
		},
	}
}

// want is something that people at a buyer do.
func (w *world) want(b *side) {
	terms, event := b.stored.Terms, contract.Resize
	switch roll := w.random.IntN(8); {
	case roll == 0:
		w.writePurchase(b, b.stored.End("not needed"))
		return
	case roll < 3:
		event, terms.EndsAt = contract.Renew, terms.EndsAt.Add(day)
	default:
		terms.Resources = resourcesOf(1+w.random.Int64N(4), 1+w.random.Int64N(4))
		if roll < 6 {
			terms.Plan = []string{"small", "large", "huge"}[w.random.IntN(3)]
		}
	}
	if purchase, err := b.stored.Propose(event, terms); err == nil {
		w.writePurchase(b, purchase)
	}
}

// step lets something happen.
func (w *world) step() {
	worker := &w.workers[w.random.IntN(2)]
	index := w.random.IntN(len(w.buyers))
	b := w.buyers[index]
	key := b.stored.Terms.Key()
	switch roll := w.random.IntN(100); {
	case roll < 30:
		worker.run()
	case roll < 50 && len(b.task) == 0:
		b.task = w.act(index)
	case roll < 50:
		b.run()
	case roll < 72:
		if len(w.network) == 0 {
			return
		}
		at := w.random.IntN(len(w.network))
		m := w.network[at]
		if !w.chance(5) || len(w.network) > 40 { // else it comes again
			w.network = slices.Delete(w.network, at, at+1)
		}
		if w.chance(8) {
			w.trace("lost")
			return
		}
		w.receive(m)
	case roll < 78 && len(worker.task) == 0:
		worker.task = w.handle(worker, contract.Request{Event: contract.Tick, Key: key}, nil)
	case roll < 84 && len(w.workers[0].task) == 0:
		w.workers[0].task = w.duty(&w.workers[0], key)
	case roll < 86 && len(worker.task) == 0:
		worker.task = w.decide(worker, key)
	case roll < 90:
		w.want(b)
	case roll < 92:
		w.trace("seller killed")
		worker.task = nil
	case roll < 94:
		w.trace("%s killed", key)
		b.task, b.counted, b.answered, b.said = nil, w.time, b.asked, false
	case roll < 96:
		jump := time.Duration(w.random.IntN(80)-40) * time.Minute
		if w.random.IntN(10) == 0 {
			jump *= 1500
		}
		clock := []*time.Duration{&w.workers[0].clock, &w.workers[1].clock, &b.clock}[w.random.IntN(3)]
		if w.random.IntN(2) == 0 {
			jump = -*clock // It is set right.
		}
		*clock += jump
		w.trace("a clock jumps by %s", jump)
	default:
		w.time = w.time.Add(time.Duration(w.random.IntN(180)) * time.Second)
	}
}

// check holds at any moment, whatever is killed or lost.
func (w *world) check() {
	// Stock and capacity.
	for _, plan := range []string{"small", "large", "huge"} {
		if sold, stock := w.books.Sold("o", plan, time.Time{}), *limits(plan).Stock; sold < 0 || sold > stock {
			w.failf("%d of %d units of plan %s are held", sold, stock, plan)
		}
	}
	for name, held := range w.books.Held(time.Time{}) {
		if capacity := limits("small").Capacity[name]; held.Sign() < 0 || held.Cmp(capacity) > 0 {
			w.failf("%s of %s of %s are held", held.String(), capacity.String(), name)
		}
	}
	for _, b := range w.buyers {
		record := w.records[b.stored.Terms.Key()]
		// What both have signed is held until the seller has withdrawn it.
		if live := record.Signed() && (!record.State.Final() || record.Duty() == contract.WithdrawDuty); live {
			hold, found := w.books.Get(record.Key)
			if !found || !holds(hold, record.Terms) {
				w.failf("contract %s in state %s holds %v, less than %v", record.Key, record.State, hold, record.Terms)
			}
		}
		// Nobody knows what was not written, and a buyer in use has a seller that has signed.
		if b.stored.Seen.Version > record.Version || b.stored.Seen.Terms.Revision > record.Terms.Revision {
			w.failf("buyer of %s saw version %d, and %d is written", record.Key, b.stored.Seen.Version, record.Version)
		}
		if b.stored.State().InUse() && (!record.Signed() || record.Terms.Revision < b.stored.Terms.Revision) {
			w.failf("buyer of %s is active, and the seller %s", record.Key, record.State)
		}
		if b.peered && b.stored.Peering == contract.Apart {
			w.failf("buyer of %s has a peering that it does not know", b.stored.Terms.Key())
		}
	}
}

// settle lets everything that is under way come to its end.
func (w *world) settle() {
	for range 200 {
		w.progress = false
		if w.round(); !w.progress || w.err != nil {
			return
		}
	}
	w.failf("it never settles")
}

// round lets everybody do something.
func (w *world) round() {
	for i, b := range w.buyers {
		if len(b.task) == 0 {
			b.task = w.act(i)
		}
		for len(b.task) > 0 {
			b.run()
		}
		for key := b.stored.Terms.Key(); w.err == nil; {
			w.workers[0].task = append(w.handle(&w.workers[0], contract.Request{Event: contract.Tick, Key: key}, nil), w.workers[0].task...)
			for len(w.workers[0].task) > 0 {
				w.workers[0].run()
			}
			if w.workers[0].task = w.duty(&w.workers[0], key); w.workers[0].task == nil {
				break
			}
		}
	}
	for len(w.network) > 0 && w.err == nil {
		m := w.network[0]
		w.network = w.network[1:]
		w.receive(m)
		for i := range w.workers {
			for len(w.workers[i].task) > 0 {
				w.workers[i].run()
			}
		}
	}
}

// absences returns a way in which a seller can be absent.
func (w *world) absences() contract.Answer {
	return []contract.Answer{contract.Silent, contract.Unknown, contract.Unknown, contract.Wrong}[w.random.IntN(4)]
}

// absence has the seller be silent, know no contract, or show nothing that can be believed, for some time.
func (w *world) absence() {
	w.absent = w.absences()
	w.trace("the seller is %s", w.absent)
	for range 1 + w.random.IntN(12) {
		w.round()
		w.time = w.time.Add(time.Duration(w.random.IntN(180)) * time.Second)
	}
	w.absent = ""
	w.trace("the seller is back")
}

// agree holds when nothing is under way.
func (w *world) agree() {
	held := ledger.Ledger{}
	for _, b := range w.buyers {
		key := b.stored.Terms.Key()
		record := w.records[key]
		state := record.State
		switch closed := b.stored.Standing == contract.Closed; {
		case w.absent != "" && (b.stored.Next(w.time).Deed != contract.Over || b.peered):
			w.failf("without its seller, buyer of %s stands %q, peered %t", key, b.stored.Standing, b.peered)
			continue
		case w.absent != "" && state.Final(), closed && (state == contract.None || state.Final()):
			continue
		}
		stable := state.Final() || state == contract.Active || state == contract.Suspended
		if !stable || b.stored.State() != state || b.stored.Proposal != nil && state != contract.Suspended {
			w.failf("contract %s is %q at the buyer, who stands %q, and %q at the seller", key, b.stored.State(), b.stored.Standing, state)
		}
		if state == contract.Active && (!b.peered || !b.using || !w.grants[key] || !b.stored.Terms.Equal(record.Terms)) {
			w.failf("contract %s is active: peered %t, used %t, granted %t", key, b.peered, b.using, w.grants[key])
		}
		if state.Final() && (b.peered || w.grants[key]) {
			w.failf("contract %s is %s: peered %t, granted %t", key, state, b.peered, w.grants[key])
		}
		if state == contract.Suspended && b.using {
			w.failf("contract %s is suspended and used", key)
		}
		if !state.Final() {
			held = held.Keep(ledger.Hold{Key: key, Offer: "o", Plan: record.Terms.Plan, Resources: record.Terms.Resources})
		}
	}
	if !held.Equal(w.books) {
		w.failf("the ledger is %v, and the contracts hold %v", w.books, held)
	}
}

// run lets a world go wrong, then settle, then pass the end of all contracts.
func (w *world) run() {
	if w.random.IntN(2) == 0 {
		w.honest = true // Half of the worlds begin with contracts.
		w.settle()
		w.honest = false
	}
	for i := range 200 {
		if w.step(); w.err != nil {
			return
		}
		if i == 100 && w.random.IntN(3) == 0 {
			w.absence()
		}
	}
	// From here on clocks are right, nobody is killed, and every message arrives.
	w.honest = true
	for i := range w.workers {
		w.workers[i] = process{}
	}
	for _, b := range w.buyers {
		b.process = process{}
	}
	w.settle()
	for range 3 {
		w.time = w.time.Add(decideFor + time.Minute)
		w.settle()
	}
	w.agree()
	w.trace("the contracts end")
	if w.random.IntN(4) == 0 {
		w.absent = w.absences()
		w.trace("the seller is %s for ever", w.absent)
	}
	for range 2 {
		w.time = w.time.Add(100 * day)
		w.settle()
		w.time = w.time.Add(drainFor)
		w.settle()
	}
	w.agree()
	if len(w.books.Holds) > 0 {
		w.failf("held for ever: %v", w.books)
	}
}

// TestWorlds lets buyers and a seller with little stock meet in random worlds, where messages are lost, come twice and out of order,
// processes are killed between any two of their steps, clocks jump both ways, and the seller is silent, does not know its contracts, or
// shows nonsense, for some time or for ever.
func TestWorlds(t *testing.T) {
	worlds := 10000
	if testing.Short() {
		worlds = 1000
	}
	var next, reached, changed, moved, left, back atomic.Int64
	var failed atomic.Uint64
	var group sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		group.Go(func() {
			for {
				seed := next.Add(1)
				if seed > int64(worlds) || failed.Load() > 0 {
					return
				}
				w := newWorld(uint64(seed), func(string, ...any) {})
				w.run()
				if w.err != nil {
					failed.CompareAndSwap(0, uint64(seed))
				}
				left.Add(int64(w.left))
				back.Add(int64(w.back))
				for _, record := range w.records {
					if slices.ContainsFunc(record.History, func(entry contract.Transition) bool { return entry.To == contract.Active }) {
						reached.Add(1)
					}
					if record.Terms.Revision > 1 {
						changed.Add(1)
					}
					if record.Terms.Plan != "small" {
						moved.Add(1)
					}
				}
			}
		})
	}
	group.Wait()
	if seed := failed.Load(); seed > 0 {
		w := newWorld(seed, t.Logf)
		w.run()
		t.Fatalf("world with seed %d: %v", seed, w.err)
	}
	if reached.Load() < int64(worlds) || changed.Load() < int64(worlds)/10 || moved.Load() < int64(worlds)/20 ||
		back.Load() < int64(worlds)/20 {
		t.Error("too few to show anything")
	}
	t.Logf("%d contracts of %d worlds were active, %d had new terms, %d another plan, of %d the buyer left, and %d times it came back",
		reached.Load(), worlds, changed.Load(), moved.Load(), left.Load(), back.Load())
}
