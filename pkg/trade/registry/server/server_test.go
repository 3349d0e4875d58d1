// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/goleak"

	"github.com/capacitorset/liqo-broker/pkg/serving/restclient"
	"github.com/capacitorset/liqo-broker/pkg/serving/servingtest"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/offer"
	"github.com/capacitorset/liqo-broker/pkg/trade/party"
	"github.com/capacitorset/liqo-broker/pkg/trade/registry/client"
	"github.com/capacitorset/liqo-broker/pkg/trade/registry/registrytest"
	"github.com/capacitorset/liqo-broker/pkg/trade/registry/registryv1"
	"github.com/capacitorset/liqo-broker/pkg/trade/registry/store"
	"github.com/capacitorset/liqo-broker/pkg/trade/registry/store/postgrestest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestStores runs a registry on a file of SQLite and on a PostgreSQL, each on an empty one, and asks them the same.
func TestStores(t *testing.T) {
	for name, fresh := range map[string]func(testing.TB) string{"SQLite": newFileDSN, "PostgreSQL": postgrestest.Start(t).Database} {
		t.Run(name, func(t *testing.T) {
			for what, happens := range map[string]func(*testing.T, string){
				"Life": life, "Refusals": refusals, "Bounds": bounds, "Admission": admission, "Listing": listing, "REAR": rear, "Leasing": leasing,
				"Pacing": pacing, "Counting": counting, "Following": following, "Heartbeats": heartbeats, "LifeOfWatch": lifeOfWatch,
				"TooManyWatchers": tooManyWatchers, "WatchersLeaveConnections": watchersLeaveConnections, "SlowWatcher": slowWatcher,
			} {
				t.Run(what, func(t *testing.T) { happens(t, fresh(t)) })
			}
		})
	}
}

// newFileDSN is the DSN of a file of SQLite that is not there yet.
func newFileDSN(tb testing.TB) string {
	tb.Helper()
	return "sqlite:" + filepath.Join(tb.TempDir(), "registry.db")
}

// registry is a registry that runs on loopback, over TLS.
type registry struct {
	*Server

	store   *store.Store
	address string
	key     string // Its fingerprint.
}

// run runs a registry on a store until the test ends.
func run(t *testing.T, dsn string, change func(*Config)) *registry {
	t.Helper()
	return runOn(t, dsn, change, func(l net.Listener) net.Listener { return l })
}

