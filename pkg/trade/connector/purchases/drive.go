// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package purchases

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/conditions"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/books"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/readiness"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/contract"
	"github.com/capacitorset/liqo-broker/pkg/trade/negotiation"
	"github.com/capacitorset/liqo-broker/pkg/trade/negotiation/negotiationv1"
	"github.com/capacitorset/liqo-broker/pkg/trade/objects"
)

const (
	// mostSteps is how much is done for a purchase before others have their turn.
	mostSteps = 24
	// stepAgain is how soon peering and draining are looked at again, lookAgain what nobody wakes for, and orderAgain what was refused.
	stepAgain  = 3 * time.Second
	lookAgain  = 30 * time.Second
	orderAgain = time.Minute
	// reachAgain is how soon a seller is asked again to sign that does not reach this cluster: it gives up when what it reserves lapses.
	reachAgain = 20 * time.Second
	// watched is how soon a purchase is looked at again whose seller is being waited for, nodesAgain one with nodes, and unreadyAgain one of
	// whose nodes none is ready.
	watched      = 5 * time.Minute
	nodesAgain   = 30 * time.Second
	unreadyAgain = 5 * time.Second
	// seldom is how often a seller is asked whose buyer has left.
	seldom = 5 * time.Minute
	// readyWithin is for how long a purchase waits for what was signed that does not say it: nobody pays for long for what does not come,
	// and who mends something meanwhile has the time for it.
	readyWithin = time.Hour
)

// drive is one pass over a purchase.
type drive struct {
	// purchases has what is the same in every pass.
	purchases *Reconciler

	object *connectorv1alpha1.Purchase
	// stored is the status as the API server has it.
	stored *connectorv1alpha1.PurchaseStatus
	// record is nil before there are terms.
	record *record
	// unready is whether no node was ready when somebody looked last.
	unready bool
	// closed is whether nodes were closed when somebody looked last, which open soon.
	closed bool
	// waits is whether pods have to leave before new terms are proposed.
	waits bool
}

// now is the time in the form of terms.
func (d *drive) now() time.Time { return d.purchases.cfg.Clock.Now().UTC().Truncate(time.Second) }

// id is what the contract is called. Other terms that are ordered have another name, so that its seller never has others by this one.
func (d *drive) id() string {
	if d.record != nil {
		return d.record.Purchase.Terms.ID
	}
	return cmp.Or(d.object.Status.ContractID, string(d.object.UID))
}

// otherID returns what the next contract of a purchase is called: the purchase's UID, and which one it is.
func otherID(id, uid string) string {
	n, _ := strconv.Atoi(strings.TrimPrefix(id, uid+"-")) // The first one has no number.
	return uid + "-" + strconv.Itoa(max(n, 1)+1)
}

// leaves reports whether people want the contract to end.
func (d *drive) leaves() bool {
	return d.object.Spec.End != nil || !d.object.DeletionTimestamp.IsZero()
}

// readyWithin returns for how long people wait for what was signed.
func (d *drive) readyWithin() time.Duration {
	if within := d.object.Spec.ReadyWithin; within != nil {
		return within.Duration
	}
	return readyWithin
}

// run does step after step, until there is something to wait for.
func (d *drive) run(ctx context.Context) (ctrl.Result, error) {
	var err error
	if d.record, err = readRecord(d.object.Status.Record); err != nil {
		return d.unreadable(ctx, err)
	}
	d.pass()
	ready := meta.FindStatusCondition(d.object.Status.Conditions, connectorv1alpha1.ConditionReady)
	d.unready = ready != nil && ready.Reason == connectorv1alpha1.ReasonNodeNotReady
	for range mostSteps {
		result, err := d.step(ctx)
		if err != nil {
			return ctrl.Result{}, err
		}
		if result != nil {
			return *result, nil
		}
	}
	return ctrl.Result{Requeue: true}, nil
}

