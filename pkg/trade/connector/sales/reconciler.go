// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package sales

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/conditions"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/books"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/readiness"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/contract"
)

// maxSteps bounds what is done for a contract in one go: time, a decision, the end, a suspension and a duty.
const maxSteps = 6

// Reconcile applies the time and what people have decided to one contract, and does what the contract asks of the seller.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	result, err := r.reconcile(ctx, req)
	if apierrors.IsConflict(err) {
		return ctrl.Result{Requeue: true}, nil // Somebody else has changed the Sale; it is looked at again.
	}
	return result, err
}

func (r *Reconciler) reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	sale := &connectorv1alpha1.Sale{}
	if err := r.cfg.Client.Get(ctx, req.NamespacedName, sale); apierrors.IsNotFound(err) {
		r.changed()
		return ctrl.Result{}, nil
	} else if err != nil {
		return ctrl.Result{}, fmt.Errorf("get sale %s: %w", req.Name, err)
	}
	defer r.changed()
	// A Sale whose record was never written is of no contract.
	record, err := books.Record(sale)
	switch {
	case err != nil:
		return ctrl.Result{}, r.writeReason(ctx, sale, connectorv1alpha1.ReasonUnreadable, err.Error())
	case record == nil:
		return r.abandon(ctx, sale)
	}
	// What the time or people want of the contract is done first, and what came of it is read again.
	result := ctrl.Result{}
	written := *record
	rests, err := r.rests(ctx, sale, *record)
	if err != nil {
		return ctrl.Result{}, err
	}
	if !rests {
		if written, result.RequeueAfter, err = r.act(ctx, sale); err != nil {
			return ctrl.Result{}, err
		}
		if err := r.cfg.Client.Get(ctx, req.NamespacedName, sale); err != nil {
			return ctrl.Result{}, client.IgnoreNotFound(err)
		}
	}
	if err := r.report(ctx, sale, written); err != nil {
		return ctrl.Result{}, err
	}
	// When to look again: when the time changes something, or to delete what is over when it was kept for long enough.
	if due, timed := due(written, r.cfg.Applier.Clock.Now()); timed && (result.RequeueAfter == 0 || due < result.RequeueAfter) {
		result.RequeueAfter = due
	}
	if left, over := r.kept(written); over && left > 0 {
		result.RequeueAfter = left
	} else if over && sale.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, r.deleteSale(ctx, sale)
	}
	return result, r.release(ctx, sale, written)
}

// rests reports whether nothing is to be done for a contract: most are looked at only because this process has begun.
func (r *Reconciler) rests(ctx context.Context, sale *connectorv1alpha1.Sale, record contract.Record) (bool, error) {
	duty := record.Duty()
	if r.cfg.Ledger == nil || duty == contract.GrantDuty || duty == contract.WithdrawDuty || r.next(sale, &record).Event != contract.Tick {
		return false, nil
	}
	books, err := r.cfg.Ledger(ctx)
	if err != nil {
		return false, fmt.Errorf("read what contract %s holds: %w", record.Key, err)
	}
	return record.Rests(r.cfg.Applier.Clock.Now(), books), nil
}

// act applies what is to happen to a contract, and does what it asks for, until there is nothing left to do now. It returns when to look
// again.
func (r *Reconciler) act(ctx context.Context, sale *connectorv1alpha1.Sale) (written contract.Record, after time.Duration, err error) {
	for range maxSteps {
		if written, err = r.step(ctx, sale); err != nil {
			return contract.Record{}, 0, err
		}
		var again bool
		if again, after, err = r.duty(ctx, written); err != nil {
			return contract.Record{}, 0, err
		}
		if !again && r.next(sale, &written).Event == contract.Tick {
			break
		}
	}
	return written, after, nil
}

// kept returns for how long a contract that is over is kept, from its last change on.
func (r *Reconciler) kept(record contract.Record) (left time.Duration, over bool) {
	if !record.State.Final() || record.Duty() != contract.NoDuty || len(record.History) == 0 {
		return 0, false
	}
	keep := r.cfg.Retention.Unsigned
	if record.Signed() {
		keep = r.cfg.Retention.Signed
	}
	return record.History[len(record.History)-1].At.Add(keep).Sub(r.cfg.Applier.Clock.Now()), true
}

