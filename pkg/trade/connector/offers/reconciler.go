// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package offers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/conditions"
	"github.com/capacitorset/liqo-broker/pkg/lenient"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/capacity"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/readiness"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/ledger"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/offer"
	"github.com/capacitorset/liqo-broker/pkg/trade/negotiation"
	"github.com/capacitorset/liqo-broker/pkg/trade/party"
)

// Reconcile looks at all offers: it signs what has changed, writes that, and then has it listed. It is for one worker. What fails with one
// offer keeps no other one back.
func (s *Reconciler) Reconcile(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
	// All offers are signed from one view of what is sold, what there is to sell, and what was measured.
	var all connectorv1alpha1.OfferList
	if err := s.cfg.Reader.List(ctx, &all); err != nil {
		return ctrl.Result{}, fmt.Errorf("list offers: %w", err)
	}
	books, err := s.cfg.Ledger(ctx)
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("read what is sold: %w", err)
	}
	has, err := s.cfg.Capacity(ctx)
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("count what there is to sell: %w", err)
	}
	attributes, err := s.cfg.Attributes(ctx)
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("read of what kind the devices are: %w", err)
	}
	now := s.cfg.Clock.Now()
	known, err := s.cfg.Measured(ctx, now)
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("read what was measured: %w", err)
	}
	gap := capacity.Gap{}
	if s.cfg.Covered != nil {
		if gap, err = s.cfg.Covered(ctx, now); err != nil {
			return ctrl.Result{}, fmt.Errorf("compare what is sold with what there is: %w", err)
		}
	}
	// Nobody is told of offers by which buyers would get more than they buy.
	unguarded := s.cfg.Guarded(ctx)

	// Each offer is signed by itself: one that cannot be is no reason to withhold the others.
	maps.DeleteFunc(s.revisions, func(_ string, at int64) bool { return at < now.Unix() })
	result := ctrl.Result{RequeueAfter: lookAgain}
	if unguarded != nil {
		result.RequeueAfter = unguardedAgain
	}
	if lapses := books.Lapses(now); !lapses.IsZero() {
		result.RequeueAfter = min(result.RequeueAfter, lapses.Sub(now)) // What lapses is for sale again.
	}
	published := map[string]item{}
	looks := make([]*look, 0, len(all.Items))
	var failed []error
	for i := range all.Items {
		of := &all.Items[i]
		if !of.DeletionTimestamp.IsZero() {
			continue
		}
		l := &look{
			reconciler: s, offer: of, stored: of.Status.DeepCopy(), kpis: known, attributes: attributes, now: now, again: lookAgain,
			unguarded: unguarded,
		}
		if err := l.sign(ctx, books, has); err != nil && !apierrors.IsNotFound(err) {
			failed = append(failed, err)
		}
		published[of.Name] = item{spec: of, listing: l.listing, rules: l.rules, wanted: l.says}
		looks = append(looks, l)
		result.RequeueAfter = min(result.RequeueAfter, l.again)
	}

	// Registries list what buyers can already ask for.
	s.mu.Lock()
	s.published = published
	s.mu.Unlock()
	s.once.Do(func() { close(s.loaded) })
	signed := map[string]string{}
	for id, on := range published {
		if on.listing.JWS != "" {
			signed[id] = on.listing.JWS
		}
	}
	s.cfg.Registries.SetOffers(signed)

	// People are told last, of what was done.
	for _, l := range looks {
		l.describeOffer()
		l.describeCover(gap)
		if err := l.writeStatus(ctx); err != nil && !apierrors.IsNotFound(err) {
			failed = append(failed, err)
		}
	}
	if len(failed) > 0 && !slices.ContainsFunc(failed, func(err error) bool { return !apierrors.IsConflict(err) }) {
		return ctrl.Result{Requeue: true}, nil // Somebody else has changed an offer meanwhile.
	}
	if err := errors.Join(failed...); err != nil {
		return ctrl.Result{}, err
	}
	return result, nil
}

// look is a look at one offer.
type look struct {
	// reconciler has what is the same in every look.
	reconciler *Reconciler

	offer  *connectorv1alpha1.Offer
	stored *connectorv1alpha1.OfferStatus
	kpis   []offer.KPI
	// attributes are those of the devices of the cluster.
	attributes capacity.Attributes
	now        time.Time
	// again is after how long it is to be looked at again.
	again time.Duration

	// listing is what is for sale; the zero one if nothing is.
	listing offer.Signed
	rules   *negotiation.Rules
	// says is what the offer says, without revision and times; the zero one if it makes no sense.
	says offer.Offer
	// unguarded is why nothing is for sale whatever the offer says; nil if it is.
	unguarded error
	// invalid is why the offer makes no sense; nil if it does.
	invalid error
}

