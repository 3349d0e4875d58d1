// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package books_test

import (
	"crypto/rand"
	"errors"
	"testing"

	"github.com/capacitorset/liqo-broker/pkg/connector/books"
	"github.com/capacitorset/liqo-broker/pkg/connector/negotiation"
	"github.com/capacitorset/liqo-broker/pkg/core/contract"
	"github.com/capacitorset/liqo-broker/pkg/core/ledger"
	"github.com/capacitorset/liqo-broker/pkg/party"
	registryclient "github.com/capacitorset/liqo-broker/pkg/registry/client"
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
	offered := terms("x")
	offered.Buyer = string(keys.ID())
	if _, err := store.Update(t.Context(), offered.Key(), func(record *contract.Record, held ledger.Ledger) (contract.Result, error) {
		return seller.Apply(record, contract.Request{Event: contract.Reserve, Key: offered.Key(), Terms: offered, Verdict: contract.Ask}, start, held, ledger.Limits{})
	}); err != nil {
		t.Fatal(err)
	}
	delete(shown, keys.ID())
	if found, err := store.Identify(t.Context(), key.Public()); err != nil || found.ID() != keys.ID() {
		t.Errorf("the buyer is %s, %v", found.ID(), err)
	}
	stranger, _ := newKey(t)
	if _, err := store.Identify(t.Context(), stranger.Public()); !errors.Is(err, negotiation.ErrStranger) {
		t.Errorf("a stranger: %v", err)
	}
}
