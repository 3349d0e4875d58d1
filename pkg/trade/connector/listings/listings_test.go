// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package listings_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/listings"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/pages"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/offer"
	registryclient "github.com/capacitorset/liqo-broker/pkg/trade/registry/client"
	"github.com/capacitorset/liqo-broker/pkg/trade/registry/registrytest"
	"github.com/capacitorset/liqo-broker/pkg/trade/registry/registryv1"
)

// shown returns that a party is shown.
func shown(tb testing.TB, p *registrytest.Party) registryclient.Change {
	tb.Helper()
	said := registryv1.Announcement{Party: p.ID, Revision: 1, Name: p.Name, Endpoint: "https://" + p.Name + ".example"}
	return registryclient.Change{
		Party: &registryclient.Party{Said: said, Keys: p.Keys, Announcement: p.Sign(tb, registryv1.TypeAnnouncement, said), Alive: true},
	}
}

// listed returns that an offer is shown.
func listed(o offer.Offer) registryclient.Change {
	return registryclient.Change{Offer: &offer.Signed{Offer: o, JWS: strings.Repeat("x", 1000)}}
}

// TestMergeWithin holds that what comes without room is left out, that the party and the registry that take much lose by it alone, and that
// there is room again afterwards.
func TestMergeWithin(t *testing.T) {
	const each = 6000 // More than one offer takes, and less than three.
	all, bounds := listings.New(), listings.Bounds{Registry: 5 * each, Party: 2 * each}
	alice, bob := registrytest.NewParty(t, "alice"), registrytest.NewParty(t, "bob")
	merge := func(registry string, changes ...registryclient.Change) int {
		t.Helper()
		leftOut := all.MergeWithin(registry, changes, bounds)
		for _, key := range leftOut {
			if all.Shows(registry, key) {
				t.Errorf("%v is left out and there", key)
			}
		}
		if used := all.Used(registry); used > bounds.Registry {
			t.Errorf("%d bytes are used of %d", used, bounds.Registry)
		}
		return len(leftOut)
	}
	of := func(p *registrytest.Party, n int) registryclient.Change {
		return listed(p.Document(t, fmt.Sprint("o", n), 1))
	}
	if n := merge("r", shown(t, alice), shown(t, bob)); n != 0 {
		t.Fatalf("%d parties are left out", n)
	}
	left := 0
	for i := range 20 {
		left += merge("r", of(alice, i))
	}
	if left == 0 || left == 20 || merge("r", of(bob, 0)) != 0 {
		t.Errorf("%d of 20 offers of one party are left out, and those of another one", left)
	}
	if n := merge("other", shown(t, alice), of(alice, 19)); n != 0 {
		t.Error("what one registry shows too much of is left out of another one")
	}
	if _, ok := all.Offer(offer.Key{Party: alice.ID, Offer: "o19"}); !ok {
		t.Error("what another registry shows is not there")
	}

	// What grows beyond the room is gone; what is gone makes room.
	large := alice.Document(t, "o0", 2)
	large.Description = strings.Repeat("x", 1<<10)
	large.Properties = map[string]string{}
	for i := range 10 {
		large.Properties[fmt.Sprint("p", i)] = strings.Repeat("x", 1<<10)
	}
	if n := merge("r", listed(large)); n != 1 {
		t.Errorf("%d offers are left out when one grows beyond the room", n)
	}
	if _, ok := all.Offer(offer.Key{Party: alice.ID, Offer: "o0"}); ok {
		t.Error("an offer is for sale in a revision that was replaced")
	}
	if n := merge("r", of(alice, 18)); n != 0 {
		t.Error("there is no room where there was some")
	}
	for i := range 20 {
		merge("r", registryclient.Change{Gone: &offer.Key{Party: alice.ID, Offer: fmt.Sprint("o", i)}})
	}
	merge("r", registryclient.Change{Gone: &offer.Key{Party: alice.ID}}, registryclient.Change{Gone: &offer.Key{Party: bob.ID, Offer: "o0"}},
		registryclient.Change{Gone: &offer.Key{Party: bob.ID}})
	if used := all.Used("r"); used != 0 {
		t.Errorf("%d bytes are used by nothing", used)
	}
}

