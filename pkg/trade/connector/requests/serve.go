// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package requests

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/conditions"
	"github.com/capacitorset/liqo-broker/pkg/excerpt"
	"github.com/capacitorset/liqo-broker/pkg/trade/account"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/readiness"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/bill"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/contract"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/offer"
	"github.com/capacitorset/liqo-broker/pkg/trade/objects"
)

const (
	// firstWait is for how long a seller that did not serve is not asked again; each failure in a row doubles it, up to mostWait.
	firstWait, mostWait = 10 * time.Minute, 4 * time.Hour
	// quickTries is how many plans of a seller that refuses some are tried one after the other.
	quickTries = 3
	// patience is how long a seller may be unknown or silent before anything is agreed, and setUpFor how long it may take from then on until
	// there is a node that is ready.
	patience, setUpFor = 5 * time.Minute, 15 * time.Minute
	// lookAgain is how soon it looks for offers again.
	lookAgain = 30 * time.Second
	// maxTried and maxReason bound what is written, as the API does.
	maxTried, maxReason = 64, 256
	// maxPrefix bounds the part of a purchase's name that is the request's.
	maxPrefix = 200
	// boughtElsewhere is what a seller is told that knows a contract again, after another one was bought in its place.
	boughtElsewhere = "another contract was bought in its place"
	// shortest is the shortest contract, as the API has it.
	shortest = time.Minute
)

// failures are the reasons for which a purchase will not serve.
var failures = map[string]bool{
	connectorv1alpha1.ReasonRejected: true, connectorv1alpha1.ReasonExpired: true, connectorv1alpha1.ReasonFailed: true,
	connectorv1alpha1.ReasonOrderRefused: true, connectorv1alpha1.ReasonTooExpensive: true, connectorv1alpha1.ReasonPeeringForeign: true,
	connectorv1alpha1.ReasonEndedEarly: true, connectorv1alpha1.ReasonNotReachable: true, connectorv1alpha1.ReasonNotSetUp: true,
}

// ofPlan are the failures that say nothing of the seller's other plans.
var ofPlan = map[string]bool{
	connectorv1alpha1.ReasonRejected: true, connectorv1alpha1.ReasonOrderRefused: true, connectorv1alpha1.ReasonTooExpensive: true,
}

// pending are the reasons for which a purchase does not serve yet. They are waited for, and not for ever.
var pending = map[string]bool{
	connectorv1alpha1.ReasonSellerUnknown: true, connectorv1alpha1.ReasonSellerUnreachable: true, connectorv1alpha1.ReasonNegotiating: true,
	connectorv1alpha1.ReasonSettingUp: true, connectorv1alpha1.ReasonNodeNotReady: true,
	connectorv1alpha1.ReasonContractSuspended: true, connectorv1alpha1.ReasonContractUnknown: true,
	connectorv1alpha1.ReasonSellerRestored: true,
}

// interrupted are those of them for which a purchase that was in use is not: only the rest of the time is needed then.
var interrupted = map[string]bool{
	connectorv1alpha1.ReasonContractSuspended: true, connectorv1alpha1.ReasonContractUnknown: true,
	connectorv1alpha1.ReasonSellerRestored: true,
}

// serving is one pass over a request.
type serving struct {
	// requests has what is the same in every pass.
	requests *Reconciler

	request *connectorv1alpha1.CapacityRequest
	stored  *connectorv1alpha1.CapacityRequestStatus
	now     time.Time
	// forget is when a purchase that is kept is to be deleted, if there is one: the first of them.
	forget time.Time
	// spent is what is owed for purchases that are kept, and in whose place others are bought.
	spent bill.Sums
	// leaving is the purchase that lasts until its end, while another one is bought in its place; nil if there is none.
	leaving *connectorv1alpha1.Purchase
	// renewal is how it stands with a later end of the purchase that serves the request; nil if nobody wants one.
	renewal *metav1.Condition
}