// runOn is run on a listener that is made of that on loopback.
func runOn(t *testing.T, dsn string, change func(*Config), on func(net.Listener) net.Listener) *registry {
	t.Helper()
	s, err := store.Open(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	cfg := Config{Store: s, Log: logr.Discard(), Limits: DefaultLimits(), AutoApprove: true}
	cfg.Limits.PerSecond = 1000
	if change != nil {
		change(&cfg)
	}
	served, err := New(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if !served.Ready(t.Context()) {
		t.Error("a registry that has read its store is not ready before something changes")
	}
	key := registrytest.Key(t)
	address := servingtest.Serve(t, func(ctx context.Context, l net.Listener) error {
		return served.Run(ctx, on(l), party.ServerConfig(key))
	})
	return &registry{Server: served, store: s, address: address, key: party.Fingerprint(key.Public())}
}

// member returns a party that has announced itself, and its client.
func (r *registry) member(t *testing.T, name string) (*registrytest.Party, *client.Client) {
	t.Helper()
	p := registrytest.NewParty(t, name)
	c := p.Client(t, r.address, r.key)
	if _, err := c.Announce(t.Context(), p.ID, p.Enrolment(t, 1, "")); err != nil {
		t.Fatal(err)
	}
	return p, c
}

// answer is what the registry answers.
type answer struct {
	status  int
	header  http.Header
	body    string
	problem restclient.RefusalError
}

// call makes a request with a key; without one if it is nil.
func (r *registry) call(t *testing.T, key *party.Key, method, path, body string, headers ...string) answer {
	t.Helper()
	config := &tls.Config{MinVersion: tls.VersionTLS13, InsecureSkipVerify: true}
	if key != nil {
		config = registrytest.TLS(*key, r.key)
	}
	transport := &http.Transport{TLSClientConfig: config}
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(t.Context(), method, "https://"+r.address+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := (&http.Client{Transport: transport, Timeout: 10 * time.Second}).Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	a := answer{status: response.StatusCode, header: response.Header, body: string(text)}
	if response.StatusCode >= http.StatusBadRequest {
		if kind := response.Header.Get("Content-Type"); kind != "application/problem+json" || json.Unmarshal(text, &a.problem) != nil ||
			a.problem.Detail == "" {
			t.Errorf("%s %s: refused with %d as %s: %s", method, path, response.StatusCode, kind, text)
		}
	}
	return a
}

// text returns something as JSON.
func text(t *testing.T, of any) string {
	t.Helper()
	body, err := json.Marshal(of)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

func publication(t *testing.T, jws string) string {
	t.Helper()
	return text(t, registryv1.Publication{Offer: jws})
}

// location returns which field a problem names.
func (a answer) location() string {
	if len(a.problem.Errors) == 0 {
		return ""
	}
	return a.problem.Errors[0].Location
}

// TestDocument compares the document that is checked in with the one that is served.
func TestDocument(t *testing.T) {
	const file = "../../../../docs/api/registry.yaml"
	want, err := OpenAPI()
	if err != nil {
		t.Fatal(err)
	}
	checkedIn, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(checkedIn, want) {
		t.Error("docs/api/registry.yaml is not the API's: make generate writes it")
	}
	r := run(t, newFileDSN(t), nil)
	a := r.call(t, nil, http.MethodGet, "/v1/openapi.yaml", "")
	if a.status != http.StatusOK || a.body != string(want) || a.header.Get("Content-Type") != "application/openapi+yaml" {
		t.Errorf("%d %s: another document is served", a.status, a.header.Get("Content-Type"))
	}
	var document struct {
		OpenAPI string         `json:"openapi"`
		Paths   map[string]any `json:"paths"`
	}
	a = r.call(t, nil, http.MethodGet, "/v1/openapi.json", "")
	if err := json.Unmarshal([]byte(a.body), &document); err != nil || document.OpenAPI != "3.1.0" || len(document.Paths) != 11 {
		t.Errorf("OpenAPI %s with %d paths (%v)", document.OpenAPI, len(document.Paths), err)
	}
}

// life walks what a party does at a registry.
func life(t *testing.T, dsn string) {
	r := run(t, dsn, nil)
	ctx := t.Context()
	seller, c := r.member(t, "seller")
	about, err := c.Registry(ctx)
	if err != nil || about.Caller == nil || about.Caller.Party != seller.ID || about.Caller.State != registryv1.Approved ||
		about.Parties != 1 {
		t.Errorf("the registry says %+v, %v", about, err)
	}
	for _, id := range []string{"a", "b"} {
		published, err := c.Publish(ctx, seller.ID, id, seller.Offer(t, id, 1))
		if err != nil || published.Registered == 0 {
			t.Fatalf("publish %s: %+v, %v", id, published, err)
		}
	}
	offers, err := c.Offers(ctx, nil)
	if err != nil || len(offers) != 2 || offers[0].ID != "a" || !*offers[0].Alive || offers[0].Document != nil {
		t.Errorf("the offers are %+v, %v", offers, err)
	}
	offers, err = c.Offers(ctx, url.Values{"documents": {"true"}})
	if err != nil || len(offers) != 2 || !strings.Contains(string(offers[0].Document), `"eu-north"`) {
		t.Errorf("with their documents the offers are %+v, %v", offers, err)
	}
	lease, err := c.Renew(ctx, seller.ID)
	if err != nil || lease.Offers != 2 || time.Until(lease.Until) < time.Minute {
		t.Errorf("the lease is %+v, %v", lease, err)
	}
	own, err := c.Party(ctx, seller.ID)
	if err != nil || own.LeaseUntil == nil || own.Name != "seller" {
		t.Errorf("the party is %+v, %v", own, err)
	}
	for range 2 {
		if err := c.Withdraw(ctx, seller.ID, "a"); err != nil {
			t.Error(err)
		}
	}
	if offers, err := c.Offers(ctx, nil); err != nil || len(offers) != 1 {
		t.Errorf("then the offers are %+v, %v", offers, err)
	}

	// A new key: what the old one has signed is withdrawn, and the old key is nobody's.
	rotated := seller.Rotate(t)
	next := rotated.Client(t, r.address, r.key)
	if _, err := next.Announce(ctx, rotated.ID, rotated.Enrolment(t, 2, "")); err != nil {
		t.Fatal(err)
	}
	if offers, err := next.Offers(ctx, nil); err != nil || len(offers) != 0 {
		t.Errorf("after the new key the offers are %+v, %v", offers, err)
	}
	if _, err := next.Publish(ctx, rotated.ID, "b", rotated.Offer(t, "b", 2)); err != nil {
		t.Error(err)
	}
	if refused := client.Refused(second(c.Renew(ctx, seller.ID))); refused == nil || refused.Status != http.StatusForbidden {
		t.Errorf("with the old key: %v", refused)
	}

	// Revoked: everything is gone, for everybody.
	_, reader := r.member(t, "reader")
	if _, err := r.store.Revoke(ctx, seller.ID); err != nil {
		t.Fatal(err)
	}
	until(t, "the offers of a revoked party are gone", func() bool {
		offers, err := reader.Offers(ctx, nil)
		return err == nil && len(offers) == 0
	})
	if refused := client.Refused(second(next.Renew(ctx, seller.ID))); refused == nil || refused.Status != http.StatusForbidden ||
		!strings.Contains(refused.Detail, "revoked") {
		t.Errorf("revoked: %v", refused)
	}
	if self, err := next.Party(ctx, seller.ID); err != nil || self.State != registryv1.Revoked {
		t.Errorf("a revoked party reads of itself %q, %v", self.State, err)
	}
	if refused := client.Refused(second(next.Announce(ctx, rotated.ID, rotated.Enrolment(t, 3, "")))); refused == nil ||
		refused.Status != http.StatusForbidden {
		t.Errorf("a revoked party announces itself again: %v", refused)
	}
}

func second[T any](_ T, err error) error { return err }

// until waits for something.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("not within 20 s: " + what)
		}
	}
}

// refusals asks for what must be refused, and how.
func refusals(t *testing.T, dsn string) {
	r := run(t, dsn, func(c *Config) { c.Limits.Offers = 3 })
	seller, c := r.member(t, "seller")
	other, _ := r.member(t, "other")
	stranger := registrytest.NewParty(t, "stranger")
	waiting := registrytest.NewParty(t, "waiting")
	if _, err := r.store.PutParty(t.Context(), store.Party{
		ID: waiting.ID, State: store.Pending, Announcement: "x", Revision: 1, Keys: waiting.Keys.Chain(), CurrentKey: waiting.ID, Name: "waiting",
		EnrolledAt: time.Now(),
	}, 10); err != nil {
		t.Fatal(err)
	}
	first := seller.Offer(t, "a", 5)
	if _, err := c.Publish(t.Context(), seller.ID, "a", first); err != nil {
		t.Fatal(err)
	}
	until(t, "the registry knows who waits", func() bool { return r.parties.getParty(waiting.ID) != nil })

	path := func(id, offer string) string { return "/v1/parties/" + id + "/offers/" + offer }
	mine := path(seller.ID, "a")
	changed := func(change func(map[string]any)) string {
		var document map[string]any
		if err := json.Unmarshal([]byte(text(t, seller.Document(t, "a", 6))), &document); err != nil {
			t.Fatal(err)
		}
		change(document)
		return publication(t, seller.Sign(t, offer.Type, document))
	}
	quantity := func(amount string) string {
		return changed(func(d map[string]any) {
			d["plans"].([]any)[0].(map[string]any)["resources"].(map[string]any)["memory"] = amount
		})
	}
	enrolment := func(p *registrytest.Party, change func(*registryv1.Announcement)) string {
		said := registryv1.Announcement{Party: p.ID, Revision: 2, Name: p.Name, Endpoint: "https://x.example", IssuedAt: time.Now().UTC()}
		change(&said)
		return text(t, registryv1.Enrolment{Keys: p.Keys.Chain(), Announcement: p.Sign(t, registryv1.TypeAnnouncement, said)})
	}
	cases := map[string]struct {
		reason             string
		by                 *party.Key
		method, path, body string
		want               int
		location, detail   string
	}{
		"NoCertificate": {
			reason: "Who shows no certificate writes nothing ...", method: http.MethodPut, path: mine, body: publication(t, first), want: 401,
			detail: "certificate",
		},
		"NoReader":  {reason: "... and reads nothing.", method: http.MethodGet, path: "/v1/offers", want: 401, detail: "certificate"},
		"NoWatcher": {reason: "Nor does it watch.", method: http.MethodGet, path: "/v1/watch", want: 401, detail: "certificate"},
		"V0":        {reason: "The older form is for those who may read.", method: http.MethodGet, path: "/catalog", want: 401},
		"Stranger": {
			reason: "A key that nobody has announced is nobody's.", by: &stranger.Key, method: http.MethodGet, path: "/v1/offers", want: 403,
			detail: "announce",
		},
		"Waiting": {
			reason: "Who waits for approval learns that it does.", by: &waiting.Key, method: http.MethodGet, path: "/v1/offers", want: 403,
			detail: "approv",
		},
		"WaitingWrites": {
			reason: "... and writes nothing.", by: &waiting.Key, method: http.MethodPut, path: path(waiting.ID, "a"),
			body: publication(t, waiting.Offer(t, "a", 1)), want: 403, detail: "approv",
		},
		"Overwrite": {
			reason: "Nobody overwrites what another one offers ...", by: &other.Key, method: http.MethodPut, path: mine,
			body: publication(t, other.Offer(t, "a", 9)), want: 403, detail: seller.ID,
		},
		"Replayed": {
			reason: "... not even with what the other one has signed.", by: &other.Key, method: http.MethodPut, path: mine,
			body: publication(t, seller.Offer(t, "a", 9)), want: 403, detail: seller.ID,
		},
		"Delete": {
			reason: "Nobody withdraws it either.", by: &other.Key, method: http.MethodDelete, path: mine, want: 403, detail: seller.ID,
		},
		"Lease": {
			reason: "Nobody is alive for another one.", by: &other.Key, method: http.MethodPut, path: "/v1/parties/" + seller.ID + "/lease",
			want: 403, detail: seller.ID,
		},
		"Foreign": {
			reason: "What another one has signed is not one's own.", by: &other.Key, method: http.MethodPut, path: path(other.ID, "a"),
			body: publication(t, first), want: 422, location: "body.offer",
		},
		"Named": {
			reason: "An offer that names another party is not the caller's.", by: &other.Key, method: http.MethodPut, path: path(other.ID, "a"),
			body: publication(t, other.Sign(t, offer.Type, seller.Document(t, "a", 9))), want: 403, location: "body.offer.party",
		},
		"OtherID": {
			reason: "An offer is where its ID says.", by: &seller.Key, method: http.MethodPut, path: path(seller.ID, "b"),
			body: publication(t, first), want: 422, location: "body.offer.id",
		},
		"OtherType": {
			reason: "A signature for something else is none for an offer.", by: &seller.Key, method: http.MethodPut, path: mine,
			body: publication(t, seller.Sign(t, registryv1.TypeAnnouncement, seller.Document(t, "a", 9))), want: 422, location: "body.offer",
		},
		"Older": {
			reason: "A revision does not go back.", by: &seller.Key, method: http.MethodPut, path: mine,
			body: publication(t, seller.Offer(t, "a", 4)), want: 409, location: "body.offer.revision",
		},
		"Same": {
			reason: "One revision is one document.", by: &seller.Key, method: http.MethodPut, path: mine, body: publication(t,
				seller.Sign(t, offer.Type, func() offer.Offer { d := seller.Document(t, "a", 5); d.Name = "Another"; return d }())), want: 409,
			location: "body.offer.revision",
		},
		"Again": {
			reason: "The same document again is fine.", by: &seller.Key, method: http.MethodPut, path: mine, body: publication(t, first), want: 200,
		},
		"Bytes": {
			reason: "Quantities are those of Kubernetes.", by: &seller.Key, method: http.MethodPut, path: mine, body: quantity("8GB"), want: 422,
			location: "body.offer.plans[0].resources",
		},
		"Negative": {
			reason: "They are positive.", by: &seller.Key, method: http.MethodPut, path: mine, body: quantity("-1"), want: 422,
			location: "body.offer.plans[0].resources",
		},
		"Exponent": {
			reason: "They are numbers.", by: &seller.Key, method: http.MethodPut, path: mine, body: quantity("1e1.5"), want: 422,
			location: "body.offer.plans[0].resources",
		},
		"Token": {
			reason: "No offer has anything that this registry does not know, such " +
				"as a token.", by: &seller.Key, method: http.MethodPut, path: mine, body: changed(func(d map[string]any) { d["token"] = "secret" }),
			want: 422, location: "body.offer",
		},
		"Expired": {
			reason: "What is not valid any more is not published.", by: &seller.Key, method: http.MethodPut, path: mine, body: changed(
				func(d map[string]any) { d["validUntil"] = "2020-01-01T00:00:00Z" },
			), want: 422, location: "body.offer.validUntil",
		},
		"Forged": {
			reason: "A signature that is cut is none.", by: &seller.Key, method: http.MethodPut, path: mine,
			body: publication(t, first[:len(first)-4]), want: 422, location: "body.offer",
		},
		"NoJWS": {
			reason: "What is no signed document is none.", by: &seller.Key, method: http.MethodPut, path: mine, body: publication(t, "..."),
			want: 422, location: "body.offer",
		},
		"Field": {
			reason: "A body has nothing but what it may have.", by: &seller.Key, method: http.MethodPut, path: mine,
			body: `{"offer":"` + first + `","admin":true}`, want: 422,
		},
		"NoJSON": {reason: "A body is JSON.", by: &seller.Key, method: http.MethodPut, path: mine, body: `{"offer":`, want: 400},
		"Large": {
			reason: "A body of 10 MB is not read.", by: &seller.Key, method: http.MethodPut, path: mine,
			body: publication(t, strings.Repeat("x", 10<<20)), want: 413,
		},
		"PathParty": {
			reason: "A party has 52 characters.", by: &seller.Key, method: http.MethodPut, path: path("x", "a"),
			body: publication(t, first), want: 403,
		},
		"PathOffer": {
			reason: "An ID is a DNS label.", by: &seller.Key, method: http.MethodPut, path: path(seller.ID, "A_B"), body: publication(t, first),
			want: 422, location: "path.offer",
		},
		"NoOffer": {
			reason: "What is not there cannot be withdrawn.", by: &seller.Key, method: http.MethodDelete, path: path(seller.ID, "none"), want: 404,
		},
		"GetNoOffer": {reason: "... nor read.", by: &seller.Key, method: http.MethodGet, path: path(seller.ID, "none"), want: 404},
		"GetNoParty": {
			reason: "A party that waits is not shown to others.", by: &seller.Key, method: http.MethodGet,
			path: "/v1/parties/" + waiting.ID, want: 404,
		},
		"EnrolOther": {
			reason: "Nobody announces another one ...", by: &other.Key, method: http.MethodPut, path: "/v1/parties/" + seller.ID,
			body: enrolment(seller, func(*registryv1.Announcement) {}), want: 403, location: "body.keys",
		},
		"EnrolAs": {
			reason: "... nor itself as another one.", by: &other.Key, method: http.MethodPut, path: "/v1/parties/" + seller.ID,
			body: enrolment(other, func(*registryv1.Announcement) {}), want: 403, location: "body.keys",
		},
		"EnrolNamed": {
			reason: "An announcement is about who signs it.", by: &other.Key, method: http.MethodPut, path: "/v1/parties/" +
				other.ID, body: enrolment(other, func(a *registryv1.Announcement) { a.Party = seller.ID }), want: 422,
			location: "body.announcement.party",
		},
		"EnrolPassword": {
			reason: "No endpoint has a password.", by: &other.Key, method: http.MethodPut, path: "/v1/parties/" + other.ID, body: enrolment(other,
				func(a *registryv1.Announcement) { a.Endpoint = "https://a:b@x.example" }), want: 422, location: "body.announcement.endpoint",
		},
		"EnrolPlain": {
			reason: "No endpoint is without TLS.", by: &other.Key, method: http.MethodPut, path: "/v1/parties/" + other.ID, body: enrolment(other,
				func(a *registryv1.Announcement) { a.Endpoint = "http://x.example" }), want: 422, location: "body.announcement.endpoint",
		},
		"EnrolName": {
			reason: "A name is one line that a terminal can show.", by: &other.Key, method: http.MethodPut, path: "/v1/parties/" +
				other.ID, body: enrolment(other, func(a *registryv1.Announcement) { a.Name = "a\x1b[2Jb" }), want: 422,
			location: "body.announcement.name",
		},
		"EnrolFuture": {
			reason: "An announcement does not come from the future.", by: &other.Key, method: http.MethodPut, path: "/v1/parties/" +
				other.ID, body: enrolment(other, func(a *registryv1.Announcement) { a.IssuedAt = time.Now().Add(time.Hour) }), want: 422,
			location: "body.announcement.issuedAt",
		},
		"EnrolOlder": {
			reason: "An announcement does not go back.", by: &other.Key, method: http.MethodPut, path: "/v1/parties/" +
				other.ID, body: enrolment(other, func(a *registryv1.Announcement) { a.Revision = 1; a.Name = "x" }), want: 409,
			location: "body.announcement",
		},
		"EnrolToken": {
			reason: "A token that nobody has made lets nobody in.", by: &stranger.Key, method: http.MethodPut, path: "/v1/parties/" + stranger.ID,
			body: text(t, stranger.Enrolment(t, 1, "guess")), want: 403, location: "body.token",
		},
		"EnrolCA": {
			reason: "Where no authority is trusted no certificate counts.", by: &stranger.Key, method: http.MethodPut, path: "/v1/parties/" +
				stranger.ID, body: text(t, func() registryv1.Enrolment { e := stranger.Enrolment(t, 1, ""); e.Certificates = "x"; return e }()),
			want: 403, location: "body.certificates",
		},
		"Query": {
			reason: "A filter that is not known is not passed over.", by: &seller.Key, method: http.MethodGet, path: "/v1/offers?colour=red",
			want: 422, location: "query.colour",
		},
		"QueryQuantity": {
			reason: "A filter is as strict as an offer.", by: &seller.Key, method: http.MethodGet, path: "/v1/offers?resource=memory=8GB", want: 422,
			location: "query.resource",
		},
		"QueryCurrency": {
			reason: "A price has a currency.", by: &seller.Key, method: http.MethodGet, path: "/v1/offers?maxPrice=1", want: 422,
			location: "query.maxPrice",
		},
		"QueryContinue": {
			reason: "A page is of the list that is asked for.", by: &seller.Key, method: http.MethodGet, path: "/v1/offers?continue=eA", want: 400,
			location: "query.continue",
		},
		"WatchQuantity": {
			reason: "... in a watch as well.", by: &seller.Key, method: http.MethodGet, path: "/v1/watch?resource=memory=8GB", want: 422,
			location: "query.resource",
		},
		"Method": {reason: "Other methods are not allowed.", by: &seller.Key, method: http.MethodPost, path: "/v1/offers", want: 405},
		"Path":   {reason: "There is nothing else.", by: &seller.Key, method: http.MethodGet, path: "/v1/nothing", want: 404},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			a := r.call(t, tc.by, tc.method, tc.path, tc.body)
			if a.status != tc.want || !strings.HasPrefix(a.location(), tc.location) || !strings.Contains(a.problem.Detail, tc.detail) {
				t.Errorf("%s\nanswered %d, want %d, at %q and with %q: %s", tc.reason, a.status, tc.want, tc.location, tc.detail, a.body)
			}
		})
	}

	// Nothing of all that has changed anything.
	offers, err := c.Offers(t.Context(), nil)
	if err != nil || len(offers) != 1 || offers[0].JWS != first {
		t.Errorf("afterwards the offers are %+v, %v", offers, err)
	}
	// One tenant cannot fill the registry.
	for i, id := range []string{"b", "c", "d"} {
		a := r.call(t, &seller.Key, http.MethodPut, path(seller.ID, id), publication(t, seller.Offer(t, id, 1)))
		if want := map[bool]int{true: http.StatusOK, false: http.StatusConflict}[i < 2]; a.status != want {
			t.Errorf("offer %s is answered %d, want %d: %s", id, a.status, want, a.body)
		}
	}
}