// TestMemory has a registry show offers that take as much as they can: with many amounts that nobody else has, or with long texts. What is
// kept of them, verified, listed and for the pages, takes no more memory than it may.
func TestMemory(t *testing.T) {
	const most = 6 << 20
	random := rand.New(rand.NewPCG(1, 2))
	noise := func(n int) string {
		text := make([]byte, n)
		for i := range text {
			text[i] = byte('a' + random.IntN(26))
		}
		return string(text)
	}
	cases := map[string]func(o *offer.Offer){
		"Amounts": func(o *offer.Offer) {
			plan := o.Plans[0]
			o.Plans = nil
			for i := range 20 {
				p := plan
				p.ID, p.Resources = fmt.Sprint("p", i), offer.Resources{}
				maps.Copy(p.Resources, plan.Resources)
				for range 24 {
					q, err := offer.ParseQuantity(fmt.Sprint(1 + random.IntN(1e9)))
					if err != nil {
						t.Fatal(err)
					}
					p.Resources["a/"+noise(3)] = q
				}
				o.Plans = append(o.Plans, p)
			}
		},
		"Texts": func(o *offer.Offer) {
			o.Properties = map[string]string{}
			for i := range 14 {
				o.Properties[fmt.Sprintf("%s%d", noise(40), i)] = noise(980)
			}
		},
	}
	for name, change := range cases {
		t.Run(name, func(t *testing.T) {
			before := heap()
			watcher := registryclient.NewWatcher(registryclient.WatcherConfig{})
			all, book := listings.New(), pages.New(&connectorv1alpha1.Registry{ObjectMeta: metav1.ObjectMeta{Name: "r", UID: "u"}})
			kept, leftOut := 0, 0
			take := func(changes []registryclient.Change) {
				out := all.MergeWithin("r", changes, listings.Bounds{Registry: most, Party: most / 8})
				watcher.Leave(out)
				kept, leftOut = kept+len(changes)-len(out), leftOut+len(out)
				if len(out) == 0 {
					book.Note(changes, "")
				}
			}
			for i := range 9 {
				p := registrytest.NewParty(t, fmt.Sprint("p", i))
				e := p.Enrolment(t, 1, "")
				take(watcher.Restore([]registryv1.Party{{ID: p.ID, Keys: e.Keys, Announcement: e.Announcement, Alive: true}}, nil))
				for n := range 30 {
					o := p.Document(t, fmt.Sprint("o", n), 1)
					change(&o)
					take(watcher.Restore(nil, []registryv1.Offer{{Party: p.ID, ID: o.ID, JWS: p.Sign(t, offer.Type, o)}}))
				}
			}
			took := heap() - before
			t.Logf("%d are kept and %d left out: %d bytes are counted, and the heap has %d", kept, leftOut, all.Used("r"), took)
			if leftOut == 0 || all.Used("r") < most*9/10 || took > most*5/4+(4<<20) {
				t.Errorf("%d left out, %d bytes counted, the heap has %d: it may have %d", leftOut, all.Used("r"), took, most)
			}
			runtime.KeepAlive(all)
			runtime.KeepAlive(book)
			runtime.KeepAlive(watcher)
		})
	}
}

