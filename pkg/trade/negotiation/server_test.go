// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package negotiation_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/contract"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/ledger"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/offer"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/offer/offertest"
	"github.com/capacitorset/liqo-broker/pkg/trade/negotiation"
	"github.com/capacitorset/liqo-broker/pkg/trade/negotiation/negotiationtest"
	"github.com/capacitorset/liqo-broker/pkg/trade/negotiation/negotiationv1"
	"github.com/capacitorset/liqo-broker/pkg/trade/party"
	"github.com/capacitorset/liqo-broker/pkg/trade/party/partytest"
)

// somebody is a party of tests.
type somebody struct {
	key  party.Key
	keys party.Keys
}

func newParty(tb testing.TB) somebody {
	tb.Helper()
	key, err := party.GenerateKey(rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	keys, err := party.ParseKeys([]string{key.Announce()})
	if err != nil {
		tb.Fatal(err)
	}
	return somebody{key, keys}
}

// shop is a seller of tests, with one offer.
type shop struct {
	somebody

	*negotiationtest.Memory

	url     string
	handler http.Handler

	mu    sync.Mutex
	offer offer.Offer
	// stocks are how many contracts there are of a plan; of others there is any number.
	stocks      map[string]int64
	transitions []contract.Transition
}

// now returns who the shop is: a party with its newest key.
func (s *shop) now() somebody {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.somebody
}

// become has the shop be somebody else, or have another key.
func (s *shop) become(other somebody) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.somebody = other
}

func (s *shop) Offer(_ context.Context, id string) (offer.Signed, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if id != s.offer.ID {
		return offer.Signed{}, negotiation.ErrNotOffered
	}
	return offer.Sign(s.offer, s.key.Sign)
}

func (s *shop) Limits(_ context.Context, _, plan string) (ledger.Limits, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	limits := ledger.Limits{Capacity: corev1.ResourceList{
		"cpu": resource.MustParse("8000"), "memory": resource.MustParse("8000Gi"), "pods": resource.MustParse("80000"),
	}}
	if stock, bounded := s.stocks[plan]; bounded {
		limits.Stock = &stock
	}
	return limits, nil
}

func (s *shop) Credentials(_ context.Context, record contract.Record) (json.RawMessage, error) {
	return json.RawMessage(`{"token":"of ` + record.Key.ID + `"}`), nil
}

func (s *shop) Transition(_ context.Context, _ contract.Key, transition contract.Transition) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.transitions = append(s.transitions, transition)
}

