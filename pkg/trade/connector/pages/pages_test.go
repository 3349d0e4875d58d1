// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package pages_test

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/pages"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/offer"
	registryclient "github.com/capacitorset/liqo-broker/pkg/trade/registry/client"
	"github.com/capacitorset/liqo-broker/pkg/trade/registry/registrytest"
	"github.com/capacitorset/liqo-broker/pkg/trade/registry/registryv1"
)

var registry = &connectorv1alpha1.Registry{ObjectMeta: metav1.ObjectMeta{Name: "eu", UID: "1"}}

func cluster(t *testing.T, hooks interceptor.Funcs) client.WithWatch {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := connectorv1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(hooks).Build()
}

// together returns what is in all pages of a cache.
func together(b *pages.Cache) (all pages.Page) {
	for page := range b.All() {
		all.Parties, all.Offers = append(all.Parties, page.Parties...), append(all.Offers, page.Offers...)
	}
	return all
}

// change returns that a party has an offer with a text of its own.
func change(party, id, text string) registryclient.Change {
	return registryclient.Change{Offer: &offer.Signed{Offer: offer.Offer{Party: party, ID: id, Revision: 1}, JWS: text}}
}

func seen(t *testing.T, p *registrytest.Party) registryclient.Change {
	t.Helper()
	said := registryv1.Announcement{Party: p.ID, Revision: 1, Name: p.Name}
	return registryclient.Change{
		Party: &registryclient.Party{Said: said, Keys: p.Keys, Announcement: p.Sign(t, registryv1.TypeAnnouncement, said), Alive: true},
	}
}

// TestBook notes changes, flushes them, and reads them again as another process.
func TestBook(t *testing.T) {
	writes := 0
	c := cluster(t, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			writes++
			return c.Create(ctx, o, opts...)
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			writes++
			return c.Update(ctx, o, opts...)
		},
	})
	cache := pages.New(registry)
	alice := registrytest.NewParty(t, "alice")
	changes := []registryclient.Change{seen(t, alice)}
	for n := range 500 {
		changes = append(changes, change(alice.ID, fmt.Sprint("o", n), fmt.Sprint("text ", n)))
	}
	cache.Note(changes[:300], "")
	cache.Note(changes[300:], "e/7")
	stored, written, err := cache.Flush(t.Context(), c, c)
	if want := (pages.Stored{Position: "e/7", Parties: 1, Offers: 500}); err != nil || stored != want || written == 0 ||
		writes != pages.Count {
		t.Fatalf("flushed %+v, %d bytes in %d writes, error %v; want %+v in %d writes", stored, written, writes, err, want, pages.Count)
	}

	// One change is one write, and none is none.
	gone := offer.Key{Party: alice.ID, Offer: "o9"}
	cache.Note([]registryclient.Change{{Gone: &gone}}, "e/8")
	for range 2 {
		if stored, _, err = cache.Flush(t.Context(), c, c); err != nil {
			t.Fatal(err)
		}
	}
	if writes != pages.Count+1 || stored.Offers != 499 {
		t.Errorf("%d writes after one change, %+v; want %d and 499 offers", writes, stored, pages.Count+1)
	}

	// Another process goes on from there.
	again := pages.New(registry)
	after, err := again.Load(t.Context(), c, stored)
	all := together(again)
	if err != nil || after != "e/8" || len(all.Offers) != 499 || len(all.Parties) != 1 {
		t.Fatalf("loaded %d parties and %d offers after %q, error %v", len(all.Parties), len(all.Offers), after, err)
	}
	if got := all.Parties[0]; !cmp.Equal(got.Keys, alice.Keys.Chain()) || got.Announcement != changes[0].Party.Announcement || !got.Alive {
		t.Errorf("loaded the party %+v", got)
	}
	again.Note([]registryclient.Change{change(alice.ID, "new", "text")}, "e/9")
	if stored, _, err := again.Flush(t.Context(), c, c); err != nil || stored.Offers != 500 {
		t.Errorf("flushed %+v, error %v", stored, err)
	}

	// Nobody goes on from pages of which one is missing or spoilt, or from those of a registry that was another.
	spoil := map[string]func(p *connectorv1alpha1.CatalogPage) error{
		"missing": func(p *connectorv1alpha1.CatalogPage) error { return c.Delete(t.Context(), p) },
		"spoilt":  func(p *connectorv1alpha1.CatalogPage) error { p.Data = []byte("?"); return c.Update(t.Context(), p) },
	}
	for name, do := range spoil {
		var list connectorv1alpha1.CatalogPageList
		if err := c.List(t.Context(), &list); err != nil {
			t.Fatal(err)
		}
		if err := do(&list.Items[0]); err != nil {
			t.Fatal(err)
		}
		if after, err := pages.New(registry).Load(t.Context(), c, stored); err != nil || after != "" {
			t.Errorf("with a page that is %s: goes on after %q, error %v", name, after, err)
		}
	}
	other := registry.DeepCopy()
	other.UID = "2"
	empty := pages.New(other)
	if after, err := empty.Load(t.Context(), c, pages.Stored{}); err != nil || after != "" || len(together(empty).Offers) != 0 {
		t.Errorf("another registry of the same name has pages %v after %q, error %v", together(empty), after, err)
	}
}

