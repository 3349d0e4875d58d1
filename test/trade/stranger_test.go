// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package trade

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/capacitorset/liqo-broker/pkg/serving/eventstream"
	"github.com/capacitorset/liqo-broker/pkg/trade/negotiation/negotiationv1"
	"github.com/capacitorset/liqo-broker/pkg/trade/party"
	"github.com/capacitorset/liqo-broker/pkg/trade/party/partytest"
	"github.com/capacitorset/liqo-broker/pkg/trade/registry/registrytest"
	"github.com/capacitorset/liqo-broker/pkg/trade/registry/registryv1"
	"github.com/capacitorset/liqo-broker/test/federation"
	"github.com/capacitorset/liqo-broker/test/lab"
)

// A stranger is a party that runs no connector, on a machine of its own: it says what it likes.
type stranger struct {
	*registrytest.Party

	machine *lab.Host
	address string
}

// newStranger returns a party on the machine.
func newStranger(t *testing.T, of *registrytest.Party) *stranger {
	t.Helper()
	machine, address, err := fed.Stranger(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return &stranger{of, machine, address}
}

// newParty returns a new party that has a cluster.
func newParty(t *testing.T) *registrytest.Party {
	t.Helper()
	of := registrytest.NewParty(t, "stranger")
	of.Clusters = []registryv1.Cluster{{ID: "strange"}}
	return of
}

// reached has the stranger have one cluster, and be reached for it on its machine as a cluster is, by liqo-auth and an API server.
func (s *stranger) reached(t *testing.T, id string) *negotiationv1.Endpoints {
	t.Helper()
	const port = "8444"
	listener, err := s.machine.Listen(t.Context(), "tcp", s.address+":"+port)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintf(w, `{"clusterId":%q}`, id)
	}))
	_ = server.Listener.Close()
	server.Listener = listener
	server.StartTLS()
	t.Cleanup(server.Close)
	s.Clusters = []registryv1.Cluster{{ID: id, Auth: s.address}}
	at := "https://" + s.address + ":" + port
	return &negotiationv1.Endpoints{Cluster: id, Auth: at, APIServer: at}
}

// a caller calls one API by one key.
type caller struct {
	base string
	http *http.Client
}

// at returns a caller of an API, which is that of a fingerprint, by the stranger's key.
func (s *stranger) at(t *testing.T, url, fingerprint string) caller {
	t.Helper()
	transport := &http.Transport{DialContext: s.machine.Dial, TLSClientConfig: partytest.Client(s.Key, fingerprint), ForceAttemptHTTP2: false}
	t.Cleanup(transport.CloseIdleConnections)
	return caller{url, &http.Client{Transport: transport, Timeout: time.Minute}}
}

// open makes a request whose body is a value, or a text as it is.
func (c caller) open(ctx context.Context, method, path string, body any) (*http.Response, error) {
	var text []byte
	switch b := body.(type) {
	case nil:
	case string:
		text = []byte(b)
	default:
		var err error
		if text, err = json.Marshal(b); err != nil {
			return nil, err
		}
	}
	request, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	return c.http.Do(request)
}

// call is open. It returns the status, and what is answered.
func (c caller) call(ctx context.Context, method, path string, body any) (int, string, error) {
	answer, err := c.open(ctx, method, path, body)
	if err != nil {
		return 0, "", err
	}
	defer answer.Body.Close()
	said, err := io.ReadAll(io.LimitReader(answer.Body, 1<<20))
	return answer.StatusCode, string(said), err
}

// status is open. It returns the status, and does not wait for what is answered.
func (c caller) status(ctx context.Context, method, path string, body any) (int, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	answer, err := c.open(ctx, method, path, body)
	if err != nil {
		return 0, err
	}
	return answer.StatusCode, answer.Body.Close()
}

// get reads an answer into a value.
func (c caller) get(t *testing.T, method, path string, body, into any) {
	t.Helper()
	status, said, err := c.call(t.Context(), method, path, body)
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("status %d", status)
	}
	if err == nil && into != nil {
		err = json.Unmarshal([]byte(said), into)
	}
	if err != nil {
		t.Fatalf("%s %s: %v: %s", method, path, err, said)
	}
}