// sign signs the offer if it has changed, or is soon not valid any more, and writes that. If it cannot be written, what was signed before
// is for sale while it is valid: under one revision there is never another content.
func (l *look) sign(ctx context.Context, books ledger.Ledger, has corev1.ResourceList) error {
	status := &l.offer.Status
	var wanted offer.Offer
	var rest map[string]left
	if l.rules, l.invalid = rules(l.offer.Spec.Buyers); l.invalid == nil {
		wanted, rest, l.invalid = l.wanted(books, has)
	}
	if l.invalid != nil {
		return l.unsign(ctx)
	}
	l.says = wanted
	// What is sold and left is shown also of an offer that is closed.
	status.Plans, status.Sold = nil, 0
	for _, plan := range wanted.Plans {
		of := rest[plan.ID]
		status.Plans = append(status.Plans, connectorv1alpha1.OfferPlanStatus{
			ID: connectorv1alpha1.Label(plan.ID), Sold: of.sold, Available: of.available,
		})
		status.Sold += int32(min(of.sold, maxAvailable)) //nolint:gosec // It is bounded.
	}
	if l.offer.Spec.Sale == connectorv1alpha1.SaleClosed || l.unguarded != nil {
		return l.unsign(ctx)
	}

	// What was signed stays while it is true and valid, so that registries and buyers are not kept busy.
	key := l.reconciler.cfg.Key()
	before, signed := readSigned(status.Signed, key)
	if signed && before.Party == string(l.reconciler.cfg.Party) && before.ID == l.offer.Name {
		l.listing = before
		due := l.due(before.Offer, wanted)
		if l.outdated() {
			due = min(due, before.IssuedAt.Add(outdatedPause).Sub(l.now))
		}
		if due > 0 {
			l.again = min(l.again, due)
			return nil
		}
	}
	l.again = min(l.again, l.validity()/2)
	return l.renew(ctx, wanted, key)
}

// unsign forgets what was signed, but for its revision: registries do not take again what was withdrawn.
func (l *look) unsign(ctx context.Context) error {
	l.offer.Status.Signed, l.offer.Status.ValidTime = "", nil
	return l.writeStatus(ctx)
}

// outdated reports whether a registry wants a higher revision.
func (l *look) outdated() bool {
	for _, at := range l.reconciler.cfg.Registries.Standings(l.offer.Name, l.offer.Status.Signed) {
		if at.Outdated {
			return true
		}
	}
	return false
}

// wanted returns what is to be signed, without revision and times. The error says what makes no sense.
func (l *look) wanted(books ledger.Ledger, has corev1.ResourceList) (offer.Offer, map[string]left, error) {
	if unreadable := lenient.Unreadable(l.offer); unreadable != "" {
		return offer.Offer{}, nil, errors.New(unreadable)
	}
	if kind := l.offer.Spec.Kind; kind != l.reconciler.cfg.Kind && kind != "" {
		return offer.Offer{}, nil, fmt.Errorf("spec.kind: this connector sells as a %s, not as a %s: see its flag --broker",
			l.reconciler.cfg.Kind, kind)
	}
	wanted, rest, err := document(l.reconciler.cfg.Party, l.offer, books, has, l.now)
	if err != nil {
		return offer.Offer{}, nil, err
	}
	wanted.Labels, wanted.KPIs = described(wanted.Labels, wanted.Plans, l.attributes), l.kpis
	probe := wanted
	probe.Revision, probe.IssuedAt, probe.ValidUntil = 1, l.now.UTC().Truncate(time.Second),
		l.now.UTC().Truncate(time.Second).Add(l.validity())
	if _, err := offer.Encode(probe); err != nil {
		return offer.Offer{}, nil, err
	}
	return wanted, rest, nil
}

func (l *look) validity() time.Duration {
	if v := l.offer.Spec.Validity; v != nil && v.Duration > 0 {
		return v.Duration
	}
	return defaultValidity
}

// due returns in how long an offer that was signed before has to be signed again.
func (l *look) due(before, wanted offer.Offer) time.Duration {
	validity := before.ValidUntil.Sub(before.IssuedAt)
	halfLife := before.IssuedAt.Add(validity / 2).Sub(l.now)
	if validity != l.validity() || l.now.Before(before.IssuedAt) {
		return 0
	}
	// What differs besides the revision and the times?
	wanted.Revision, wanted.IssuedAt, wanted.ValidUntil = before.Revision, before.IssuedAt, before.ValidUntil
	if !slices.EqualFunc(before.KPIs, wanted.KPIs, sameValue) {
		halfLife = min(halfLife, before.IssuedAt.Add(measuredPause).Sub(l.now))
	}
	before.KPIs, wanted.KPIs = nil, nil
	if wanted.Fingerprint() == before.Fingerprint() {
		return halfLife
	}
	before.Plans, wanted.Plans = withoutAvailability(before.Plans), withoutAvailability(wanted.Plans)
	if wanted.Fingerprint() != before.Fingerprint() {
		return 0
	}
	return min(halfLife, before.IssuedAt.Add(availabilityPause).Sub(l.now))
}

