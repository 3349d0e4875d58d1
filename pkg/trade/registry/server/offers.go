// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/capacitorset/liqo-broker/pkg/serving/rest"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/offer"
	"github.com/capacitorset/liqo-broker/pkg/trade/party"
	"github.com/capacitorset/liqo-broker/pkg/trade/registry/journal"
	"github.com/capacitorset/liqo-broker/pkg/trade/registry/registryv1"
	"github.com/capacitorset/liqo-broker/pkg/trade/registry/store"
)

// NamedOffer names an offer in a path.
type NamedOffer struct {
	Named

	Offer string `doc:"The ID of an offer of the party." maxLength:"63" minLength:"1" path:"offer" pattern:"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"`
}

type publishInput struct {
	NamedOffer

	Body registryv1.Publication
}

type offersInput struct {
	rest.Paging
	Filters

	Documents bool `doc:"With what is signed also as readable documents, which makes the answer twice as large." query:"documents"`
}

type partiesInput struct{ rest.Paging }

type shownOffer struct{ Body registryv1.Offer }

// offering registers what parties offer.
func (s *Server) offering() {
	put := s.operation("putOffer", http.MethodPut, registryv1.PathOffer, owns, "Publish an offer")
	put.Description += " The offer is signed with the current key of the party, and its revision is greater than that of what was signed " +
		"with this key before. The same offer again changes nothing."
	rest.Register(s.api, put, s.publish)
	remove := s.operation("deleteOffer", http.MethodDelete, registryv1.PathOffer, owns, "Withdraw an offer")
	remove.Errors = append(remove.Errors, http.StatusNotFound)
	rest.Register(s.api, remove, func(ctx context.Context, in *NamedOffer) (*struct{}, error) {
		return nil, s.withdraw(ctx, in.Party, in.Offer)
	})
	get := s.operation("getOffer", http.MethodGet, registryv1.PathOffer, reads, "Get an offer")
	rest.Register(s.api, get, func(_ context.Context, in *NamedOffer) (*shownOffer, error) { return s.offer(in) })
	list := s.listing("listOffers", registryv1.Base+registryv1.PathOffers, "List the offers that pass a filter")
	rest.Register(s.api, list, s.listOffers)
}

// publish keeps an offer, if it is whole, the caller's, and signed by it.
func (s *Server) publish(ctx context.Context, in *publishInput) (*shownOffer, error) {
	who := callerFrom(ctx)
	now, err := s.cfg.Store.Now(ctx)
	if err != nil {
		return nil, err
	}
	read, err := offer.ReadSigned(in.Body.Offer, who.party.keys.Verify)
	if err == nil {
		err = read.Validate(now)
	}
	if err != nil {
		return nil, wrongOffer(err)
	}
	switch {
	case read.Party != in.Party:
		return nil, rest.Wrong(http.StatusForbidden, "body.offer.party", fmt.Errorf("%.60q is not %s", read.Party, in.Party))
	case read.ID != in.Offer:
		return nil, rest.Wrong(http.StatusUnprocessableEntity, "body.offer.id", fmt.Errorf("%.64q is not %s", read.ID, in.Offer))
	}
	kept, err := s.cfg.Store.PutOffer(ctx, store.StoredOffer{
		Party: in.Party, ID: in.Offer, Keys: read.Keys, Revision: read.Revision, JWS: read.JWS, ValidUntil: read.ValidUntil,
	}, s.cfg.Limits.Offers)
	if err != nil {
		return nil, s.fromStore(err, "body.offer.revision")
	}
	if _, err := s.journal.At(ctx, kept.RegistryRevision); err != nil {
		return nil, err
	}
	return &shownOffer{
		registryv1.Offer{Party: kept.Party, ID: kept.ID, Revision: kept.Revision, Registered: kept.RegistryRevision, JWS: kept.JWS},
	}, nil
}

// wrongOffer refuses an offer, with the field that is wrong.
func wrongOffer(err error) error {
	location, field := "body.offer", (*offer.FieldError)(nil)
	if errors.As(err, &field) {
		location, err = location+"."+field.Field, field.Reason
	}
	return rest.Wrong(http.StatusUnprocessableEntity, location, err)
}

// withdraw removes an offer, and returns when nobody sees it any more.
func (s *Server) withdraw(ctx context.Context, owner, id string) error {
	if err := s.cfg.Store.DeleteOffer(ctx, owner, id); err != nil {
		return s.fromStore(err, "")
	}
	revision, err := s.cfg.Store.Revision(ctx)
	if err != nil {
		return err
	}
	_, err = s.journal.At(ctx, revision)
	return err
}

// offer answers with an offer.
func (s *Server) offer(in *NamedOffer) (*shownOffer, error) {
	view := s.journal.View()
	found := view.Get(offer.Key{Party: in.Party, Offer: in.Offer})
	if found == nil {
		return nil, rest.Refusal(http.StatusNotFound, fmt.Sprintf(messageNoSuchOffer, in.Offer, in.Party))
	}
	shown, err := show(view, found, true)
	return &shownOffer{shown}, err
}

// show returns an offer as the API shows it, with what is signed as a readable document if that is asked for.
func show(view *journal.View, e *journal.Entry, readable bool) (registryv1.Offer, error) {
	alive := aliveIn(view, e)
	shown := registryv1.Offer{
		Party: e.Key.Party, ID: e.Key.Offer, Revision: e.Offer.Revision, Registered: e.Revision, JWS: e.Offer.JWS, Alive: &alive,
	}
	if !readable {
		return shown, nil
	}
	document, err := party.Payload(e.Offer.JWS)
	if err != nil {
		return registryv1.Offer{}, fmt.Errorf("read the offer %s: %w", e.Key, err)
	}
	shown.Document = document
	return shown, nil
}

// listOffers answers with a page of the offers that pass a filter.
func (s *Server) listOffers(ctx context.Context, in *offersInput) (*listed[registryv1.Offer], error) {
	f, end, err := s.filtering(ctx, &in.Filters)
	if err != nil {
		return nil, err
	}
	defer end()
	view := s.journal.View()
	return pageOf(ctx, s, in.Paging, request[registryv1.Offer]{
		view: view, filters: f.text + strconv.FormatBool(in.Documents),
		keep: func(e *journal.Entry) (bool, int) {
			if e.Offer == nil {
				return false, 0
			}
			return f.admits(view, e)
		},
		show: func(e *journal.Entry) (registryv1.Offer, int, error) {
			shown, err := show(view, e, in.Documents)
			return shown, e.Size() + len(shown.Document), err
		},
	})
}

// listParties answers with a page of the parties that are approved.
func (s *Server) listParties(ctx context.Context, in *partiesInput) (*listed[registryv1.Party], error) {
	return pageOf(ctx, s, in.Paging, request[registryv1.Party]{
		view: s.journal.View(), filters: "parties",
		keep: func(e *journal.Entry) (bool, int) { return e.Party != nil, 0 },
		show: func(e *journal.Entry) (registryv1.Party, int, error) { return *e.Party, e.Size(), nil },
	})
}
