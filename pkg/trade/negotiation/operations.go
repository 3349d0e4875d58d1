// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package negotiation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/capacitorset/liqo-broker/pkg/core/resources"
	"github.com/capacitorset/liqo-broker/pkg/serving/rest"
	"github.com/capacitorset/liqo-broker/pkg/serving/source"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/contract"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/offer"
	"github.com/capacitorset/liqo-broker/pkg/trade/negotiation/negotiationv1"
	"github.com/capacitorset/liqo-broker/pkg/trade/party"
)

// Named is the part of a request that names a contract of the caller.
type Named struct {
	ID string `doc:"The ID of a contract of the caller." maxLength:"63" minLength:"1" path:"id" pattern:"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"`
}

type (
	proposing struct {
		Named
		Body negotiationv1.Proposal
	}
	signing struct {
		Named
		Body negotiationv1.Signature
	}
	ending struct {
		Named
		Body negotiationv1.Termination
	}
	polling struct {
		Named
		After int64 `doc:"The version that the caller has seen: the answer is not older, and waits for a newer one." minimum:"0"  query:"after"`
		Wait  int   `doc:"How many seconds the answer waits at most."                                                maximum:"30" minimum:"0"   query:"wait"`
	}
	quoting  struct{ Body negotiationv1.QuoteRequest }
	quoted   struct{ Body negotiationv1.Quote }
	answered struct{ Body negotiationv1.Contract }
	secret   struct{ Body negotiationv1.Credentials }
)

// operations adds all operations.
func (s *Server) operations() {
	const one = "/contracts/{id}"
	register(s, "quote", http.MethodPost, "/quotes", "Ask for the terms of something that is for sale", s.quote)
	register(s, "introduce", http.MethodPut, pathKeys,
		"Tell a seller with whom there is a contract the keys of the caller, and be told the seller's", s.introduce)
	register(s, "get", http.MethodGet, one, "Get a contract, or wait until it has changed", s.getContract, s.await)
	register(s, "reserve", http.MethodPut, one, "Reserve by the terms of a quote", func(
		ctx context.Context, in *proposing,
	) (*answered, error) {
		return s.propose(ctx, contract.Reserve, in)
	})
	register(s, "sign", http.MethodPut, one+"/signature", "Sign what is reserved or proposed; the answer has the seller's signature", s.sign)
	register(s, "resize", http.MethodPut, one+"/resize", "Propose another size, or another plan of the offer", func(
		ctx context.Context, in *proposing,
	) (*answered, error) {
		return s.propose(ctx, contract.Resize, in)
	})
	register(s, "renew", http.MethodPut, one+"/renewal", "Propose a later end", func(ctx context.Context, in *proposing) (*answered, error) {
		return s.propose(ctx, contract.Renew, in)
	})
	register(s, "provisioned", http.MethodPut, one+"/provisioned", "Say that the buyer's cluster has peered", func(
		ctx context.Context, in *Named,
	) (*answered, error) {
		return s.apply(ctx, in.ID, contract.Request{Event: contract.Peered})
	})
	register(s, "terminate", http.MethodPut, one+"/termination", "End a contract", func(ctx context.Context, in *ending) (*answered, error) {
		return s.apply(ctx, in.ID, contract.Request{Event: contract.Terminate, Reason: in.Body.Reason})
	})
	register(s, "drained", http.MethodPut, one+"/drained", "Say that the buyer's cluster has left", func(
		ctx context.Context, in *Named,
	) (*answered, error) {
		return s.apply(ctx, in.ID, contract.Request{Event: contract.Drained})
	})
	register(s, "credentials", http.MethodGet, one+"/credentials", "Get what the buyer's cluster needs to peer", s.credentials)
}

