// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package trading reads of a cluster that trades what is shown to people: its contracts, what it needs, its offers, the registries that it
// uses, and what is for sale.
//
// It does not know to whom it is shown, and by what, nor what they do with it.
package trading

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/shown"
	"github.com/capacitorset/liqo-broker/pkg/shown/feed"
	"github.com/capacitorset/liqo-broker/pkg/shown/tradev1"
	"github.com/capacitorset/liqo-broker/pkg/trade/desk"
	"github.com/capacitorset/liqo-broker/pkg/trade/show"
)

// Kinds of what is shown.
const (
	Contracts  feed.Kind = "contracts"
	Requests   feed.Kind = "requests"
	OwnOffers  feed.Kind = "ownoffers"
	Registries feed.Kind = "registries"
	Market     feed.Kind = "market"
	// Activity is that of a broker: what has happened to objects of one group.
	Activity = shown.Activity
)

// TheMarket is the key of the one item of the kind Market.
const TheMarket = "market"

// MaxListed bounds how many plans, sellers and regions are shown at once.
const MaxListed = 250

// oldest is for how long a catalog is kept that has not changed: what is over is counted again then.
const oldest = 5 * time.Minute

// Kinds returns all kinds. A broker that trades has its own Activity, which has all that this one has.
func Kinds() []feed.Kind {
	return []feed.Kind{Contracts, Requests, OwnOffers, Registries, Market, Activity}
}

// Needs returns of which objects a kind is made.
func Needs(kind feed.Kind) []client.Object {
	switch kind {
	case Contracts:
		return []client.Object{&connectorv1alpha1.Purchase{}, &connectorv1alpha1.Sale{}}
	case Requests:
		return []client.Object{&connectorv1alpha1.CapacityRequest{}}
	case OwnOffers:
		return []client.Object{&connectorv1alpha1.Offer{}}
	case Registries:
		return []client.Object{&connectorv1alpha1.Registry{}}
	case Market:
		return []client.Object{&connectorv1alpha1.CatalogPage{}, &connectorv1alpha1.Offer{}}
	case Activity:
		return []client.Object{shown.Told()}
	}
	return nil
}

// Objects are the objects of a cluster that trades. They may be used concurrently.
type Objects struct {
	reader client.Reader

	mu      sync.Mutex
	catalog *desk.Catalog // What is for sale, as the pages of a revision say; nil for not read yet.
	of      string
	read    time.Time
}

// New returns the objects that the reader of a cache has.
func New(reader client.Reader) *Objects { return &Objects{reader: reader} }

// Items returns all of a kind; it is a [feed.Source].
func (o *Objects) Items(ctx context.Context, kind feed.Kind) ([]feed.Item, error) {
	now := time.Now()
	switch kind {
	case Contracts:
		all, err := desk.Contracts(ctx, o.reader)
		items := make([]feed.Item, 0, len(all))
		for i := range all {
			c := ContractOf(&all[i], now.Truncate(time.Minute)) // What is owed grows all the time.
			items = append(items, feed.Item{Key: Key(c.Sold, c.Name), Value: c})
		}
		return items, err
	case Requests:
		var list connectorv1alpha1.CapacityRequestList
		return itemsOf(ctx, o.reader, &list, func() []connectorv1alpha1.CapacityRequest { return list.Items },
			func(r *connectorv1alpha1.CapacityRequest) any { return requestOf(r) })
	case OwnOffers:
		var list connectorv1alpha1.OfferList
		return itemsOf(ctx, o.reader, &list, func() []connectorv1alpha1.Offer { return list.Items },
			func(of *connectorv1alpha1.Offer) any { return ownOfferOf(of) })
	case Registries:
		var list connectorv1alpha1.RegistryList
		return itemsOf(ctx, o.reader, &list, func() []connectorv1alpha1.Registry { return list.Items },
			func(r *connectorv1alpha1.Registry) any { return registryOf(r) })
	case Market:
		market, err := o.market(ctx, now)
		if err != nil {
			return nil, err
		}
		return []feed.Item{{Key: TheMarket, Value: market}}, nil
	case Activity:
		return shown.Happened(ctx, o.reader, nil, nil) //nolint:wrapcheck // It says what it does.
	}
	return nil, fmt.Errorf("nothing is of the kind %s", kind)
}

// Key returns by which key a contract is known: a purchase and a sale may have one name.
func Key(sold bool, name string) string {
	if sold {
		return "sells/" + name
	}
	return "buys/" + name
}