// open opens a shop on loopback.
func open(tb testing.TB, change func(*negotiation.Config)) *shop {
	tb.Helper()
	s := &shop{somebody: newParty(tb), Memory: &negotiationtest.Memory{}}
	now := time.Now().UTC().Truncate(time.Second)
	text := fmt.Sprintf(`{"party":%q,"id":"small","revision":1,"issuedAt":%q,"validUntil":%q,"kind":"Cluster","name":"Small","region":"eu-north",
		"plans":[{"id":"one","resources":{"cpu":"8","memory":"16Gi","pods":"110"},"price":{"amount":"0.1","currency":"EUR","period":"PT1H"},"available":5}]}`,
		s.key.ID(), now.Format(time.RFC3339), now.Add(24*time.Hour).Format(time.RFC3339))
	var err error
	if s.offer, err = offer.Parse([]byte(text)); err != nil {
		tb.Fatal(err)
	}
	rules, err := negotiation.NewRules(nil, contract.Accept)
	if err != nil {
		tb.Fatal(err)
	}
	cfg := negotiation.Config{
		Party: s.key.ID(), Key: func() party.Key { return s.now().key }, Identify: negotiationtest.FirstKeys, Store: s.Memory, Offers: s,
		Admission: rules, Credentials: s, Audit: s,
		Seller: contract.Seller{ReserveFor: time.Minute, DecideFor: time.Hour}, Drain: time.Minute, Limits: negotiation.DefaultLimits(),
		Log: logr.Discard(), Reach: negotiationtest.Reach{}, TryFor: time.Millisecond,
	}
	cfg.Limits.PerSecond, cfg.Limits.AtOnce = 100_000, 100_000
	if change != nil {
		change(&cfg)
	}
	server, err := negotiation.NewServer(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	served := &http.Server{Handler: server, ErrorLog: log.New(io.Discard, "", 0), ReadHeaderTimeout: time.Minute}
	done := make(chan error, 1)
	go func() { done <- served.Serve(tls.NewListener(listener, party.TLS{Current: cfg.Key}.Server())) }()
	tb.Cleanup(func() {
		served.Close()
		<-done
	})
	s.handler = server
	s.url = "https://" + listener.Addr().String()
	return s
}

func (s *shop) client(tb testing.TB, buyer somebody) *negotiation.Client {
	tb.Helper()
	return s.clientAt(tb, s.url, buyer)
}

// clientAt returns a client of somebody at a URL who has the shop's key.
func (s *shop) clientAt(tb testing.TB, url string, buyer somebody) *negotiation.Client {
	tb.Helper()
	c, err := negotiation.NewClient(negotiation.ClientConfig{
		Endpoint: url, Seller: s.keys, Buyer: buyer.keys, Key: func() party.Key { return buyer.key },
	})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(c.Close)
	return c
}

func ask(id string) negotiationv1.QuoteRequest {
	now := time.Now().UTC().Truncate(time.Second)
	return negotiationv1.QuoteRequest{
		ID: id, Cluster: negotiationv1.Cluster{ID: "edge-id", Name: "edge"}, Offer: "small", Plan: "one",
		Resources: map[string]string{"cpu": "2"}, StartsAt: now, EndsAt: now.Add(24 * time.Hour),
	}
}

// buy negotiates to a signed contract.
func buy(tb testing.TB, c *negotiation.Client, buyer somebody, id string) (contract.View, contract.Request) {
	tb.Helper()
	quoted, err := c.Quote(tb.Context(), ask(id))
	if err != nil {
		tb.Fatal(err)
	}
	request := contract.Request{Event: contract.Reserve, Key: quoted.Terms.Key(), Terms: quoted.Terms}
	if view, err := c.Do(tb.Context(), request); err != nil || view.State != contract.Reserved {
		tb.Fatalf("reserve: %+v, %v", view, err)
	}
	request.Event = contract.Sign
	if request.Signature, err = negotiation.SignTerms(buyer.key, quoted.Terms); err != nil {
		tb.Fatal(err)
	}
	view, err := c.Do(tb.Context(), request)
	if err != nil || view.State != contract.Signed {
		tb.Fatalf("sign: %+v, %v", view, err)
	}
	return view, request
}

// decide lets the seller do something.
func (s *shop) decide(t *testing.T, key contract.Key, event contract.Event) { //nolint:unparam // The event says what is decided.
	t.Helper()
	_, err := s.Update(t.Context(), key, func(record *contract.Record, books ledger.Ledger) (contract.Result, error) {
		return contract.Seller{ReserveFor: time.Minute, DecideFor: time.Hour}.Apply(record, contract.Request{Event: event, Key: key}, time.Now(),
			books, ledger.Limits{})
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestNegotiation takes a contract from the quote to its end.
func TestNegotiation(t *testing.T) {
	s, buyer := open(t, nil), newParty(t)
	c := s.client(t, buyer)
	view, request := buy(t, c, buyer, "a")
	if _, err := c.Credentials(t.Context(), "a"); !errors.Is(err, contract.ErrEarly) {
		t.Errorf("credentials before it is granted: %v", err)
	}
	// A long poll ends when the seller has granted it.
	polled := make(chan contract.View, 1)
	go func() {
		next, err := c.Get(context.Background(), "a", view.Version, 20*time.Second)
		if err != nil {
			t.Error(err)
		}
		polled <- next
	}()
	s.decide(t, request.Key, contract.Grant)
	if next := <-polled; next.State != contract.Provisioning {
		t.Errorf("polled: %s", next.State)
	}
	secret, err := c.Credentials(t.Context(), "a")
	if err != nil || string(secret.Reveal()) != `{"token":"of a"}` ||
		strings.Contains(fmt.Sprintf("%v %+v %#v %d", secret, secret, secret, secret), "token") {
		t.Errorf("credentials: %v, %s", err, secret.Reveal())
	}
	for _, step := range []struct {
		event contract.Event
		want  contract.State
	}{
		{contract.Peered, contract.Active}, {contract.Peered, contract.Active}, {contract.Terminate, contract.Terminating},
		{contract.Drained, contract.Ended},
	} {
		if view, err := c.Do(t.Context(), contract.Request{Event: step.event, Key: request.Key}); err != nil || view.State != step.want {
			t.Errorf("%s: %s, %v", step.event, view.State, err)
		}
	}
	if _, err := c.Credentials(t.Context(), "a"); !errors.Is(err, contract.ErrLate) {
		t.Errorf("credentials after the end: %v", err)
	}
	view, err = c.Do(t.Context(), contract.Request{Event: contract.Peered, Key: request.Key})
	if !errors.Is(err, contract.ErrLate) || view.State != contract.Ended {
		t.Errorf("peered after the end: %s, %v", view.State, err)
	}
	if _, err := c.Get(t.Context(), "b", 0, 0); !errors.Is(err, contract.ErrUnknown) {
		t.Errorf("a contract that is not there: %v", err)
	}
	var events []contract.Event
	for _, transition := range s.transitions {
		events = append(events, transition.Event)
	}
	if want := []contract.Event{
		contract.Reserve, contract.Sign, contract.Peered, contract.Terminate, contract.Drained,
	}; !slices.Equal(events, want) {
		t.Errorf("audited: %s, want %s", events, want)
	}
}

// TestRenew agrees on a later end.
func TestRenew(t *testing.T) {
	s, buyer := open(t, nil), newParty(t)
	c := s.client(t, buyer)
	_, request := buy(t, c, buyer, "a")
	s.decide(t, request.Key, contract.Grant)
	terms := request.Terms
	terms.Revision, terms.EffectiveAt, terms.EndsAt = 2, terms.EndsAt, terms.EndsAt.Add(time.Hour)
	for _, step := range []contract.Request{
		{Event: contract.Peered}, {Event: contract.Renew, Terms: terms}, {Event: contract.Confirm, Terms: terms},
	} {
		step.Key = request.Key
		if step.Event == contract.Confirm {
			var err error
			if step.Signature, err = negotiation.SignTerms(buyer.key, terms); err != nil {
				t.Fatal(err)
			}
		}
		if view, err := c.Do(t.Context(), step); err != nil {
			t.Fatalf("%s: %s, %v", step.Event, view.State, err)
		}
	}
	if view, err := c.Get(t.Context(), "a", 0, 0); err != nil || !view.Terms.Equal(terms) || view.State != contract.Active {
		t.Errorf("renewed: %+v, %v", view, err)
	}
}

// TestLostAnswers loses each answer after it was written: repeating has the same answer, once.
func TestLostAnswers(t *testing.T) {
	s, buyer := open(t, nil), newParty(t)
	lost := 0
	again := true
	s.AfterWrite = func() error {
		if again = !again; !again {
			lost++
			return errors.New("killed")
		}
		return nil
	}
	c := s.client(t, buyer)
	quoted, err := c.Quote(t.Context(), ask("a"))
	if err != nil {
		t.Fatal(err)
	}
	signature, err := negotiation.SignTerms(buyer.key, quoted.Terms)
	if err != nil {
		t.Fatal(err)
	}
	for _, event := range []contract.Event{contract.Reserve, contract.Sign, contract.Terminate} {
		again = true
		request := contract.Request{Event: event, Key: quoted.Terms.Key(), Terms: quoted.Terms, Signature: signature}
		if view, err := c.Do(t.Context(), request); err == nil {
			t.Errorf("%s: answered %s", event, view.State)
		}
		first, err := c.Do(t.Context(), request)
		if err != nil {
			t.Fatalf("%s again: %v", event, err)
		}
		if second, err := c.Do(t.Context(), request); err != nil || second.Version != first.Version ||
			second.Countersignature != first.Countersignature {
			t.Errorf("%s a third time: version %d, then %d, %v", event, first.Version, second.Version, err)
		}
	}
	if lost != 3 || len(s.Ledger().Holds) != 1 {
		t.Errorf("%d answers lost, %d holds", lost, len(s.Ledger().Holds))
	}
}

// send sends a body as it is, and returns the status and the answer.
func (s *shop) send(t *testing.T, by somebody, method, path, body string) (status int, answer string) {
	t.Helper()
	c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: partytest.Client(by.key, s.key.Fingerprint())}}
	request, err := http.NewRequestWithContext(t.Context(), method, s.url+negotiationv1.Base+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := c.Do(request)
	if err != nil {
		return 0, err.Error()
	}
	defer response.Body.Close()
	text, _ := io.ReadAll(response.Body)
	if response.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("%s %s can be kept by a cache", method, path)
	}
	return response.StatusCode, string(text)
}

// TestRefuses tries what must not succeed.
func TestRefuses(t *testing.T) {
	var told sync.Map
	buyer, thief := newParty(t), newParty(t)
	s := open(t, func(cfg *negotiation.Config) { cfg.Refused = func(reason string) { told.Store(reason, true) } })
	c := s.client(t, buyer)
	_, request := buy(t, c, buyer, "a")
	wire := func(change func(map[string]any)) string {
		quoted, err := c.Quote(t.Context(), ask("new"))
		if err != nil {
			t.Fatal(err)
		}
		jws, err := negotiation.SignTerms(buyer.key, quoted.Terms)
		if err != nil {
			t.Fatal(err)
		}
		payload, _ := party.Payload(jws)
		var terms map[string]any
		if err := json.Unmarshal(payload, &terms); err != nil {
			t.Fatal(err)
		}
		change(terms)
		body, err := json.Marshal(map[string]any{"terms": terms})
		if err != nil {
			t.Fatal(err)
		}
		return string(body)
	}
	set := func(name string, value any) string { return wire(func(terms map[string]any) { terms[name] = value }) }
	cpu := func(text string) string {
		return wire(func(terms map[string]any) {
			terms["resources"] = map[string]string{"cpu": text, "memory": "16Gi", "pods": "110"}
		})
	}
	signature := func(by somebody, change func(*contract.Terms)) string {
		terms := request.Terms
		change(&terms)
		jws, err := negotiation.SignTerms(by.key, terms)
		if err != nil {
			t.Fatal(err)
		}
		return `{"signature":"` + jws + `"}`
	}
	same := func(*contract.Terms) {}
	forged := func() string {
		jws, err := negotiation.SignTerms(thief.key, request.Terms)
		if err != nil {
			t.Fatal(err)
		}
		return `{"signature":"` + request.Signature[:strings.LastIndex(request.Signature, ".")] + jws[strings.LastIndex(jws, "."):] + `"}`
	}
	for name, tc := range map[string]struct {
		reason             string
		by                 somebody
		method, path, body string
		status             int
		says               string
	}{
		"stolen, get":         {"the ID is the buyer's", thief, "GET", "/contracts/a", "", 404, "unknown"},
		"stolen, credentials": {"they are the buyer's", thief, "GET", "/contracts/a/credentials", "", 404, "unknown"},
		"stolen, drained":     {"it is the buyer's", thief, "PUT", "/contracts/a/drained", "", 404, "unknown"},
		"stolen, terminate": {
			"who has no such contract ends nothing", thief, "PUT", "/contracts/a/termination", `{"reason":"mine"}`, 404, "unknown",
		},
		"forged signature": {
			"the buyer's terms and key ID, signed by another", buyer, "PUT", "/contracts/a/signature", forged(), 422, "not signed by the key",
		},
		"replayed signature": {
			"the buyer's, by another", thief, "PUT", "/contracts/a/signature", `{"signature":"` + request.Signature + `"}`, 422, "not one of party",
		},
		"other ID": {
			"the buyer's, for another contract", buyer, "PUT", "/contracts/b/signature", `{"signature":"` + request.Signature + `"}`,
			422, "terms.id",
		},
		"other terms": {
			"not those that are reserved", buyer, "PUT", "/contracts/a/signature", signature(buyer,
				func(terms *contract.Terms) { terms.Price = offertest.Price("0.01") }), 422, "other terms",
		},
		"other cluster": {
			"not that of the reservation", buyer, "PUT", "/contracts/a/signature", signature(buyer,
				func(terms *contract.Terms) { terms.Cluster.ID = "other-id" }), 422, "other terms",
		},
		"for another": {
			"the thief signs for the buyer", thief, "PUT", "/contracts/a/signature", signature(thief, same), 403, "terms.buyer",
		},
		"another buyer":  {"the body claims an identity", thief, "PUT", "/contracts/new", wire(func(map[string]any) {}), 403, "terms.buyer"},
		"another seller": {"not this seller", buyer, "PUT", "/contracts/new", set("seller", string(thief.key.ID())), 422, "terms.seller"},
		"other digest": {
			"another offer", buyer, "PUT", "/contracts/new", set("offerDigest", "sha256:"+strings.Repeat("0", 64)), 422, "terms.offerDigest",
		},
		"other revision": {"another offer", buyer, "PUT", "/contracts/new", set("offerRevision", 2), 422, "terms.offerDigest"},
		"unknown offer":  {"not for sale", buyer, "PUT", "/contracts/new", set("offer", "large"), 422, "not published"},
		"unknown plan":   {"not for sale", buyer, "PUT", "/contracts/new", set("plan", "two"), 422, "terms.plan"},
		"cheaper": {
			"not the price", buyer, "PUT", "/contracts/new", set("price", map[string]string{"amount": "0.01", "currency": "EUR", "period": "PT1H"}),
			422, "terms.price",
		},
		"8GB":   {"no quantity", buyer, "PUT", "/contracts/new", cpu("8GB"), 422, "8GB"},
		"-1":    {"no quantity", buyer, "PUT", "/contracts/new", cpu("-1"), 422, "-1"},
		"1e1.5": {"no quantity", buyer, "PUT", "/contracts/new", cpu("1e1.5"), 422, "1e1.5"},
		"more":  {"not the plan's", buyer, "PUT", "/contracts/new", cpu("9"), 422, "terms.resources"},
		"past":  {"over before it begins", buyer, "PUT", "/contracts/new", set("endsAt", "2001-01-01T00:00:00Z"), 422, "endsAt"},
		"next year": {"it begins now", buyer, "PUT", "/contracts/new", wire(func(terms map[string]any) {
			terms["startsAt"], terms["endsAt"] = "2101-01-01T00:00:00Z", "2101-01-02T00:00:00Z"
		}), 422, "terms.startsAt"},
		"split second":  {"whole seconds", buyer, "PUT", "/contracts/new", set("endsAt", "2101-01-01T00:00:00.5Z"), 422, "whole second"},
		"unknown field": {"fields are closed", buyer, "PUT", "/contracts/new", set("token", "x"), 422, "token"},
		"name twice": {
			"two readers read two values", buyer, "PUT", "/contracts/a/termination", `{"reason":"a","reason":"b"}`, 400, "repeated",
		},
		"10 MB":       {"32 KiB", buyer, "PUT", "/contracts/new", `{"terms":"` + strings.Repeat("x", 10<<20) + `"}`, 413, ""},
		"path":        {"IDs are DNS labels", buyer, "GET", "/contracts/A_b", "", 422, "path.id"},
		"elsewhere":   {"no such path", buyer, "GET", "/orders", "", 404, "not found"},
		"delete":      {"no such method", buyer, "DELETE", "/contracts/a", "", 405, "only GET, HEAD, PUT"},
		"after twice": {"which one is meant?", buyer, "GET", "/contracts/a?after=1&after=2", "", 422, "query.after"},
		"document":    {"parties may read it", buyer, "GET", "/openapi.json", "", 200, ""},
		"documents":   {"nobody writes it", buyer, "PUT", "/openapi.json", "{}", 405, "only GET, HEAD"},
	} {
		status, answer := s.send(t, tc.by, tc.method, tc.path, tc.body)
		if tc.status == 413 && status == 0 {
			continue // The connection was cut while the body was still sent.
		}
		if status != tc.status || !strings.Contains(answer, tc.says) || status >= 400 && len(answer) > 4096 {
			t.Errorf("%s (%s): %d %.600s", name, tc.reason, status, answer)
		}
	}
	for _, reason := range []string{"malformed", "stranger", "unknown", "terms"} {
		if _, is := told.Load(reason); !is || !slices.Contains(negotiation.Refusals(), reason) {
			t.Errorf("nobody was told of a refusal as %s", reason)
		}
	}
	if record, err := s.Get(t.Context(), contract.Key{Buyer: string(thief.key.ID()), ID: "a"}); record != nil || err != nil {
		t.Errorf("a contract that never was is written: %+v, %v", record, err)
	}
	if view, err := c.Get(t.Context(), "a", 0, 0); err != nil || view.State != contract.Signed || view.Countersignature == "" ||
		len(s.Ledger().Holds) != 1 {
		t.Errorf("the contract has suffered: %+v, %v, %d holds", view, err, len(s.Ledger().Holds))
	}
}

// TestNewServer refuses a server that does not know who calls, or lacks anything else.
func TestNewServer(t *testing.T) {
	for name, lack := range map[string]func(*negotiation.Config){
		"Party": func(cfg *negotiation.Config) { cfg.Party = "" }, "Key": func(cfg *negotiation.Config) { cfg.Key = nil },
		"Identify": func(cfg *negotiation.Config) { cfg.Identify = nil }, "Store": func(cfg *negotiation.Config) { cfg.Store = nil },
		"Offers": func(cfg *negotiation.Config) { cfg.Offers = nil }, "Admission": func(cfg *negotiation.Config) { cfg.Admission = nil },
		"Credentials": func(cfg *negotiation.Config) { cfg.Credentials = nil }, "Reach": func(cfg *negotiation.Config) { cfg.Reach = nil },
		"Drain":  func(cfg *negotiation.Config) { cfg.Drain = -1 },
		"Limits": func(cfg *negotiation.Config) { cfg.Limits.Open = 0 }, "Seller": func(cfg *negotiation.Config) { cfg.Seller.ReserveFor = 0 },
	} {
		open(t, func(cfg *negotiation.Config) {
			lacking := *cfg
			lack(&lacking)
			if _, err := negotiation.NewServer(lacking); err == nil {
				t.Errorf("a server without %s", name)
			}
		})
	}
}

// TestSameID lets two buyers use one ID: each has a contract of its own.
func TestSameID(t *testing.T) {
	s, a, b := open(t, nil), newParty(t), newParty(t)
	first, _ := buy(t, s.client(t, a), a, "x")
	second, _ := buy(t, s.client(t, b), b, "x")
	if first.Key == second.Key || len(s.Ledger().Holds) != 2 {
		t.Errorf("%s and %s, %d holds", first.Key, second.Key, len(s.Ledger().Holds))
	}
}

// TestLimits asks for too much.
func TestLimits(t *testing.T) {
	s := open(t, func(cfg *negotiation.Config) { cfg.Limits.Open = 1 })
	buyer := newParty(t)
	c := s.client(t, buyer)
	_, request := buy(t, c, buyer, "a")
	next := request
	next.Event, next.Key.ID, next.Terms.ID = contract.Reserve, "b", "b"
	if _, err := c.Do(t.Context(), next); !errors.Is(err, negotiation.ErrTooMany) || !strings.Contains(err.Error(), "not over") {
		t.Errorf("a contract too many: %v", err)
	}
	if view, err := c.Do(t.Context(), request); err != nil || view.State != contract.Signed {
		t.Errorf("the first one again: %v", err)
	}
	slow := open(t, func(cfg *negotiation.Config) { cfg.Limits.PerSecond, cfg.Limits.AtOnce = 1, 2 })
	refused := 0
	for range 4 {
		if status, _ := slow.send(t, buyer, "GET", "/contracts/a", ""); status == http.StatusTooManyRequests {
			refused++
		}
	}
	if other, _ := slow.send(t, newParty(t), "GET", "/contracts/a", ""); refused == 0 || other != http.StatusNotFound {
		t.Errorf("%d refused, another party %d", refused, other)
	}
}

// TestTooMany begins more contracts than one party may, or all may: each is refused, nothing is written of it, and another party is refused
// only what is about all.
func TestTooMany(t *testing.T) {
	for name, tc := range map[string]struct {
		set  func(*negotiation.Limits)
		over bool // The contracts before are over.
		all  bool // It is about all parties.
		says string
	}{
		"in a minute": {
			set: func(l *negotiation.Limits) { l.NewAtOnce, l.NewPerMinute = 2, 1 }, over: true, says: "more contracts than its 1 in a minute",
		},
		"open": {set: func(l *negotiation.Limits) { l.Open = 2 }, says: "2 contracts that are not over, of at most 2"},
		"kept": {
			set: func(l *negotiation.Limits) { l.Kept = 2 }, over: true, says: "2 contracts that are not over or were not a week ago, of at most 2",
		},
		"lapsed": {
			set: func(l *negotiation.Limits) { l.Lapsed = 2 }, over: true, says: "2 reservations that it has not signed, of at most 2",
		},
		"bytes":     {set: func(l *negotiation.Limits) { l.Bytes = 1500 }, over: true, says: "bytes, of at most 1500"},
		"all open":  {set: func(l *negotiation.Limits) { l.AllOpen = 2 }, all: true, says: "no new contracts of any party"},
		"all kept":  {set: func(l *negotiation.Limits) { l.AllKept = 2 }, over: true, all: true, says: "no new contracts of any party"},
		"all bytes": {set: func(l *negotiation.Limits) { l.AllBytes = 1500 }, over: true, all: true, says: "no new contracts of any party"},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, func(cfg *negotiation.Config) { tc.set(&cfg.Limits) })
			buyer, other := newParty(t), newParty(t)
			c, at := s.client(t, buyer), ask("").StartsAt
			reserve := func(c *negotiation.Client, id string) (contract.View, error) {
				wanted := ask(id)
				wanted.StartsAt, wanted.EndsAt = at, at.Add(wanted.EndsAt.Sub(wanted.StartsAt)) // The same terms at any time.
				quoted, err := c.Quote(t.Context(), wanted)
				if err != nil {
					t.Fatal(err)
				}
				return c.Do(t.Context(), contract.Request{Event: contract.Reserve, Key: quoted.Terms.Key(), Terms: quoted.Terms})
			}
			for _, id := range []string{"a", "b"} {
				view, err := reserve(c, id)
				if err == nil && tc.over {
					_, err = c.Do(t.Context(), contract.Request{Event: contract.Terminate, Key: view.Key})
				}
				if err != nil {
					t.Fatalf("%s: %v", id, err)
				}
			}
			held := len(s.Ledger().Holds)
			if _, err := reserve(c, "c"); !errors.Is(err, negotiation.ErrTooMany) || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("one too many: %v", err)
			}
			record, err := s.Get(t.Context(), contract.Key{Buyer: string(buyer.key.ID()), ID: "c"})
			if record != nil || err != nil || len(s.Ledger().Holds) != held {
				t.Errorf("it is written: %+v, %v, %d holds", record, err, len(s.Ledger().Holds))
			}
			if _, err := reserve(s.client(t, other), "c"); errors.Is(err, negotiation.ErrTooMany) != tc.all {
				t.Errorf("another party: %v", err)
			}
			// What was begun is not refused.
			if _, err := reserve(c, "a"); err != nil {
				t.Errorf("the first one again: %v", err)
			}
		})
	}
}