// bounds asks lists and watches for more than they are made for.
func bounds(t *testing.T, dsn string) {
	r := run(t, dsn, nil)
	reader, _ := r.member(t, "reader")
	long := func(n int) string { return strings.Repeat("x", n) }
	many := func(n int, value string) []string { return slices.Repeat([]string{value}, n) }
	of := "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz"
	cases := map[string]struct {
		reason     string
		query      url.Values
		ok         bool // The list is answered.
		notInWatch bool // A watch has no such parameter.
	}{
		"resource/Long":         {reason: "A resource has a name as Kubernetes has.", query: url.Values{"resource": {long(400) + "=1"}}},
		"resource/LongQuantity": {reason: "A quantity is a number.", query: url.Values{"resource": {"cpu=" + strings.Repeat("1", 400)}}},
		"resource/Many":         {reason: "No plan has as many.", query: url.Values{"resource": many(33, "cpu=1")}},
		"resource/Name":         {reason: "A name is one.", query: url.Values{"resource": {"a b=1"}}},
		"maxPrice/Long":         {reason: "An amount is bounded.", query: url.Values{"maxPrice": {strings.Repeat("1", 33)}, "currency": {"EUR"}}},
		"maxPrice/Twice":        {reason: "One price is meant.", query: url.Values{"maxPrice": {"1", "2"}, "currency": {"EUR"}}},
		"currency/Long":         {reason: "A currency has three letters.", query: url.Values{"maxPrice": {"1"}, "currency": {"EURO"}}},
		"currency/Code":         {reason: "They are capitals.", query: url.Values{"maxPrice": {"1"}, "currency": {"eur"}}},
		"currency/Twice":        {reason: "One currency is meant.", query: url.Values{"maxPrice": {"1"}, "currency": {"EUR", "USD"}}},
		"region/Long":           {reason: "No offer has such a region.", query: url.Values{"region": {long(257)}}},
		"region/Many":           {reason: "Each is compared with each offer.", query: url.Values{"region": many(33, "a")}},
		"architecture/Long":     {reason: "No offer has such an architecture.", query: url.Values{"architecture": {long(65)}}},
		"architecture/Many":     {reason: "There are not as many.", query: url.Values{"architecture": many(9, "amd64")}},
		"kind/Other":            {reason: "There are two.", query: url.Values{"kind": {"Cloud"}}},
		"kind/Many":             {reason: "There are two.", query: url.Values{"kind": many(3, "Broker")}},
		"party/Long":            {reason: "A party has 52 characters.", query: url.Values{"party": {of + "a"}}},
		"party/Many":            {reason: "Each is compared with each offer.", query: url.Values{"party": many(33, of)}},
		"expression/Long":       {reason: "An expression is bounded.", query: url.Values{"expression": {"true" + strings.Repeat(" ", 1024)}}},
		"expression/Nested": {
			reason: "Its nesting is bounded.", query: url.Values{"expression": {strings.Repeat("(", 40) + "true" + strings.Repeat(")", 40)}},
		},
		"expression/Wrong":  {reason: "It compiles.", query: url.Values{"expression": {"offer.colour == 1"}}},
		"expression/Costly": {reason: "Its cost is bounded.", query: url.Values{"expression": {costly}}},
		"expression/Twice":  {reason: "One expression is meant.", query: url.Values{"expression": {"true", "false"}}},
		"alive/Other":       {reason: "It is true or false.", query: url.Values{"alive": {"maybe"}}},
		"limit/Large":       {reason: "A page is bounded.", query: url.Values{"limit": {"501"}}, notInWatch: true},
		"limit/None":        {reason: "A page is not empty.", query: url.Values{"limit": {"0"}}, notInWatch: true},
		"limit/Number":      {reason: "It is a number.", query: url.Values{"limit": {"x"}}, notInWatch: true},
		"limit/Twice":       {reason: "One limit is meant.", query: url.Values{"limit": {"1", "2"}}, notInWatch: true},
		"continue/Long":     {reason: "No page has such a continuation.", query: url.Values{"continue": {long(2049)}}, notInWatch: true},
		"region/AsMany": {
			reason: "As many and as long as may be.", query: url.Values{"region": many(32, long(256)), "limit": {"500"}}, ok: true, notInWatch: true,
		},
		"expression/Usual": {
			reason: "What people write is answered.", query: url.Values{"expression": {"((plan.available > 1))"}}, ok: true, notInWatch: true,
		},
	}
	for name, tc := range cases {
		parameter, _, _ := strings.Cut(name, "/")
		for _, path := range []string{"/v1/offers", "/v1/watch"} {
			if path == "/v1/watch" && tc.notInWatch {
				continue
			}
			a := r.call(t, &reader.Key, http.MethodGet, path+"?"+tc.query.Encode(), "")
			if tc.ok && a.status == http.StatusOK {
				continue
			}
			// Of a list that is wrong in one place, the place is told: query.region[2].
			if tc.ok || a.status != http.StatusUnprocessableEntity || !strings.HasPrefix(a.location()+"[", "query."+parameter+"[") {
				t.Errorf("%s of %s: %s\nanswered %d at %s: %s", name, path, tc.reason, a.status, a.location(), a.body)
			}
		}
	}
	for _, query := range []url.Values{{"after": {long(129)}}, {"after": {"a", "b"}}} {
		if a := r.call(t, &reader.Key, http.MethodGet, "/v1/watch?"+query.Encode(), ""); a.status != http.StatusUnprocessableEntity ||
			a.location() != "query.after" {
			t.Errorf("after %s: answered %d at %s", query, a.status, a.location())
		}
	}
	if a := r.call(t, &reader.Key, http.MethodGet, "/v1/watch", "", "Last-Event-ID", long(129)); a.status != http.StatusUnprocessableEntity ||
		a.location() != "header.Last-Event-ID" {
		t.Errorf("Last-Event-ID: answered %d at %s: %s", a.status, a.location(), a.body)
	}
}

