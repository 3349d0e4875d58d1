// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package negotiation_test

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"sync"
	"testing"

	"github.com/capacitorset/liqo-broker/pkg/trade/negotiation"
	"github.com/capacitorset/liqo-broker/pkg/trade/party"
)

// acquaintances are the parties that a seller knows by contracts, without any registry.
type acquaintances struct {
	mu    sync.Mutex
	known map[party.ID]party.Keys
}

// Identify is a negotiation.Identify.
func (a *acquaintances) Identify(_ context.Context, key ed25519.PublicKey) (party.Keys, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, keys := range a.known {
		if _, had := keys.Key(party.Fingerprint(key)); had {
			return keys, nil
		}
	}
	return party.Keys{}, negotiation.ErrStranger
}

// Learn is a negotiation.Learn.
func (a *acquaintances) Learn(_ context.Context, keys party.Keys) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	known, is := a.known[keys.ID()]
	switch {
	case !is:
		return negotiation.ErrStranger
	case keys.Continues(known):
		a.known[keys.ID()] = keys
		return nil
	case known.Continues(keys):
		return negotiation.ErrReplaced
	}
	return negotiation.ErrStranger
}

// rotated returns a party with a new key.
func rotated(tb testing.TB, before somebody) somebody {
	tb.Helper()
	next, err := party.GenerateKey(rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	keys, err := party.Rotate(before.keys, before.key, next)
	if err != nil {
		tb.Fatal(err)
	}
	return somebody{next, keys}
}

// openTo opens a shop that knows some buyers by contracts alone.
func openTo(t *testing.T, buyers ...somebody) (*shop, *acquaintances) {
	t.Helper()
	a := &acquaintances{known: map[party.ID]party.Keys{}}
	for _, b := range buyers {
		a.known[b.keys.ID()] = b.keys
	}
	var s *shop
	s = open(t, func(cfg *negotiation.Config) {
		cfg.Identify, cfg.Learn = a.Identify, a.Learn
		cfg.Keys = func() party.Keys { return s.now().keys }
	})
	return s, a
}

// TestRotatedBuyer goes on with a contract after the buyer has replaced its key, without any registry. The key before is refused from then
// on.
func TestRotatedBuyer(t *testing.T) {
	before := newParty(t)
	s, _ := openTo(t, before)
	old := s.client(t, before)
	buy(t, old, before, "x")
	after := rotated(t, before)
	if view, err := s.client(t, after).Get(t.Context(), "x", 0, 0); err != nil || !view.Signed() {
		t.Fatalf("with the new key: %+v, %v", view, err)
	}
	if _, err := old.Get(t.Context(), "x", 0, 0); !errors.Is(err, negotiation.ErrReplaced) {
		t.Errorf("with the key before: %v, want %v", err, negotiation.ErrReplaced)
	}
	if _, err := old.Credentials(t.Context(), "x"); !errors.Is(err, negotiation.ErrReplaced) {
		t.Errorf("credentials with the key before: %v, want %v", err, negotiation.ErrReplaced)
	}
	elsewhere := rotated(t, before)
	if _, err := s.client(t, elsewhere).Get(t.Context(), "x", 0, 0); !errors.Is(err, negotiation.ErrStranger) {
		t.Errorf("with a key to which the stolen one has led: %v, want %v", err, negotiation.ErrStranger)
	}
	stranger := rotated(t, newParty(t))
	if _, err := s.client(t, stranger).Quote(t.Context(), ask("y")); !errors.Is(err, negotiation.ErrStranger) {
		t.Errorf("a stranger: %v, want %v", err, negotiation.ErrStranger)
	}
}

// TestRotatedSeller goes on with a contract after the seller has replaced its key, without any registry. Another party does not take its
// place.
func TestRotatedSeller(t *testing.T) {
	buyer := newParty(t)
	s, _ := openTo(t, buyer)
	c := s.client(t, buyer)
	buy(t, c, buyer, "x")
	before := s.somebody
	s.become(rotated(t, before))
	c.Close()
	if view, err := c.Get(t.Context(), "x", 0, 0); err != nil || !view.Signed() {
		t.Fatalf("with the seller's new key: %+v, %v", view, err)
	}
	if !c.Seller().Continues(s.keys) {
		t.Error("the buyer has not learned the seller's new key")
	}
	for name, other := range map[string]somebody{"Older": before, "Elsewhere": rotated(t, before), "Stranger": newParty(t)} {
		s.become(other)
		c.Close()
		if view, err := c.Get(t.Context(), "x", 0, 0); !errors.Is(err, party.ErrSignature) {
			t.Errorf("%s: %+v, %v; want %v", name, view, err, party.ErrSignature)
		}
	}
}

// TestIntroduction refuses who shows the chain of somebody else.
func TestIntroduction(t *testing.T) {
	known, thief := newParty(t), newParty(t)
	s, a := openTo(t, known)
	liar := somebody{thief.key, rotated(t, known).keys}
	if _, err := s.client(t, liar).Quote(t.Context(), ask("x")); !errors.Is(err, negotiation.ErrStranger) {
		t.Errorf("the chain of another party: %v, want %v", err, negotiation.ErrStranger)
	}
	if !known.keys.Continues(a.known[known.keys.ID()]) {
		t.Error("the chain is believed of who has not its last key")
	}
}
