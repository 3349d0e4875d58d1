// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package purchases

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/connector/books"
	"github.com/capacitorset/liqo-broker/pkg/connector/negotiation"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/core/contract"
	"github.com/capacitorset/liqo-broker/pkg/excerpt"
)

const (
	// mostSteps is how much is done for a purchase before others have their turn.
	mostSteps = 24
	// maxMessage bounds what a condition says, in bytes.
	maxMessage = 1024
	// stepAgain is how soon peering and draining are looked at again, lookAgain what nobody wakes for, and orderAgain what was refused.
	stepAgain  = 3 * time.Second
	lookAgain  = 30 * time.Second
	orderAgain = time.Minute
	// watched is how soon a purchase is looked at again whose seller is being waited for, nodesAgain one with nodes, and unreadyAgain one of
	// whose nodes none is ready.
	watched      = 5 * time.Minute
	nodesAgain   = 30 * time.Second
	unreadyAgain = 5 * time.Second
)

// drive is one pass over a purchase.
type drive struct {
	*Reconciler

	object *connectorv1alpha1.Purchase
	// stored is the status as the API server has it.
	stored *connectorv1alpha1.PurchaseStatus
	// record is nil before there are terms.
	record *record
	// unready is whether no node was ready when somebody looked last.
	unready bool
	// waits is whether pods have to leave before new terms are proposed.
	waits bool
}

// now is the time in the form of terms.
func (d *drive) now() time.Time { return d.cfg.Now().UTC().Truncate(time.Second) }

// leaves reports whether people want the contract to end.
func (d *drive) leaves() bool {
	return d.object.Spec.End != nil || !d.object.DeletionTimestamp.IsZero()
}

// run does step after step, until there is something to wait for.
func (d *drive) run(ctx context.Context) (ctrl.Result, error) {
	var err error
	if d.record, err = readRecord(d.object.Status.Record); err != nil {
		return d.unreadable(ctx, err)
	}
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
	}
	action := d.record.next(d.now())
	switch action.Deed { //nolint:exhaustive // The others ask the seller.
	case contract.Over:
		return d.over(ctx, d.record.reason(), d.record.Purchase.Seen.Reason)
	case contract.SignTerms:
		return nil, d.sign(ctx, action)
	case contract.Drain:
		return d.drain(ctx, action)
	case contract.Unpeer:
		return d.unpeer(ctx, action)
	}
	c, err := d.seller()
	if err != nil {
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
	signature, err := negotiation.SignTerms(d.cfg.Key(), action.Request.Terms)
	if err != nil {
		return err
	}
	d.record.Purchase = d.record.Purchase.Finish(action, signature)
	return d.write(ctx)
}

// send sends a request to the seller, and notes what that shows.
func (d *drive) send(ctx context.Context, c *negotiation.Client, action contract.Action) (*ctrl.Result, error) {
	d.record.Purchase = d.record.Purchase.Begin(action)
	if err := d.write(ctx); err != nil {
		return nil, err
	}
	view, err := c.Do(ctx, action.Request)
	seen := d.record.Purchase.Seen.Version
	if view.Version > seen {
		if observed := d.observe(view); observed != nil {
			return d.unanswered(ctx, observed)
		}
	}
	switch event := action.Request.Event; {
	case err == nil && event == contract.Terminate && !d.record.committed() && !d.record.Purchase.State().Final():
		return d.unanswered(ctx, errors.New("the seller does not end it"))
	case d.record.Purchase.Seen.Version > seen:
		return nil, d.write(ctx)
	case err == nil:
		return d.wait(ctx, lookAgain, "", "")
	case event == contract.Reserve && errors.Is(err, negotiation.ErrTooMany):
		return d.wait(ctx, orderAgain, connectorv1alpha1.ReasonOrderRefused, err.Error())
	case event == contract.Reserve && refused(err) && seen == 0:
		return d.orderAnew(ctx, c, err)
	case (event == contract.Resize || event == contract.Renew) && refused(err):
		return d.dropProposal(ctx, err)
	}
	return d.unanswered(ctx, err)
}