// sameValue reports whether two KPIs say the same, whenever they were measured.
func sameValue(a, b offer.KPI) bool {
	a.MeasuredAt = b.MeasuredAt
	return a == b
}

func withoutAvailability(plans []offer.Plan) []offer.Plan {
	all := slices.Clone(plans)
	for i := range all {
		all[i].Available = 0
	}
	return all
}

// renew signs the offer, and writes it before anybody sees it. Revisions follow the clock, so that they grow also if the object is deleted
// and created again; that this happens within a second is why they are remembered. Where a registry has seen a higher one, as after the
// clock was ahead for a while, they leap, each time further.
func (l *look) renew(ctx context.Context, wanted offer.Offer, key party.Key) error {
	status, unsigned := &l.offer.Status, l.offer.Status.DeepCopy()
	wanted.Revision = max(status.Revision+1, l.reconciler.revisions[l.offer.Name]+1, l.now.Unix())
	if ahead := time.Duration(status.Revision-l.now.Unix()) * time.Second; l.outdated() && ahead < maxAhead {
		wanted.Revision = max(wanted.Revision, l.now.Add(min(maxAhead, leap*max(ahead, outdatedPause))).Unix())
	}
	l.reconciler.revisions[l.offer.Name] = wanted.Revision
	wanted.IssuedAt = l.now.UTC().Truncate(time.Second)
	wanted.ValidUntil = wanted.IssuedAt.Add(l.validity())
	signed, err := offer.Sign(wanted, key.Sign)
	if err != nil {
		return fmt.Errorf("offer %s: %w", l.offer.Name, err)
	}
	status.Revision, status.Signed, status.ValidTime = signed.Revision, signed.JWS, &metav1.Time{Time: signed.ValidUntil}
	if err := l.writeStatus(ctx); err != nil {
		l.offer.Status = *unsigned
		return err
	}
	l.listing = signed
	return nil
}

// describeOffer says whether the offer is published.
func (l *look) describeOffer() {
	var reason, message string
	value := metav1.ConditionFalse
	switch {
	case l.invalid != nil:
		reason, message = connectorv1alpha1.ReasonInvalidOffer, l.invalid.Error()
	case l.offer.Spec.Sale == connectorv1alpha1.SaleClosed:
		reason, message = connectorv1alpha1.ReasonClosed, "The sale is closed. What was sold stays sold."
	case l.unguarded != nil:
		reason, message = connectorv1alpha1.ReasonUnguarded, l.unguarded.Error()
	case l.listing.JWS == "":
		reason, message = connectorv1alpha1.ReasonNotPublished, "The offer is about to be signed."
	default:
		value, reason, message = l.standing()
	}
	l.offer.Status.ObservedGeneration = l.offer.Generation
	conditions.Set(&l.offer.Status.Conditions, l.offer.Generation, metav1.Condition{
		Type: connectorv1alpha1.ConditionPublished, Status: value, Reason: reason, Message: message,
	})
}

// standing says how the offer stands at all registries together.
func (l *look) standing() (value metav1.ConditionStatus, reason, message string) {
	at := l.reconciler.cfg.Registries.Standings(l.offer.Name, l.listing.JWS)
	if len(at) == 0 {
		return metav1.ConditionFalse, connectorv1alpha1.ReasonNoRegistry, "There is no Registry in which the cluster publishes."
	}
	var missing []string
	reason = connectorv1alpha1.ReasonNotPublished
	for _, name := range slices.Sorted(maps.Keys(at)) {
		if at[name].Listed {
			continue
		}
		missing = append(missing, name+": "+at[name].Why)
		if at[name].Refused {
			reason = connectorv1alpha1.ReasonOfferRefused
		}
	}
	if len(missing) > 0 {
		return metav1.ConditionFalse, reason, strings.Join(missing, "; ")
	}
	return metav1.ConditionTrue, connectorv1alpha1.ReasonPublished, "All registries list the offer."
}

// writeStatus writes the status if it has changed. Nobody else may have written meanwhile.
func (l *look) writeStatus(ctx context.Context) error {
	if equality.Semantic.DeepEqual(l.stored, &l.offer.Status) {
		return nil
	}
	if err := l.reconciler.cfg.Client.Status().Update(ctx, l.offer); err != nil {
		return fmt.Errorf("write the status of offer %s: %w", l.offer.Name, err)
	}
	conditions.Recorder{Events: l.reconciler.cfg.Events, Kind: readiness.Kind}.Tell(ctx, l.offer, l.stored.Conditions,
		l.offer.Status.Conditions)
	l.stored = l.offer.Status.DeepCopy()
	return nil
}