// costly is an expression that costs too much for any plan.
const costly = `[1,2,3,4,5,6,7,8,9,0].map(a, [1,2,3,4,5,6,7,8,9,0].map(b, [1,2,3,4,5,6,7,8,9,0].map(c, a * b * c))).size() > 0`

// admission lets parties in by a token, by a certificate, and by an administrator.
func admission(t *testing.T, dsn string) {
	authority := newAuthority(t)
	r := run(t, dsn, func(c *Config) {
		c.AutoApprove = false
		c.Authorities = func() *x509.CertPool { return authority.pool }
	})
	if err := r.store.CreateToken(t.Context(), store.Token{
		Digest: store.Digest("secret"), Uses: 1, ExpiresAt: time.Now().Add(time.Hour), CreatedAt: time.Now(),
	}); err != nil {
		t.Fatal(err)
	}
	enrol := func(p *registrytest.Party, e registryv1.Enrolment) (registryv1.Party, error) {
		return p.Client(t, r.address, r.key).Announce(t.Context(), p.ID, e)
	}
	certificates := func(p *registrytest.Party, of string) registryv1.Enrolment {
		e := p.Enrolment(t, 1, "")
		e.Certificates = of
		return e
	}
	byToken, late := registrytest.NewParty(t, "token"), registrytest.NewParty(t, "late")
	withToken := byToken.Enrolment(t, 1, "secret")
	for range 2 { // The answer may have been lost.
		if p, err := enrol(byToken, withToken); err != nil || p.State != registryv1.Approved {
			t.Errorf("with a token: %s, %v", p.State, err)
		}
	}
	if p, err := enrol(late, late.Enrolment(t, 1, "secret")); client.Refused(err) == nil {
		t.Errorf("with a token that is used up: %s, %v", p.State, err)
	}
	certified, thief := registrytest.NewParty(t, "certified"), registrytest.NewParty(t, "thief")
	if p, err := enrol(certified, certificates(certified, authority.sign(t, certified.Key))); err != nil || p.State != registryv1.Approved {
		t.Errorf("with a certificate: %s, %v", p.State, err)
	}
	if p, err := enrol(thief, certificates(thief, authority.sign(t, certified.Key))); client.Refused(err) == nil {
		t.Errorf("with the certificate of another key: %s, %v", p.State, err)
	}
	if p, err := enrol(thief, certificates(thief, newAuthority(t).sign(t, thief.Key))); client.Refused(err) == nil {
		t.Errorf("with a certificate of another authority: %s, %v", p.State, err)
	}
	waits := registrytest.NewParty(t, "waits")
	c := waits.Client(t, r.address, r.key)
	if p, err := enrol(waits, waits.Enrolment(t, 1, "")); err != nil || p.State != registryv1.Pending {
		t.Errorf("with nothing: %s, %v", p.State, err)
	}
	if p, err := c.Party(t.Context(), waits.ID); err != nil || p.State != registryv1.Pending {
		t.Errorf("who waits sees %s, %v", p.State, err)
	}
	if _, err := r.store.Approve(t.Context(), waits.ID); err != nil {
		t.Fatal(err)
	}
	until(t, "the approved party may read", func() bool {
		_, err := c.Offers(t.Context(), nil)
		return err == nil
	})
}