// Reconcile looks what became of a request, and buys for it. Which offer is tried is written before its Purchase is made, and why it did
// not serve before the Purchase is deleted: so a request never has two Purchases that are meant.
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
	s := &serving{requests: r, request: request, stored: request.Status.DeepCopy(), now: r.cfg.Clock.Now()}
	result, err := s.run(ctx)
	switch {
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err):
		return ctrl.Result{Requeue: true}, nil
	case err != nil:
		return ctrl.Result{}, fmt.Errorf("serve capacity request %s: %w", req.Name, err)
	}
	if left := s.forget.Sub(s.now); !s.forget.IsZero() && !result.Requeue && (result.RequeueAfter == 0 || left < result.RequeueAfter) {
		result.RequeueAfter = left
	}
	return result, nil
}

// run goes on where status.purchase says.
func (s *serving) run(ctx context.Context) (ctrl.Result, error) {
	if err := s.tidy(ctx); err != nil {
		return ctrl.Result{}, err
	}
	if s.leaving == nil {
		s.request.Status.Leaving = ""
	}
	name := s.request.Status.Purchase
	if name == "" {
		return s.choose(ctx)
	}
	purchase := &connectorv1alpha1.Purchase{}
	err := s.requests.cfg.Reader.Get(ctx, types.NamespacedName{Name: name}, purchase)
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
	wanted := purchase.Spec.End == nil
	if s.renewal = nil; purchase.Spec.Renew && wanted {
		s.renewal = meta.FindStatusCondition(purchase.Status.Conditions, connectorv1alpha1.ConditionRenewal)
	}
	switch reason := ready.Reason; {
	case s.isNotRenewed(purchase, ready):
		return s.moveOn(ctx, purchase, ready)
	case failures[reason] && !wanted: // Nobody wants another one.
		return s.wait(ctx, 0, connectorv1alpha1.ReasonEnded, reason+": "+ready.Message)
	case reason == connectorv1alpha1.ReasonEndedEarly && !s.isShorter(purchase):
		return s.wait(ctx, 0, connectorv1alpha1.ReasonEnded, ready.Message)
	case failures[reason]:
		return s.giveUp(ctx, purchase, ready)
	case !pending[reason] || !wanted:
		s.request.Status.PendingTime = nil
		return s.wait(ctx, 0, reason, ready.Message)
	}
	if s.request.Status.PendingTime == nil {
		s.request.Status.PendingTime = new(metav1.NewTime(s.now))
	}
	bound := setUpFor
	if silent := ready.Reason == connectorv1alpha1.ReasonSellerUnknown || ready.Reason == connectorv1alpha1.ReasonSellerUnreachable; silent &&
		purchase.Status.State == "" {
		bound = patience
	}
	switch left := s.request.Status.PendingTime.Add(bound).Sub(s.now); {
	case left > 0:
		return s.wait(ctx, left+time.Second, ready.Reason, ready.Message)
	case interrupted[ready.Reason] && !s.isShorter(purchase): // It ends before another one could begin.
		return s.wait(ctx, 0, ready.Reason, ready.Message)
	}
	return s.giveUp(ctx, purchase, ready)
}

// isNotRenewed reports whether a purchase ends, or has ended as agreed, though people want it for longer, and another one can be bought in
// its place.
func (s *serving) isNotRenewed(purchase *connectorv1alpha1.Purchase, ready *metav1.Condition) bool {
	if !purchase.Spec.Renew || purchase.Spec.End != nil || s.leaving != nil {
		return false
	}
	ends := s.renewal != nil && s.renewal.Reason == connectorv1alpha1.ReasonNotRenewed && !failures[ready.Reason]
	return ends || ready.Reason == connectorv1alpha1.ReasonEnded
}