// register adds an operation. What is before comes first, and sees what was not checked yet.
func register[I, O any](
	s *Server, id, method, path, summary string, answer func(context.Context, *I) (*O, error), before ...rest.Middleware,
) {
	op := s.api.Operation(id, method, path, summary, nil)
	op.Middlewares = append(op.Middlewares, before...)
	op.Security = []map[string][]string{{"key": {}}}
	op.Errors = append(op.Errors, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusConflict,
		http.StatusFailedDependency)
	rest.Register(s.api, op, answer)
}

// quote answers with terms that would be accepted now.
func (s *Server) quote(ctx context.Context, in *quoting) (*quoted, error) {
	asked := in.Body
	listing, err := s.listing(ctx, asked.Offer)
	if err != nil {
		return nil, err
	}
	// What the plan gives for what is asked, and what that costs.
	plan, ok := listing.Plan(asked.Plan)
	if !ok {
		return nil, fmt.Errorf("plan %.63q of offer %s does not exist: %w", asked.Plan, asked.Offer, contract.ErrTerms)
	}
	wanted, err := offer.ParseResources(asked.Resources)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", offer.In("resources", err), contract.ErrTerms)
	}
	granted, err := plan.Grant(wanted)
	if err != nil {
		return nil, fmt.Errorf("resources: %w: %w", err, contract.ErrTerms)
	}
	price, err := plan.Cost(granted)
	if err != nil {
		return nil, fmt.Errorf("resources: %w: %w", err, contract.ErrTerms)
	}
	// The whole contract as it would be signed, so that the buyer sees each of its terms.
	terms := contract.Terms{
		ID: asked.ID, Buyer: string(callerOf(ctx).ID()), Seller: string(s.cfg.Party), Revision: 1, Cluster: readCluster(asked.Cluster),
		Offer: listing.ID, OfferRevision: listing.Revision, OfferDigest: listing.Fingerprint(), Plan: plan.ID,
		Resources: granted.List(), Price: price,
		StartsAt: asked.StartsAt.UTC().Truncate(time.Second), EndsAt: asked.EndsAt.UTC().Truncate(time.Second),
		Notice: time.Duration(plan.Notice), Drain: s.cfg.Drain,
	}
	if err := terms.Validate(); err != nil {
		return nil, err
	}
	// Whoever would be denied is told so, and not where this cluster is reached.
	admitted, err := s.admitTerms(ctx, terms)
	if err != nil {
		return nil, err
	}
	said := negotiationv1.Quote{Terms: writeTerms(terms), Offer: listing.JWS, Verdict: string(admitted.Verdict), Reason: admitted.Reason}
	if admitted.Verdict != contract.Deny {
		own := s.cfg.Reach.Own(ctx)
		said.Endpoints = &own
	}
	return &quoted{said}, nil
}

// listing returns an offer, or the refusal of one that is not published.
func (s *Server) listing(ctx context.Context, id string) (offer.Signed, error) {
	listing, err := s.cfg.Offers.Offer(ctx, id)
	switch {
	case errors.Is(err, ErrNotOffered):
		return offer.Signed{}, fmt.Errorf("offer %.63q is not published: %w", id, contract.ErrTerms)
	case err != nil:
		return offer.Signed{}, fmt.Errorf("read offer %s: %w", id, err)
	}
	return listing, nil
}

// admitTerms compares terms with the offer as it is now, and asks the policy. What it returns is a request without the event, with what
// is to be known of terms beside themselves.
func (s *Server) admitTerms(ctx context.Context, terms contract.Terms) (contract.Request, error) {
	listing, err := s.listing(ctx, terms.Offer)
	if err != nil {
		return contract.Request{}, err
	}
	if terms.StartsAt.After(s.cfg.Clock.Now().Add(s.cfg.Seller.ReserveFor)) {
		return contract.Request{}, fmt.Errorf("terms.startsAt: a contract begins now, not at %s: %w", terms.StartsAt.Format(time.RFC3339),
			contract.ErrTerms)
	}
	plan, _ := listing.Plan(terms.Plan)
	if err := s.fits(terms, listing.Offer, time.Duration(plan.Notice), s.cfg.Drain, terms.StartsAt); err != nil {
		return contract.Request{}, fmt.Errorf("%w: %w", err, contract.ErrTerms)
	}
	return s.verdict(ctx, terms, listing.Offer)
}