// TestReservesBeside has the seller take long to decide about one party's order: that of another party does not wait for it.
func TestReservesBeside(t *testing.T) {
	slow, quick := newParty(t), newParty(t)
	asked, decided := make(chan struct{}), make(chan struct{})
	var hesitates atomic.Bool
	s := open(t, func(cfg *negotiation.Config) {
		cfg.Admission = negotiation.Owners{Admission: cfg.Admission, Owns: func(
			_ context.Context, id party.ID, _ cluster.ID,
		) (owns, known bool, err error) {
			if id == slow.key.ID() && hesitates.Load() {
				close(asked)
				<-decided
			}
			return true, true, nil
		}}
	})
	order := func(c *negotiation.Client) contract.Request {
		t.Helper()
		quoted, err := c.Quote(t.Context(), ask("a"))
		if err != nil {
			t.Fatal(err)
		}
		return contract.Request{Event: contract.Reserve, Key: quoted.Terms.Key(), Terms: quoted.Terms}
	}
	one, other := s.client(t, slow), s.client(t, quick)
	first, second, answered := order(one), order(other), make(chan error, 1)
	hesitates.Store(true)
	go func() {
		_, err := one.Do(t.Context(), first)
		answered <- err
	}()
	<-asked
	soon, stop := context.WithTimeout(t.Context(), 10*time.Second)
	defer stop()
	if view, err := other.Do(soon, second); err != nil || view.State != contract.Reserved {
		t.Errorf("another party's order, meanwhile: %s, %v", view.State, err)
	}
	close(decided)
	if err := <-answered; err != nil {
		t.Errorf("the order that took long: %v", err)
	}
}

