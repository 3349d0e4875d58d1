// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package books_test

import (
	"crypto/rand"
	"errors"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/books"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/contract"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/ledger"
	"github.com/capacitorset/liqo-broker/pkg/trade/negotiation"
	"github.com/capacitorset/liqo-broker/pkg/trade/party"
	registryclient "github.com/capacitorset/liqo-broker/pkg/trade/registry/client"
)

// known is what a registry shows.
type known map[party.ID]registryclient.Party

func (k known) Party(id party.ID) (registryclient.Party, bool) {
	p, is := k[id]
	return p, is
}

func newKey(t *testing.T) (party.Key, party.Keys) {
	t.Helper()
	key, err := party.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	keys, err := party.ParseKeys([]string{key.Announce()})
	if err != nil {
		t.Fatal(err)
	}
	return key, keys
}

// TestIdentify knows a buyer by its contract when no registry shows it any more, and nobody else.
func TestIdentify(t *testing.T) {
	s := newServer(t)
	shown := known{}
	store, err := books.New(books.Config{Client: s, Reader: s, Parties: shown})
	if err != nil {
		t.Fatal(err)
	}
	key, keys := newKey(t)
	shown[keys.ID()] = registryclient.Party{Keys: keys}
	sell(t, store, keys.ID(), "x")
	delete(shown, keys.ID())
	if found, err := store.Identify(t.Context(), key.Public()); err != nil || found.ID() != keys.ID() {
		t.Errorf("the buyer is %s, %v", found.ID(), err)
	}
	stranger, _ := newKey(t)
	if _, err := store.Identify(t.Context(), stranger.Public()); !errors.Is(err, negotiation.ErrStranger) {
		t.Errorf("a stranger: %v", err)
	}
}

// TestIdentifyAmongMany finds a buyer by what a watch has shown, without a list, and by its new key alone when that has changed.
func TestIdentifyAmongMany(t *testing.T) {
	s := newServer(t)
	store, informer := watched(t, s, s)
	writer, err := books.New(books.Config{Client: s, Reader: s, Parties: known{}})
	if err != nil {
		t.Fatal(err)
	}
	key, keys := newKey(t)
	next, longer := rotated(t, key, keys)
	shown := known{keys.ID(): registryclient.Party{Keys: keys}}
	first, err := books.New(books.Config{Client: s, Reader: s, Parties: shown})
	if err != nil {
		t.Fatal(err)
	}
	sell(t, first, keys.ID(), "x")
	read := func() *connectorv1alpha1.Sale {
		t.Helper()
		offered := terms("x")
		offered.Buyer = string(keys.ID())
		var sale connectorv1alpha1.Sale
		if err := s.Get(t.Context(), client.ObjectKey{Name: books.Name(offered.Key())}, &sale); err != nil {
			t.Fatal(err)
		}
		return &sale
	}
	is := func(step string, by party.Key, want party.Keys) {
		t.Helper()
		got, err := store.Identify(t.Context(), by.Public())
		if want.Current() == nil {
			if !errors.Is(err, negotiation.ErrStranger) {
				t.Errorf("%s: it is %s, %v, want a stranger", step, got.ID(), err)
			}
			return
		}
		if err != nil || !got.Current().Equal(want.Current()) {
			t.Errorf("%s: it is %s, %v", step, got.ID(), err)
		}
	}
	is("not shown", key, party.Keys{})
	informer.Add(read())
	is("shown", key, keys)
	if err := writer.Learn(t.Context(), longer); err != nil {
		t.Fatal(err)
	}
	is("not shown with another key", key, keys)
	informer.Update(nil, read())
	is("shown with another key", next, longer)
	is("by the key that was replaced", key, party.Keys{})
	informer.Delete(read())
	is("gone", next, party.Keys{})
}

// rotated returns a chain with a new key.
func rotated(t *testing.T, key party.Key, keys party.Keys) (party.Key, party.Keys) {
	t.Helper()
	next, err := party.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	longer, err := party.Rotate(keys, key, next)
	if err != nil {
		t.Fatal(err)
	}
	return next, longer
}

// sell writes a record of a contract with a buyer.
func sell(t *testing.T, store *books.Store, buyer party.ID, id string) {
	t.Helper()
	offered := terms(id)
	offered.Buyer = string(buyer)
	if _, err := store.Update(t.Context(), offered.Key(), func(record *contract.Record, held ledger.Ledger) (contract.Result, error) {
		return seller.Apply(record, contract.Request{Event: contract.Reserve, Key: offered.Key(), Terms: offered, Verdict: contract.Ask}, start,
			held, ledger.Limits{})
	}); err != nil {
		t.Fatal(err)
	}
}

