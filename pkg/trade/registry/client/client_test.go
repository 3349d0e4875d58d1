// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/capacitorset/liqo-broker/pkg/serving/eventstream"
	"github.com/capacitorset/liqo-broker/pkg/serving/servingtest"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/offer"
	"github.com/capacitorset/liqo-broker/pkg/trade/party"
	"github.com/capacitorset/liqo-broker/pkg/trade/registry/client"
	"github.com/capacitorset/liqo-broker/pkg/trade/registry/registrytest"
	"github.com/capacitorset/liqo-broker/pkg/trade/registry/registryv1"
	"github.com/capacitorset/liqo-broker/pkg/trade/registry/servertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var quick = client.Backoff{First: 5 * time.Millisecond, Most: 50 * time.Millisecond}

func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("not within 20 s: " + what)
		}
	}
}

// reader is what somebody has been handed by a watcher.
type reader struct {
	mu      sync.Mutex
	offers  map[string]int64 // Revisions.
	parties map[string]bool
	after   string
	lies    []error
	fail    bool
	handed  int
	full    func(name string) bool // Whether there is no room for it; nil if there is for all.
}

// follow runs a watcher until the test ends, which has come to a place and restored something before.
func follow(t *testing.T, c func() *client.Client, after string, restore func(*client.Watcher)) *reader {
	t.Helper()
	r := &reader{offers: map[string]int64{}, parties: map[string]bool{}}
	w := client.NewWatcher(client.WatcherConfig{Client: c, After: after, Backoff: quick, Deliver: r.deliver, Report: r.report})
	if restore != nil {
		restore(w)
	}
	servingtest.Run(t, w.Run)
	return r
}

func (r *reader) deliver(_ context.Context, changes []client.Change, after string) (leftOut []offer.Key, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fail {
		return nil, errors.New("cannot keep it")
	}
	for _, c := range changes {
		r.handed++
		if c.Offer != nil && r.full != nil && r.full(c.Offer.ID) {
			leftOut = append(leftOut, c.Offer.Key())
			delete(r.offers, c.Offer.ID)
			continue
		}
		if c.Party != nil && r.full != nil && r.full(c.Party.Said.Name) {
			leftOut = append(leftOut, offer.Key{Party: c.Party.Said.Party})
			continue
		}
		switch {
		case c.Party != nil:
			r.parties[c.Party.Said.Party] = c.Party.Alive
		case c.Offer != nil:
			r.offers[c.Offer.ID] = c.Offer.Revision
		case c.Gone.Offer != "":
			delete(r.offers, c.Gone.Offer)
		default:
			delete(r.parties, c.Gone.Party)
		}
	}
	if after != "" {
		r.after = after
	}
	return leftOut, nil
}

func (r *reader) report(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lies = append(r.lies, err)
}

func (r *reader) sees(want map[string]int64) func() bool {
	return func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return maps.Equal(r.offers, want)
	}
}

// told reports whether something was reported that errors.Is finds.
func (r *reader) told(want error) func() bool {
	return func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return slices.ContainsFunc(r.lies, func(err error) bool { return errors.Is(err, want) })
	}
}