// reserve asks for a quote, and reserves what it says. An offer changes with what is free on its cluster: as a connector does, it asks for
// another quote if that happens in between.
func (c caller) reserve(t *testing.T, path string, wanted negotiationv1.QuoteRequest) negotiationv1.Terms {
	t.Helper()
	const quotes = 3
	said := ""
	for range quotes {
		var quoted negotiationv1.Quote
		c.get(t, http.MethodPost, negotiationv1.Base+"/quotes", wanted, &quoted)
		var status int
		var err error
		if status, said, err = c.call(t.Context(), http.MethodPut, path, negotiationv1.Proposal{Terms: quoted.Terms}); err != nil {
			t.Fatal(err)
		}
		if status == http.StatusOK {
			return quoted.Terms
		}
		if status != http.StatusUnprocessableEntity || !strings.Contains(said, "ask for a quote") {
			break
		}
		t.Logf("another quote is needed: %s", said)
	}
	t.Fatalf("PUT %s: %s", path, said)
	return negotiationv1.Terms{}
}

// An attempt is something that must not work.
type attempt struct {
	name, method, path string
	body               any
	// status is that of the refusal, and reason is in it.
	status int
	reason string
}

// refused makes attempts.
func (c caller) refused(t *testing.T, attempts []attempt) {
	t.Helper()
	for _, a := range attempts {
		status, said, err := c.call(t.Context(), a.method, a.path, a.body)
		switch {
		case err != nil:
			t.Errorf("%s: %v", a.name, err)
		case status != a.status || !strings.Contains(said, a.reason):
			t.Errorf("%s: %d %.512s, want %d and %q", a.name, status, said, a.status, a.reason)
		}
	}
}

// lie runs a registry that shows events which it was given, to whoever watches it, and lets everybody in. It returns its URL.
func (s *stranger) lie(t *testing.T, shown ...registryv1.Upsert) string {
	t.Helper()
	const port = "8443"
	listener, err := s.machine.Listen(t.Context(), "tcp", s.address+":"+port)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	mux := http.NewServeMux()
	answer := func(pattern string, value func(*http.Request) any) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(value(r))
		})
	}
	answer("GET "+registryv1.Base+registryv1.PathRegistry, func(*http.Request) any {
		return registryv1.Registry{Epoch: "lies", Revision: 1, LeaseSeconds: 120, MaxOffers: 200}
	})
	admit := func(r *http.Request) any {
		return registryv1.Party{ID: r.PathValue("party"), State: registryv1.Approved, Alive: true}
	}
	answer("GET "+registryv1.Base+registryv1.PathParty, admit)
	answer("PUT "+registryv1.Base+registryv1.PathParty, admit)
	answer("PUT "+registryv1.Base+registryv1.PathLease, func(*http.Request) any {
		return registryv1.Lease{Until: time.Now().Add(time.Minute), Seconds: 60}
	})
	mux.HandleFunc("GET "+registryv1.Base+registryv1.PathWatch, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", eventstream.MediaType)
		send := func(name, id string, value any) {
			text, err := json.Marshal(value)
			if err != nil {
				t.Error(err)
			}
			_, _ = fmt.Fprintf(w, "event: %s\nid: %s\ndata: %s\n\n", name, id, text)
		}
		send(registryv1.EventSnapshot, "", registryv1.Bookmark{})
		for _, u := range shown {
			send(registryv1.EventUpsert, "", u)
		}
		send(registryv1.EventBookmark, "lies-1", registryv1.Bookmark{Revision: 1})
		_ = http.NewResponseController(w).Flush()
		select {
		case <-ended:
		case <-r.Context().Done():
		}
	})
	server := httptest.NewUnstartedServer(mux)
	_ = server.Listener.Close()
	server.Listener = tls.NewListener(listener, party.ServerConfig(s.Key))
	server.Start()
	t.Cleanup(func() {
		close(ended)
		server.CloseClientConnections()
		server.Close()
	})
	return "https://" + s.address + ":" + port
}

// keysOf returns the keys of a cluster, as the registry shows them.
func keysOf(t *testing.T, at caller, c *federation.Cluster) (registryv1.Party, party.Keys) {
	t.Helper()
	var shown registryv1.Party
	at.get(t, http.MethodGet, registryv1.Base+"/parties/"+string(seller(t, c)), nil, &shown)
	keys, err := party.ParseKeys(shown.Keys)
	if err != nil {
		t.Fatal(err)
	}
	return shown, keys
}
