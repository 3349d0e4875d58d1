// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package negotiation

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/excerpt"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/contract"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/offer"
	"github.com/capacitorset/liqo-broker/pkg/trade/negotiation/negotiationv1"
	"github.com/capacitorset/liqo-broker/pkg/trade/party"
)

const (
	// maxReason bounds the reasons that the sides tell each other, in bytes.
	maxReason = 1024
	// maxCountersignature bounds one in bytes: it holds a signature, which a request has room for.
	maxCountersignature = 48 << 10
)

// words returns a reason of the other side, or for it: printable, and not longer than what is kept of it.
func words(reason string) string {
	printable := func(r rune) rune {
		if r != ' ' && !unicode.IsGraphic(r) {
			return ' '
		}
		return r
	}
	return excerpt.Of(strings.Map(printable, reason[:min(len(reason), 2*maxReason)]), maxReason)
}

// readTerms returns the terms that a peer has written. The error is contract.ErrTerms and names the field.
func readTerms(said negotiationv1.Terms) (contract.Terms, error) {
	terms := contract.Terms{
		ID: said.ID, Buyer: said.Buyer, Seller: said.Seller, Revision: said.Revision, Cluster: readCluster(said.Cluster),
		Offer: said.Offer, OfferRevision: said.OfferRevision, OfferDigest: said.OfferDigest, Plan: said.Plan,
		StartsAt: said.StartsAt.UTC(), EndsAt: said.EndsAt.UTC(), EffectiveAt: said.EffectiveAt.UTC(),
	}
	// Amounts, money and durations, as strictly as those of offers.
	granted, err := offer.ParseResources(said.Resources)
	if err != nil {
		return contract.Terms{}, fmt.Errorf("%w: %w", offer.In("terms.resources", err), contract.ErrTerms)
	}
	terms.Resources = granted.List()
	if terms.Price, err = offer.ParsePrice(said.Price.Amount, said.Price.Currency, said.Price.Period); err != nil {
		return contract.Terms{}, fmt.Errorf("%w: %w", offer.In("terms.price", err), contract.ErrTerms)
	}
	for _, duration := range []struct {
		name, text string
		into       *time.Duration
	}{{"notice", said.Notice, &terms.Notice}, {"drain", said.Drain, &terms.Drain}} {
		read, err := offer.ParseDuration(duration.text)
		if err != nil {
			return contract.Terms{}, fmt.Errorf("terms.%s: %w: %w", duration.name, err, contract.ErrTerms)
		}
		*duration.into = time.Duration(read)
	}
	// Times that are the same in every signature.
	for name, at := range map[string]time.Time{"startsAt": terms.StartsAt, "endsAt": terms.EndsAt, "effectiveAt": terms.EffectiveAt} {
		if year := at.Year(); year < 1 || year > 9999 {
			return contract.Terms{}, fmt.Errorf("terms.%s: the year is %d: %w", name, year, contract.ErrTerms)
		}
		if !at.Equal(at.Truncate(time.Second)) {
			return contract.Terms{}, fmt.Errorf("terms.%s: %s is not a whole second: %w", name, at.Format(time.RFC3339Nano), contract.ErrTerms)
		}
	}
	if err := terms.Validate(); err != nil {
		return contract.Terms{}, fmt.Errorf("terms: %w", err)
	}
	return terms, nil
}

// readCluster returns a cluster as it was written; Terms.Validate looks at it.
func readCluster(said negotiationv1.Cluster) cluster.Identity {
	return cluster.Identity{ID: cluster.ID(said.ID), Name: said.Name}
}

// writeTerms writes terms as they are signed: the same terms are the same text.
func writeTerms(terms contract.Terms) negotiationv1.Terms {
	return negotiationv1.Terms{
		ID: terms.ID, Buyer: terms.Buyer, Seller: terms.Seller, Revision: terms.Revision,
		Cluster: negotiationv1.Cluster{ID: string(terms.Cluster.ID), Name: terms.Cluster.Name},
		Offer:   terms.Offer, OfferRevision: terms.OfferRevision, OfferDigest: terms.OfferDigest, Plan: terms.Plan,
		Resources: offer.FromList(terms.Resources).Texts(),
		Price:     negotiationv1.Price{Amount: terms.Price.Amount.String(), Currency: terms.Price.Currency, Period: string(terms.Price.Period)},
		StartsAt:  terms.StartsAt.UTC(), EndsAt: terms.EndsAt.UTC(), EffectiveAt: terms.EffectiveAt.UTC(),
		Notice: offer.Duration(terms.Notice).String(), Drain: offer.Duration(terms.Drain).String(),
	}
}

// SignTerms signs terms as their buyer. The same terms and key give the same signature.
func SignTerms(key party.Key, terms contract.Terms) (string, error) {
	signed, err := key.Sign(negotiationv1.TermsType, writeTerms(terms))
	if err != nil {
		return "", fmt.Errorf("sign contract %s: %w", terms.Key(), err)
	}
	return signed, nil
}

// verifyTerms returns the terms that one of a party's keys has signed: party.ErrSignature if none has, and contract.ErrTerms or
// party.ErrDocument if they make no sense.
func verifyTerms(signed string, keys party.Keys) (contract.Terms, error) {
	var said negotiationv1.Terms
	if _, err := keys.VerifyAny(signed, negotiationv1.TermsType, &said); err != nil {
		return contract.Terms{}, fmt.Errorf("signature: %w", err)
	}
	terms, err := readTerms(said)
	if err != nil {
		return contract.Terms{}, fmt.Errorf("signature: %w", err)
	}
	return terms, nil
}

