// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package purchases

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
	"k8s.io/apimachinery/pkg/api/resource"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/excerpt"
	"github.com/capacitorset/liqo-broker/pkg/serving/restclient"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/peering"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/bill"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/contract"
	"github.com/capacitorset/liqo-broker/pkg/trade/negotiation"
	"github.com/capacitorset/liqo-broker/pkg/trade/negotiation/negotiationv1"
	"github.com/capacitorset/liqo-broker/pkg/trade/party"
)

const (
	// signWithin is for how long a seller may wait with its approval before this side does not want the contract any more.
	signWithin = 24 * time.Hour
	// maxName and maxEndpoint bound what is kept of a seller, as the API does.
	maxName, maxEndpoint = 253, 512
)

// errUnknownSeller means that nobody has shown the seller.
var errUnknownSeller = errors.New("no registry has shown the seller")

// errOtherParty means that the contract is of a party that this cluster is not any more, so that its seller cannot be asked about it.
var errOtherParty = errors.New(
	"the contract ends at its time, and cannot be changed or ended: it is of another party than this cluster is now",
)

// seller returns a client of the seller, and keeps in the status who that is. A party whose keys do not follow those that were seen is not
// believed: the old ones stay.
func (d *drive) seller() (*negotiation.Client, error) {
	if d.record != nil && d.record.Purchase.Terms.Buyer != string(d.purchases.cfg.Keys().ID()) {
		return nil, fmt.Errorf("%w: %s", errOtherParty, d.record.Purchase.Terms.Buyer)
	}
	status := &d.object.Status.Seller
	var keys party.Keys
	if len(status.Keys) > 0 {
		var err error
		if keys, err = party.ParseKeys(status.Keys); err != nil || keys.ID() != party.ID(d.object.Spec.Seller) {
			return nil, fmt.Errorf("status.seller.keys are not those of party %s: %w", d.object.Spec.Seller, err)
		}
	}
	shown, is := d.purchases.cfg.Parties.Party(party.ID(d.object.Spec.Seller))
	if is && shown.Keys.ID() == party.ID(d.object.Spec.Seller) && shown.Keys.Continues(keys) && shown.Said.Endpoint != "" &&
		len(shown.Said.Endpoint) <= maxEndpoint {
		keys = shown.Keys
		*status = connectorv1alpha1.PartyStatus{Name: excerpt.Of(shown.Said.Name, maxName), Endpoint: shown.Said.Endpoint, Keys: keys.Chain()}
	}
	if keys.Current() == nil {
		return nil, errUnknownSeller
	}
	c, err := d.purchases.sellers.client(negotiation.ClientConfig{
		Endpoint: status.Endpoint, Seller: keys, Buyer: d.purchases.cfg.Keys(), Key: d.purchases.cfg.Key, Elapsed: d.purchases.cfg.Elapsed,
	})
	if err == nil && c.Seller().Continues(keys) {
		status.Keys = c.Seller().Chain() // It may have shown a new one.
	}
	return c, err
}

// refused reports whether a seller does not sell what it was asked for, or says what cannot be believed: not that it does not answer, and
// not that somebody else is found at its address, as when its key was replaced and nobody has shown that yet.
func refused(err error) bool {
	if errors.Is(err, restclient.ErrNoAnswer) {
		return false // There was no answer.
	}
	return errors.Is(err, contract.ErrTerms) || errors.Is(err, party.ErrDocument) || errors.Is(err, party.ErrSignature)
}