// orderAnew forgets terms that the seller does not sell any more, if it never heard of them, so that other ones are asked for.
func (d *drive) orderAnew(ctx context.Context, c *negotiation.Client, refusal error) (*ctrl.Result, error) {
	_, err := c.Get(ctx, string(d.object.UID), 0, 0)
	if !errors.Is(err, contract.ErrUnknown) {
		return d.unanswered(ctx, cmp.Or(err, refusal))
	}
	d.record = nil
	d.object.Status.Record = ""
	return d.retry(ctx, connectorv1alpha1.ReasonOrderRefused, refusal.Error())
}

// dropProposal forgets new terms that the seller does not take, and that nobody has signed.
func (d *drive) dropProposal(ctx context.Context, refusal error) (*ctrl.Result, error) {
	if proposal := d.record.Purchase.Proposal; proposal != nil && proposal.Signature == "" {
		if d.record.Purchase.Proposal = nil; proposal.Event == contract.Resize {
			d.record.Size = "" // The offer may have changed since the quote: another one is asked for.
		} else {
			d.record.End = ""
		}
		d.record.Note = "Refused: " + refusal.Error()
	}
	return d.retry(ctx, "", "")
}

// observe takes what the seller shows.
func (d *drive) observe(view contract.View) error {
	observed, err := d.record.Purchase.Observe(view, d.now())
	if err != nil {
		return err
	}
	if refusal := view.Refused; refusal != nil && (d.record.Purchase.Seen.Refused == nil || *d.record.Purchase.Seen.Refused != *refusal) {
		d.record.Note = "The seller refused new terms: " + refusal.Reason
	}
	d.record.Purchase = observed
	return nil
}

// look asks the seller how far the contract is. It reports whether that is news.
func (d *drive) look(ctx context.Context, c *negotiation.Client) (bool, error) {
	view, err := c.Get(ctx, string(d.object.UID), 0, 0)
	if err != nil {
		return false, err
	}
	seen := d.record.Purchase.Seen.Version
	if err := d.observe(view); err != nil || d.record.Purchase.Seen.Version == seen {
		return false, err
	}
	return true, d.write(ctx)
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
	case d.late():
		return d.leave(ctx)
	}
	if err := d.showPeering(ctx); err != nil {
		return nil, err
	}
	after := watched
	//nolint:contextcheck // It waits longer than this pass takes.
	if !d.watches.start(d.object.Name, c, string(d.object.UID), d.record.Purchase.Seen.Version) {
		after = lookAgain
	}
	switch {
	case d.record.Purchase.Peering == contract.Apart:
	case d.unready:
		after = unreadyAgain
	default:
		after = min(after, nodesAgain)
	}
	if d.waits {
		after = min(after, lookAgain)
	}
	for _, at := range []time.Time{d.record.last(), d.record.Purchase.SignBy} {
		if left := at.Sub(d.now()); left > 0 {
			after = min(after, left+time.Second)
		}
	}
	return d.wait(ctx, after, "", "")
}

// late reports whether the contract should be over by now.
func (d *drive) late() bool {
	return d.record.committed() && !d.now().Before(d.record.last())
}

// leave goes on without the seller.
func (d *drive) leave(ctx context.Context) (*ctrl.Result, error) {
	d.record.Left = true
	return nil, d.write(ctx)
}

