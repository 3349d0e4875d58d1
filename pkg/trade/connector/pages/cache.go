// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"iter"
	"maps"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/offer"
	registryclient "github.com/capacitorset/liqo-broker/pkg/trade/registry/client"
	"github.com/capacitorset/liqo-broker/pkg/trade/registry/registryv1"
)

const (
	// Count is how many pages a registry has at most: with 10,000 offers, one has some 160 of them.
	Count = 64
	// MaxName bounds the name of a registry that has pages, which have names of their own.
	MaxName = 240
	// listed is how many pages are read at once.
	listed = 8
)

// Cache is what one registry has shown. It can be used concurrently.
type Cache struct {
	owner metav1.OwnerReference

	// flushing is held while pages are written.
	flushing sync.Mutex
	mu       sync.Mutex
	pages    [Count]page
	// position is how far the registry was followed at least by what is in the pages.
	position string
}

// page is what is in one object.
type page struct {
	parties map[string]registryv1.Party
	offers  map[offer.Key]registryv1.Offer
	// packed is what is in the page while it is as it is stored: then the maps are nil, and these numbers are how much they had. Signed
	// documents are most of what a connector knows, and nobody looks at them.
	packed                      []byte
	packedParties, packedOffers int
	// changed is whether the object has to be written.
	changed bool
	// version is that of the stored object; empty if there is none.
	version string
}

// New returns the empty cache of a registry, whose pages are deleted with it. The registry's name has at most MaxName characters.
func New(registry *connectorv1alpha1.Registry) *Cache {
	return &Cache{owner: *metav1.NewControllerRef(registry, connectorv1alpha1.GroupVersion.WithKind("Registry"))}
}

// Stored is what the pages held when all of them were written.
type Stored struct {
	// Position is how far the registry was followed; empty if the pages do not hold everything.
	Position        string
	Parties, Offers int
}

// Load reads the pages that are stored, and returns how far the registry was followed: as it was stored last, or not at all if the pages do
// not hold what they held then. It is for a cache in which nothing was noted. The reader must not cache.
func (b *Cache) Load(ctx context.Context, reader client.Reader, last Stored) (after string, err error) {
	list := &connectorv1alpha1.CatalogPageList{}
	b.mu.Lock()
	defer b.mu.Unlock()
	for next := true; next; next = list.Continue != "" {
		if err := reader.List(ctx, list, client.Limit(listed), client.Continue(list.Continue)); err != nil {
			return "", fmt.Errorf("list catalog pages: %w", err)
		}
		for i := range list.Items {
			stored := &list.Items[i]
			n, ok := b.number(stored)
			if !ok {
				continue
			}
			read, err := Decode(stored.Data)
			b.pages[n].version = stored.ResourceVersion
			if err != nil {
				b.pages[n].changed = true // What it held is missing.
				continue
			}
			b.pages[n].put(read)
			b.pages[n].pack(stored.Data)
		}
	}
	if parties, offers := b.count(); parties == last.Parties && offers == last.Offers {
		b.position = last.Position
	}
	return b.position, nil
}

// All returns what is in the pages, one after the other: all together they are several times as large as the cache.
func (b *Cache) All() iter.Seq[Page] {
	return func(yield func(Page) bool) {
		for n := range b.pages {
			b.mu.Lock()
			content := b.pages[n].content()
			b.mu.Unlock()
			if !yield(content) {
				return
			}
		}
	}
}

// number returns which page of this cache an object is.
func (b *Cache) number(stored *connectorv1alpha1.CatalogPage) (int, bool) {
	owned := slices.ContainsFunc(stored.OwnerReferences, func(r metav1.OwnerReference) bool { return r.UID == b.owner.UID })
	for n := range Count {
		if owned && stored.Name == b.name(n) {
			return n, true
		}
	}
	return 0, false
}

func (b *Cache) name(n int) string { return fmt.Sprintf("%s-%02d", b.owner.Name, n) }

// Note notes changes that the registry has shown, in order, and how far it was followed with them; empty if more belongs to them.
func (b *Cache) Note(changes []registryclient.Change, after string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range changes {
		switch {
		case c.Party != nil:
			said := c.Party.Said
			b.of(offer.Key{Party: said.Party}).put(Page{Parties: []registryv1.Party{{
				ID: said.Party, State: registryv1.Approved, Alive: c.Party.Alive, Keys: c.Party.Keys.Chain(), Announcement: c.Party.Announcement,
				Name: said.Name, Endpoint: said.Endpoint, Revision: said.Revision,
			}}})
		case c.Offer != nil:
			key := c.Offer.Key()
			b.of(key).put(Page{Offers: []registryv1.Offer{{Party: key.Party, ID: key.Offer, Revision: c.Offer.Revision, JWS: c.Offer.JWS}}})
		case c.Gone.Offer != "":
			delete(b.of(*c.Gone).offers, *c.Gone)
		default:
			delete(b.of(*c.Gone).parties, c.Gone.Party)
		}
	}
	if after != "" {
		b.position = after
	}
}