// TestBought knows for which cluster a party has a contract once both have signed it, also after its end, and nothing of other clusters and
// parties.
func TestBought(t *testing.T) {
	store := newStore(t, newServer(t))
	has := func(step string, id party.ID, of cluster.ID, want bool) {
		t.Helper()
		if bought, err := store.Bought(t.Context(), id, of); err != nil || bought != want {
			t.Errorf("%s: party %s has bought for cluster %s: %t, %v", step, id, of, bought, err)
		}
	}
	is, another := party.ID(buyer), party.ID(strings.Repeat("c", 52))
	has("nothing is sold", is, "edge-id", false)
	for _, step := range []struct {
		event contract.Event
		want  bool
	}{{contract.Reserve, false}, {contract.Sign, true}, {contract.Terminate, true}} {
		if _, err := store.Update(t.Context(), terms("x").Key(), apply(step.event, "x")); err != nil {
			t.Fatal(err)
		}
		has(string(step.event), is, "edge-id", step.want)
		has(string(step.event), is, "other-id", false)
		has(string(step.event), another, "edge-id", false)
	}
}

// TestReplacedKey knows a buyer by its new key once anybody has shown it, also when no registry shows it any more, and not by the one
// before.
func TestReplacedKey(t *testing.T) {
	for name, learn := range map[string]func(t *testing.T, store *books.Store, shown known, keys party.Keys){
		"RegistryShowsIt": func(t *testing.T, store *books.Store, shown known, keys party.Keys) {
			t.Helper()
			shown[keys.ID()] = registryclient.Party{Keys: keys}
			if err := store.Rekey(t.Context()); err != nil {
				t.Fatal(err)
			}
			delete(shown, keys.ID())
		},
		"RegistryShowsIt,StillThere": func(_ *testing.T, _ *books.Store, shown known, keys party.Keys) {
			shown[keys.ID()] = registryclient.Party{Keys: keys}
		},
		"BuyerSaysIt": func(t *testing.T, store *books.Store, _ known, keys party.Keys) {
			t.Helper()
			if err := store.Learn(t.Context(), keys); err != nil {
				t.Fatal(err)
			}
		},
		"BuyerSaysIt,RegistryIsBehind": func(t *testing.T, store *books.Store, shown known, keys party.Keys) {
			t.Helper()
			first, err := party.ParseKeys(keys.Chain()[:1])
			if err != nil {
				t.Fatal(err)
			}
			shown[keys.ID()] = registryclient.Party{Keys: first}
			if err := store.Learn(t.Context(), keys); err != nil {
				t.Fatal(err)
			}
			sell(t, store, keys.ID(), "z")
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, shown := newServer(t), known{}
			store, err := books.New(books.Config{Client: s, Reader: s, Parties: shown})
			if err != nil {
				t.Fatal(err)
			}
			old, keys := newKey(t)
			shown[keys.ID()] = registryclient.Party{Keys: keys}
			sell(t, store, keys.ID(), "x")
			sell(t, store, keys.ID(), "y")
			delete(shown, keys.ID())
			next, longer := rotated(t, old, keys)
			learn(t, store, shown, longer)

			if who, err := store.Identify(t.Context(), old.Public()); err == nil && who.Current().Equal(old.Public()) {
				t.Error("the key that was replaced is the buyer's current one")
			}
			if who, err := store.Longest(t.Context(), keys); err != nil || !who.Current().Equal(next.Public()) {
				t.Errorf("the longest chain ends with %s, %v", party.Fingerprint(who.Current()), err)
			}
			if _, still := shown[keys.ID()]; still && name != "BuyerSaysIt,RegistryIsBehind" {
				return // The registry tells who it is.
			}
			if who, err := store.Identify(t.Context(), next.Public()); err != nil || who.ID() != keys.ID() {
				t.Errorf("the buyer with its new key is %s, %v", who.ID(), err)
			}
			sell(t, store, keys.ID(), "later")
			if who, err := store.Longest(t.Context(), keys); err != nil || !who.Current().Equal(next.Public()) {
				t.Errorf("after another contract the chain ends with %s, %v", party.Fingerprint(who.Current()), err)
			}
			if err := store.Learn(t.Context(), keys); !errors.Is(err, negotiation.ErrReplaced) {
				t.Errorf("the chain before is learned: %v", err)
			}
			_, elsewhere := rotated(t, old, keys)
			if err := store.Learn(t.Context(), elsewhere); !errors.Is(err, negotiation.ErrStranger) {
				t.Errorf("a chain that leads elsewhere is learned: %v", err)
			}
		})
	}
	s := newServer(t)
	store, err := books.New(books.Config{Client: s, Reader: s})
	if err != nil {
		t.Fatal(err)
	}
	if _, keys := newKey(t); !errors.Is(store.Learn(t.Context(), keys), negotiation.ErrStranger) {
		t.Error("who has bought nothing is known")
	}
}