// TestPublisher keeps a registry told, through its death.
func TestPublisher(t *testing.T) {
	r := servertest.New(t)
	seller := registrytest.NewParty(t, "seller")
	c := seller.Client(t, r.Address, r.Fingerprint)
	p := client.NewPublisher(client.PublisherConfig{
		Client: func() *client.Client { return c }, Party: seller.ID, Backoff: quick, MinLease: time.Second,
	})
	servingtest.Run(t, p.Run)
	wrong := seller.Document(t, "wrong", 1)
	wrong.IssuedAt, wrong.ValidUntil = wrong.IssuedAt.Add(-2*time.Hour), wrong.IssuedAt.Add(-time.Hour)
	wanted := client.Wanted{
		Enrolment: seller.Enrolment(t, 1, ""),
		Offers:    map[string]string{"a": seller.Offer(t, "a", 1), "b": seller.Offer(t, "b", 1), "wrong": seller.Sign(t, offer.Type, wrong)},
	}
	p.Set(wanted)
	until(t, "two offers are published, and one refused", func() bool {
		s := p.Status()
		return slices.Equal(slices.Sorted(maps.Keys(s.Published)), []string{"a", "b"}) && s.Refused["wrong"] != nil &&
			strings.Contains(s.Refused["wrong"].Error(), "validUntil") && s.Error == nil && s.LeaseUntil.After(time.Now())
	})
	there := follow(t, func() *client.Client { return c }, "", nil)
	until(t, "they are there", there.sees(map[string]int64{"a": 1, "b": 1}))

	// The registry is away while something changes.
	r.End()
	until(t, "the publisher notices", func() bool { return p.Status().Error != nil })
	wanted.Offers = map[string]string{"b": seller.Offer(t, "b", 2), "c": seller.Offer(t, "c", 1)}
	p.Set(wanted)
	r.Begin(t)
	until(t, "the registry learns of it", there.sees(map[string]int64{"b": 2, "c": 1}))

	// Somebody has lost an offer.
	if err := c.Withdraw(t.Context(), seller.ID, "c"); err != nil {
		t.Fatal(err)
	}
	until(t, "the publisher finds out", func() bool {
		s := p.Status()
		return strings.Contains(fmt.Sprint(s.Refused["c"]), "revision") // The owner has withdrawn this one.
	})
	wanted.Offers = map[string]string{"c": seller.Offer(t, "c", 2)}
	p.Set(wanted)
	until(t, "it is there again", there.sees(map[string]int64{"c": 2}))
}

// TestRestored has a registry lose what it was told last, while it has as many offers as before: it is told again.
func TestRestored(t *testing.T) {
	seller := registrytest.NewParty(t, "seller")
	old, last := seller.Offer(t, "a", 1), seller.Offer(t, "a", 2)
	var mu sync.Mutex
	has := old
	c := dishonest(t, seller, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case strings.HasSuffix(r.URL.Path, "/lease"):
			_ = json.NewEncoder(w).Encode(registryv1.Lease{Seconds: 1, Offers: 1})
		case strings.HasSuffix(r.URL.Path, registryv1.PathOffers):
			_ = json.NewEncoder(w).Encode(map[string]any{"items": []registryv1.Offer{{Party: seller.ID, ID: "a", JWS: has}}})
		case strings.HasSuffix(r.URL.Path, "/offers/a"):
			var p registryv1.Publication
			_ = json.NewDecoder(r.Body).Decode(&p)
			has = p.Offer
			_ = json.NewEncoder(w).Encode(registryv1.Offer{})
		default:
			_ = json.NewEncoder(w).Encode(registryv1.Party{State: registryv1.Approved})
		}
	}))
	p := client.NewPublisher(client.PublisherConfig{
		Client: func() *client.Client { return c }, Party: seller.ID, Backoff: quick, MinLease: 30 * time.Millisecond,
		LookAgain: 50 * time.Millisecond,
	})
	servingtest.Run(t, p.Run)
	p.Set(client.Wanted{Enrolment: seller.Enrolment(t, 1, ""), Offers: map[string]string{"a": last}})
	listed := func() bool { mu.Lock(); defer mu.Unlock(); return has == last }
	until(t, "it is listed", listed)
	mu.Lock()
	has = old
	mu.Unlock()
	until(t, "it is listed again", listed)
}