// step does the next thing. It returns nil if there is more to do at once.
func (d *drive) step(ctx context.Context) (*ctrl.Result, error) {
	if d.record == nil {
		return d.order(ctx)
	}
	if d.leaves() {
		reason := ""
		if d.object.Spec.End != nil {
			reason = d.object.Spec.End.Reason
		}
		d.record.Purchase = d.record.Purchase.End(reason)
	} else {
		d.record.Purchase = d.record.Purchase.SetUpWithin(d.readyWithin())
	}
	d.followRenewal()
	action := d.record.Purchase.Next(d.now())
	switch action.Deed { //nolint:exhaustive // The others ask the seller.
	case contract.Over:
		message := ""
		if d.record.Purchase.State().Final() && !d.record.Unreached { // Else the note says more.
			message = d.record.Purchase.Seen.Reason
		}
		return d.over(ctx, d.reason(), message)
	case contract.SignTerms:
		return nil, d.sign(ctx, action)
	case contract.Drain:
		return d.drain(ctx, action)
	case contract.Unpeer:
		return d.unpeer(ctx, action)
	}
	c, err := d.seller()
	if err != nil {
		_ = d.heard(nil, contract.View{}, err) // There is no view that could be wrong.
		return d.unanswered(ctx, err)
	}
	switch action.Deed { //nolint:exhaustive // The others are done above.
	case contract.Peer:
		return d.peer(ctx, c, action)
	case contract.Send:
		return d.send(ctx, c, action)
	}
	return d.watch(ctx, c)
}

// sign signs terms, and writes the signature before anybody sees it.
func (d *drive) sign(ctx context.Context, action contract.Action) error {
	d.record.Purchase = d.record.Purchase.Begin(action)
	signature, err := negotiation.SignTerms(d.purchases.cfg.Key(), action.Request.Terms)
	if err != nil {
		return err
	}
	d.record.Purchase = d.record.Purchase.Finish(action, signature)
	return d.writePurchase(ctx)
}

// send sends a request to the seller, and notes what that shows.
func (d *drive) send(ctx context.Context, c *negotiation.Client, action contract.Action) (*ctrl.Result, error) {
	d.record.Purchase = d.record.Purchase.Begin(action)
	if err := d.writePurchase(ctx); err != nil {
		return nil, err
	}
	before := d.record.Purchase
	var at *negotiationv1.Endpoints
	if action.Request.Event == contract.Sign {
		at = d.own(ctx)
	}
	view, err := c.DoAt(ctx, action.Request, at)
	if wrong := d.heard(c, view, err); wrong != nil {
		return d.unanswered(ctx, wrong)
	}
	switch event := action.Request.Event; {
	case d.turned(before):
		d.reached()
		return nil, d.writePurchase(ctx)
	case d.record.Purchase.Standing == contract.Left:
		return d.left(ctx)
	case event == contract.Sign && errors.Is(err, negotiation.ErrNotReachable):
		d.record.Unreached, d.record.Note = true, "The seller has not signed: "+err.Error()
		return d.wait(ctx, reachAgain, "", "")
	case event == contract.Sign && errors.Is(err, negotiation.ErrTooMany):
		return d.wait(ctx, reachAgain, "", "")
	case err == nil:
		return d.wait(ctx, lookAgain, "", "")
	case event == contract.Reserve && errors.Is(err, negotiation.ErrTooMany):
		return d.wait(ctx, orderAgain, connectorv1alpha1.ReasonOrderRefused, err.Error())
	case event == contract.Reserve && refused(err) && before.Seen.Version == 0:
		return d.orderAnew(ctx, c, err)
	case (event == contract.Resize || event == contract.Renew) && refused(err):
		return d.dropProposal(ctx, err)
	}
	return d.unanswered(ctx, err)
}

// orderAnew forgets terms that the seller does not sell any more, if it never heard of them, so that other ones are asked for.
func (d *drive) orderAnew(ctx context.Context, c *negotiation.Client, refusal error) (*ctrl.Result, error) {
	view, err := c.Get(ctx, d.id(), 0, 0)
	if !errors.Is(err, contract.ErrUnknown) {
		_ = d.heard(c, view, err) // The refusal counts.
		return d.unanswered(ctx, cmp.Or(err, refusal))
	}
	d.object.Status.ContractID = otherID(d.id(), string(d.object.UID))
	d.record = nil
	d.object.Status.Record = ""
	return d.retry(ctx, connectorv1alpha1.ReasonOrderRefused, refusal.Error())
}