// unanswered is called if the seller does not answer, or not in a way that can be believed. A contract that was never signed is left if
// nobody wants it any more, and one that should be over as well. What the seller does not know is left too: either it was never reserved, or
// the seller has forgotten it, as it does long after the end.
func (d *drive) unanswered(ctx context.Context, err error) (*ctrl.Result, error) {
	if errors.Is(err, contract.ErrUnknown) && (d.record.Purchase.Seen.Version > 0 || d.record.Purchase.Ending) {
		if d.record.Purchase.Seen.Version > 0 {
			d.record.Note = "The seller does not know the contract any more."
		}
		return d.leave(ctx)
	}
	if d.late() || !d.record.committed() && d.record.Purchase.Ending {
		d.record.Note = "The seller did not confirm the end: " + err.Error()
		return d.leave(ctx)
	}
	if d.record.reason() == connectorv1alpha1.ReasonActive {
		return d.retry(ctx, "", "The seller's connector does not answer: "+err.Error())
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
	d.watches.stop(d.object.Name)
	d.object.Status.Nodes, d.object.Status.PodsLeft = nil, 0
	d.say(reason, message)
	if err := d.writeStatus(ctx); err != nil {
		return nil, err
	}
	if !d.object.DeletionTimestamp.IsZero() && controllerutil.RemoveFinalizer(d.object, connectorv1alpha1.Finalizer) {
		if err := d.cfg.Client.Update(ctx, d.object); err != nil {
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
		d.joining.Lock()
		defer d.joining.Unlock()
		used, err := d.others(ctx, id)
		if err != nil {
			return ctrl.Result{}, err
		}
		if !used.any {
			done, err := d.cfg.Peering.Unpeer(ctx, id)
			if err != nil || !done {
				return ctrl.Result{RequeueAfter: stepAgain}, err
			}
		}
	}
	message := cause.Error()
	if c, err := d.seller(); err == nil {
		key := contract.Key{Buyer: string(d.cfg.Keys().ID()), ID: string(d.object.UID)}
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

// say sets the condition Ready. An empty reason is that which follows from the record.
func (d *drive) say(reason, message string) {
	if d.record != nil {
		reason = cmp.Or(reason, d.record.reason())
		message = cmp.Or(message, d.record.Note, d.record.Purchase.Seen.Reason)
	}
	if reason == connectorv1alpha1.ReasonActive && d.unready {
		reason, message = connectorv1alpha1.ReasonNodeNotReady, cmp.Or(message, "The clusters are peered, but no virtual node of the seller's cluster is ready.")
	}
	status := metav1.ConditionFalse
	if reason == connectorv1alpha1.ReasonActive {
		status = metav1.ConditionTrue
	}
	meta.SetStatusCondition(&d.object.Status.Conditions, metav1.Condition{
		Type: connectorv1alpha1.ConditionReady, Status: status, Reason: reason, Message: excerpt.Of(message, maxMessage),
		ObservedGeneration: d.object.Generation,
	})
}

// write writes the record, and the condition that follows from it.
func (d *drive) write(ctx context.Context) error {
	d.say("", "")
	return d.writeStatus(ctx)
}

// writeStatus writes the status if it has changed. Nobody else may have written meanwhile.
func (d *drive) writeStatus(ctx context.Context) error {
	status := &d.object.Status
	status.ContractID, status.ObservedGeneration = string(d.object.UID), d.object.Generation
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
		status.Resources, status.StartTime, status.EndTime = terms.Resources, &starts, &ends
		effective := metav1.NewTime(terms.Counts())
		status.EffectiveTime, status.Superseded, status.PaidUntilTime = &effective, books.Superseded(d.record.Purchase.Superseded), nil
		if paid := d.record.Purchase.Seen.PaidUntil; !paid.IsZero() {
			status.PaidUntilTime = &metav1.Time{Time: paid}
		}
		status.Price = &connectorv1alpha1.Price{
			Amount: connectorv1alpha1.Amount(terms.Price.Amount), Currency: terms.Price.Currency, Period: connectorv1alpha1.Period(terms.Price.Period),
		}
	}
	if equality.Semantic.DeepEqual(d.stored, status) {
		return nil
	}
	if err := d.cfg.Client.Status().Update(ctx, d.object); err != nil {
		return kubernetesError{fmt.Errorf("write the status: %w", err)}
	}
	d.stored = d.object.Status.DeepCopy()
	return nil
}

// kubernetesError is an error of this cluster's API server, not of the seller.
type kubernetesError struct{ error }

func (k kubernetesError) Unwrap() error { return k.error }

func isKubernetes(err error) bool { return errors.As(err, new(kubernetesError)) }