// moveOn has another purchase be made in the place of one that is not renewed. That one lasts until its end.
func (s *serving) moveOn(ctx context.Context, purchase *connectorv1alpha1.Purchase, ready *metav1.Condition) (ctrl.Result, error) {
	status := &s.request.Status
	if ready.Reason != connectorv1alpha1.ReasonEnded {
		status.Leaving, s.leaving = purchase.Name, purchase
	}
	status.Purchase, status.PendingTime, status.Remaining = "", nil, nil
	status.Successors++
	s.say(connectorv1alpha1.ReasonNegotiating, "Another offer is looked for.")
	if err := s.writeRequest(ctx); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{Requeue: true}, nil
}

// isShorter notes for how long capacity is still needed after a contract that has ended early, or is interrupted. It reports whether that
// is long enough for another.
func (s *serving) isShorter(purchase *connectorv1alpha1.Purchase) bool {
	if purchase.Status.StartTime == nil || purchase.Spec.Duration == nil || purchase.Spec.Renew {
		return true // It was never in use, or people want it for longer anyway.
	}
	remaining := purchase.Status.StartTime.Add(purchase.Spec.Duration.Duration).Sub(s.now).Truncate(time.Second)
	s.request.Status.Remaining = &metav1.Duration{Duration: max(remaining, 0)}
	return remaining >= shortest
}

// duration returns for how long capacity is needed.
func (s *serving) duration() metav1.Duration {
	if remaining := s.request.Status.Remaining; remaining != nil {
		return *remaining
	}
	return s.request.Spec.Duration
}

// giveUp remembers a seller that did not serve, and looks for another one.
func (s *serving) giveUp(ctx context.Context, purchase *connectorv1alpha1.Purchase, why *metav1.Condition) (ctrl.Result, error) {
	status, failed := &s.request.Status, int32(1)
	status.Tried = slices.DeleteFunc(status.Tried, func(t connectorv1alpha1.TriedSeller) bool {
		if t.Seller != purchase.Spec.Seller {
			return false
		}
		if s.now.Before(t.Time.Add(2 * waitAfter(t.Failures))) {
			failed = min(t.Failures, 100) + 1
		}
		return true
	})
	next := s.now
	if failed >= quickTries || !ofPlan[why.Reason] {
		next = s.now.Add(waitAfter(failed))
	}
	status.Tried = append(status.Tried, connectorv1alpha1.TriedSeller{
		Seller: purchase.Spec.Seller, Offer: purchase.Spec.Offer, Plan: purchase.Spec.Plan, Time: metav1.NewTime(s.now),
		Failures: failed, NextTime: metav1.NewTime(next), Reason: excerpt.Of(why.Reason+": "+why.Message, maxReason),
	})
	status.Tried = status.Tried[max(0, len(status.Tried)-maxTried):]
	status.Purchase, status.PendingTime = "", nil
	s.say(connectorv1alpha1.ReasonNegotiating, "Another offer is looked for.")
	if err := s.writeRequest(ctx); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{Requeue: true}, nil
}

// waitAfter is how long a seller is not asked that did not serve so often.
func waitAfter(failed int32) time.Duration {
	wait := firstWait
	for i := int32(1); i < failed && wait < mostWait; i++ {
		wait *= 2
	}
	return min(wait, mostWait)
}

// keeps reports whether a purchase is paid for, and is kept until it is over, and a while longer.
func (s *serving) keeps(purchase *connectorv1alpha1.Purchase) bool {
	ready := meta.FindStatusCondition(purchase.Status.Conditions, connectorv1alpha1.ConditionReady)
	paid := purchase.Status.PaidUntilTime
	switch {
	case paid == nil || s.requests.cfg.Keep == 0:
		return false
	case ready == nil || ready.Reason != connectorv1alpha1.ReasonEnded && ready.Reason != connectorv1alpha1.ReasonEndedEarly:
		return true
	}
	over := paid.Time
	if end := purchase.Status.EndTime; end != nil && end.After(over) {
		over = end.Time
	}
	until := over.Add(s.requests.cfg.Keep)
	if !s.now.Before(until) {
		return false
	}
	if s.forget.IsZero() || until.Before(s.forget) {
		s.forget = until
	}
	return true
}