// order asks for a quote, and begins the contract if it is what people want. It returns nil if it has.
func (d *drive) order(ctx context.Context) (*ctrl.Result, error) {
	if d.leaves() {
		return d.over(ctx, connectorv1alpha1.ReasonEnded, "Nothing was ordered.")
	}
	if err := d.purchases.cfg.Guarded(ctx); errors.Is(err, peering.ErrUnguarded) {
		return d.wait(ctx, guardedAgain, connectorv1alpha1.ReasonUnguarded, err.Error())
	} else if err != nil {
		return nil, kubernetesError{err}
	}
	// The seller says what it would sign now. That may be no worse than the offer that was chosen.
	c, err := d.seller()
	switch {
	case errors.Is(err, errUnknownSeller):
		return d.wait(ctx, lookAgain, connectorv1alpha1.ReasonSellerUnknown, err.Error())
	case err != nil:
		return d.retry(ctx, connectorv1alpha1.ReasonSellerUnreachable, err.Error())
	}
	now := d.now()
	quoted, err := c.Quote(ctx, d.ask(string(d.object.Spec.Plan), d.object.Spec.Resources, now, d.end(now)))
	if err == nil {
		err = fair(quoted)
	}
	if err == nil {
		err = d.chosen(ctx, quoted)
	}
	switch {
	case isKubernetes(err):
		return nil, err
	case refused(err), errors.Is(err, negotiation.ErrTooMany):
		return d.wait(ctx, orderAgain, connectorv1alpha1.ReasonOrderRefused, err.Error())
	case err != nil:
		return d.retry(ctx, connectorv1alpha1.ReasonSellerUnreachable, err.Error())
	}
	// What people allow is held against the quote, and not against the offer.
	expensive, err := tooExpensive(&d.object.Spec, quoted.Terms.Price)
	if err == nil && expensive == "" {
		expensive, err = overTotal(&d.object.Spec, bill.Contract{}.With(quoted.Terms))
	}
	switch {
	case err != nil:
		return d.wait(ctx, orderAgain, connectorv1alpha1.ReasonTooExpensive, err.Error())
	case expensive != "":
		return d.wait(ctx, orderAgain, connectorv1alpha1.ReasonTooExpensive, expensive)
	}
	// Nothing is reserved yet: the contract begins here, with a time by which it has to be signed.
	signBy := now.Add(signWithin)
	fixed := d.object.Spec.EndTime != nil
	if latest := quoted.Terms.EndsAt.Add(-quoted.Terms.Drain); fixed && latest.Before(signBy) {
		signBy = latest
	}
	purchase, err := contract.NewPurchase(quoted.Terms, signBy)
	if err != nil {
		return d.wait(ctx, orderAgain, connectorv1alpha1.ReasonOrderRefused, err.Error())
	}
	// A contract between clusters that do not reach each other would be paid for nothing.
	if err := d.reaches(ctx, peering.Endpoints(quoted.Endpoints)); errors.Is(err, peering.ErrNotReachable) {
		return d.wait(ctx, orderAgain, connectorv1alpha1.ReasonNotReachable, err.Error())
	} else if err != nil {
		return nil, err
	}
	// It is written before the seller is asked for anything that binds.
	purchase.EndFixed = fixed
	d.record = &record{Purchase: purchase, Size: d.sizeText(), End: d.endText(now)}
	d.record.keepDocuments(quoted.Offer, quoted.Terms.OfferDigest)
	return nil, d.writePurchase(ctx)
}

// fair returns an error, which is contract.ErrTerms, if a quote is not one that can be accepted.
func fair(quoted negotiation.Quoted) error {
	terms := quoted.Terms
	switch {
	case quoted.Verdict == contract.Deny:
		return fmt.Errorf("the seller denies it: %.256q: %w", quoted.Reason, contract.ErrTerms)
	case terms.Drain > terms.EndsAt.Sub(terms.StartsAt)/2:
		return fmt.Errorf("workloads would have to leave %s before the end, more than half of the time: %w", terms.Drain, contract.ErrTerms)
	}
	return nil
}

// chosen returns an error, which is contract.ErrTerms, if a quote is not of what was chosen: the offer can have changed since, but not for
// the worse.
func (d *drive) chosen(ctx context.Context, quoted negotiation.Quoted) error {
	listed, terms := d.object.Spec.Listed, quoted.Terms
	switch {
	case listed == nil || listed.Digest == terms.OfferDigest:
		return nil
	case quoted.Offer.Region != listed.Region:
		return fmt.Errorf("the offer is in region %.63q now, and was listed in %.63q: %w", quoted.Offer.Region, listed.Region, contract.ErrTerms)
	case terms.Notice < listed.Notice.Duration:
		return fmt.Errorf("its notice is %s now, and %s was listed: %w", terms.Notice, listed.Notice.Duration, contract.ErrTerms)
	}
	fits, err := d.purchases.cfg.Fits(ctx, d.object, quoted.Offer)
	if err == nil && !fits {
		err = fmt.Errorf("the offer has changed, and does not fit the request any more: %w", contract.ErrTerms)
	} else if err != nil {
		err = kubernetesError{err}
	}
	return err
}