// itemsOf returns an item for each object of a list.
func itemsOf[T any, P interface {
	*T
	client.Object
}](
	ctx context.Context, reader client.Reader, list client.ObjectList, read func() []T, shown func(P) any,
) ([]feed.Item, error) {
	if err := reader.List(ctx, list); err != nil {
		return nil, fmt.Errorf("list %T: %w", list, err)
	}
	all := read()
	items := make([]feed.Item, 0, len(all))
	for i := range all {
		items = append(items, feed.Item{Key: P(&all[i]).GetName(), Value: shown(&all[i])})
	}
	return items, nil
}

// Catalog returns what is for sale. It is verified again only if it has changed, or was for some minutes.
func (o *Objects) Catalog(ctx context.Context, now time.Time) (*desk.Catalog, string, error) {
	var pages connectorv1alpha1.CatalogPageList
	var own connectorv1alpha1.OfferList
	if err := o.reader.List(ctx, &pages, client.UnsafeDisableDeepCopy); err != nil {
		return nil, "", fmt.Errorf("list catalog pages: %w", err)
	}
	if err := o.reader.List(ctx, &own, client.UnsafeDisableDeepCopy); err != nil {
		return nil, "", fmt.Errorf("list offers: %w", err)
	}
	var versions []string
	for i := range pages.Items {
		versions = append(versions, pages.Items[i].Name+" "+pages.Items[i].ResourceVersion)
	}
	slices.Sort(versions)
	sum := sha256.New()
	for _, v := range versions {
		_, _ = io.WriteString(sum, v+"\n")
	}
	_, _ = io.WriteString(sum, string(desk.Self(own.Items)))
	of := hex.EncodeToString(sum.Sum(nil)[:8])

	o.mu.Lock()
	defer o.mu.Unlock()
	if o.catalog != nil && o.of == of && now.Sub(o.read) < oldest {
		return o.catalog, of, nil
	}
	catalog, err := desk.ReadCatalog(ctx, whole{o.reader}, now)
	if err != nil {
		return nil, "", err
	}
	o.catalog, o.of, o.read = catalog, of, now
	return catalog, of, nil
}

// whole reads lists as a whole: the reader of a cache ends at a limit, and says of every list that it goes on.
type whole struct{ client.Reader }

// List implements [client.Reader].
func (w whole) List(ctx context.Context, list client.ObjectList, _ ...client.ListOption) error {
	err := w.Reader.List(ctx, list, client.UnsafeDisableDeepCopy)
	list.SetContinue("")
	return err //nolint:wrapcheck // Whoever reads says what.
}

// market returns what is for sale at a glance.
func (o *Objects) market(ctx context.Context, now time.Time) (tradev1.Market, error) {
	catalog, of, err := o.Catalog(ctx, now)
	if err != nil {
		return tradev1.Market{}, err
	}
	sellers := catalog.Sellers(now)
	m := tradev1.Market{Revision: of, LeftOut: catalog.LeftOut, Sellers: []tradev1.Seller{}, More: max(0, len(sellers)-MaxListed)}
	regions := map[string]bool{}
	for i, s := range sellers {
		m.Offers += s.Offers
		for _, region := range s.Regions {
			regions[plain(region)] = true
		}
		if i < MaxListed {
			m.Sellers = append(m.Sellers, sellerOf(&s))
		}
	}
	for region := range regions {
		m.Regions = append(m.Regions, region)
	}
	slices.Sort(m.Regions)
	m.Regions = m.Regions[:min(len(m.Regions), MaxListed)]
	if catalog.Self != "" {
		m.Self = new(partyOf(string(catalog.Self), ""))
	}
	return m, nil
}

// PlansOf returns plans as they are shown, at most so many, and how many there are besides. For is for how long they are needed; 0 if
// nobody says.
func PlansOf(plans []show.ForSale, atMost int, needed time.Duration) (shown []tradev1.PlanForSale, more int) {
	shown = []tradev1.PlanForSale{}
	for i := range plans[:min(len(plans), atMost, MaxListed)] {
		shown = append(shown, planOf(&plans[i], needed))
	}
	return shown, len(plans) - len(shown)
}

func quantities(of corev1.ResourceList) tradev1.Quantities {
	if len(of) == 0 {
		return nil
	}
	all := tradev1.Quantities{}
	for name, quantity := range of {
		all[string(name)] = quantity.String()
	}
	return all
}