// end has a purchase that is kept not come back: its seller can know it again, when something else was bought in its place.
func (s *serving) end(ctx context.Context, purchase *connectorv1alpha1.Purchase) error {
	if purchase.Spec.End != nil {
		return nil
	}
	purchase.Spec.End = &connectorv1alpha1.ContractEnd{Reason: boughtElsewhere}
	if err := s.requests.cfg.Client.Update(ctx, purchase); err != nil {
		return fmt.Errorf("end purchase %s: %w", purchase.Name, err)
	}
	return nil
}

// tidy deletes the purchases of the request that are not meant any more, which ends them. What is over and was paid for is kept for the
// bill, and so is the one that has served the request to its end.
func (s *serving) tidy(ctx context.Context) error {
	all := &connectorv1alpha1.PurchaseList{}
	if err := s.requests.cfg.Reader.List(ctx, all); err != nil {
		return fmt.Errorf("list purchases: %w", err)
	}
	// What of each is to be: it stays, it is left or ended and paid for, or it goes.
	for i := range all.Items {
		old := &all.Items[i]
		meant := old.Name == s.request.Status.Purchase
		switch {
		case !metav1.IsControlledBy(old, s.request) || !old.DeletionTimestamp.IsZero():
			continue
		case !meant && old.Name == s.request.Status.Leaving && !isOver(old):
			if s.leaving = old; old.Status.PaidUntilTime == nil {
				continue
			}
			entry, err := account.OfPurchase(old)
			if err != nil {
				return err
			}
			s.spent = s.spent.Plus(entry.Bill.All())
			continue
		case meant && (s.requests.cfg.Keep == 0 || !s.ended() || old.Status.PaidUntilTime == nil || s.keeps(old)):
			continue
		// It is kept for the bill, and has to end.
		case !meant && s.keeps(old):
			if err := s.end(ctx, old); err != nil {
				return err
			}
			entry, err := account.OfPurchase(old)
			if err != nil {
				return err
			}
			s.spent = s.spent.Plus(entry.Bill.All())
			continue
		}

		// It is meant no more, and nobody owes anything for it.
		if err := s.requests.cfg.Client.Delete(ctx, old, client.Preconditions{UID: &old.UID}); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete purchase %s: %w", old.Name, err)
		}
	}
	return nil
}

// isOver reports whether a purchase gives nothing any more.
func isOver(purchase *connectorv1alpha1.Purchase) bool {
	ready := meta.FindStatusCondition(purchase.Status.Conditions, connectorv1alpha1.ConditionReady)
	return ready != nil && (ready.Reason == connectorv1alpha1.ReasonEnded || failures[ready.Reason])
}

