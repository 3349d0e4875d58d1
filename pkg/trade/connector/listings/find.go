// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package listings

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/capacitorset/liqo-broker/pkg/trade/core/offer"
	"github.com/capacitorset/liqo-broker/pkg/trade/party"
	registryclient "github.com/capacitorset/liqo-broker/pkg/trade/registry/client"
)

// ErrCurrencies means that plans in several currencies fit, of which none is the cheapest: somebody has to name one.
var ErrCurrencies = errors.New("plans in several currencies fit, which cannot be compared")

// View is what registries show together at a moment. It does not change, and can be used concurrently, while its Listings do.
type View struct {
	sales []sale
}

// sale is an offer of somebody who can be reached.
type sale struct {
	entry  *offer.Entry
	seller *registryclient.Party
}

// View returns what is there now. It may be called while others read, and costs little unless something has changed.
func (l *Listings) View() *View {
	if v := l.view.Load(); v != nil {
		return v
	}
	v, sellers := &View{sales: make([]sale, 0, l.catalog.Len())}, map[string]*registryclient.Party{}
	for entry := range l.catalog.Entries() {
		seller, known := sellers[entry.Offer.Party]
		if !known {
			if p, ok := l.parties.get(party.ID(entry.Offer.Party)); ok && p.Said.Endpoint != "" {
				seller = &p
			}
			sellers[entry.Offer.Party] = seller
		}
		if seller != nil {
			v.sales = append(v.sales, sale{entry, seller})
		}
	}
	l.view.Store(v)
	return v
}

// Found is a plan that can be bought. Nobody changes what it refers to.
type Found struct {
	Entry  *offer.Entry
	Match  offer.Match
	Seller *registryclient.Party
}

// Plan returns the plan.
func (f Found) Plan() offer.Plan { return f.Entry.Offer.Plans[f.Match.Plan] }

// Find is [View.Find] of what is there now.
func (l *Listings) Find(filter offer.Matcher, buyer party.ID, now time.Time) []Found {
	return l.View().Find(filter, buyer, now)
}

// Find returns the plans of others than a buyer that pass a filter: first those of sellers that registries take for alive, then by
// currency, by price, and by name. Which currency comes first says nothing: see [OneCurrency]. Offers that are over, and sellers that
// cannot be reached, are none.
func (v *View) Find(filter offer.Matcher, buyer party.ID, now time.Time) []Found {
	var found []Found
	for _, s := range v.sales {
		if s.entry.Offer.Party == string(buyer) || !now.Before(s.entry.Offer.ValidUntil) {
			continue
		}
		for _, match := range filter.All(&s.entry.Offer) {
			found = append(found, Found{Entry: s.entry, Match: match, Seller: s.seller})
		}
	}
	slices.SortFunc(found, compare)
	return found
}

// compare compares what to buy first.
func compare(a, b Found) int {
	switch {
	case a.Seller.Alive && !b.Seller.Alive:
		return -1
	case !a.Seller.Alive && b.Seller.Alive:
		return 1
	}
	return cmp.Or(
		strings.Compare(a.Match.Price.Currency, b.Match.Price.Currency), a.Match.Price.Compare(b.Match.Price),
		strings.Compare(a.Entry.Offer.Party, b.Entry.Offer.Party), strings.Compare(a.Entry.Offer.ID, b.Entry.Offer.ID),
		cmp.Compare(a.Match.Plan, b.Match.Plan))
}

// OneCurrency returns ErrCurrencies, with some of them, unless all plans are in one: only then the first one is the cheapest.
func OneCurrency(found []Found) error {
	const told = 8
	currencies := map[string]bool{}
	for i := range found {
		currencies[found[i].Match.Price.Currency] = true
	}
	if len(currencies) < 2 {
		return nil
	}
	names := slices.Sorted(maps.Keys(currencies))
	return fmt.Errorf("%w: %s: name the one in which it is to be paid", ErrCurrencies, strings.Join(names[:min(told, len(names))], ", "))
}