// dropProposal forgets new terms that the seller does not take, and that nobody has signed.
func (d *drive) dropProposal(ctx context.Context, refusal error) (*ctrl.Result, error) {
	if proposal := d.record.Purchase.Proposal; proposal != nil && proposal.Signature == "" {
		if d.record.Purchase.Proposal = nil; proposal.Event == contract.Resize {
			d.record.Size = "" // The offer may have changed since the quote: another one is asked for.
		} else if r := d.record.Renewal; r != nil && !r.Asked.IsZero() {
			d.notRenewed(refusal.Error())
		} else {
			d.record.End = ""
		}
		d.record.Note = "Refused: " + refusal.Error()
	}
	if !d.leaves() { // It may be refused again and again: what was closed for another contract is opened all the same.
		if err := d.showPeering(ctx); err != nil {
			return nil, err
		}
	}
	return d.retry(ctx, "", "")
}

// heard takes what came of asking the seller, which is nil before its keys and its address are known. It returns why what it shows cannot
// be believed.
func (d *drive) heard(c *negotiation.Client, view contract.View, err error) error {
	before, seller := d.record.Purchase, time.Time{}
	if c != nil {
		seller = c.SellerTime()
	}
	var wrong error
	answer := answerOf(err)
	switch {
	case view.Version > before.Seen.Version:
		wrong = d.observe(view)
		if answer = contract.Answered; wrong != nil {
			answer = contract.Wrong
		}
	case view.Version > 0 && (view.Version < before.Seen.Version || before.Forks(view)):
		answer = contract.Older
	case view.Version > 0:
		answer = contract.Answered
	}
	d.record.Purchase = d.record.Purchase.Hear(answer, view, before.ClocksAt(d.now(), seller))
	if after := d.record.Purchase; after.Doubt != before.Doubt || after.Standing != before.Standing {
		d.purchases.passed.begin(d.object.UID, d.purchases.cfg.Elapsed())
	}
	d.report(before, cmp.Or(wrong, err))
	return wrong
}

// pass counts the time that has passed since it was counted last.
func (d *drive) pass() {
	if d.record == nil {
		return
	}
	passed := d.purchases.passed.since(d.object.UID, d.purchases.cfg.Elapsed(), d.record.Purchase.Grain())
	d.record.Purchase = d.record.Purchase.Pass(passed)
}

// answerOf returns what an error says of a seller that has shown no contract.
func answerOf(err error) contract.Answer {
	switch {
	case err == nil:
		return contract.Answered
	case errors.Is(err, contract.ErrUnknown):
		return contract.Unknown
	case refused(err), errors.Is(err, contract.ErrEarly), errors.Is(err, contract.ErrLate), errors.Is(err, contract.ErrRevision):
		return contract.Wrong
	}
	return contract.Silent
}

// turned reports whether the seller has shown something else than before, or the buyer does without it from now on, or not any more.
func (d *drive) turned(before contract.Purchase) bool {
	after := d.record.Purchase
	parts := after.Standing != before.Standing && (after.Standing.Parts() || before.Standing.Parts())
	return parts && after.Standing != contract.Left || after.Seen.Version != before.Seen.Version || before.Forks(after.Seen)
}

// report notes for people what has changed between this side and its seller.
func (d *drive) report(before contract.Purchase, err error) {
	after := d.record.Purchase
	switch parts := after.Standing.Parts(); {
	case parts && after.Standing != before.Standing:
		switch {
		case after.Doubt == contract.UnknownDoubt && after.Seen.Version > 0:
			d.record.Note = "The seller does not know the contract any more."
		case after.Doubt == contract.WrongDoubt && err == nil:
			d.record.Note = "The seller does not end it."
		case after.Doubt != contract.UnknownDoubt && err != nil:
			d.record.Note = "The seller did not confirm the end: " + err.Error()
		}
	case after.Restored && (after.Seen.Version < before.Seen.Version || before.Forks(after.Seen)):
		d.record.Note = fmt.Sprintf("The seller was restored from an older copy: it shows version %d of the contract, %s, by terms of "+
			"revision %d.",
			after.Seen.Version, after.State(), after.Seen.Terms.Revision)
	case before.Standing == contract.Left && !parts && !after.State().Final() && !after.Ending:
		d.record.Note = "The seller shows the contract again, and it goes on; kubectl delete purchase " + d.object.Name + " ends it."
	case before.Standing.Parts() && !parts, before.Restored && !after.Restored:
		d.record.Note = ""
	}
}