// choose buys the best offer of a seller that was not tried recently.
func (s *serving) choose(ctx context.Context) (ctrl.Result, error) {
	// What is for sale now that the request asks for.
	filter, err := filterOf(s.request.Spec, s.duration())
	if err != nil {
		return s.wait(ctx, 0, connectorv1alpha1.ReasonInvalidRequest, err.Error())
	}
	candidates, err := s.requests.cfg.Offers(filter)
	if err != nil {
		return s.wait(ctx, 0, connectorv1alpha1.ReasonInvalidRequest, err.Error())
	}
	fit := len(candidates)
	candidates, err = s.affordable(candidates)
	if err != nil {
		return s.wait(ctx, 0, connectorv1alpha1.ReasonInvalidRequest, err.Error())
	}
	// Which one is bought; or why none is.
	currencies := map[string]bool{}
	for _, c := range candidates {
		currencies[c.Price.Currency] = true
	}
	at := s.pick(candidates)
	switch {
	case len(candidates) < fit && len(candidates) == 0:
		return s.wait(ctx, lookAgain, connectorv1alpha1.ReasonNoOffer, fmt.Sprintf(
			"%d plans fit, and cost more in all than is left of spec.maxTotal, of which %s is spent.", fit, cmp.Or(s.spent.String(), "nothing")))
	case len(candidates) == 0:
		return s.wait(ctx, lookAgain, connectorv1alpha1.ReasonNoOffer, "No offer that is known fits.")
	case filter.MaxPrice == nil && filter.Currency == "" && s.request.Spec.MaxTotal == nil && len(currencies) > 1:
		return s.wait(ctx, lookAgain, connectorv1alpha1.ReasonInvalidRequest, fmt.Sprintf(
			"spec.currency: plans in %d currencies fit, and their prices cannot be compared: say currency or maxPrice", len(currencies)))
	case at < 0:
		return s.wait(ctx, lookAgain, connectorv1alpha1.ReasonNoOffer,
			fmt.Sprintf("%d plans fit, and their sellers did not serve recently.", len(candidates)))
	}
	// The name is written first, so that a purchase is made once, also if this process ends in between.
	purchase, err := s.forge(candidates[at])
	if err != nil {
		return ctrl.Result{}, err
	}
	s.request.Status.Purchase, s.request.Status.PendingTime = purchase.Name, new(metav1.NewTime(s.now))
	s.say(connectorv1alpha1.ReasonNegotiating, "")
	if err := s.writeRequest(ctx); err != nil {
		return ctrl.Result{}, err
	}
	if err := s.requests.cfg.Client.Create(ctx, purchase); err != nil {
		return ctrl.Result{}, fmt.Errorf("create purchase %s: %w", purchase.Name, err)
	}
	return ctrl.Result{}, nil
}

// affordable returns those candidates that cost no more, for as long as they are needed, than what is left of spec.maxTotal.
func (s *serving) affordable(candidates []Candidate) ([]Candidate, error) {
	total := s.request.Spec.MaxTotal
	if total == nil {
		return candidates, nil
	}
	most, err := objects.ReadMoney(*total)
	if err != nil {
		return nil, offer.In("spec.maxTotal", err)
	}
	left, some := s.spent.Less(most, total.Currency)
	return slices.DeleteFunc(slices.Clone(candidates), func(c Candidate) bool {
		wanted := contract.Terms{Price: c.Price, StartsAt: s.now, EndsAt: s.now.Add(s.duration().Duration)}
		return !some || !bill.Contract{}.With(wanted).All().Within(left, total.Currency) || c.Price.Currency != total.Currency
	}), nil
}

// left returns what is left of spec.maxTotal for another purchase; nil if people have said none.
func (s *serving) left() *connectorv1alpha1.Money {
	total := s.request.Spec.MaxTotal
	if total == nil {
		return nil
	}
	most, err := objects.ReadMoney(*total)
	if err != nil {
		return total // It was read before.
	}
	left, _ := s.spent.Less(most, total.Currency)
	return &connectorv1alpha1.Money{Amount: connectorv1alpha1.Amount(left.String()), Currency: total.Currency}
}

// pick returns the candidate to try: of those whose sellers may be asked, one of a seller that was never tried, or else not for the longest
// time, and of those the best one. It is -1 if there is none. When there is no room to remember more sellers, those after the last one have
// their turn first.
func (s *serving) pick(candidates []Candidate) int {
	tried := s.request.Status.Tried
	start := 0
	if len(tried) >= maxTried {
		last := tried[len(tried)-1]
		start = 1 + slices.IndexFunc(candidates, func(c Candidate) bool { return is(c, last) })
	}
	best, bestTime := -1, time.Time{}
	for i := range candidates {
		i = (start + i) % len(candidates)
		c, when := candidates[i], time.Time{}
		if at := slices.IndexFunc(tried, func(t connectorv1alpha1.TriedSeller) bool { return string(t.Seller) == c.Offer.Party }); at >= 0 {
			t := tried[at]
			if s.now.Before(t.NextTime.Time) || is(c, t) && s.now.Before(t.Time.Add(waitAfter(t.Failures))) {
				continue
			}
			when = t.Time.Time
		}
		if best < 0 || when.Before(bestTime) {
			best, bestTime = i, when
		}
	}
	return best
}

