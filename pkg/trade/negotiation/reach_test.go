// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package negotiation_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/capacitorset/liqo-broker/pkg/trade/core/contract"
	"github.com/capacitorset/liqo-broker/pkg/trade/negotiation"
	"github.com/capacitorset/liqo-broker/pkg/trade/negotiation/negotiationtest"
	"github.com/capacitorset/liqo-broker/pkg/trade/negotiation/negotiationv1"
	"github.com/capacitorset/liqo-broker/pkg/trade/party"
)

// roads are which endpoints of buyers are not reached, and what was tried.
type roads struct {
	mu        sync.Mutex
	unreached []string
	tried     []negotiationv1.Endpoints
}

func (r *roads) try(_ party.ID, at negotiationv1.Endpoints) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tried = append(r.tried, at)
	return r.unreached
}

func (r *roads) become(unreached ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.unreached = unreached
}

func (r *roads) tries() []negotiationv1.Endpoints {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.tried)
}

// edge is where the cluster of the tests' buyers is.
func edge() *negotiationv1.Endpoints {
	return &negotiationv1.Endpoints{
		Cluster: "edge-id", Auth: "https://auth.edge", APIServer: "https://api.edge:6443", Gateway: "gate.edge:5871",
	}
}

// reserve negotiates to a reservation, and returns the request that signs it.
func reserve(t *testing.T, c *negotiation.Client, buyer somebody, id string) contract.Request {
	t.Helper()
	quoted, err := c.Quote(t.Context(), ask(id))
	if err != nil {
		t.Fatal(err)
	}
	request := contract.Request{Event: contract.Reserve, Key: quoted.Terms.Key(), Terms: quoted.Terms}
	if view, err := c.Do(t.Context(), request); err != nil || view.State != contract.Reserved {
		t.Fatalf("reserve: %+v, %v", view, err)
	}
	request.Event = contract.Sign
	if request.Signature, err = negotiation.SignTerms(buyer.key, quoted.Terms); err != nil {
		t.Fatal(err)
	}
	return request
}

// TestNotReachable has a seller sign with a buyer whose cluster it reaches, and with no other: that one keeps its reservation, and tries
// again.
func TestNotReachable(t *testing.T) {
	const tryFor = 200 * time.Millisecond
	r := &roads{}
	var told sync.Map
	s := open(t, func(cfg *negotiation.Config) {
		cfg.Reach, cfg.TryFor = negotiationtest.Reach{Unreached: r.try}, tryFor
		cfg.Refused = func(reason string) { told.Store(reason, true) }
	})
	buyer := newParty(t)
	c := s.client(t, buyer)
	request := reserve(t, c, buyer, "a")

	r.become("liqo-auth", "the API server")
	began := time.Now()
	view, err := c.DoAt(t.Context(), request, edge())
	if !errors.Is(err, negotiation.ErrNotReachable) || view.State != contract.Reserved || view.Signed() {
		t.Fatalf("%+v, %v, want a reservation and %v", view, err, negotiation.ErrNotReachable)
	}
	if took := time.Since(began); took < tryFor {
		t.Errorf("how soon something was not reached is told: after %s", took)
	}
	if !strings.Contains(err.Error(), "the seller does not reach liqo-auth and the API server of cluster edge-id") {
		t.Errorf("it is not said what is not reached: %v", err)
	}
	if _, is := told.Load("not-reachable"); !is || !slices.Contains(negotiation.Refusals(), "not-reachable") {
		t.Error("nobody was told of the refusal")
	}
	want := *edge()
	want.Gateway = ""
	if tries := r.tries(); len(tries) != 1 || tries[0] != want {
		t.Errorf("tried: %+v, want only %+v", tries, want)
	}

	r.become()
	if view, err := c.DoAt(t.Context(), request, edge()); err != nil || view.State != contract.Signed || view.Countersignature == "" {
		t.Fatalf("%+v, %v, want a contract", view, err)
	}
	r.become("liqo-auth")
	if view, err := c.DoAt(t.Context(), request, edge()); err != nil || view.State != contract.Signed {
		t.Errorf("what is signed is answered as it is: %+v, %v", view, err)
	}
	// What was reached recently counts as reached, for the same party at the same place.
	if view, err := c.DoAt(t.Context(), reserve(t, c, buyer, "b"), edge()); err != nil || view.State != contract.Signed {
		t.Errorf("%+v, %v, want a contract", view, err)
	}
	if tries := len(r.tries()); tries != 2 {
		t.Errorf("tried %d times, want 2", tries)
	}
	moved := edge()
	moved.Auth = "https://other.edge"
	if _, err := c.DoAt(t.Context(), reserve(t, c, buyer, "c"), moved); !errors.Is(err, negotiation.ErrNotReachable) {
		t.Errorf("%v, want %v", err, negotiation.ErrNotReachable)
	}
}