// left waits for long until a seller is asked again whose buyer has left, and lets go of an object that is being deleted, unless the seller
// shows something of the contract, which is ended then.
func (d *drive) left(ctx context.Context) (*ctrl.Result, error) {
	switch deleted := !d.object.DeletionTimestamp.IsZero(); {
	case deleted && d.record.Purchase.Doubt == contract.OlderDoubt:
		return d.wait(ctx, lookAgain, "", "")
	case deleted:
		return d.over(ctx, d.reason(), "")
	}
	d.purchases.watches.stop(d.object.Name)
	return d.wait(ctx, seldom, "", "")
}

// observe takes what the seller shows.
func (d *drive) observe(view contract.View) error {
	observed, err := d.record.Purchase.Observe(view, d.now())
	if err != nil {
		return err
	}
	if refusal := view.Refused; refusal != nil && (d.record.Purchase.Seen.Refused == nil || *d.record.Purchase.Seen.Refused != *refusal) {
		d.record.Note = "The seller refused new terms: " + refusal.Reason
		if proposal := d.record.Purchase.Proposal; proposal != nil && proposal.Event == contract.Renew &&
			proposal.Terms.Revision == refusal.Revision {
			d.notRenewed(refusal.Reason)
		}
	}
	d.record.Purchase = observed
	return nil
}

// look asks the seller how far the contract is. It reports whether that is news.
func (d *drive) look(ctx context.Context, c *negotiation.Client) (bool, error) {
	before := d.record.Purchase
	view, err := c.Get(ctx, d.id(), before.Seen.Version, 0)
	if wrong := d.heard(c, view, err); err != nil || wrong != nil {
		return false, cmp.Or(err, wrong)
	}
	if !d.turned(before) {
		return false, nil
	}
	return true, d.writePurchase(ctx)
}

// watch looks whether there is news, and has itself woken when there is some.
func (d *drive) watch(ctx context.Context, c *negotiation.Client) (*ctrl.Result, error) {
	news, err := d.look(ctx, c)
	if err == nil && !news {
		news, err = d.propose(ctx, c)
	}
	switch {
	case isKubernetes(err):
		return nil, err
	case err != nil:
		return d.unanswered(ctx, err)
	case news:
		return nil, nil //nolint:nilnil // There is more to do.
	case d.record.Purchase.Standing == contract.Left:
		return d.left(ctx)
	}
	// Nothing is new: the seller is asked to answer when something is, and without that this side looks again itself.
	if err := d.showPeering(ctx); err != nil {
		return nil, err
	}
	after := watched
	//nolint:contextcheck // It waits longer than this pass takes.
	if !d.purchases.watches.start(d.object.Name, c, d.id(), d.record.Purchase.Seen.Version) {
		after = lookAgain
	}
	switch {
	case d.record.Purchase.Peering == contract.Apart:
	case d.unready, d.closed:
		after = unreadyAgain
	default:
		after = min(after, nodesAgain)
	}
	if d.waits || d.record.Purchase.Doubt != contract.NoDoubt {
		after = min(after, lookAgain)
	}
	if left, waits := d.record.Purchase.Waits(d.readyWithin()); waits {
		after = min(after, left+time.Second)
	}
	// Time alone changes something at the end, and at the time by which it has to be signed.
	for _, at := range []time.Time{d.record.Purchase.Last(), d.record.Purchase.SignBy} {
		if left := at.Sub(d.now()); left > 0 {
			after = min(after, left+time.Second)
		}
	}
	return d.wait(ctx, after, "", "")
}