// admitChange is admitTerms for new terms of a contract. Who has bought keeps the notice and the drain that both have signed. It can always
// give back a part, and renew when the plan is not for sale any more, both at the signed price; what the plan costs now is good as well.
// Whoever moves to another plan buys that: as it is sold now, for the time that is left, and with its notice if that is longer than the
// signed one.
func (s *Server) admitChange(ctx context.Context, event contract.Event, terms, was contract.Terms) (contract.Request, error) {
	// What both have signed goes on without the offer.
	moves := terms.Plan != was.Plan
	smaller := event == contract.Resize && !moves && within(terms, was)
	// The contract can move while this is decided: what is allowed as signed has to be all of it.
	signed := !moves && terms.Notice == was.Notice && terms.Price == was.Price && terms.OfferRevision == was.OfferRevision &&
		terms.OfferDigest == was.OfferDigest
	if smaller && signed {
		return contract.Request{Terms: terms, Verdict: contract.Accept}, nil
	}
	// All else is compared with what is sold now, whoever moves from now on and with the longer notice.
	listing, err := s.cfg.Offers.Offer(ctx, terms.Offer)
	if err != nil && !errors.Is(err, ErrNotOffered) {
		return contract.Request{}, fmt.Errorf("read offer %s: %w", terms.Offer, err)
	}
	plan, sold := listing.Plan(terms.Plan)
	sold = sold && err == nil && s.cfg.Clock.Now().Before(listing.ValidUntil)
	notice, from := was.Notice, terms.StartsAt
	if moves {
		notice, from = max(was.Notice, time.Duration(plan.Notice)), s.cfg.Clock.Now()
	}
	// What is not for sale nobody moves to, and nobody has more of.
	switch {
	case !sold && moves:
		return contract.Request{}, fmt.Errorf("plan %.63q of offer %.63q is not for sale: the contract stays with plan %s: %w",
			terms.Plan, terms.Offer, was.Plan, contract.ErrTerms)
	case !sold && (event != contract.Renew || !signed):
		return contract.Request{},
			fmt.Errorf("plan %.63q of offer %.63q is not for sale any more: a contract of it can be renewed as it is signed, and made smaller: %w",
				terms.Plan, terms.Offer, contract.ErrTerms)
	case !sold:
		listing.Offer = offer.Offer{}
	default:
		if err := s.fits(terms, listing.Offer, notice, was.Drain, from); err != nil {
			return contract.Request{}, fmt.Errorf("%w: %w", err, contract.ErrTerms)
		}
		if smaller {
			return contract.Request{Terms: terms, Verdict: contract.Accept, Documents: offer.Documents(listing.Properties)}, nil
		}
	}
	return s.verdict(ctx, terms, listing.Offer)
}

// verdict asks the policy.
func (s *Server) verdict(ctx context.Context, terms contract.Terms, of offer.Offer) (contract.Request, error) {
	request := contract.Request{Terms: terms, Documents: offer.Documents(of.Properties)}
	var err error
	request.Verdict, request.Reason, err = s.cfg.Admission.Admit(ctx, Application{Buyer: party.ID(terms.Buyer), Terms: terms, Offer: of})
	switch {
	case errors.Is(err, ErrNotOffered):
		request.Verdict, request.Reason = contract.Deny, "the offer is not there any more"
	case err != nil:
		return contract.Request{}, fmt.Errorf("ask who may buy offer %s: %w", terms.Offer, err)
	}
	return request, nil
}

// within reports whether terms take no more of anything than others do.
func within(terms, others contract.Terms) bool {
	return resources.Covers(others.Resources, terms.Resources)
}