// TestPolls waits with more requests than one party may: that of another party still waits.
func TestPolls(t *testing.T) {
	s := open(t, func(cfg *negotiation.Config) { cfg.Limits.PollsEach = 1 })
	buyer, other := newParty(t), newParty(t)
	view, request := buy(t, s.client(t, buyer), buyer, "a")
	otherView, _ := buy(t, s.client(t, other), other, "a")
	wait := func(version int64, seconds int) string {
		return fmt.Sprintf("/contracts/a?after=%d&wait=%d", version, seconds)
	}
	done := make(chan int, 2)
	for range 2 {
		go func() {
			status, _ := s.send(t, buyer, "GET", wait(view.Version, 20), "")
			done <- status
		}()
	}
	// One of the two is refused while the other waits, and a party without polls may still wait.
	if status := <-done; status != http.StatusTooManyRequests {
		t.Errorf("one poll too many: %d", status)
	}
	if status, answer := s.send(t, other, "GET", wait(otherView.Version, 1), ""); status != http.StatusOK {
		t.Errorf("another party: %d %s", status, answer)
	}
	s.decide(t, request.Key, contract.Grant)
	if status := <-done; status != http.StatusOK {
		t.Errorf("the poll that waited: %d", status)
	}
	if status, answer := s.send(t, buyer, "GET", wait(view.Version+100, 1), ""); status != http.StatusOK {
		t.Errorf("after the poll has left: %d %s", status, answer)
	}
}