// TestNothingDialled tries nothing for who holds no reservation, for another cluster than that of the terms, and where nothing is told.
func TestNothingDialled(t *testing.T) {
	r := &roads{}
	asks := false
	s := open(t, func(cfg *negotiation.Config) {
		admission := cfg.Admission
		cfg.Reach = negotiationtest.Reach{Unreached: r.try}
		cfg.Admission = asking{admission, &asks}
	})
	buyer, thief := newParty(t), newParty(t)
	c := s.client(t, buyer)
	request := reserve(t, c, buyer, "a")

	if _, err := s.client(t, thief).DoAt(t.Context(), request, edge()); err == nil {
		t.Error("a thief has signed")
	}
	other := edge()
	other.Cluster = "other"
	if _, err := c.DoAt(t.Context(), request, other); !errors.Is(err, contract.ErrTerms) {
		t.Errorf("another cluster: %v, want %v", err, contract.ErrTerms)
	}
	never := request
	never.Key.ID, never.Terms.ID = "never", "never"
	var err error
	if never.Signature, err = negotiation.SignTerms(buyer.key, never.Terms); err != nil {
		t.Fatal(err)
	}
	if _, err := c.DoAt(t.Context(), never, edge()); !errors.Is(err, contract.ErrUnknown) {
		t.Errorf("nothing is reserved: %v, want %v", err, contract.ErrUnknown)
	}
	asks = true
	quoted, err := c.Quote(t.Context(), ask("b"))
	if err != nil {
		t.Fatal(err)
	}
	waits := contract.Request{Event: contract.Reserve, Key: quoted.Terms.Key(), Terms: quoted.Terms}
	if view, err := c.Do(t.Context(), waits); err != nil || view.State != contract.Proposed {
		t.Fatalf("%+v, %v", view, err)
	}
	waits.Event = contract.Sign
	if waits.Signature, err = negotiation.SignTerms(buyer.key, quoted.Terms); err != nil {
		t.Fatal(err)
	}
	if _, err := c.DoAt(t.Context(), waits, edge()); !errors.Is(err, contract.ErrEarly) {
		t.Errorf("nobody has approved it: %v, want %v", err, contract.ErrEarly)
	}
	if tries := r.tries(); len(tries) != 0 {
		t.Errorf("tried: %+v", tries)
	}
}

// asking is an Admission that has somebody asked while it is told to.
type asking struct {
	negotiation.Admission

	asks *bool
}

func (a asking) Admit(ctx context.Context, application negotiation.Application) (contract.Verdict, string, error) {
	if *a.asks {
		return contract.Ask, "", nil
	}
	return a.Admission.Admit(ctx, application)
}

// TestFewTries bounds how often one party has something dialled.
func TestFewTries(t *testing.T) {
	r := &roads{}
	r.become("liqo-auth")
	s := open(t, func(cfg *negotiation.Config) {
		cfg.Reach = negotiationtest.Reach{Unreached: r.try}
		cfg.Limits.TriesPerMinute, cfg.Limits.TriesAtOnce = 1, 3
	})
	buyer, other := newParty(t), newParty(t)
	c := s.client(t, buyer)
	request := reserve(t, c, buyer, "a")
	for n := range 6 {
		want := negotiation.ErrNotReachable
		if n >= 3 {
			want = negotiation.ErrTooMany
		}
		if _, err := c.DoAt(t.Context(), request, edge()); !errors.Is(err, want) {
			t.Errorf("try %d: %v, want %v", n, err, want)
		}
	}
	if tries := len(r.tries()); tries != 3 {
		t.Errorf("tried %d times, want 3", tries)
	}
	at := s.client(t, other)
	if _, err := at.DoAt(t.Context(), reserve(t, at, other, "a"), edge()); !errors.Is(err, negotiation.ErrNotReachable) {
		t.Errorf("another party suffers: %v", err)
	}
}

// TestToldWhereSellerIs tells who may buy where the seller's cluster is, and who may not, not.
func TestToldWhereSellerIs(t *testing.T) {
	own := negotiationv1.Endpoints{Cluster: "shop", Auth: "https://auth.shop", APIServer: "https://api.shop:6443", Gateway: "gate.shop:5871"}
	for _, verdict := range []contract.Verdict{contract.Accept, contract.Ask, contract.Deny} {
		rules, err := negotiation.NewRules(nil, verdict)
		if err != nil {
			t.Fatal(err)
		}
		s := open(t, func(cfg *negotiation.Config) { cfg.Reach, cfg.Admission = negotiationtest.Reach{At: own}, rules })
		want := own
		if verdict == contract.Deny {
			want = negotiationv1.Endpoints{}
		}
		if quoted, err := s.client(t, newParty(t)).Quote(t.Context(), ask("a")); err != nil || quoted.Endpoints != want {
			t.Errorf("%s: %+v, %v, want %+v", verdict, quoted.Endpoints, err, want)
		}
	}
}