// unanswered is called when it was heard that the seller does not answer, or not in a way that can be believed. What the buyer does about
// that is decided by package contract; if it is nothing, the seller is asked again.
func (d *drive) unanswered(ctx context.Context, err error) (*ctrl.Result, error) {
	switch d.record.Purchase.Next(d.now()).Deed { //nolint:exhaustive // The others ask the seller.
	case contract.Over, contract.Drain, contract.Unpeer:
		return nil, d.writePurchase(ctx)
	}
	if !d.leaves() { // What runs goes on, and what was closed for another contract is opened.
		if err := d.showPeering(ctx); err != nil {
			return nil, err
		}
	}
	reason := d.reason()
	switch {
	case d.record.Purchase.Standing == contract.Left:
		return d.left(ctx)
	case errors.Is(err, errOtherParty) && reason == connectorv1alpha1.ReasonActive:
		return d.retry(ctx, reason, err.Error())
	case errors.Is(err, errOtherParty):
		return d.retry(ctx, connectorv1alpha1.ReasonOtherParty, err.Error())
	case reason == connectorv1alpha1.ReasonActive:
		return d.retry(ctx, reason, "The seller's connector does not answer: "+err.Error())
	case reason == connectorv1alpha1.ReasonContractUnknown:
		return d.retry(ctx, reason, err.Error())
	case d.record.Purchase.Standing == contract.Alone:
		return d.retry(ctx, reason, "")
	}
	return d.retry(ctx, connectorv1alpha1.ReasonSellerUnreachable, err.Error())
}

// wait says why, if reason is not empty, and looks again after a time.
func (d *drive) wait(ctx context.Context, after time.Duration, reason, message string) (*ctrl.Result, error) {
	d.say(reason, message)
	return &ctrl.Result{RequeueAfter: after}, d.writeStatus(ctx)
}

// retry says why, and tries again after a pause that grows.
func (d *drive) retry(ctx context.Context, reason, message string) (*ctrl.Result, error) {
	d.say(reason, message)
	return &ctrl.Result{Requeue: true}, d.writeStatus(ctx)
}

// over says that nothing happens any more, and lets go of an object that is being deleted.
func (d *drive) over(ctx context.Context, reason, message string) (*ctrl.Result, error) {
	d.purchases.watches.stop(d.object.Name)
	d.purchases.passed.forgetPurchase(d.object.UID)
	d.object.Status.Nodes, d.object.Status.PodsLeft = nil, 0
	d.say(reason, message)
	if err := d.writeStatus(ctx); err != nil {
		return nil, err
	}
	if !d.object.DeletionTimestamp.IsZero() && controllerutil.RemoveFinalizer(d.object, connectorv1alpha1.Finalizer) {
		if err := d.purchases.cfg.Client.Update(ctx, d.object); err != nil {
			return nil, fmt.Errorf("let go of it: %w", err)
		}
	}
	return &ctrl.Result{}, nil
}

// unreadable leaves a purchase alone whose record cannot be read. One that is being deleted parts from the cluster in its status, and tells
// its seller so if that can be told.
func (d *drive) unreadable(ctx context.Context, cause error) (ctrl.Result, error) {
	if d.object.DeletionTimestamp.IsZero() {
		result, err := d.wait(ctx, watched, connectorv1alpha1.ReasonUnreadable, cause.Error())
		return *result, err
	}
	if id := cluster.ID(d.object.Status.Cluster.ID); id != "" {
		d.purchases.joining.Lock()
		defer d.purchases.joining.Unlock()
		used, err := d.others(ctx, id)
		if err != nil {
			return ctrl.Result{}, err
		}
		if !used.any {
			done, err := d.purchases.cfg.Peering.Unpeer(ctx, id)
			if err != nil || !done {
				return ctrl.Result{RequeueAfter: stepAgain}, err
			}
		}
	}
	message := cause.Error()
	if c, err := d.seller(); err == nil {
		key := contract.Key{Buyer: string(d.purchases.cfg.Keys().ID()), ID: d.id()}
		if _, err := c.Do(ctx, contract.Request{Event: contract.Terminate, Key: key}); err != nil {
			message += "; the seller was not told: " + err.Error()
		}
	}
	result, err := d.over(ctx, connectorv1alpha1.ReasonUnreadable, message)
	if err != nil {
		return ctrl.Result{}, err
	}
	return *result, nil
}