// TestFailures has writes fail, and somebody else delete and change pages: what was noted is stored in the end.
func TestFailures(t *testing.T) {
	fail := true
	c := cluster(t, interceptor.Funcs{Create: func(
		ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption,
	) error {
		if fail && o.GetName() > "eu-20" {
			return errors.New("no")
		}
		return c.Create(ctx, o, opts...)
	}})
	cache := pages.New(registry)
	changes := make([]registryclient.Change, 0, 300)
	for n := range 300 {
		changes = append(changes, change("p", fmt.Sprint("o", n), "text"))
	}
	cache.Note(changes, "e/1")
	if stored, _, err := cache.Flush(t.Context(), c, c); err == nil || stored.Position != "" {
		t.Fatalf("flushed %+v while writes fail", stored)
	}
	fail = false
	var list connectorv1alpha1.CatalogPageList
	if err := c.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(c.Delete(t.Context(), &list.Items[0]), c.Update(t.Context(), &list.Items[1])); err != nil {
		t.Fatal(err)
	}
	cache.Note(changes, "e/2")
	var stored pages.Stored
	for range 4 {
		stored, _, _ = cache.Flush(t.Context(), c, c)
	}
	again := pages.New(registry)
	if after, err := again.Load(t.Context(), c, stored); err != nil || after != "e/2" || len(together(again).Offers) != 300 {
		t.Errorf("loaded %d offers after %q, error %v", len(together(again).Offers), after, err)
	}
}

// TestTooLarge fills a page with more than fits: the others are stored, and nobody goes on from them.
func TestTooLarge(t *testing.T) {
	c := cluster(t, interceptor.Funcs{})
	cache := pages.New(registry)
	noise := make([]byte, 24<<10)
	for n := range 2500 {
		if _, err := rand.Read(noise); err != nil {
			t.Fatal(err)
		}
		cache.Note([]registryclient.Change{change("p", fmt.Sprint("o", n), base64.RawStdEncoding.EncodeToString(noise))}, "e/1")
	}
	stored, _, err := cache.Flush(t.Context(), c, c)
	if err != nil || stored.Position != "" || stored.Offers != 2500 {
		t.Errorf("flushed %+v, error %v", stored, err)
	}
}

// TestDecode refuses what Encode has not written.
func TestDecode(t *testing.T) {
	good, err := pages.Encode(pages.Page{Offers: []registryv1.Offer{{ID: "o"}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := pages.Decode(good); err != nil {
		t.Error(err)
	}
	for _, bad := range [][]byte{nil, []byte("{}"), good[:len(good)/2]} {
		if _, err := pages.Decode(bad); !errors.Is(err, pages.ErrMalformed) {
			t.Errorf("decoding %q: %v", bad, err)
		}
	}
}