// listing asks for pages, filters and versions.
func listing(t *testing.T, dsn string) {
	r := run(t, dsn, func(c *Config) { c.AnonymousRead = true })
	seller, c := r.member(t, "seller")
	for _, id := range []string{"a", "b", "c", "d", "e"} {
		d := seller.Document(t, id, 1)
		if id > "c" {
			d.Region = "us-east"
		}
		if _, err := c.Publish(t.Context(), seller.ID, id, seller.Sign(t, offer.Type, d)); err != nil {
			t.Fatal(err)
		}
	}
	list := func(query url.Values, headers ...string) (ids []string, next, etag string, status int) {
		a := r.call(t, nil, http.MethodGet, "/v1/offers?"+query.Encode(), "", headers...)
		var page List[registryv1.Offer]
		if a.status == http.StatusOK {
			if err := json.Unmarshal([]byte(a.body), &page); err != nil {
				t.Fatal(err)
			}
		}
		for _, o := range page.Items {
			ids = append(ids, o.ID)
		}
		return ids, page.Continue, a.header.Get("ETag"), a.status
	}
	ids, next, etag, _ := list(url.Values{"limit": {"2"}})
	if diff := cmp.Diff([]string{"a", "b"}, ids); diff != "" || next == "" {
		t.Errorf("the first page: %s", diff)
	}
	if _, _, again, status := list(url.Values{"limit": {"2"}}, "If-None-Match", etag); status != http.StatusNotModified || again != etag {
		t.Errorf("the first page again is answered %d", status)
	}
	if ids, _, _, _ := list(url.Values{"limit": {"3"}, "continue": {next}}); !slices.Equal(ids, []string{"c", "d", "e"}) {
		t.Errorf("the second page has %v", ids)
	}
	if _, _, _, status := list(url.Values{"region": {"us-east"}, "continue": {next}}); status != http.StatusBadRequest {
		t.Errorf("a page of another list is answered %d", status)
	}
	for name, tc := range map[string]struct {
		query url.Values
		want  []string
	}{
		"Region":   {url.Values{"region": {"us-east"}}, []string{"d", "e"}},
		"Regions":  {url.Values{"region": {"us-east", "nowhere"}}, []string{"d", "e"}},
		"Large":    {url.Values{"resource": {"cpu=8"}}, nil},
		"Small":    {url.Values{"resource": {"cpu=4", "memory=1Gi"}, "region": {"eu-north"}}, []string{"a", "b", "c"}},
		"Cheap":    {url.Values{"maxPrice": {"0.2"}, "currency": {"EUR"}}, nil},
		"Price":    {url.Values{"maxPrice": {"0.25"}, "currency": {"EUR"}, "region": {"us-east"}}, []string{"d", "e"}},
		"Alive":    {url.Values{"alive": {"false"}}, nil},
		"Party":    {url.Values{"party": {seller.ID}, "region": {"us-east"}}, []string{"d", "e"}},
		"Kind":     {url.Values{"kind": {"Broker"}}, nil},
		"NotThere": {url.Values{"architecture": {"arm64"}}, nil},
	} {
		if ids, _, _, status := list(tc.query); !slices.Equal(ids, tc.want) || status != http.StatusOK {
			t.Errorf("%s: %v (%d), want %v", name, ids, status, tc.want)
		}
	}
	if _, err := c.Publish(t.Context(), seller.ID, "a", seller.Offer(t, "a", 2)); err != nil {
		t.Fatal(err)
	}
	if _, _, _, status := list(url.Values{"limit": {"2"}}, "If-None-Match", etag); status != http.StatusOK {
		t.Errorf("the first page is answered %d after a change", status)
	}

	// The older form.
	var older []OffersV0
	a := r.call(t, nil, http.MethodGet, "/catalog", "")
	if err := json.Unmarshal([]byte(a.body), &older); err != nil || len(older) != 1 || len(older[0].Offers) != 5 ||
		older[0].ClusterID != seller.ID {
		t.Fatalf("the older form is %s (%v)", a.body, err)
	}
	plan := older[0].Offers[0].Plans[0]
	want := PlanV0{
		PlanID: seller.ID + "_a_small", PlanCost: 0.25, CostCurrency: "EUR", CostPeriod: "hour", PlanQuantity: 3,
		Resources: map[string]string{"cpu": "4", "memory": "16Gi", "pods": "110"},
	}
	if diff := cmp.Diff(want, plan); diff != "" || strings.Contains(a.body, "token") {
		t.Errorf("the plan -want +got\n%s", diff)
	}
}

