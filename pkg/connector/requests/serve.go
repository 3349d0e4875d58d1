// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package requests

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/offer"
	"github.com/capacitorset/liqo-broker/pkg/excerpt"
)

const (
	// triedFor is for how long an offer that did not serve is not tried again.
	triedFor = 10 * time.Minute
	// patience is how long a seller may be unknown or silent before anything is agreed.
	patience = 5 * time.Minute
	// lookAgain is how soon it looks for offers again.
	lookAgain = 30 * time.Second
	// maxTried and maxMessage bound what is written, as the API does.
	maxTried   = 16
	maxMessage = 1024
	// maxPrefix bounds the part of a purchase's name that is the request's.
	maxPrefix = 200
)

// failures are the reasons for which a purchase will not serve. Of those that are true, patience passes first.
var failures = map[string]bool{
	connectorv1alpha1.ReasonRejected: false, connectorv1alpha1.ReasonExpired: false, connectorv1alpha1.ReasonFailed: false,
	connectorv1alpha1.ReasonOrderRefused: false, connectorv1alpha1.ReasonTooExpensive: false, connectorv1alpha1.ReasonPeeringForeign: false,
	connectorv1alpha1.ReasonSellerUnknown: true, connectorv1alpha1.ReasonSellerUnreachable: true,
}

// serving is one pass over a request.
type serving struct {
	*Reconciler

	request *connectorv1alpha1.CapacityRequest
	stored  *connectorv1alpha1.CapacityRequestStatus
	now     time.Time
}

// Reconcile looks what became of a request, and buys for it. Which offer is tried is written before its Purchase is made, and why it did not
// serve before the Purchase is deleted: so a request never has two Purchases that are meant.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	request := &connectorv1alpha1.CapacityRequest{}
	err := r.cfg.Reader.Get(ctx, req.NamespacedName, request)
	switch {
	case apierrors.IsNotFound(err):
		return ctrl.Result{}, nil
	case err != nil:
		return ctrl.Result{}, fmt.Errorf("get capacity request %s: %w", req.Name, err)
	case !request.DeletionTimestamp.IsZero():
		return ctrl.Result{}, nil // Its Purchase is deleted with it, and ends the contract.
	}
	s := &serving{Reconciler: r, request: request, stored: request.Status.DeepCopy(), now: r.cfg.Now()}
	result, err := s.run(ctx)
	switch {
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err):
		return ctrl.Result{Requeue: true}, nil
	case err != nil:
		return ctrl.Result{}, fmt.Errorf("serve capacity request %s: %w", req.Name, err)
	}
	return result, nil
}

// run goes on where status.purchase says.
func (s *serving) run(ctx context.Context) (ctrl.Result, error) {
	if err := s.tidy(ctx); err != nil {
		return ctrl.Result{}, err
	}
	name := s.request.Status.Purchase
	if name == "" {
		return s.choose(ctx)
	}
	purchase := &connectorv1alpha1.Purchase{}
	err := s.cfg.Reader.Get(ctx, types.NamespacedName{Name: name}, purchase)
	switch {
	case apierrors.IsNotFound(err) && s.ended():
		return ctrl.Result{}, nil // It was over, and somebody has tidied up.
	case apierrors.IsNotFound(err):
		// The one that was to be made, or one that somebody has deleted.
		s.request.Status.Purchase = ""
		return s.choose(ctx)
	case err != nil:
		return ctrl.Result{}, fmt.Errorf("get purchase %s: %w", name, err)
	case !metav1.IsControlledBy(purchase, s.request):
		return s.wait(ctx, lookAgain, connectorv1alpha1.ReasonNoOffer, "The purchase "+name+" is not of this request: delete one of them.")
	}
	return s.follow(ctx, purchase)
}

// ended reports whether the request was served to its end.
func (s *serving) ended() bool {
	ready := meta.FindStatusCondition(s.request.Status.Conditions, connectorv1alpha1.ConditionReady)
	return ready != nil && ready.Reason == connectorv1alpha1.ReasonEnded
}

