// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/capacitorset/liqo-broker/pkg/serving/eventstream"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/offer"
	"github.com/capacitorset/liqo-broker/pkg/trade/registry/registrytest"
	"github.com/capacitorset/liqo-broker/pkg/trade/registry/registryv1"
	"github.com/capacitorset/liqo-broker/pkg/trade/registry/store"
)

// stream is a watch, as its bytes come.
type stream struct {
	t      *testing.T
	status int
	events *eventstream.Reader
	last   string // The last ID.
}

// watch begins to watch as a party. It ends with the test.
func (r *registry) watch(t *testing.T, p *registrytest.Party, query url.Values) *stream {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	transport := &http.Transport{TLSClientConfig: registrytest.TLS(p.Key, r.key)}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+r.address+"/v1/watch?"+query.Encode(), http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		_ = response.Body.Close()
		transport.CloseIdleConnections()
	})
	return &stream{t: t, status: response.StatusCode, events: eventstream.NewReader(response.Body, registryv1.MaxEvent)}
}

// words returns what comes until a bookmark or a heartbeat, as short words.
func (s *stream) words() []string {
	s.t.Helper()
	var words []string
	for {
		e, err := s.events.Next()
		if err != nil {
			return append(words, err.Error())
		}
		data := string(e.Data)
		pick := func(name string) string {
			_, rest, _ := strings.Cut(data, `"`+name+`":"`)
			value, _, _ := strings.Cut(rest, `"`)
			return value
		}
		switch e.Name {
		case registryv1.EventBookmark, registryv1.EventHeartbeat:
			s.last = e.ID
			return append(words, e.Name)
		case registryv1.EventUpsert:
			if strings.HasPrefix(data, `{"party"`) {
				words = append(words, "+"+pick("name"))
			} else {
				words = append(words, "+"+pick("id"))
			}
		case registryv1.EventDelete:
			words = append(words, "-"+pick("offer"))
		default:
			words = append(words, e.Name)
		}
	}
}

func (s *stream) want(reason string, want ...string) {
	s.t.Helper()
	if diff := cmp.Diff(want, s.words()); diff != "" {
		s.t.Errorf("%s\n-want +got\n%s", reason, diff)
	}
}

// following follows what happens.
func following(t *testing.T, dsn string) {
	r := run(t, dsn, func(c *Config) { c.Timing.Heartbeat = time.Hour })
	ctx := t.Context()
	seller, c := r.member(t, "seller")
	buyer, _ := r.member(t, "buyer")
	put := func(id string, revision int64, region string) {
		t.Helper()
		d := seller.Document(t, id, revision)
		d.Region = region
		if _, err := c.Publish(ctx, seller.ID, id, seller.Sign(t, offer.Type, d)); err != nil {
			t.Fatal(err)
		}
	}
	put("a", 1, "eu-north")
	put("b", 1, "us-east")
	all := r.watch(t, buyer, nil)
	some := r.watch(t, buyer, url.Values{"region": {"us-east"}})
	words := all.words()
	if len(words) != 6 || words[0] != registryv1.EventSnapshot || words[5] != registryv1.EventBookmark {
		t.Errorf("the snapshot is %v", words)
	}
	if words := some.words(); len(words) != 5 {
		t.Errorf("the filtered snapshot is %v", words)
	}
	put("a", 2, "us-east")
	all.want("A change is told.", "+a", "bookmark")
	some.want("What passes the filter now is told ...", "+a", "bookmark")
	before := all.last
	put("a", 3, "eu-north")
	all.want("The next one as well.", "+a", "bookmark")
	some.want("... and what does not pass it any more is gone.", "-a", "bookmark")
	if err := c.Withdraw(ctx, seller.ID, "b"); err != nil {
		t.Fatal(err)
	}
	all.want("What is withdrawn is gone.", "-b", "bookmark")
	r.watch(t, buyer, url.Values{"after": {before}}).want("Who was away goes on where it was.", "+a", "-b", "bookmark")

	// Who may not watch any more does not.
	if _, err := r.store.Revoke(ctx, buyer.ID); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if words := all.words(); strings.Contains(words[len(words)-1], "EOF") {
			return
		}
	}
	t.Error("a revoked party goes on watching")
}

// heartbeats hears of nothing.
func heartbeats(t *testing.T, dsn string) {
	r := run(t, dsn, func(c *Config) { c.Timing.Heartbeat = 50 * time.Millisecond })
	buyer, _ := r.member(t, "buyer")
	s := r.watch(t, buyer, nil)
	s.want("At first there is everything.", "snapshot", "+buyer", "bookmark")
	s.want("Then there are signs of life.", "heartbeat")
	if id := r.journal.View().ID(); s.last != id {
		t.Errorf("a sign of life has the ID %s, want %s", s.last, id)
	}
}