// deleteSale removes a Sale as it was read. Its finalizer is removed when that is seen.
func (r *Reconciler) deleteSale(ctx context.Context, sale *connectorv1alpha1.Sale) error {
	same := client.Preconditions{UID: &sale.UID, ResourceVersion: &sale.ResourceVersion}
	if err := r.cfg.Client.Delete(ctx, sale, same); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete sale %s: %w", sale.Name, err)
	}
	return nil
}

// changed tells that the grants may have changed.
func (r *Reconciler) changed() {
	if r.cfg.Changed != nil {
		r.cfg.Changed()
	}
}

// abandon removes a Sale whose record was never written.
func (r *Reconciler) abandon(ctx context.Context, sale *connectorv1alpha1.Sale) (ctrl.Result, error) {
	age := r.cfg.Applier.Clock.Now().Sub(sale.CreationTimestamp.Time)
	if sale.DeletionTimestamp.IsZero() && age < abandoned {
		return ctrl.Result{RequeueAfter: abandoned - age}, nil
	}
	if sale.DeletionTimestamp.IsZero() {
		return ctrl.Result{Requeue: true}, r.deleteSale(ctx, sale)
	}
	return ctrl.Result{}, r.unlock(ctx, sale)
}

// step applies what is to happen next. What the contract is past is no error: somebody was faster.
func (r *Reconciler) step(ctx context.Context, sale *connectorv1alpha1.Sale) (contract.Record, error) {
	record, err := r.cfg.Applier.Apply(ctx, books.Key(sale), func(record *contract.Record) contract.Request { return r.next(sale, record) })
	if errors.Is(err, contract.ErrEarly) || errors.Is(err, contract.ErrLate) {
		err = nil
	}
	if err != nil {
		return contract.Record{}, fmt.Errorf("apply what is due to contract %s: %w", books.Key(sale), err)
	}
	return record, nil
}

// next returns what people want to happen to a contract, or Tick.
func (r *Reconciler) next(sale *connectorv1alpha1.Sale, record *contract.Record) contract.Request {
	tick := contract.Request{Event: contract.Tick}
	if record == nil {
		return tick
	}
	spec := sale.Spec
	ends, reason := spec.End != nil || !sale.DeletionTimestamp.IsZero(), spec.Reason
	if spec.End != nil {
		reason = cmp.Or(spec.End.Reason, reason)
	}
	pending := books.Pending(*record)
	decided := pending > 0 && max(spec.DecisionRevision, 1) == pending
	switch state := record.State; {
	case ends && state == contract.Proposed, decided && spec.Decision == connectorv1alpha1.DecisionRefuse:
		return contract.Request{Event: contract.Refuse, Reason: cmp.Or(reason, "the seller refuses")}
	case ends && !record.Notified && (state == contract.Signed || state == contract.Provisioning || state.InUse() ||
		state == contract.Suspended):
		return contract.Request{Event: contract.Notice, Reason: cmp.Or(reason, "the seller ends the contract")}
	case decided && spec.Decision == connectorv1alpha1.DecisionApprove:
		return contract.Request{Event: contract.Approve}
	case spec.Suspended && state.InUse():
		return contract.Request{Event: contract.Suspend, Reason: cmp.Or(spec.Reason, "the seller has suspended the contract")}
	case !spec.Suspended && state == contract.Suspended:
		return contract.Request{Event: contract.Resume}
	}
	return tick
}

// duty does what a contract asks of the seller. It returns whether the contract has changed, and when to try again.
func (r *Reconciler) duty(ctx context.Context, record contract.Record) (changed bool, after time.Duration, err error) {
	event := contract.Request{}
	switch duty := record.Duty(); duty { //nolint:exhaustive // The others ask for nothing.
	case contract.GrantDuty:
		event, err = r.cfg.Peerings.grant(ctx, record)
	case contract.WithdrawDuty:
		var done bool
		if done, err = r.cfg.Peerings.withdraw(ctx, record); err == nil && !done {
			return false, withdrawPause, nil
		}
		event = contract.Request{Event: contract.Withdrawn}
	default:
		return false, 0, nil
	}
	if err != nil {
		return false, 0, err
	}
	_, err = r.cfg.Applier.Apply(ctx, record.Key, func(stored *contract.Record) contract.Request {
		// What was done was done for the record as it was. What has changed since has duties of its own.
		if stored == nil || stored.Duty() != record.Duty() {
			return contract.Request{Event: contract.Tick}
		}
		return event
	})
	if err != nil && !errors.Is(err, contract.ErrEarly) && !errors.Is(err, contract.ErrLate) {
		return false, 0, fmt.Errorf("write what was done for contract %s: %w", record.Key, err)
	}
	return true, 0, nil
}