// fits returns why terms are not those of an offer, with a notice and a drain, from a time on, if so. The error names the field.
func (s *Server) fits(terms contract.Terms, current offer.Offer, notice, drain time.Duration, from time.Time) error {
	plan, exists := current.Plan(terms.Plan)
	lasts := terms.EndsAt.Sub(from).Truncate(time.Second)
	switch {
	case terms.OfferRevision != current.Revision || terms.OfferDigest != current.Fingerprint():
		return fmt.Errorf("terms.offerDigest: offer %s is not (any more) that of revision %d with the digest %.71s, but of revision %d: ask "+
			"for a quote",
			terms.Offer, terms.OfferRevision, terms.OfferDigest, current.Revision)
	case !s.cfg.Clock.Now().Before(current.ValidUntil):
		return fmt.Errorf("terms.offer: offer %s has expired", terms.Offer)
	case !exists:
		return fmt.Errorf("terms.plan: offer %s has no plan %.63q", terms.Offer, terms.Plan)
	case plan.MinDuration > 0 && lasts < time.Duration(plan.MinDuration), plan.MaxDuration > 0 && lasts > time.Duration(plan.MaxDuration):
		return fmt.Errorf("terms.endsAt: the plan is sold for %s to %s, not for %s", plan.MinDuration, plan.MaxDuration, lasts)
	case terms.Notice != notice || terms.Drain != drain:
		return fmt.Errorf("terms.notice and terms.drain: they are %s and %s", notice, drain)
	}
	price, err := plan.Cost(offer.FromList(terms.Resources))
	if err != nil {
		return fmt.Errorf("terms.resources: %w", err)
	}
	if terms.Price != price {
		return fmt.Errorf("terms.price: %s is not what the plan costs, %s", terms.Price, price)
	}
	return nil
}

// own refuses terms that are not between the caller and this seller, and about the contract of the path.
func (s *Server) own(ctx context.Context, id string, terms contract.Terms) error {
	switch caller := string(callerOf(ctx).ID()); {
	case terms.Buyer != caller:
		return huma.NewError(http.StatusForbidden, fmt.Sprintf("terms.buyer: party %s calls, and cannot buy for %.60q", caller, terms.Buyer))
	case terms.Seller != string(s.cfg.Party):
		return fmt.Errorf("terms.seller: %.60q is not %s: %w", terms.Seller, s.cfg.Party, contract.ErrTerms)
	case terms.ID != id:
		return fmt.Errorf("terms.id: %.63q is not %s: %w", terms.ID, id, contract.ErrTerms)
	}
	return nil
}

// propose reserves, or proposes new terms.
func (s *Server) propose(ctx context.Context, event contract.Event, in *proposing) (*answered, error) {
	terms, err := readTerms(in.Body.Terms)
	if err != nil {
		return nil, err
	}
	if err := s.own(ctx, in.ID, terms); err != nil {
		return nil, err
	}
	request := contract.Request{Terms: terms}
	if event == contract.Reserve {
		reserving := s.pacer(party.ID(terms.Buyer)).reserving
		reserving.Lock()
		defer reserving.Unlock()
	}
	// What was asked for before is answered by the record, however the offer has changed since.
	record, err := s.cfg.Store.Get(ctx, terms.Key())
	if err != nil {
		return nil, fmt.Errorf("read contract %s: %w", terms.Key(), err)
	}
	switch {
	case event == contract.Reserve && record == nil:
		if err = s.room(ctx, party.ID(terms.Buyer)); err == nil {
			request, err = s.admitTerms(ctx, terms)
		}
	case event != contract.Reserve && record != nil && record.LastRevision < terms.Revision:
		request, err = s.admitChange(ctx, event, terms, record.Terms)
	}
	if err != nil {
		return nil, err
	}
	request.Event, request.Key = event, terms.Key()
	return s.apply(ctx, in.ID, request)
}

