// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
	"github.com/go-logr/logr"

	"github.com/capacitorset/liqo-broker/pkg/trade/registry/registrytest"
	"github.com/capacitorset/liqo-broker/pkg/trade/registry/store"
)

// TestRestoredStore restores an older copy of a store, which then goes further than a watcher has been: it is told everything, while one
// that was there before the copy goes on.
func TestRestoredStore(t *testing.T) {
	dsn := newFileDSN(t)
	file := strings.TrimPrefix(dsn, "sqlite:")
	p := registrytest.NewParty(t, "p")
	enrolment := p.Enrolment(t, 1, "")
	var before, lost string
	phase := func(name string, deed func(t *testing.T, r *registry, publish func(id string))) {
		t.Run(name, func(t *testing.T) {
			r := run(t, dsn, nil)
			c := p.Client(t, r.address, r.key)
			if _, err := c.Announce(t.Context(), p.ID, enrolment); err != nil {
				t.Fatal(err)
			}
			deed(t, r, func(id string) {
				t.Helper()
				if _, err := c.Publish(t.Context(), p.ID, id, p.Offer(t, id, 1)); err != nil {
					t.Fatal(err)
				}
			})
		})
	}
	phase("Before", func(t *testing.T, r *registry, publish func(string)) {
		t.Helper()
		publish("a")
		before = r.journal.View().ID()
		publish("b")
	})
	copied, err := os.ReadFile(file) // Nothing has it open.
	if err != nil {
		t.Fatal(err)
	}
	phase("Lost", func(_ *testing.T, r *registry, publish func(string)) {
		publish("c")
		lost = r.journal.View().ID()
	})
	if err := os.WriteFile(file, copied, 0o600); err != nil {
		t.Fatal(err)
	}
	phase("Restored", func(t *testing.T, r *registry, publish func(string)) {
		t.Helper()
		for _, id := range []string{"d", "e", "f"} {
			publish(id)
		}
		s := r.watch(t, p, url.Values{"after": {lost}})
		s.want("Who knows what is lost begins again.", "snapshot", "+p", "+a", "+b", "+d", "+e", "+f", "bookmark")
		s = r.watch(t, p, url.Values{"after": {before}})
		s.want("Who was there before the copy goes on.", "+b", "+d", "+e", "+f", "bookmark")
	})
}

// TestGoneBack restores a store while a registry has it open, which then has come as far again: it notices by the eras.
func TestGoneBack(t *testing.T) {
	f := &follower{revision: 10, eras: map[string]bool{"first": true, "second": true}}
	for name, tc := range map[string]struct {
		eras []store.Era
		want bool
	}{
		"Same":     {[]store.Era{{Name: "first", From: 1}, {Name: "second", From: 8}}, false},
		"Another":  {[]store.Era{{Name: "first", From: 1}, {Name: "second", From: 8}, {Name: "third", From: 11}}, false},
		"Restored": {[]store.Era{{Name: "first", From: 1}, {Name: "second", From: 8}, {Name: "third", From: 10}}, true},
		"Older":    {[]store.Era{{Name: "first", From: 1}, {Name: "third", From: 11}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := f.wentBack(tc.eras, "second"); got != tc.want {
				t.Errorf("wentBack() = %t", got)
			}
		})
	}
}

// TestReplicaThatLags has a replica that has not looked at the store for a while: who comes from another one waits until it has.
func TestReplicaThatLags(t *testing.T) {
	dsn := newFileDSN(t)
	r := run(t, dsn, nil)
	p, c := r.member(t, "p")
	s, err := store.Open(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	behind, err := New(t.Context(), Config{Store: s, Log: logr.Discard(), Limits: DefaultLimits()}) // It does not run.
	if err != nil {
		t.Fatal(err)
	}
	until(t, "the other one knows that a replica has begun", func() bool { return r.journal.View().Epoch == behind.journal.View().Epoch })
	if err := behind.catchUp(t.Context(), r.journal.View().ID()); err != nil {
		t.Errorf("it is as far: %v", err)
	}
	if _, err := c.Publish(t.Context(), p.ID, "a", p.Offer(t, "a", 1)); err != nil {
		t.Fatal(err)
	}
	id := r.journal.View().ID()
	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := behind.catchUp(short, id); err == nil || behind.journal.View().Covers(id) {
		t.Errorf("it has not come to %s: %v", id, err)
	}
	refused := httptest.NewRecorder()
	request := httptest.NewRequestWithContext(short, http.MethodGet, "/v1/watch", http.NoBody) // Its time is over already.
	if behind.watch(humago.NewContext(&huma.Operation{}, request, refused), &filter{}, id); refused.Code != http.StatusServiceUnavailable {
		t.Errorf("a watch of it is answered with %d: %s", refused.Code, refused.Body)
	}
	done := make(chan error)
	go func() { done <- behind.catchUp(t.Context(), id) }()
	if err := behind.follower.follow(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil || !behind.journal.View().Covers(id) {
		t.Errorf("then it has, and goes on: %v", err)
	}
}