// TestOneCurrency has a fraud sell in a currency that comes first in the alphabet: what is cheapest cannot be said, unless a currency is
// named.
func TestOneCurrency(t *testing.T) {
	all := listings.New()
	show := func(name, currency, amount string) {
		t.Helper()
		p := registrytest.NewParty(t, name)
		o := p.Document(t, "small", 1)
		o.Plans[0].Price.Currency = currency
		var err error
		if o.Plans[0].Price.Amount, err = offer.ParseAmount(amount); err != nil {
			t.Fatal(err)
		}
		all.Merge("r", []registryclient.Change{shown(t, p), listed(o)})
	}
	find := func(f offer.Filter) []listings.Found {
		t.Helper()
		matcher, err := f.Compile()
		if err != nil {
			t.Fatal(err)
		}
		return all.Find(matcher, "", time.Now())
	}
	show("dear", "EUR", "0.02")
	show("cheap", "EUR", "0.01")
	if found := find(offer.Filter{}); listings.OneCurrency(found) != nil || found[0].Seller.Said.Name != "cheap" {
		t.Errorf("of one currency, %s is the first, error %v", found[0].Seller.Said.Name, listings.OneCurrency(found))
	}
	show("fraud", "AAA", "999999999")
	err := listings.OneCurrency(find(offer.Filter{}))
	if !errors.Is(err, listings.ErrCurrencies) || !strings.Contains(err.Error(), "AAA, EUR") {
		t.Errorf("of two currencies: %v", err)
	}
	if found := find(offer.Filter{Currency: "EUR"}); listings.OneCurrency(found) != nil || len(found) != 2 ||
		found[0].Seller.Said.Name != "cheap" {
		t.Errorf("of the one that is named, %d are found, error %v", len(found), listings.OneCurrency(found))
	}
}

// TestView looks at what was there while something changes.
func TestView(t *testing.T) {
	all, p := listings.New(), registrytest.NewParty(t, "p")
	all.Merge("r", []registryclient.Change{shown(t, p), listed(p.Document(t, "a", 1)), listed(p.Document(t, "b", 1))})
	before := all.View()
	if all.View() != before {
		t.Error("what has not changed is collected again")
	}
	found := before.Find(offer.Matcher{}, "", time.Now())
	all.Merge("r", []registryclient.Change{listed(p.Document(t, "a", 2)), {Gone: &offer.Key{Party: p.ID, Offer: "b"}}})
	all.Merge("other", []registryclient.Change{shown(t, p), listed(p.Document(t, "a", 2))})
	if diff := cmp.Diff(before.Find(offer.Matcher{}, "", time.Now()), found,
		cmp.Comparer(func(a, b listings.Found) bool { return a.Entry == b.Entry })); diff != "" ||
		len(found) != 2 || found[0].Entry.Offer.Revision != 1 || len(found[0].Entry.Seen) != 1 {
		t.Errorf("what was looked at has changed: %s", diff)
	}
	if now := all.Find(offer.Matcher{}, "", time.Now()); len(now) != 1 || now[0].Entry.Offer.Revision != 2 || len(now[0].Entry.Seen) != 2 {
		t.Errorf("what is there now is %+v", now)
	}
}

// BenchmarkFind is a look at 10,000 offers of three plans each.
func BenchmarkFind(b *testing.B) {
	all, p := listings.New(), registrytest.NewParty(b, "p")
	all.Merge("r", []registryclient.Change{shown(b, p)})
	for i := range 10_000 {
		o := p.Document(b, fmt.Sprint("o", i), 1)
		for k := range 2 {
			plan := o.Plans[0]
			plan.ID = fmt.Sprint("p", k)
			o.Plans = append(o.Plans, plan)
		}
		all.Merge("r", []registryclient.Change{listed(o)})
	}
	change := []registryclient.Change{listed(p.Document(b, "o1", 1))}
	for name, filter := range map[string]offer.Filter{
		"Nothing": {Regions: []string{"nowhere"}}, "All": {}, "Expression": {Expression: `offer.labels["disk"] == "nvme"`},
	} {
		matcher, err := filter.Compile()
		if err != nil {
			b.Fatal(err)
		}
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				all.Find(matcher, "", time.Now())
			}
		})
		b.Run(name+"Changed", func(b *testing.B) {
			for b.Loop() {
				all.Merge("r", change)
				all.Find(matcher, "", time.Now())
			}
		})
	}
}

// heap is how many bytes are in use.
func heap() int {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}