// TestLongSignature signs what is reserved, in many more bytes than it takes: they would be kept as long as the contract, and told with
// each look.
func TestLongSignature(t *testing.T) {
	s := open(t, nil)
	buyer := newParty(t)
	c := s.client(t, buyer)
	request := reserve(t, c, buyer, "a")
	plain := request.Signature
	text, err := base64.RawURLEncoding.DecodeString(strings.Split(plain, ".")[1])
	if err != nil {
		t.Fatal(err)
	}
	begins := request.Terms.StartsAt.Format("2006-01-02T15:04:05")
	long := strings.Replace(string(text), begins+"Z", begins+"."+strings.Repeat("0", 8<<10)+"Z", 1) // The same time.
	if request.Signature, err = buyer.key.Sign(negotiationv1.TermsType, json.RawMessage(long)); err != nil {
		t.Fatal(err)
	}
	if view, err := c.Do(t.Context(), request); !errors.Is(err, contract.ErrTerms) || !strings.Contains(err.Error(), "for these terms") {
		t.Errorf("a signature of %d bytes: %s, %v", len(request.Signature), view.State, err)
	}
	request.Signature = plain
	if view, err := c.Do(t.Context(), request); err != nil || view.State != contract.Signed {
		t.Errorf("one of %d bytes: %s, %v", len(plain), view.State, err)
	}
}