// count returns how many parties and offers there are. The caller has the lock.
func (b *Cache) count() (parties, offers int) {
	for n := range b.pages {
		p := &b.pages[n]
		parties, offers = parties+len(p.parties)+p.packedParties, offers+len(p.offers)+p.packedOffers
	}
	return parties, offers
}

// of returns the page for a key, which is about to be changed.
func (b *Cache) of(key offer.Key) *page {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(key.Party + "/" + key.Offer))
	p := &b.pages[hash.Sum32()%Count]
	p.unpack()
	p.changed = true
	return p
}

// pack keeps of a page no more than its data, which are what is in it.
func (p *page) pack(data []byte) {
	p.packed, p.packedParties, p.packedOffers = slices.Clone(data), len(p.parties), len(p.offers)
	p.parties, p.offers = nil, nil
}

// unpack undoes pack.
func (p *page) unpack() {
	if p.packed == nil {
		return
	}
	read, _ := Decode(p.packed) // They were written by Encode, or read by Decode before.
	p.packed, p.packedParties, p.packedOffers = nil, 0, 0
	p.put(read)
}

// put takes in what is in a page.
func (p *page) put(read Page) {
	if p.parties == nil {
		p.parties, p.offers = map[string]registryv1.Party{}, map[offer.Key]registryv1.Offer{}
	}
	for _, of := range read.Parties {
		p.parties[of.ID] = of
	}
	for _, of := range read.Offers {
		p.offers[offer.Key{Party: of.Party, Offer: of.ID}] = of
	}
}

// content returns what is in the page, in order.
func (p *page) content() Page {
	if p.packed != nil {
		read, _ := Decode(p.packed) // As in unpack; it was in order when it was written.
		return read
	}
	return Page{
		Parties: slices.SortedFunc(maps.Values(p.parties), func(a, b registryv1.Party) int { return cmp.Compare(a.ID, b.ID) }),
		Offers: slices.SortedFunc(maps.Values(p.offers), func(a, b registryv1.Offer) int {
			return cmp.Or(cmp.Compare(a.Party, b.Party), cmp.Compare(a.ID, b.ID))
		}),
	}
}

// Flush writes the pages that have changed, and returns what is stored then, and how many bytes it has written. After an error it can be
// called again.
func (b *Cache) Flush(ctx context.Context, c client.Client, reader client.Reader) (stored Stored, written int, err error) {
	b.flushing.Lock()
	defer b.flushing.Unlock()

	// What is to be written, all at one moment.
	type change struct {
		number  int
		content Page
		version string
	}
	var changes []change
	b.mu.Lock()
	stored.Position = b.position
	stored.Parties, stored.Offers = b.count()
	for n := range b.pages {
		if p := &b.pages[n]; p.changed {
			changes = append(changes, change{n, p.content(), p.version})
			p.changed = false
		}
	}
	b.mu.Unlock()

	// What cannot be written stays changed. A page that is too large keeps no other one back.
	for i, now := range changes {
		data, version, failed := b.store(ctx, c, reader, now.number, now.content, now.version)
		written += len(data)
		b.mu.Lock()
		p := &b.pages[now.number]
		p.version = version
		p.changed = p.changed || failed != nil
		if !p.changed {
			p.pack(data)
		}
		if failed != nil && !errors.Is(failed, ErrTooLarge) {
			for _, rest := range changes[i+1:] {
				b.pages[rest.number].changed = true
			}
		}
		b.mu.Unlock()
		switch {
		case errors.Is(failed, ErrTooLarge):
			stored.Position = ""
		case failed != nil:
			return Stored{}, written, failed
		}
	}
	return stored, written, nil
}

// store writes a page, and returns what it has written and the version then.
func (b *Cache) store(
	ctx context.Context, c client.Client, reader client.Reader, n int, content Page, version string,
) ([]byte, string, error) {
	data, err := Encode(content)
	if err != nil {
		return nil, version, err
	}
	object := &connectorv1alpha1.CatalogPage{
		ObjectMeta: metav1.ObjectMeta{Name: b.name(n), ResourceVersion: version, OwnerReferences: []metav1.OwnerReference{b.owner}},
		Registry:   b.owner.Name, Offers: int32(len(content.Offers)), Data: data, //nolint:gosec // It has some hundred.
	}
	if version == "" {
		err = c.Create(ctx, object)
	} else {
		err = c.Update(ctx, object)
	}
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) || apierrors.IsAlreadyExists(err) {
		// Somebody else has written or deleted it: the next call writes over what is there now.
		stored := &connectorv1alpha1.CatalogPage{}
		if getErr := reader.Get(ctx, client.ObjectKeyFromObject(object), stored); client.IgnoreNotFound(getErr) != nil {
			return nil, version, fmt.Errorf("get catalog page %s: %w", object.Name, getErr)
		}
		version = stored.ResourceVersion
	}
	if err != nil {
		return nil, version, fmt.Errorf("write catalog page %s: %w", object.Name, err)
	}
	return data, object.ResourceVersion, nil
}