// TestBehind connects with a replica that is behind, and then with one that is not: nothing vanishes, and nobody is accused. One that stays
// behind counts in the end, and shows what it should not.
func TestBehind(t *testing.T) {
	seller := registrytest.NewParty(t, "seller")
	e := seller.Enrolment(t, 1, "")
	shown := registryv1.Upsert{Party: &registryv1.Party{ID: seller.ID, Keys: e.Keys, Announcement: e.Announcement, Alive: true}}
	offered := func(id string, revision int64) registryv1.Upsert {
		return registryv1.Upsert{Offer: &registryv1.Offer{Party: seller.ID, ID: id, JWS: seller.Offer(t, id, revision)}}
	}
	ahead := &liar{at: 8, snapshot: []registryv1.Upsert{shown, offered("a", 2), offered("b", 1)}}
	behind := &liar{at: 3, snapshot: []registryv1.Upsert{shown, offered("a", 1)}}
	var calls atomic.Int64
	var stays atomic.Bool
	c := dishonest(t, seller, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if n := calls.Add(1); n > 1 && (n < 4 || stays.Load()) {
			behind.ServeHTTP(w, r)
		} else {
			ahead.ServeHTTP(w, r)
		}
	}))
	seen := &reader{offers: map[string]int64{}, parties: map[string]bool{}}
	clock := testingclock.NewFakePassiveClock(time.Now())
	w := client.NewWatcher(client.WatcherConfig{
		Client: func() *client.Client { return c }, Backoff: quick, Deliver: seen.deliver, Report: seen.report,
		Clock: clock,
	})
	servingtest.Run(t, w.Run)
	all := map[string]int64{"a": 2, "b": 1}
	until(t, "all is there", seen.sees(all))
	ahead.next()
	until(t, "the replica is there again that is not behind", func() bool { return calls.Load() >= 4 })
	seen.mu.Lock()
	if !maps.Equal(seen.offers, all) || len(seen.lies) > 0 {
		t.Errorf("after a replica that was behind there are %v, and not believed is %v", seen.offers, seen.lies)
	}
	seen.mu.Unlock()
	until(t, "it has sent", func() bool { ahead.mu.Lock(); defer ahead.mu.Unlock(); return ahead.sent == 2 })
	stays.Store(true)
	ahead.next()
	until(t, "it is asked again", func() bool { return calls.Load() >= 6 })
	clock.SetTime(clock.Now().Add(100 * time.Second))
	until(t, "it counts in the end", seen.told(client.ErrOlder))
}

// TestDriven has a registry say that leases last no time, or for ever, that it has another number of offers each time, and has it refuse
// and take in turn: it is called seldom, and little is told of it.
func TestDriven(t *testing.T) {
	cases := map[string]struct {
		reason string
		lease  func(n int64) registryv1.Lease
		calls  int64 // At most.
	}{
		"NoTime": {reason: "A lease counts for some time.", lease: func(int64) registryv1.Lease { return registryv1.Lease{} }, calls: 5},
		"Negative": {
			reason: "Also one that is over.", lease: func(int64) registryv1.Lease { return registryv1.Lease{Seconds: -1 << 62} }, calls: 5,
		},
		"ForEver": {
			reason: "It does not count for ever, and overflows nothing.",
			lease:  func(int64) registryv1.Lease { return registryv1.Lease{Seconds: 1<<63 - 1} }, calls: 2,
		},
		"Differs": {
			reason: "What a registry does not have is looked at less and less often.",
			lease:  func(int64) registryv1.Lease { return registryv1.Lease{Offers: 7} }, calls: 14,
		},
		"Flaps": {
			reason: "So is what it has in turn.", lease: func(n int64) registryv1.Lease { return registryv1.Lease{Offers: int(n % 2)} }, calls: 14,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			seller := registrytest.NewParty(t, "seller")
			var leases, told atomic.Int64
			c := dishonest(t, seller, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch {
				case strings.HasSuffix(r.URL.Path, "/lease"):
					_ = json.NewEncoder(w).Encode(tc.lease(leases.Add(1)))
				case strings.HasSuffix(r.URL.Path, registryv1.PathOffers):
					fmt.Fprint(w, `{"items":[]}`)
				default:
					_ = json.NewEncoder(w).Encode(registryv1.Party{State: registryv1.Approved})
				}
			}))
			p := client.NewPublisher(client.PublisherConfig{
				Client: func() *client.Client { return c }, Party: seller.ID, MinLease: 900 * time.Millisecond,
				Backoff: client.Backoff{First: 50 * time.Millisecond}, Tell: func(client.PublisherStatus) { told.Add(1) },
			})
			p.Set(client.Wanted{Enrolment: seller.Enrolment(t, 1, ""), Offers: map[string]string{}})
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if err := p.Run(ctx); err != nil {
				t.Error(err)
			}
			if n := leases.Load(); n == 0 || n > tc.calls || told.Load() > 3 {
				t.Errorf("%s\n%d leases in a second, and %d told; want at most %d and 3", tc.reason, n, told.Load(), tc.calls)
			}
		})
	}
}