// TestWaitsShallow looks at the stack of a request that waits: a thousand of them are most of what buyers take of the memory.
func TestWaitsShallow(t *testing.T) {
	stack := make(chan string, 1)
	s := open(t, func(cfg *negotiation.Config) { cfg.Store = waiting{cfg.Store, stack} })
	buyer := newParty(t)
	view, _ := buy(t, s.client(t, buyer), buyer, "a")
	if status, answer := s.send(t, buyer, "GET", fmt.Sprintf("/contracts/a?after=%d&wait=1", view.Version), ""); status != http.StatusOK {
		t.Fatalf("wait: %d %s", status, answer)
	}
	text := <-stack
	for _, deep := range []string{"huma/v2.Register", "negotiation.(*Server).get(", "negotiation.(*Server).known("} {
		if strings.Contains(text, deep) { // What has these on its stack needs twice the memory.
			t.Errorf("%s waits:\n%s", deep, text)
		}
	}
	// What waits for nothing is refused as before.
	for _, query := range []string{"after=-1&wait=1", "after=x&wait=1", "wait=31", "wait=-1", "wait=x"} {
		if status, answer := s.send(t, buyer, "GET", "/contracts/a?"+query, ""); status != http.StatusUnprocessableEntity {
			t.Errorf("%s: %d %s", query, status, answer)
		}
	}
}