// follow says what the purchase says, and gives up one that does not serve.
func (s *serving) follow(ctx context.Context, purchase *connectorv1alpha1.Purchase) (ctrl.Result, error) {
	ready := meta.FindStatusCondition(purchase.Status.Conditions, connectorv1alpha1.ConditionReady)
	if ready == nil {
		return s.wait(ctx, 0, connectorv1alpha1.ReasonNegotiating, "")
	}
	patient, fails := failures[ready.Reason]
	switch {
	case fails && !patient && purchase.Spec.End != nil: // Nobody wants another one.
		return s.wait(ctx, 0, connectorv1alpha1.ReasonEnded, ready.Reason+": "+ready.Message)
	case fails && purchase.Spec.End == nil:
		left := ready.LastTransitionTime.Add(patience).Sub(s.now)
		if agreed := purchase.Status.State != ""; !patient || !agreed && left <= 0 {
			return s.giveUp(ctx, purchase, ready)
		} else if !agreed {
			return s.wait(ctx, left+time.Second, ready.Reason, ready.Message)
		}
	}
	return s.wait(ctx, 0, ready.Reason, ready.Message)
}

// giveUp remembers an offer that did not serve, and looks for another one.
func (s *serving) giveUp(ctx context.Context, purchase *connectorv1alpha1.Purchase, why *metav1.Condition) (ctrl.Result, error) {
	status := &s.request.Status
	status.Tried = append(status.Tried, connectorv1alpha1.TriedOffer{
		Seller: purchase.Spec.Seller, Offer: purchase.Spec.Offer, Plan: purchase.Spec.Plan, Time: metav1.NewTime(s.now),
		Reason: excerpt.Of(why.Reason+": "+why.Message, maxMessage),
	})
	status.Tried = status.Tried[max(0, len(status.Tried)-maxTried):]
	status.Purchase = ""
	s.say(connectorv1alpha1.ReasonNegotiating, "Another offer is looked for.")
	if err := s.write(ctx); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{Requeue: true}, nil
}

// tidy deletes the purchases of the request that are not meant any more, which ends them.
func (s *serving) tidy(ctx context.Context) error {
	all := &connectorv1alpha1.PurchaseList{}
	if err := s.cfg.Reader.List(ctx, all); err != nil {
		return fmt.Errorf("list purchases: %w", err)
	}
	for i := range all.Items {
		old := &all.Items[i]
		if old.Name == s.request.Status.Purchase || !metav1.IsControlledBy(old, s.request) || !old.DeletionTimestamp.IsZero() {
			continue
		}
		if err := s.cfg.Client.Delete(ctx, old, client.Preconditions{UID: &old.UID}); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete purchase %s: %w", old.Name, err)
		}
	}
	return nil
}

// choose buys the best offer that was not tried of late.
func (s *serving) choose(ctx context.Context) (ctrl.Result, error) {
	filter, err := filterOf(s.request.Spec)
	if err != nil {
		return s.wait(ctx, 0, connectorv1alpha1.ReasonInvalidRequest, err.Error())
	}
	candidates, err := s.cfg.Offers(filter)
	if err != nil {
		return s.wait(ctx, 0, connectorv1alpha1.ReasonInvalidRequest, err.Error())
	}
	at := slices.IndexFunc(candidates, func(c Candidate) bool { return !s.tried(c) })
	switch {
	case len(candidates) == 0:
		return s.wait(ctx, lookAgain, connectorv1alpha1.ReasonNoOffer, "No offer that is known fits.")
	case at < 0:
		return s.wait(ctx, lookAgain, connectorv1alpha1.ReasonNoOffer, fmt.Sprintf("%d plans fit, and all were tried of late.", len(candidates)))
	}
	purchase, err := s.forge(candidates[at])
	if err != nil {
		return ctrl.Result{}, err
	}
	s.request.Status.Purchase = purchase.Name
	s.say(connectorv1alpha1.ReasonNegotiating, "")
	if err := s.write(ctx); err != nil {
		return ctrl.Result{}, err
	}
	if err := s.cfg.Client.Create(ctx, purchase); err != nil {
		return ctrl.Result{}, fmt.Errorf("create purchase %s: %w", purchase.Name, err)
	}
	return ctrl.Result{}, nil
}

// tried reports whether a plan did not serve of late.
func (s *serving) tried(c Candidate) bool {
	return slices.ContainsFunc(s.request.Status.Tried, func(t connectorv1alpha1.TriedOffer) bool {
		return string(t.Seller) == c.Offer.Party && string(t.Offer) == c.Offer.ID && string(t.Plan) == c.Plan && s.now.Before(t.Time.Add(triedFor))
	})
}