// lifeOfWatch ends a watch that has been for long.
func lifeOfWatch(t *testing.T, dsn string) {
	r := run(t, dsn, func(c *Config) { c.Timing = Timing{Heartbeat: 20 * time.Millisecond, Life: 200 * time.Millisecond} })
	buyer, _ := r.member(t, "buyer")
	s := r.watch(t, buyer, nil)
	for {
		e, err := s.events.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatalf("the watch ends with %v after %v", err, e)
		}
	}
}

// tooManyWatchers opens one watch too many.
func tooManyWatchers(t *testing.T, dsn string) {
	r := run(t, dsn, func(c *Config) { c.Limits.WatchersEach = 2 })
	buyer, _ := r.member(t, "buyer")
	other, _ := r.member(t, "other")
	for i, want := range []int{http.StatusOK, http.StatusOK, http.StatusTooManyRequests} {
		if s := r.watch(t, buyer, nil); s.status != want {
			t.Errorf("watch %d is answered %d, want %d", i, s.status, want)
		}
	}
	if s := r.watch(t, other, nil); s.status != http.StatusOK {
		t.Errorf("another party is answered %d", s.status)
	}
}

// watchersLeaveConnections holds as many connections of watchers as one address may have, and one more.
func watchersLeaveConnections(t *testing.T, dsn string) {
	r := run(t, dsn, func(c *Config) { c.Limits.ConnectionsEach, c.Limits.WatchersEach = 3, 10 })
	buyer, c := r.member(t, "buyer")
	c.Close()
	for range 5 {
		if s := r.watch(t, buyer, nil); s.status != http.StatusOK {
			t.Fatalf("answered %d", s.status)
		}
	}
}

// slowWatcher watches without reading. It is cut off, and nobody waits for it.
func slowWatcher(t *testing.T, dsn string) {
	r := run(t, dsn, func(c *Config) {
		c.Timing.Write, c.Timing.Heartbeat = 2*time.Second, time.Hour
		c.Limits.Offers = 1000
	})
	seller, c := r.member(t, "seller")
	slow, _ := r.member(t, "slow")
	buyer, _ := r.member(t, "buyer")

	// More than the buffers of a connection hold.
	for i := range 600 {
		d := seller.Document(t, fmt.Sprint("large-", i), 1)
		d.Properties = map[string]string{}
		for n := range 12 {
			d.Properties[fmt.Sprint("property-", n)] = strings.Repeat("x", 1000)
		}
		if _, err := r.store.PutOffer(t.Context(), store.StoredOffer{Party: seller.ID, ID: d.ID, Keys: 1, Revision: 1,
			JWS: seller.Sign(t, offer.Type, d), ValidUntil: d.ValidUntil}, 1000); err != nil {
			t.Fatal(err)
		}
	}
	until(t, "the registry knows them", func() bool { return r.journal.View().Offers == 600 })
	fast := r.watch(t, buyer, nil) // Not earlier: it is not read in the meantime, and would be cut off as well.
	fast.words()
	for fast.last != r.journal.View().ID() {
		if words := fast.words(); words[len(words)-1] != registryv1.EventBookmark {
			t.Fatalf("the other watcher is told %v", words[len(words)-1])
		}
	}

	connection, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", r.address)
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	if err := connection.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
		t.Fatal(err)
	}
	secure := tls.Client(connection, registrytest.TLS(slow.Key, r.key))
	if _, err := fmt.Fprint(secure, "GET /v1/watch HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReaderSize(secure, 16).ReadString(' '); err != nil {
		t.Fatalf("%q, %v", line, err)
	}
	began := time.Now()
	for id := 0; counter(t, r.metrics.cutOff) == 0; id++ {
		if time.Since(began) > 2*time.Minute {
			t.Fatal("a watcher that does not read is not cut off")
		}
		name := fmt.Sprint("new-", id%100)
		if _, err := c.Publish(t.Context(), seller.ID, name, seller.Offer(t, name, int64(id)+1)); err != nil {
			t.Fatal(err)
		}
		if words := fast.words(); words[0] != "+"+name { // As long as the slow one is there as well.
			t.Fatalf("the other watcher is told %v", words)
		}
	}
}

// counter returns the value of a counter.
func counter(t *testing.T, c prometheus.Counter) float64 {
	t.Helper()
	var m dto.Metric
	if err := c.Write(&m); err != nil {
		t.Fatal(err)
	}
	return m.GetCounter().GetValue()
}