// reason returns the reason of the condition Ready that follows from the record.
func (d *drive) reason() string {
	reason, _ := readiness.OfPurchase(d.record.Purchase, !d.leaves(), d.record.Unreached)
	return reason
}

// say sets the condition Ready. An empty reason is that which follows from the record.
func (d *drive) say(reason, message string) {
	usual := ""
	if d.record != nil {
		follows, said := readiness.OfPurchase(d.record.Purchase, !d.leaves(), d.record.Unreached)
		reason = cmp.Or(reason, follows)
		message = cmp.Or(message, d.record.Note, d.record.Purchase.Seen.Reason)
		if reason == follows {
			usual = said
		}
	}
	if reason == connectorv1alpha1.ReasonActive && d.unready {
		reason, usual = connectorv1alpha1.ReasonNodeNotReady, "The clusters are peered, but no virtual node of the seller's cluster is ready."
	}
	conditions.Set(&d.object.Status.Conditions, d.object.Generation, metav1.Condition{
		Type: connectorv1alpha1.ConditionReady, Status: readiness.Status(reason), Reason: reason, Message: cmp.Or(message, usual),
	})
	d.sayRenewal()
}

// writePurchase writes the record, and the condition that follows from it.
func (d *drive) writePurchase(ctx context.Context) error {
	d.say("", "")
	return d.writeStatus(ctx)
}

// writeStatus writes the status if it has changed. Nobody else may have written meanwhile.
func (d *drive) writeStatus(ctx context.Context) error {
	status := &d.object.Status
	status.ContractID, status.ObservedGeneration = d.id(), d.object.Generation
	// The record is what counts; what people read beside it is taken from it.
	if d.record != nil {
		text, err := d.record.text()
		if err != nil {
			return err
		}
		terms := d.record.Purchase.Terms
		starts, ends := metav1.NewTime(terms.StartsAt), metav1.NewTime(terms.EndsAt)
		if seen := d.record.Purchase.Seen.Ends; !seen.IsZero() && seen.Before(terms.EndsAt) {
			ends = metav1.NewTime(seen)
		}
		status.Record, status.State, status.Cluster = text, string(d.record.Purchase.State()), d.record.Cluster
		status.Plan, status.Resources, status.StartTime, status.EndTime = terms.Plan, terms.Resources, &starts, &ends
		effective := metav1.NewTime(terms.Counts())
		status.EffectiveTime, status.Superseded, status.PaidUntilTime = &effective, books.Superseded(d.record.Purchase.Superseded), nil
		if paid := d.record.Purchase.Seen.PaidUntil; !paid.IsZero() {
			status.PaidUntilTime = &metav1.Time{Time: paid}
		}
		status.Price, status.Documents = new(objects.Price(terms.Price)), objects.Documents(d.record.Documents[terms.OfferDigest])
	}
	if equality.Semantic.DeepEqual(d.stored, status) {
		return nil
	}
	// An update, and no patch: whoever has an older copy overwrites no newer record.
	if err := d.purchases.cfg.Client.Status().Update(ctx, d.object); err != nil {
		return kubernetesError{fmt.Errorf("write the status: %w", err)}
	}
	// What is written is told: in the log, and by events.
	if from, to := d.stored.State, status.State; from != to {
		log.FromContext(ctx).Info("Contract", "seller", d.object.Spec.Seller, "id", status.ContractID, "from", from, "to", to, "why",
			d.record.Purchase.Seen.Reason)
	}
	conditions.Recorder{Events: d.purchases.cfg.Events, Kind: readiness.Kind}.Tell(ctx, d.object, d.stored.Conditions, status.Conditions)
	d.stored = d.object.Status.DeepCopy()
	return nil
}

// kubernetesError is an error of this cluster's API server, not of the seller.
type kubernetesError struct{ error }

func (k kubernetesError) Unwrap() error { return k.error }

func isKubernetes(err error) bool { return errors.As(err, new(kubernetesError)) }