// is reports whether a candidate is the plan that was tried.
func is(c Candidate, t connectorv1alpha1.TriedSeller) bool {
	return string(t.Seller) == c.Offer.Party && string(t.Offer) == c.Offer.Offer && string(t.Plan) == c.Plan
}

// forge returns the purchase of a plan. Its name is that of the request, and of the request's object and what was tried: another try has
// another name.
func (s *serving) forge(c Candidate) (*connectorv1alpha1.Purchase, error) {
	spec, last := s.request.Spec, metav1.Time{}
	if tried := s.request.Status.Tried; len(tried) > 0 {
		last = tried[len(tried)-1].Time
	}
	tried := fmt.Appendf(nil, "%s %d %s %s %s", s.request.UID, last.Unix(), c.Offer.Party, c.Offer.Offer, c.Plan)
	if n := s.request.Status.Successors; n > 0 {
		tried = fmt.Appendf(tried, " %d", n)
	}
	hash := sha256.Sum256(tried)
	purchase := &connectorv1alpha1.Purchase{
		ObjectMeta: metav1.ObjectMeta{
			Name: strings.TrimRight(s.request.Name[:min(len(s.request.Name), maxPrefix)], "-.") + "-" + hex.EncodeToString(hash[:5]),
		},
		Spec: connectorv1alpha1.PurchaseSpec{
			Seller: connectorv1alpha1.PartyID(c.Offer.Party), Offer: connectorv1alpha1.Label(c.Offer.Offer), Plan: connectorv1alpha1.Label(c.Plan),
			Resources: spec.Resources, Duration: new(s.duration()), MaxPrice: spec.MaxPrice.DeepCopy(), MaxTotal: s.left(),
			Renew: spec.Renew,
			Listed: &connectorv1alpha1.ListedPlan{
				Digest: c.Digest, Region: c.Region, Notice: metav1.Duration{Duration: c.Notice},
				Price: objects.Price(c.Price),
			},
		},
	}
	if err := controllerutil.SetControllerReference(s.request, purchase, s.requests.cfg.Client.Scheme()); err != nil {
		return nil, fmt.Errorf("own purchase %s: %w", purchase.Name, err)
	}
	return purchase, nil
}

// Fits reports whether an offer, as its seller has it now, passes the request that a purchase was made for. One that was made for none
// fits; where the request is gone, nothing does. Whether something is left of the plan, its seller knows.
func (r *Reconciler) Fits(ctx context.Context, purchase *connectorv1alpha1.Purchase, now offer.Offer) (bool, error) {
	owner := metav1.GetControllerOf(purchase)
	if owner == nil || owner.Kind != "CapacityRequest" || owner.APIVersion != connectorv1alpha1.GroupVersion.String() {
		return true, nil
	}
	request := &connectorv1alpha1.CapacityRequest{}
	switch err := r.cfg.Reader.Get(ctx, types.NamespacedName{Name: owner.Name}, request); {
	case apierrors.IsNotFound(err), err == nil && request.UID != owner.UID:
		return false, nil
	case err != nil:
		return false, fmt.Errorf("get capacity request %s: %w", owner.Name, err)
	}
	duration := request.Spec.Duration
	if purchase.Spec.Duration != nil {
		duration = *purchase.Spec.Duration
	}
	filter, err := filterOf(request.Spec, duration)
	if err != nil {
		return false, nil //nolint:nilerr // Nothing passes what makes no sense.
	}
	filter.SoldOut = true
	matcher, err := filter.Compile()
	if err != nil {
		return false, nil //nolint:nilerr // As above.
	}
	return slices.ContainsFunc(matcher.Match(now), func(m offer.Match) bool { return now.Plans[m.Plan].ID == string(purchase.Spec.Plan) }), nil
}