// ask returns the question for a quote of a plan.
func (d *drive) ask(
	plan string, resources map[corev1.ResourceName]resource.Quantity, starts, ends time.Time,
) negotiationv1.QuoteRequest {
	texts := make(map[string]string, len(resources))
	for name, quantity := range resources {
		if !quantity.IsZero() { // Nothing of it is wanted, whether the plan has it or not.
			texts[string(name)] = quantity.String()
		}
	}
	return negotiationv1.QuoteRequest{
		ID: d.id(), Cluster: negotiationv1.Cluster{ID: string(d.purchases.cfg.Cluster.ID), Name: d.purchases.cfg.Cluster.Name},
		Offer: string(d.object.Spec.Offer), Plan: plan, Resources: texts, StartsAt: starts, EndsAt: ends,
	}
}

// end returns until when people want a contract that begins at a time.
func (d *drive) end(starts time.Time) time.Time {
	switch spec := d.object.Spec; {
	case spec.EndTime != nil:
		return spec.EndTime.UTC().Truncate(time.Second)
	case spec.Duration != nil:
		return starts.Add(spec.Duration.Duration).UTC().Truncate(time.Second)
	}
	return starts
}

// sizeText and endText say what people want, so that it can be compared.
func (d *drive) sizeText() string {
	var texts []string
	for _, name := range slices.Sorted(maps.Keys(d.object.Spec.Resources)) {
		quantity := d.object.Spec.Resources[name]
		if quantity.IsZero() {
			continue
		}
		texts = append(texts, string(name)+"="+quantity.String())
	}
	return string(d.object.Spec.Plan) + " " + strings.Join(texts, ",") + d.priceText()
}

func (d *drive) endText(starts time.Time) string {
	return d.end(starts).Format(time.RFC3339) + d.priceText()
}

func (d *drive) priceText() string {
	text := ""
	if most := d.object.Spec.MaxPrice; most != nil {
		text = fmt.Sprintf(" for %s %s/%s", most.Amount, most.Currency, most.Period)
	}
	if most := d.object.Spec.MaxTotal; most != nil {
		text += fmt.Sprintf(" up to %s %s", most.Amount, most.Currency)
	}
	return text
}

// asSigned returns terms with other resources at the signed price, and whether a seller takes them: who has bought can renew, and give back
// a part.
func asSigned(event contract.Event, terms contract.Terms, wants map[corev1.ResourceName]resource.Quantity) (contract.Terms, bool) {
	terms.Resources = maps.Clone(terms.Resources)
	for name, want := range wants {
		if have, sold := terms.Resources[name]; !sold || want.Cmp(have) > 0 {
			return contract.Terms{}, false
		}
		if want.Sign() > 0 {
			terms.Resources[name] = want
		}
	}
	return terms, event == contract.Renew || event == contract.Resize
}

// overTotal returns why a contract would cost more in all with new terms, until an end, than people pay, if so. A size that costs no more
// than the one that it has is always fine.
func (d *drive) overTotal(event contract.Event, terms contract.Terms, ends time.Time) (string, error) {
	bought := d.record.Purchase
	same := terms.Price.Currency == bought.Terms.Price.Currency
	if event == contract.Resize && same && terms.Price.Compare(bought.Terms.Price) <= 0 {
		return "", nil
	}
	terms.StartsAt, terms.EndsAt, terms.EffectiveAt = bought.Terms.StartsAt, ends, d.now().UTC()
	if event == contract.Renew {
		terms.EffectiveAt = bought.Terms.EndsAt
	}
	return overTotal(&d.object.Spec, bill.OfBuyer(bought).With(terms))
}