// due returns after how long the time changes a contract.
func due(record contract.Record, now time.Time) (after time.Duration, timed bool) {
	var times []time.Time
	switch record.State { //nolint:exhaustive // The others wait for no time.
	case contract.Proposed, contract.Reserved:
		times = append(times, record.Until)
	case contract.Terminating:
		times = append(times, record.Ends)
	case contract.Signed, contract.Provisioning, contract.Active, contract.Resizing, contract.Suspended:
		times = append(times, record.Due())
		if record.Change != nil {
			times = append(times, record.Change.Until)
		}
	}
	for _, t := range times {
		if wait := max(t.Sub(now), time.Second); !timed || wait < after {
			after, timed = wait, true
		}
	}
	return after, timed
}

// report writes how a contract is into the conditions of its Sale.
func (r *Reconciler) report(ctx context.Context, sale *connectorv1alpha1.Sale, record contract.Record) error {
	reason, message := readiness.OfSale(record)
	return r.writeReason(ctx, sale, reason, message)
}

// writeReason writes the condition Ready, if it differs.
func (r *Reconciler) writeReason(ctx context.Context, sale *connectorv1alpha1.Sale, reason, message string) error {
	was := sale.Status.DeepCopy()
	sale.Status.ObservedGeneration = sale.Generation
	if record, err := books.Record(sale); err == nil && record != nil {
		buyer := record.Terms.Cluster
		sale.Status.Cluster = connectorv1alpha1.ClusterStatus{ID: string(buyer.ID), Name: buyer.Name}
	}
	conditions.Set(&sale.Status.Conditions, sale.Generation, metav1.Condition{
		Type: connectorv1alpha1.ConditionReady, Status: readiness.Status(reason), Reason: reason, Message: message,
		LastTransitionTime: metav1.NewTime(r.cfg.Applier.Clock.Now()),
	})
	if equality.Semantic.DeepEqual(was, &sale.Status) {
		return nil
	}
	whole := &connectorv1alpha1.Sale{}
	if err := r.cfg.Reader.Get(ctx, client.ObjectKeyFromObject(sale), whole); err != nil {
		return fmt.Errorf("get sale %s whole: %w", sale.Name, err)
	}
	told := &whole.Status
	told.ObservedGeneration, told.Cluster, told.Conditions = sale.Status.ObservedGeneration, sale.Status.Cluster, sale.Status.Conditions
	whole.ResourceVersion = sale.ResourceVersion // If it has changed meanwhile, it is looked at again.
	if err := r.cfg.Client.Status().Update(ctx, whole); err != nil {
		return fmt.Errorf("update the status of sale %s: %w", sale.Name, err)
	}
	sale.ResourceVersion = whole.ResourceVersion
	conditions.Recorder{Events: r.cfg.Events, Kind: readiness.KindOfSale}.Tell(ctx, whole, was.Conditions, told.Conditions)
	return nil
}

// release lets a Sale be deleted when nothing is left of its contract.
func (r *Reconciler) release(ctx context.Context, sale *connectorv1alpha1.Sale, record contract.Record) error {
	if sale.DeletionTimestamp.IsZero() || !record.State.Final() || record.Duty() != contract.NoDuty {
		return nil
	}
	return r.unlock(ctx, sale)
}

// unlock removes the finalizer.
func (r *Reconciler) unlock(ctx context.Context, sale *connectorv1alpha1.Sale) error {
	if !controllerutil.RemoveFinalizer(sale, connectorv1alpha1.Finalizer) {
		return nil
	}
	if err := r.cfg.Client.Update(ctx, sale); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("remove the finalizer of sale %s: %w", sale.Name, err)
	}
	return nil
}