// room refuses another contract of a party that begins too many, has too many or has not signed too many, or if all parties have. The error
// is ErrTooMany.
func (s *Server) room(ctx context.Context, buyer party.ID) error {
	limits := s.cfg.Limits
	if !s.pacer(buyer).contracts.Allow() {
		return fmt.Errorf("party %s begins more contracts than its %d in a minute: %w", buyer, limits.NewPerMinute, ErrTooMany)
	}
	count, err := s.cfg.Store.Count(ctx, string(buyer))
	switch {
	case err != nil:
		return fmt.Errorf("count the contracts of party %s: %w", buyer, err)
	case count.Open >= limits.Open:
		return fmt.Errorf("party %s has %d contracts that are not over, of at most %d: %w", buyer, count.Open, limits.Open, ErrTooMany)
	case count.Kept >= limits.Kept:
		return fmt.Errorf("party %s has %d contracts that are not over or were not a week ago, of at most %d: %w",
			buyer, count.Kept, limits.Kept, ErrTooMany)
	case count.Lapsed >= limits.Lapsed:
		return fmt.Errorf("party %s has %d reservations that it has not signed, of at most %d, which are forgotten after a time: %w",
			buyer, count.Lapsed, limits.Lapsed, ErrTooMany)
	case count.Bytes >= limits.Bytes:
		return fmt.Errorf("the contracts of party %s have %d bytes, of at most %d, and those that are over count for a week: %w",
			buyer, count.Bytes, limits.Bytes, ErrTooMany)
	case count.AllOpen >= limits.AllOpen || count.AllKept >= limits.AllKept || count.AllBytes >= limits.AllBytes:
		return fmt.Errorf("this seller takes no new contracts of any party for now: %w", ErrTooMany)
	}
	return nil
}

// sign takes the buyer's signature, and adds the seller's.
func (s *Server) sign(ctx context.Context, in *signing) (*answered, error) {
	terms, err := verifyTerms(in.Body.Signature, callerOf(ctx))
	if err != nil {
		return nil, err
	}
	if most := longest(terms); len(in.Body.Signature) > most {
		return nil, fmt.Errorf("signature: %d bytes, more than %d for these terms: %w", len(in.Body.Signature), most, contract.ErrTerms)
	}
	if err := s.own(ctx, in.ID, terms); err != nil {
		return nil, err
	}
	request := contract.Request{Event: contract.Confirm, Terms: terms, Signature: in.Body.Signature}
	if terms.Revision == 1 {
		request.Event = contract.Sign
		if err := s.reaches(ctx, terms, in.Body.Endpoints); err != nil {
			return nil, err
		}
	}
	if request.Countersignature, err = countersign(s.cfg.Key(), in.Body.Signature); err != nil {
		return nil, err
	}
	return s.apply(ctx, in.ID, request)
}

// apply lets a request happen to a contract of the caller, and answers with what was written.
func (s *Server) apply(ctx context.Context, id string, request contract.Request) (*answered, error) {
	record, err := s.update(ctx, id, request)
	if err != nil {
		return nil, err
	}
	return &answered{writeView(record.View)}, nil
}

// update writes what becomes of a contract of the caller.
func (s *Server) update(ctx context.Context, id string, request contract.Request) (contract.Record, error) {
	applier := Applier{Store: s.cfg.Store, Offers: s.cfg.Offers, Seller: s.cfg.Seller, Audit: s.cfg.Audit, Clock: s.cfg.Clock}
	key := contract.Key{Buyer: string(callerOf(ctx).ID()), ID: id}
	return applier.Apply(ctx, key, func(*contract.Record) contract.Request { return request })
}

// added returns what a history has after its last known entry. A history forgets its oldest.
func added(before, after []contract.Transition) []contract.Transition {
	if len(before) == 0 {
		return after
	}
	last := before[len(before)-1]
	for i, entry := range slices.Backward(after) {
		if entry.At.Equal(last.At) && entry.Event == last.Event && entry.From == last.From && entry.To == last.To && entry.Reason == last.Reason {
			return after[i+1:]
		}
	}
	return after
}