// waiting tells the stack of the first who waits.
type waiting struct {
	negotiation.Store

	stack chan<- string
}

// Wait implements negotiation.Store.
func (w waiting) Wait(ctx context.Context, key contract.Key, after int64) error {
	select {
	case w.stack <- string(debug.Stack()):
	default:
	}
	return w.Store.Wait(ctx, key, after)
}

// TestRules decides by expressions.
func TestRules(t *testing.T) {
	application := negotiation.Application{
		Buyer: "b", Terms: contract.Terms{Resources: corev1.ResourceList{"cpu": resource.MustParse("8")}}, Offer: offer.Offer{Region: "eu"},
	}
	for name, tc := range map[string]struct {
		expression string
		want       contract.Verdict
	}{
		"true":     {`buyer == "b" && terms.resources["cpu"] >= 8 && offer.region == "eu"`, contract.Ask},
		"false":    {`buyer == "c"`, contract.Accept},
		"no value": {`terms.resources["gpu"] > 1`, contract.Deny},
		"too much": {`[1,2,3,4,5,6,7,8,9].all(a, [1,2,3,4,5,6,7,8,9].all(b, [1,2,3,4,5,6,7,8,9].all(c, [1,2,3,4,5,6,7,8,9].all(d, a+b+c+d > 0))))`, contract.Deny},
	} {
		rules, err := negotiation.NewRules([]negotiation.Rule{{Expression: tc.expression, Verdict: contract.Ask}}, contract.Accept)
		if err != nil {
			t.Fatal(err)
		}
		if got, _, err := rules.Admit(t.Context(), application); err != nil || got != tc.want {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
	for name, rule := range map[string]negotiation.Rule{
		"not a bool":       {Expression: `buyer`, Verdict: contract.Ask},
		"no such variable": {Expression: `terms.colour == "red"`, Verdict: contract.Ask},
		// To check it would take hours.
		"grows":      {Expression: `[1]` + strings.Repeat(`.map(a, {a: a})`, 28) + `.size() == 1`, Verdict: contract.Ask},
		"no verdict": {Expression: `true`}, "too long": {Expression: strings.Repeat("true && ", 1000) + "true", Verdict: contract.Ask},
	} {
		if _, err := negotiation.NewRules([]negotiation.Rule{rule}, contract.Accept); err == nil {
			t.Errorf("%s: compiled", name)
		}
	}
}

// TestOpenAPI compares the document that is checked in.
func TestOpenAPI(t *testing.T) {
	const file = "../../../docs/api/negotiation.yaml"
	want, err := negotiation.OpenAPI()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(file); err != nil || !bytes.Equal(got, want) {
		t.Errorf("docs/api/negotiation.yaml is not current (%v): make generate writes it", err)
	}
}