// longest returns how many bytes a signature of terms may have, which is kept for as long as the contract: twice what they take, and a KiB
// for what belongs to a signature.
func longest(terms contract.Terms) int {
	text, _ := json.Marshal(writeTerms(terms)) //nolint:errchkjson // Terms are text and numbers.
	return 2*base64.RawURLEncoding.EncodedLen(len(text)) + 1<<10
}

// countersign signs what the buyer has signed.
func countersign(key party.Key, signed string) (string, error) {
	return key.Sign(negotiationv1.CountersignatureType, negotiationv1.Countersignature{Terms: signed})
}

// VerifySigned returns the terms that buyer and seller have both signed. The keys can have been replaced since. Errors are
// party.ErrSignature, party.ErrDocument and contract.ErrTerms.
func VerifySigned(signature, countersignature string, buyer, seller party.Keys) (contract.Terms, error) {
	terms, err := verifyTerms(signature, buyer)
	if err != nil {
		return contract.Terms{}, err
	}
	var said negotiationv1.Countersignature
	if _, err := seller.VerifyAny(countersignature, negotiationv1.CountersignatureType, &said); err != nil {
		return contract.Terms{}, fmt.Errorf("countersignature: %w", err)
	}
	switch {
	case said.Terms != signature:
		return contract.Terms{}, fmt.Errorf("countersignature of other terms: %w", party.ErrSignature)
	case terms.Buyer != string(buyer.ID()) || terms.Seller != string(seller.ID()):
		return contract.Terms{}, fmt.Errorf("terms of buyer %s and seller %s: %w", terms.Buyer, terms.Seller, contract.ErrTerms)
	}
	return terms, nil
}

// writeView shows a record to its buyer.
func writeView(view contract.View) negotiationv1.Contract {
	shown := negotiationv1.Contract{
		ID: view.Key.ID, Version: view.Version, State: string(view.State), Reason: words(view.Reason),
		Signature: view.Signature, Countersignature: view.Countersignature, Until: view.Until, Ends: view.Ends, PaidUntil: view.PaidUntil,
		LastRevision: view.LastRevision,
	}
	for _, pause := range view.Pauses {
		shown.Pauses = append(shown.Pauses, negotiationv1.Pause{From: pause.From, To: pause.To})
	}
	if view.Terms.Revision != 0 {
		terms := writeTerms(view.Terms)
		shown.Terms = &terms
	}
	if change := view.Change; change != nil {
		shown.Change = &negotiationv1.Change{
			Event: string(change.Event), Terms: writeTerms(change.Terms), Until: change.Until, Approval: string(change.Approval),
		}
	}
	if refused := view.Refused; refused != nil {
		shown.Refused = &negotiationv1.Refusal{Revision: refused.Revision, Reason: words(refused.Reason)}
	}
	return shown
}

// readView returns what a seller has shown of a contract of a buyer. Whether it fits what was seen before is for contract.Purchase.
func readView(shown negotiationv1.Contract, buyer party.ID) (contract.View, error) {
	view := contract.View{
		Key: contract.Key{Buyer: string(buyer), ID: shown.ID}, Version: shown.Version, State: contract.State(shown.State),
		Reason: words(shown.Reason), Signature: shown.Signature, Countersignature: shown.Countersignature, Until: shown.Until, Ends: shown.Ends,
		PaidUntil: shown.PaidUntil, LastRevision: shown.LastRevision,
	}
	switch {
	case len(view.Countersignature) > maxCountersignature:
		return contract.View{}, fmt.Errorf("a countersignature of %d bytes, more than %d: %w", len(view.Countersignature), maxCountersignature,
			contract.ErrTerms)
	case len(shown.Pauses) > contract.MaxPauses:
		return contract.View{}, fmt.Errorf("%d pauses, more than %d: %w", len(shown.Pauses), contract.MaxPauses, contract.ErrTerms)
	case !view.Signed():
		view.Signature = "" // Nobody has verified it.
	}
	for _, pause := range shown.Pauses {
		view.Pauses = append(view.Pauses, contract.Pause{From: pause.From, To: pause.To})
	}
	var err error
	if shown.Terms != nil {
		if view.Terms, err = readTerms(*shown.Terms); err != nil {
			return contract.View{}, err
		}
	}
	if change := shown.Change; change != nil {
		terms, err := readTerms(change.Terms)
		if err != nil {
			return contract.View{}, fmt.Errorf("change: %w", err)
		}
		event, approval := contract.Event(change.Event), contract.Approval(change.Approval)
		if event != contract.Resize && event != contract.Renew || approval != "" && approval != contract.Pending &&
			approval != contract.Approved {
			return contract.View{}, fmt.Errorf("change: %.32q with approval %.32q is none: %w", change.Event, change.Approval, contract.ErrTerms)
		}
		view.Change = &contract.Change{
			Event: event, Terms: terms, Until: change.Until, Approval: approval,
		}
	}
	if refused := shown.Refused; refused != nil {
		view.Refused = &contract.Refusal{Revision: refused.Revision, Reason: words(refused.Reason)}
	}
	return view, nil
}