// propose asks for new terms if people want other ones than they did. It reports whether it did something.
func (d *drive) propose(ctx context.Context, c *negotiation.Client) (bool, error) {
	before, terms := *d.record, d.record.Purchase.Terms
	var event contract.Event
	ends, wants, plan, from := terms.EndsAt, map[corev1.ResourceName]resource.Quantity(terms.Resources), terms.Plan, terms.StartsAt
	switch size, end := d.sizeText(), d.endText(terms.StartsAt); {
	case !d.record.Purchase.State().InUse() || d.record.Purchase.Proposal != nil || d.record.Purchase.Ending ||
		d.record.Purchase.Doubt != contract.NoDoubt:
		return false, nil
	case size != d.record.Size:
		event, wants, plan, d.record.Size = contract.Resize, d.object.Spec.Resources, string(d.object.Spec.Plan), size
	case end != d.record.End:
		event, ends, d.record.End = contract.Renew, d.end(terms.StartsAt), end
	case d.renewalDue():
		event, ends = contract.Renew, d.asksToRenew()
	default:
		return false, nil
	}
	// The seller says for what it would do that. An end that comes earlier is no change of a contract, and another plan is bought for the time
	// that is left.
	d.record.Note = ""
	moves := plan != terms.Plan
	if moves {
		from = d.now()
	}
	if event == contract.Renew && !ends.After(terms.EndsAt) {
		if renewed := d.asksAnew(); ends.Before(terms.EndsAt) && !renewed {
			d.record.Note = "A contract is not made shorter: set spec.end to end it."
		}
		return true, d.writePurchase(ctx)
	}
	quoted, err := c.Quote(ctx, d.ask(plan, wants, from, ends))
	if err == nil {
		err = fair(quoted)
	}
	if err != nil && !refused(err) {
		*d.record = before // It was not asked.
		return false, err
	}
	expensive := ""
	if err == nil {
		expensive, err = tooExpensive(&d.object.Spec, quoted.Terms.Price)
	}
	if signed, can := asSigned(event, terms, wants); can && !moves && (err != nil || expensive != "" && event == contract.Resize) {
		// What is not for sale any more, or not at this price, is renewed and made smaller at the price that both have signed.
		quoted, expensive, err = negotiation.Quoted{Terms: signed}, "", nil
	}
	if err == nil && expensive == "" {
		expensive, err = d.overTotal(event, quoted.Terms, ends)
	}
	crowded := ""
	if err == nil && event == contract.Resize {
		d.purchases.joining.Lock() // Until it is written: another contract that ends leaves pods what this one keeps.
		defer d.purchases.joining.Unlock()
		var failed error
		if crowded, failed = d.crowded(ctx, quoted.Terms.Resources); failed != nil {
			*d.record = before
			return false, failed
		}
	}
	switch {
	case err != nil:
		d.record.Note = "Refused: " + err.Error()
		d.refusedRenewal(event)
	case crowded != "":
		*d.record = before // It is asked for again.
		d.record.Note, d.waits = crowded, true
		return false, nil
	case expensive != "":
		d.record.Note = expensive
		d.refusedRenewal(event)
	case event == contract.Renew || moves || !equality.Semantic.DeepEqual(quoted.Terms.Resources, terms.Resources):
		wanted := terms
		if moves {
			wanted.Plan, wanted.Notice = quoted.Terms.Plan, max(terms.Notice, quoted.Terms.Notice)
		}
		wanted.Price, wanted.OfferRevision, wanted.OfferDigest = quoted.Terms.Price, quoted.Terms.OfferRevision, quoted.Terms.OfferDigest
		wanted.Resources, wanted.EndsAt = quoted.Terms.Resources, ends
		proposed, err := d.record.Purchase.Propose(event, wanted)
		if err != nil {
			d.record.Note = "Refused: " + err.Error()
			break
		}
		d.record.Purchase = proposed
		if wanted.OfferDigest != terms.OfferDigest {
			d.record.keepDocuments(quoted.Offer, wanted.OfferDigest)
		}
	}
	return true, d.writePurchase(ctx)
}