// leasing lets a party be silent until what it offers is dropped, and brings it back.
func leasing(t *testing.T, dsn string) {
	r := run(t, dsn, func(c *Config) {
		c.AnonymousRead = true
		c.Lease, c.Drop = 300*time.Millisecond, 600*time.Millisecond
	})
	seller, c := r.member(t, "seller")
	jws := seller.Offer(t, "a", 1)
	if _, err := c.Publish(t.Context(), seller.ID, "a", jws); err != nil {
		t.Fatal(err)
	}
	alive := func(want bool) func() bool {
		return func() bool {
			offers, err := c.Offers(t.Context(), nil)
			return err == nil && len(offers) == 1 && *offers[0].Alive == want
		}
	}
	until(t, "the party is silent, and what it offers is still there", alive(false))
	if _, err := c.Renew(t.Context(), seller.ID); err != nil {
		t.Fatal(err)
	}
	until(t, "the party is alive", alive(true))
	until(t, "what it offers is dropped", func() bool {
		offers, err := c.Offers(t.Context(), nil)
		return err == nil && len(offers) == 0
	})
	if lease, err := c.Renew(t.Context(), seller.ID); err != nil || lease.Offers != 0 {
		t.Errorf("the lease says %+v, %v", lease, err)
	}
	if _, err := c.Publish(t.Context(), seller.ID, "a", jws); err != nil {
		t.Errorf("the same offer does not come back: %v", err)
	}
}