// getContract answers with a contract as it is, once await has waited.
func (s *Server) getContract(ctx context.Context, in *polling) (*answered, error) {
	if err, _ := ctx.Value(awaitedKey{}).(error); err != nil {
		return nil, err
	}
	record, err := s.known(ctx, in.ID, in.After)
	return &answered{writeView(record.View)}, err
}

// awaitedKey is under which the context of a get has why await did not wait.
type awaitedKey struct{}

// await waits until a contract has changed, if a get asks for that. It comes before everything that the answer needs of the stack: a
// thousand of these wait at the same time, and a stack that is in use up to a quarter keeps its size. What does not parse waits for
// nothing, and is refused by huma.
func (s *Server) await(ctx huma.Context, next func(huma.Context)) {
	seconds, err := strconv.Atoi(cmp.Or(ctx.Query("wait"), "0"))
	if err == nil && 0 < seconds && seconds <= int(MaxWait/time.Second) {
		var after int64
		if after, err = strconv.ParseInt(cmp.Or(ctx.Query("after"), "0"), 10, 64); err == nil && after >= 0 {
			if err := s.wait(ctx.Context(), ctx.Param("id"), after, time.Duration(seconds)*time.Second); err != nil {
				ctx = huma.WithValue(ctx, awaitedKey{}, err)
			}
		}
	}
	next(ctx)
}

// wait waits for so long until a contract of the caller has a later version.
func (s *Server) wait(ctx context.Context, id string, after int64, most time.Duration) error {
	version, err := s.version(ctx, id, after)
	if err != nil || version > after {
		return err
	}
	buyer := string(callerOf(ctx).ID())
	leave, ok := s.poll.Enter(source.Caller(buyer))
	if !ok {
		return fmt.Errorf("other requests of party %s wait for changes: %w", buyer, ErrTooMany)
	}
	defer leave()
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	key := contract.Key{Buyer: buyer, ID: id}
	if err := s.cfg.Store.Wait(ctx, key, after); err != nil && ctx.Err() == nil {
		return fmt.Errorf("wait for contract %s: %w", key, err)
	}
	return nil
}

// version returns that of a contract of the caller. It is a function of its own so that who waits keeps no record on its stack.
//
//go:noinline
func (s *Server) version(ctx context.Context, id string, after int64) (int64, error) {
	record, err := s.known(ctx, id, after)
	return record.Version, err
}

// known returns a contract of the caller to which the time was applied, and of which the caller has seen a version. Most have nothing due,
// and are answered from what this process has seen.
func (s *Server) known(ctx context.Context, id string, after int64) (contract.Record, error) {
	key := contract.Key{Buyer: string(callerOf(ctx).ID()), ID: id}
	if recent, ok := s.cfg.Store.Recent(key); ok && recent.Version >= after && recent.Idle(s.cfg.Clock.Now()) {
		return recent, nil
	}
	record, err := s.update(ctx, id, contract.Request{Event: contract.Tick})
	if err == nil && record.Version == 0 {
		err = fmt.Errorf("contract %s: %w", id, contract.ErrUnknown)
	}
	return record, err
}

// credentials answers with what the caller needs to peer, while it has a contract that does not end.
func (s *Server) credentials(ctx context.Context, in *Named) (*secret, error) {
	record, err := s.known(ctx, in.ID, 0)
	if err != nil {
		return nil, err
	}
	switch record.State { //nolint:exhaustive // In the others there is no contract, or none any more.
	case contract.Provisioning, contract.Active, contract.Resizing, contract.Suspended:
	case contract.Proposed, contract.Reserved, contract.Signed:
		return nil, fmt.Errorf("credentials of contract %s in state %s: %w", in.ID, record.State, contract.ErrEarly)
	default:
		return nil, fmt.Errorf("credentials of contract %s in state %s: %w", in.ID, record.State, contract.ErrLate)
	}
	made, err := s.cfg.Credentials.Credentials(ctx, record)
	if err != nil {
		return nil, fmt.Errorf("make credentials of contract %s: %w", record.Key, err)
	}
	return &secret{negotiationv1.Credentials{Credentials: made}}, nil
}