// TestWatcher follows a registry through its death, and begins again where it was.
func TestWatcher(t *testing.T) {
	r := servertest.New(t)
	seller := registrytest.NewParty(t, "seller")
	c := seller.Client(t, r.Address, r.Fingerprint)
	get := func() *client.Client { return c }
	if _, err := c.Announce(t.Context(), seller.ID, seller.Enrolment(t, 1, "")); err != nil {
		t.Fatal(err)
	}
	publish := func(id string, revision int64) registryv1.Offer {
		t.Helper()
		o, err := c.Publish(t.Context(), seller.ID, id, seller.Offer(t, id, revision))
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	want := map[string]int64{}
	for i := range 300 { // More than are handed on at once.
		id := fmt.Sprint("many-", i)
		want[id] = 1
		publish(id, 1)
	}
	seen := follow(t, get, "", nil)
	until(t, "everything is seen", seen.sees(want))
	publish("a", 1)
	want["a"] = 1
	until(t, "what comes is seen", seen.sees(want))

	// The registry dies, and comes back: the watcher goes on, and is handed nothing twice.
	seen.mu.Lock()
	handed := seen.handed
	seen.mu.Unlock()
	r.End()
	r.Begin(t)
	publish("b", 1)
	want["b"] = 1
	until(t, "what comes afterwards is seen", seen.sees(want))
	seen.mu.Lock()
	if n := seen.handed - handed; n > 5 {
		t.Errorf("after the registry came back %d changes are handed on", n)
	}
	seen.fail = true
	seen.mu.Unlock()

	// What cannot be kept is handed on again.
	publish("c", 1)
	if err := c.Withdraw(t.Context(), seller.ID, "a"); err != nil {
		t.Fatal(err)
	}
	want["c"] = 1
	delete(want, "a")
	until(t, "the failure is reported", func() bool {
		seen.mu.Lock()
		defer seen.mu.Unlock()
		return slices.ContainsFunc(seen.lies, func(err error) bool { return strings.Contains(err.Error(), "cannot keep it") })
	})
	seen.mu.Lock()
	seen.fail = false
	after := seen.after
	seen.mu.Unlock()
	until(t, "it is handed on in the end", seen.sees(want))

	// Somebody who begins with what was kept goes on from there.
	offers, err := c.Offers(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	known, err := c.Party(t.Context(), seller.ID)
	if err != nil {
		t.Fatal(err)
	}
	again := follow(t, get, after, func(w *client.Watcher) {
		if restored := w.Restore([]registryv1.Party{known}, nil); len(restored) != 1 {
			t.Errorf("restored %d parties", len(restored))
		}
		if restored := w.Restore(nil, offers); len(restored) != len(offers) {
			t.Errorf("restored %d offers of %d", len(restored), len(offers))
		}
	})
	publish("d", 1)
	until(t, "what is new is seen", func() bool {
		again.mu.Lock()
		defer again.mu.Unlock()
		return again.offers["d"] == 1
	})
	if again.handed > 10 {
		t.Errorf("%d changes are handed on to who knew nearly all", again.handed)
	}
}

// TestLeftOut has no room for an offer and a party, and then for all: what is left out is nothing that is not believed, and comes when all
// is shown again.
func TestLeftOut(t *testing.T) {
	seller, other := registrytest.NewParty(t, "seller"), registrytest.NewParty(t, "other")
	shown := func(p *registrytest.Party) registryv1.Upsert {
		e := p.Enrolment(t, 1, "")
		return registryv1.Upsert{Party: &registryv1.Party{ID: p.ID, Keys: e.Keys, Announcement: e.Announcement, Alive: true}}
	}
	offered := func(p *registrytest.Party, id string, revision int64) registryv1.Upsert {
		return registryv1.Upsert{Offer: &registryv1.Offer{Party: p.ID, ID: id, JWS: p.Offer(t, id, revision)}}
	}
	registry := &liar{
		snapshot: []registryv1.Upsert{shown(seller), offered(seller, "a", 1), offered(seller, "b", 1), shown(other), offered(other, "c", 1)},
		then:     []registryv1.Upsert{offered(other, "c", 2), offered(seller, "b", 2)},
	}
	c := dishonest(t, seller, registry)
	ctx, cancel := context.WithCancel(t.Context())
	seen := &reader{
		offers: map[string]int64{}, parties: map[string]bool{}, full: func(name string) bool { return name == "b" || name == "other" },
	}
	counts := make(chan int, 10)
	clock := testingclock.NewFakePassiveClock(time.Now())
	w := client.NewWatcher(client.WatcherConfig{
		Client: func() *client.Client { return c }, Backoff: quick, Deliver: seen.deliver, Report: seen.report,
		LeftOut: func(n int) { counts <- n }, Clock: clock,
	})
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	if n := <-counts; n != 2 { // One offer and one party, until the party's offer changes.
		t.Errorf("%d are left out", n)
	}
	until(t, "what there is room for is there", seen.sees(map[string]int64{"a": 1}))
	if n := <-counts; n != 3 {
		t.Errorf("%d are left out, with the offer of the party", n)
	}

	// There is room, and the connection is made again some time later.
	seen.mu.Lock()
	seen.full = nil
	clock.SetTime(clock.Now().Add(time.Hour))
	lies := slices.Clone(seen.lies)
	seen.mu.Unlock()
	if len(lies) > 0 {
		t.Errorf("not believed: %v", lies)
	}
	registry.next()
	until(t, "the rest comes", seen.sees(map[string]int64{"a": 1, "b": 2, "c": 2}))
	if n := <-counts; n != 0 {
		t.Errorf("%d are left out when there is room", n)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestEndless has a registry answer with more than anybody can want to know.
func TestEndless(t *testing.T) {
	item := `{"party":"p","id":"o","revision":0,"registryRevision":0,"offer":""},`
	for name, answer := range map[string]func(w http.ResponseWriter){
		"Pages": func(w http.ResponseWriter) {
			fmt.Fprintf(w, `{"items":[{"offer":%q}],"continue":"more"}`, strings.Repeat("x", 500<<10))
		},
		"EmptyPages": func(w http.ResponseWriter) { fmt.Fprint(w, `{"items":[],"continue":"more"}`) },
		"Page": func(w http.ResponseWriter) {
			fmt.Fprint(w, `{"items":[`)
			for {
				if _, err := fmt.Fprint(w, item); err != nil {
					return
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := dishonest(t, registrytest.NewParty(t, "p"), http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { answer(w) }))
			size := 0
			err := c.EachOffer(t.Context(), nil, func(o registryv1.Offer) { size += 100 + len(o.JWS) })
			if !errors.Is(err, client.ErrTooMany) || size > 20<<20 {
				t.Errorf("%d bytes were taken in, error %v", size, err)
			}
		})
	}
}

// dishonest runs a registry that does as it likes, until the test ends, and returns a client of it.
func dishonest(t *testing.T, p *registrytest.Party, as http.Handler) *client.Client {
	t.Helper()
	key, inner := registrytest.Key(t), servingtest.Listen(t)
	fake := &http.Server{Handler: as, ReadHeaderTimeout: time.Second}
	t.Cleanup(func() { fake.Close() })
	go func() { _ = fake.Serve(tls.NewListener(inner, party.ServerConfig(key))) }()
	return p.Client(t, inner.Addr().String(), key.Fingerprint())
}

// TestLies lets a registry say what is not true.
func TestLies(t *testing.T) {
	seller, other := registrytest.NewParty(t, "seller"), registrytest.NewParty(t, "other")
	rotated := seller.Rotate(t)
	shown := func(p *registrytest.Party, revision int64) registryv1.Upsert {
		e := p.Enrolment(t, revision, "")
		return registryv1.Upsert{Party: &registryv1.Party{ID: p.ID, Keys: e.Keys, Announcement: e.Announcement, Alive: true}}
	}
	offered := func(owner, id, jws string) registryv1.Upsert {
		return registryv1.Upsert{Offer: &registryv1.Offer{Party: owner, ID: id, JWS: jws}}
	}
	true1 := []registryv1.Upsert{shown(seller, 1), offered(seller.ID, "a", seller.Offer(t, "a", 5))}
	over := seller.Document(t, "b", 1)
	over.IssuedAt, over.ValidUntil = over.IssuedAt.Add(-time.Hour), over.IssuedAt.Add(-time.Minute)
	asSeller := shown(other, 1)
	asSeller.Party.ID = seller.ID
	forged := shown(seller, 3)
	forged.Party.Announcement = other.Enrolment(t, 3, "").Announcement
	another := seller.Document(t, "a", 5)
	another.Name = "Another"
	cases := map[string]struct {
		reason string
		then   []registryv1.Upsert
		lie    error // What is reported; nil for nothing.
		want   map[string]int64
	}{
		"True": {
			reason: "What is true is believed.", then: []registryv1.Upsert{offered(seller.ID, "a", seller.Offer(t, "a", 6))},
			want: map[string]int64{"a": 6},
		},
		"Older": {
			reason: "An older revision is not.", then: []registryv1.Upsert{offered(seller.ID, "a", seller.Offer(t, "a", 4))}, lie: client.ErrOlder,
			want: map[string]int64{"a": 5},
		},
		"Two": {
			reason: "There are no two documents of one revision.",
			then:   []registryv1.Upsert{offered(seller.ID, "a", seller.Sign(t, offer.Type, another))}, lie: client.ErrTwo,
			want: map[string]int64{"a": 5},
		},
		"Forged": {
			reason: "What another one has signed is not the owner's.",
			then:   []registryv1.Upsert{offered(seller.ID, "a", other.Sign(t, offer.Type, seller.Document(t, "a", 9)))}, lie: client.ErrForged,
			want: map[string]int64{"a": 5},
		},
		"Cut": {
			reason: "A signature is whole.", then: []registryv1.Upsert{offered(seller.ID, "a", "a.b.c")}, lie: client.ErrForged,
			want: map[string]int64{"a": 5},
		},
		"Foreign": {
			reason: "What another one offers is not the owner's.",
			then:   []registryv1.Upsert{shown(other, 1), offered(other.ID, "a", other.Sign(t, offer.Type, seller.Document(t, "a", 9)))},
			lie:    client.ErrForeign, want: map[string]int64{"a": 5},
		},
		"Renamed": {
			reason: "An offer is not shown as another one.", then: []registryv1.Upsert{offered(seller.ID, "z", seller.Offer(t, "a", 9))},
			lie: client.ErrForeign, want: map[string]int64{"a": 5},
		},
		"Nobody": {
			reason: "Without its owner's keys nothing can be verified.", then: []registryv1.Upsert{offered(other.ID, "a", other.Offer(t, "a", 9))},
			lie: client.ErrNobody, want: map[string]int64{"a": 5},
		},
		"Keys": {
			reason: "The keys of another one are not the party's.",
			then:   []registryv1.Upsert{asSeller, offered(seller.ID, "a", other.Sign(t, offer.Type, seller.Document(t, "a", 9)))},
			lie:    client.ErrForeign, want: map[string]int64{"a": 5},
		},
		"Announcement": {
			reason: "Nor is what another one announces.", then: []registryv1.Upsert{forged}, lie: client.ErrForged, want: map[string]int64{"a": 5},
		},
		"Rotated": {
			reason: "What was signed with a key that was replaced counts no more, and is no lie.",
			then:   []registryv1.Upsert{shown(rotated, 2), offered(seller.ID, "b", seller.Offer(t, "b", 1))}, want: map[string]int64{},
		},
		"NewKey": {
			reason: "What is signed with the new one does.",
			then:   []registryv1.Upsert{shown(rotated, 2), offered(seller.ID, "a", rotated.Offer(t, "a", 6))}, want: map[string]int64{"a": 6},
		},
		"OldKeys": {
			reason: "A key that was replaced does not come back.",
			then: []registryv1.Upsert{shown(rotated, 2), offered(seller.ID, "a", rotated.Offer(t, "a", 6)), shown(seller, 3),
				offered(seller.ID, "a", seller.Offer(t, "a", 9))}, lie: client.ErrOlder, want: map[string]int64{"a": 6},
		},
		"Stolen": {
			reason: "Who has stolen a key that was replaced announces nothing higher than the new one.",
			then:   []registryv1.Upsert{shown(seller, 1<<40), shown(rotated, 2), offered(seller.ID, "a", rotated.Offer(t, "a", 6))},
			want:   map[string]int64{"a": 6},
		},
		"Anew": {
			reason: "Revisions begin again with a key.",
			then:   []registryv1.Upsert{shown(rotated, 1), offered(seller.ID, "a", rotated.Offer(t, "a", 2))}, want: map[string]int64{"a": 2},
		},
		"Over": {
			reason: "What is not valid any more is no offer, and no lie.",
			then:   []registryv1.Upsert{offered(seller.ID, "b", seller.Sign(t, offer.Type, over))}, want: map[string]int64{"a": 5},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := dishonest(t, seller, &liar{snapshot: true1, then: tc.then})
			ctx, cancel := context.WithCancel(t.Context())
			seen := &reader{offers: map[string]int64{}, parties: map[string]bool{}}
			done := make(chan error, 1)
			watcher := client.NewWatcher(client.WatcherConfig{
				Client: func() *client.Client { return c }, Backoff: quick, Deliver: seen.deliver, Report: seen.report,
			})
			go func() { done <- watcher.Run(ctx) }()
			until(t, "all is told", func() bool { seen.mu.Lock(); defer seen.mu.Unlock(); return seen.after == "e.2" })
			cancel()
			if err := <-done; err != nil {
				t.Error(err)
			}
			if diff := cmp.Diff(tc.want, seen.offers); diff != "" {
				t.Errorf("%s\n-want +got\n%s", tc.reason, diff)
			}
			if tc.lie != nil && !seen.told(tc.lie)() || tc.lie == nil && len(seen.lies) > 0 {
				t.Errorf("%s\nreported %v, want %v", tc.reason, seen.lies, tc.lie)
			}
		})
	}
}

// liar is a registry that says what it is told to say.
type liar struct {
	snapshot, then []registryv1.Upsert
	at             int64 // The revision of the snapshot; 1 if it is zero.

	mu   sync.Mutex
	end  context.CancelFunc
	sent int
}

// next ends the connection that there is.
func (l *liar) next() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.end()
}

func (l *liar) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	out := eventstream.Begin(w, time.Second)
	var events []byte
	add := func(id, name string, data any) {
		events = eventstream.Append(events, eventstream.Event{ID: id, Name: name, Data: mustJSON(data)})
	}
	at := max(1, l.at)
	add("", registryv1.EventSnapshot, registryv1.Bookmark{Revision: at})
	for _, u := range l.snapshot {
		add("", registryv1.EventUpsert, u)
	}
	add(fmt.Sprint("e.", at), registryv1.EventBookmark, registryv1.Bookmark{Revision: at})
	for _, u := range l.then {
		add("", registryv1.EventUpsert, u)
	}
	add(fmt.Sprint("e.", at+1), registryv1.EventBookmark, registryv1.Bookmark{Revision: at + 1})
	ctx, cancel := context.WithCancel(r.Context())
	l.mu.Lock()
	l.end = cancel
	l.mu.Unlock()
	_ = out.Send(events)
	l.mu.Lock()
	l.sent++
	l.mu.Unlock()
	<-ctx.Done()
}

func mustJSON(of any) []byte {
	text, err := json.Marshal(of)
	if err != nil {
		panic(err)
	}
	return text
}