// forge returns the purchase of a plan. Its name is that of the request, and of the request's object and what was tried: another try has
// another name.
func (s *serving) forge(c Candidate) (*connectorv1alpha1.Purchase, error) {
	spec, last := s.request.Spec, metav1.Time{}
	if tried := s.request.Status.Tried; len(tried) > 0 {
		last = tried[len(tried)-1].Time
	}
	hash := sha256.Sum256(fmt.Appendf(nil, "%s %d %d %s %s %s",
		s.request.UID, len(s.request.Status.Tried), last.Unix(), c.Offer.Party, c.Offer.ID, c.Plan))
	purchase := &connectorv1alpha1.Purchase{
		ObjectMeta: metav1.ObjectMeta{
			Name: strings.TrimRight(s.request.Name[:min(len(s.request.Name), maxPrefix)], "-.") + "-" + hex.EncodeToString(hash[:5]),
		},
		Spec: connectorv1alpha1.PurchaseSpec{
			Seller: connectorv1alpha1.PartyID(c.Offer.Party), Offer: connectorv1alpha1.Label(c.Offer.ID), Plan: connectorv1alpha1.Label(c.Plan),
			Resources: spec.Resources, Duration: spec.Duration.DeepCopy(), MaxPrice: spec.MaxPrice.DeepCopy(),
		},
	}
	if err := controllerutil.SetControllerReference(s.request, purchase, s.cfg.Client.Scheme()); err != nil {
		return nil, fmt.Errorf("own purchase %s: %w", purchase.Name, err)
	}
	return purchase, nil
}

// filterOf returns what offers have to pass. The error names the field.
func filterOf(spec connectorv1alpha1.CapacityRequestSpec) (offer.Filter, error) {
	filter := offer.Filter{
		Resources: offer.Resources{}, Duration: offer.Duration(spec.Duration.Duration),
		Regions: spec.Regions, Architectures: spec.Architectures, Types: spec.Types, Expression: spec.Expression,
	}
	for name, quantity := range spec.Resources {
		if quantity.IsZero() {
			continue
		}
		read, err := offer.ParseQuantity(quantity.String())
		if err != nil {
			return offer.Filter{}, fmt.Errorf("spec.resources[%s]: %w", name, err)
		}
		filter.Resources[string(name)] = read
	}
	if most := spec.MaxPrice; most != nil {
		amount, err := offer.ParseAmount(string(most.Amount))
		if err != nil {
			return offer.Filter{}, fmt.Errorf("spec.maxPrice.amount: %w", err)
		}
		filter.MaxPrice = &offer.Price{Amount: amount, Currency: most.Currency, Period: offer.Period(most.Period)}
	}
	for _, kind := range spec.Kinds {
		filter.Kinds = append(filter.Kinds, offer.Kind(kind))
	}
	for _, seller := range spec.Sellers {
		filter.Parties = append(filter.Parties, string(seller))
	}
	return filter, nil
}

// wait says why, and looks again after a time; 0 is when something changes.
func (s *serving) wait(ctx context.Context, after time.Duration, reason, message string) (ctrl.Result, error) {
	s.say(reason, message)
	return ctrl.Result{RequeueAfter: after}, s.write(ctx)
}

// say sets the condition Ready.
func (s *serving) say(reason, message string) {
	status := metav1.ConditionFalse
	if reason == connectorv1alpha1.ReasonActive {
		status = metav1.ConditionTrue
	}
	meta.SetStatusCondition(&s.request.Status.Conditions, metav1.Condition{
		Type: connectorv1alpha1.ConditionReady, Status: status, Reason: reason, Message: excerpt.Of(message, maxMessage),
		ObservedGeneration: s.request.Generation,
	})
}

// write writes the status if it has changed. Nobody else may have written meanwhile.
func (s *serving) write(ctx context.Context) error {
	s.request.Status.ObservedGeneration = s.request.Generation
	if equality.Semantic.DeepEqual(s.stored, &s.request.Status) {
		return nil
	}
	if err := s.cfg.Client.Status().Update(ctx, s.request); err != nil {
		return fmt.Errorf("write the status: %w", err)
	}
	s.stored = s.request.Status.DeepCopy()
	return nil
}