// pacing calls too often.
func pacing(t *testing.T, dsn string) {
	r := run(t, dsn, func(c *Config) { c.Limits.PerSecond = 1 })
	seller, c := r.member(t, "seller")
	_, other := r.member(t, "other")
	refused := 0
	for range 30 {
		if _, err := c.Renew(t.Context(), seller.ID); err != nil {
			refused++
		}
	}
	if refused < 10 {
		t.Errorf("%d of 30 requests are refused", refused)
	}
	if _, err := other.Registry(t.Context()); err != nil {
		t.Errorf("another party pays for it: %v", err)
	}
}

// counting checks the names of the metrics, and that they count.
func counting(t *testing.T, dsn string) {
	r := run(t, dsn, nil)
	r.member(t, "seller")
	registered := prometheus.NewPedanticRegistry()
	registered.MustRegister(r.Collectors()...)
	if problems, err := testutil.GatherAndLint(registered); err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
	want := `
# HELP liqo_broker_registry_parties Parties, by state and by whether they are alive.
# TYPE liqo_broker_registry_parties gauge
liqo_broker_registry_parties{alive="false",state="Approved"} 0
liqo_broker_registry_parties{alive="false",state="Pending"} 0
liqo_broker_registry_parties{alive="false",state="Revoked"} 0
liqo_broker_registry_parties{alive="true",state="Approved"} 1
liqo_broker_registry_parties{alive="true",state="Pending"} 0
liqo_broker_registry_parties{alive="true",state="Revoked"} 0
`
	if err := testutil.GatherAndCompare(registered, strings.NewReader(want), "liqo_broker_registry_parties"); err != nil {
		t.Error(err)
	}
	if n := testutil.CollectAndCount(r.metrics.requests); n != 1 {
		t.Errorf("%d kinds of requests are counted, want that of the announcement", n)
	}
}