// filterOf returns what offers have to pass. The error names the field.
func filterOf(spec connectorv1alpha1.CapacityRequestSpec, duration metav1.Duration) (offer.Filter, error) {
	filter := offer.Filter{
		Duration: offer.Duration(duration.Duration), Currency: spec.Currency,
		Regions: spec.Regions, Architectures: spec.Architectures, Types: spec.Types, Expression: spec.Expression,
	}
	var err error
	needed := maps.Clone(spec.Resources)
	maps.DeleteFunc(needed, func(_ corev1.ResourceName, quantity resource.Quantity) bool { return quantity.IsZero() })
	if filter.Resources, err = offer.ReadList(corev1.ResourceList(needed)); err != nil {
		return offer.Filter{}, offer.In("spec.resources", err)
	}
	if spec.MaxPrice != nil {
		most, err := objects.ReadPrice(*spec.MaxPrice)
		if err != nil {
			return offer.Filter{}, offer.In("spec.maxPrice", err)
		}
		filter.MaxPrice = &most
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
	return ctrl.Result{RequeueAfter: after}, s.writeRequest(ctx)
}

// say sets the condition Ready, and Renewal if people want capacity for longer. A request whose purchase ends is served by that one while
// another one is bought.
func (s *serving) say(reason, message string) {
	is := s.renewal
	if s.leaving != nil {
		ends := ""
		if at := s.leaving.Status.EndTime; at != nil {
			ends = at.UTC().Format(time.RFC3339)
		}
		said := fmt.Sprintf("Purchase %s ends at %s.", s.leaving.Name, ends)
		is = &metav1.Condition{Type: connectorv1alpha1.ConditionRenewal, Status: metav1.ConditionFalse}
		serves := meta.IsStatusConditionTrue(s.leaving.Status.Conditions, connectorv1alpha1.ConditionReady)
		switch reason {
		case connectorv1alpha1.ReasonActive:
			is.Status, is.Reason, is.Message = metav1.ConditionTrue, connectorv1alpha1.ReasonBoughtElsewhere, said+" "+
				"Purchase "+s.request.Status.Purchase+" is in use in its place."
		default:
			is.Reason, is.Message = connectorv1alpha1.ReasonBuyingElsewhere, strings.TrimSpace(said+
				" Another one is bought in its place: "+reason+". "+message)
			if serves {
				reason, message = connectorv1alpha1.ReasonActive, said
			}
		}
	}
	if is == nil {
		meta.RemoveStatusCondition(&s.request.Status.Conditions, connectorv1alpha1.ConditionRenewal)
	} else {
		conditions.Set(&s.request.Status.Conditions, s.request.Generation, metav1.Condition{
			Type: connectorv1alpha1.ConditionRenewal, Status: is.Status, Reason: is.Reason, Message: is.Message,
		})
	}
	conditions.Set(&s.request.Status.Conditions, s.request.Generation, metav1.Condition{
		Type: connectorv1alpha1.ConditionReady, Status: readiness.Status(reason), Reason: reason, Message: message,
	})
}

// writeRequest writes the status if it has changed. Nobody else may have written meanwhile.
func (s *serving) writeRequest(ctx context.Context) error {
	s.request.Status.ObservedGeneration = s.request.Generation
	if equality.Semantic.DeepEqual(s.stored, &s.request.Status) {
		return nil
	}
	if err := s.requests.cfg.Client.Status().Update(ctx, s.request); err != nil {
		return fmt.Errorf("write the status: %w", err)
	}
	conditions.Recorder{Events: s.requests.cfg.Events, Kind: readiness.Kind}.Tell(ctx, s.request, s.stored.Conditions,
		s.request.Status.Conditions)
	s.stored = s.request.Status.DeepCopy()
	return nil
}
