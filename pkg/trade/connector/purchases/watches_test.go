// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package purchases

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/capacitorset/liqo-broker/pkg/trade/negotiation"
	"github.com/capacitorset/liqo-broker/pkg/trade/negotiation/negotiationv1"
	"github.com/capacitorset/liqo-broker/pkg/trade/party"
)

// TestWatches wakes for a seller that cannot be asked, and ends with its context.
func TestWatches(t *testing.T) {
	key, err := party.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	keys := party.FirstKey(key.Public())
	c, err := negotiation.NewClient(negotiation.ClientConfig{
		Endpoint: "https://127.0.0.1:1", Seller: keys, Buyer: keys, Key: func() party.Key { return key },
	})
	if err != nil {
		t.Fatal(err)
	}
	w := newWatches()
	if w.start("p", c, "p", 0) {
		t.Error("it waits for a seller before it was started")
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.Start(ctx) }()
	for begin := time.Now(); !w.start("p", c, "p", 0); time.Sleep(time.Millisecond) {
		if time.Since(begin) > 10*time.Second {
			t.Fatal("it never starts")
		}
	}
	select {
	case woken := <-w.woken:
		if woken.Object.GetName() != "p" {
			t.Errorf("woken: %s", woken.Object.GetName())
		}
	case <-time.After(10 * time.Second):
		t.Fatal("nobody is woken")
	}
	for range 3 {
		w.start("p", c, "p", 0) // Nobody takes what it tells.
	}
	cancel()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("it does not end")
	}
}

// TestTooManyWait leaves a purchase alone for whose seller too many wait already: it would be refused again at once, and again.
func TestTooManyWait(t *testing.T) {
	key, err := party.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	refused := make(chan struct{}, 16)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusTooManyRequests)
		_, _ = io.WriteString(w, `{"type":"`+negotiationv1.ProblemTooMany+`"}`)
		refused <- struct{}{}
	}))
	server.Listener = tls.NewListener(server.Listener, party.TLS{Current: func() party.Key { return key }}.Server())
	server.Start()
	t.Cleanup(server.Close)
	keys := party.FirstKey(key.Public())
	c, err := negotiation.NewClient(negotiation.ClientConfig{
		Endpoint: "https://" + server.Listener.Addr().String(), Seller: keys, Buyer: keys, Key: func() party.Key { return key },
	})
	if err != nil {
		t.Fatal(err)
	}
	w := newWatches()
	ctx, cancel := context.WithCancel(t.Context())
	w.base = ctx
	w.start("p", c, "p", 0)
	<-refused
	select {
	case <-w.woken:
		t.Error("the purchase is looked at again at once")
	case <-refused:
		t.Error("the seller is asked again at once")
	case <-time.After(2 * firstPause):
	}
	cancel()
	w.group.Wait()
}

// TestToldInVain waits ever longer for a seller that tells of versions which do not come, and not for one whose versions do.
func TestToldInVain(t *testing.T) {
	key, err := party.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	var asked atomic.Int64
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		_, _ = io.WriteString(w, `{"id":"p","version":5,"state":"Proposed"}`)
	}))
	server.Listener = tls.NewListener(server.Listener, party.TLS{Current: func() party.Key { return key }}.Server())
	server.Start()
	t.Cleanup(server.Close)
	keys := party.FirstKey(key.Public())
	c, err := negotiation.NewClient(negotiation.ClientConfig{
		Endpoint: "https://" + server.Listener.Addr().String(), Seller: keys, Buyer: keys, Key: func() party.Key { return key },
	})
	if err != nil {
		t.Fatal(err)
	}
	w := newWatches()
	w.base = t.Context()
	pauses, over := make(chan time.Duration, 1), make(chan time.Time)
	w.after = func(pause time.Duration) <-chan time.Time {
		pauses <- pause
		return over
	}
	// looked starts a wait, which begins with a pause, and has the pause end.
	looked := func(step string, after int64, want time.Duration) {
		t.Helper()
		before := asked.Load()
		w.start("p", c, "p", after)
		select {
		case pause := <-pauses:
			if pause != want {
				t.Errorf("%s: it waits for %s, want %s", step, pause, want)
			}
		case <-w.woken:
			t.Fatalf("%s: it does not wait", step)
		}
		if asked.Load() != before {
			t.Errorf("%s: the seller is asked before the pause is over", step)
		}
		select {
		case over <- time.Time{}:
		case <-w.woken:
			t.Fatalf("%s: it is woken before the pause is over", step)
		}
		if woken := <-w.woken; woken.Object.GetName() != "p" || asked.Load() != before+1 {
			t.Errorf("%s: %s is woken, and the seller was asked %d times", step, woken.Object.GetName(), asked.Load()-before)
		}
	}
	looked("at first", 0, 0)
	looked("in vain", 0, 2*time.Second)
	looked("in vain again", 0, 4*time.Second)
	if longest := (told{inVain: 1 << 20}).pause(); longest != watched {
		t.Errorf("at most it waits for %s", longest)
	}
	looked("a version has come", 4, 0)
	looked("in vain after it", 4, 2*time.Second)
	w.stop("p")
	if len(w.told) > 0 {
		t.Error("it remembers what is gone")
	}
}
