// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package negotiation_test

import (
	"context"
	"crypto/ed25519"
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/capacitorset/liqo-broker/pkg/serving/httpserver"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/clocktest"
	"github.com/capacitorset/liqo-broker/pkg/trade/negotiation"
	"github.com/capacitorset/liqo-broker/pkg/trade/party"
)

// TestStrangersArePaced looks up few strangers of one network, and serves a party from there on the connection on which it is known.
func TestStrangersArePaced(t *testing.T) {
	var looks atomic.Int64
	known := newParty(t)
	a := &acquaintances{known: map[party.ID]party.Keys{known.keys.ID(): known.keys}}
	now := time.Now()
	var mu sync.Mutex
	s := open(t, func(cfg *negotiation.Config) {
		cfg.Limits.Strangers, cfg.Limits.StrangersAtOnce = 1, 5
		cfg.Identify = func(ctx context.Context, key ed25519.PublicKey) (party.Keys, error) {
			looks.Add(1)
			return a.Identify(ctx, key)
		}
		cfg.Clock = clocktest.Func(func() time.Time {
			mu.Lock()
			defer mu.Unlock()
			return now
		})
	})
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	bounded := httpserver.Bound(listener, httpserver.Bounds{All: 2, Each: 2})
	served := &http.Server{
		Handler: s.handler, ErrorLog: log.New(io.Discard, "", 0), ReadHeaderTimeout: time.Minute, ConnContext: negotiation.WithConnection,
	}
	done := make(chan error, 1)
	go func() {
		done <- served.Serve(tls.NewListener(bounded, party.TLS{Current: func() party.Key { return s.key }}.Server()))
	}()
	t.Cleanup(func() {
		served.Close()
		<-done
	})
	url := "https://" + listener.Addr().String()

	member := s.clientAt(t, url, known)
	if _, err := member.Quote(t.Context(), ask("x")); err != nil {
		t.Fatal(err)
	}
	stranger := newParty(t)
	for range 20 {
		if _, err := s.clientAt(t, url, stranger).Quote(t.Context(), ask("x")); err == nil {
			t.Fatal("a stranger is served")
		}
	}
	if got := looks.Load(); got > 6 {
		t.Errorf("%d callers were looked up for 20 requests of strangers, of which 5 are looked at", got)
	}
	if _, err := member.Quote(t.Context(), ask("x")); err != nil {
		t.Errorf("a party on its connection, while strangers ask: %v", err)
	}
	if _, err := s.clientAt(t, url, stranger).Quote(t.Context(), ask("x")); !errors.Is(err, negotiation.ErrTooMany) {
		t.Errorf("one stranger too many: %v, want %v", err, negotiation.ErrTooMany)
	}
	mu.Lock()
	now = now.Add(time.Minute)
	mu.Unlock()
	if _, err := s.clientAt(t, url, stranger).Quote(t.Context(), ask("x")); !errors.Is(err, negotiation.ErrStranger) {
		t.Errorf("a minute later: %v, want %v", err, negotiation.ErrStranger)
	}
}
