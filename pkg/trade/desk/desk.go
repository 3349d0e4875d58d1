// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package desk is what people do at a cluster that trades, whatever they do it with: they look at what is for sale and at their contracts,
// order, and decide. It reads objects, and returns objects as they are to be written.
//
// It does not know who the people are, what they see it with, nor how a connector does what they want.
package desk

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/listings"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/pages"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/offer"
	"github.com/capacitorset/liqo-broker/pkg/trade/party"
	"github.com/capacitorset/liqo-broker/pkg/trade/show"
)

// ErrUnclear is about what people have written: it is not what it has to be, or could be several things.
var ErrUnclear = errors.New("unclear")

// unclear is an error with a text of its own that is ErrUnclear.
type unclear struct{ text string }

func (u unclear) Error() string        { return u.text }
func (u unclear) Is(target error) bool { return target == ErrUnclear }

func unclearf(format string, values ...any) error { return unclear{fmt.Sprintf(format, values...)} }

// Catalog is what is for sale, as a cluster has seen it last. It may be read concurrently.
type Catalog struct {
	listings *listings.Listings
	// LeftOut is how many parties and offers are not in it: they are over, or not what their owners have signed.
	LeftOut int
	// Self is this cluster as a party; empty if it offers nothing.
	Self party.ID
}

// ReadCatalog reads what the connector remembers, and verifies it.
func ReadCatalog(ctx context.Context, reader client.Reader, now time.Time) (*Catalog, error) {
	all, leftOut, err := pages.Read(ctx, reader, now)
	if err != nil {
		return nil, err
	}
	var own connectorv1alpha1.OfferList
	if err := reader.List(ctx, &own); err != nil {
		return nil, fmt.Errorf("list offers: %w", err)
	}
	return &Catalog{listings: all, LeftOut: leftOut, Self: Self(own.Items)}, nil
}

// Self returns as which party a cluster has signed its offers; empty if it has signed none.
func Self(own []connectorv1alpha1.Offer) party.ID {
	for i := range own {
		payload, err := party.Payload(own[i].Status.Signed)
		if err != nil {
			continue // It is not signed.
		}
		if signed, err := offer.Parse(payload); err == nil {
			return party.ID(signed.Party)
		}
	}
	return ""
}

// Find returns the plans of others that fit, in the order in which a connector buys them.
func (c *Catalog) Find(matcher offer.Matcher, now time.Time) []show.ForSale {
	found := c.listings.Find(matcher, c.Self, now)
	plans := make([]show.ForSale, 0, len(found))
	for _, f := range found {
		said := f.Seller.Said
		of := show.ForSale{
			Seller:  show.Seller{ID: said.Party, Name: said.Name, Endpoint: said.Endpoint, Alive: f.Seller.Alive},
			Granted: f.Match.Granted, Price: f.Match.Price, Plan: f.Plan(), Offer: f.Entry.Offer,
		}
		for _, seen := range f.Entry.Seen {
			of.Registries = append(of.Registries, seen.Registry)
		}
		plans = append(plans, of)
	}
	return plans
}

// Sellers returns the parties that have offers, in the order of their names.
func (c *Catalog) Sellers(now time.Time) []show.Seller {
	byID := map[string]*show.Seller{}
	for entry := range c.listings.Offers() {
		o := entry.Offer
		p, known := c.listings.Party(party.ID(o.Party))
		if !known || !now.Before(o.ValidUntil) {
			continue
		}
		s := byID[o.Party]
		if s == nil {
			s = &show.Seller{ID: o.Party, Name: p.Said.Name, Endpoint: p.Said.Endpoint, Alive: p.Alive}
			byID[o.Party] = s
		}
		s.Offers++
		if o.Region != "" && !slices.Contains(s.Regions, o.Region) {
			s.Regions = append(s.Regions, o.Region)
		}
	}
	all := make([]show.Seller, 0, len(byID))
	for _, s := range byID {
		slices.Sort(s.Regions)
		all = append(all, *s)
	}
	slices.SortFunc(all, func(a, b show.Seller) int {
		if a.Name != b.Name {
			return strings.Compare(a.Name, b.Name)
		}
		return strings.Compare(a.ID, b.ID)
	})
	return all
}

// Plan is a plan of an offer.
type Plan struct {
	Offer offer.Key
	ID    string
}

// Reference reads PARTY/OFFER/PLAN. A party is its ID, or the beginning of the ID of one that sells. The error can be ErrUnclear.
func (c *Catalog) Reference(text string) (Plan, error) {
	parts := strings.Split(text, "/")
	if len(parts) != 3 || slices.Contains(parts, "") {
		return Plan{}, unclearf("%.80q is not PARTY/OFFER/PLAN, as kubectl liqo-broker offers prints it", text)
	}
	var sellers []string
	for _, id := range c.listings.Parties() {
		if strings.HasPrefix(string(id), parts[0]) {
			sellers = append(sellers, string(id))
		}
	}
	switch len(sellers) {
	case 0:
		return Plan{}, fmt.Errorf("no party that this cluster has seen has an ID that begins with %.60q", parts[0])
	case 1:
	default:
		return Plan{}, unclearf("%d parties have an ID that begins with %.60q", len(sellers), parts[0])
	}
	if party.ID(sellers[0]) == c.Self {
		return Plan{}, unclearf("party %s is this cluster itself", sellers[0])
	}
	key := offer.Key{Party: sellers[0], Offer: parts[1]}
	entry, known := c.listings.Offer(key)
	if !known {
		return Plan{}, fmt.Errorf("party %s has no offer %.63q that this cluster has seen", key.Party, key.Offer)
	}
	if _, known := entry.Offer.Plan(parts[2]); !known {
		return Plan{}, fmt.Errorf("offer %s of party %s has no plan %.63q", key.Offer, key.Party, parts[2])
	}
	return Plan{Offer: key, ID: parts[2]}, nil
}
