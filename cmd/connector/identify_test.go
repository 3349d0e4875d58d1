// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/books"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/contract"
	"github.com/capacitorset/liqo-broker/pkg/trade/negotiation"
	"github.com/capacitorset/liqo-broker/pkg/trade/party"
	registryclient "github.com/capacitorset/liqo-broker/pkg/trade/registry/client"
)

// shown are the keys of the party that a registry shows; none if it shows nobody.
type shown struct{ keys party.Keys }

// Party implements books.Parties.
func (s shown) Party(id party.ID) (registryclient.Party, bool) {
	return registryclient.Party{Keys: s.keys}, s.keys.Current() != nil && s.keys.ID() == id
}

// identify is a negotiation.Identify.
func (s shown) identify(_ context.Context, key ed25519.PublicKey) (party.Keys, error) {
	if s.keys.Current() == nil || !s.keys.Current().Equal(key) {
		return party.Keys{}, negotiation.ErrStranger
	}
	return s.keys, nil
}

// TestIdentify asks a registry and the books together who calls. Whichever has seen more keys of the party counts: nobody is served for a
// key that was replaced, and with the new one the party is known, whoever has not seen it.
func TestIdentify(t *testing.T) {
	newKey := func() party.Key {
		key, err := party.GenerateKey(rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		return key
	}
	old, next := newKey(), newKey()
	before, err := party.ParseKeys([]string{old.Announce()})
	if err != nil {
		t.Fatal(err)
	}
	after, err := party.Rotate(before, old, next)
	if err != nil {
		t.Fatal(err)
	}
	nobody := party.Keys{}
	scheme := runtime.NewScheme()
	if err := connectorv1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		registry, books party.Keys
		caller          party.Key
		served          bool
	}{
		"Unchanged":                {registry: before, books: before, caller: old, served: true},
		"Lost":                     {registry: nobody, books: before, caller: old, served: true},
		"ReplacedAtTheRegistry":    {registry: after, books: before, caller: old},
		"ReplacedInTheBooks":       {registry: before, books: after, caller: old},
		"ReplacedAndLost":          {registry: nobody, books: after, caller: old},
		"ReplacedBeforeAnySale":    {registry: after, books: nobody, caller: old},
		"NewAtTheRegistry":         {registry: after, books: before, caller: next, served: true},
		"NewInTheBooks":            {registry: before, books: after, caller: next, served: true},
		"NewAndLost":               {registry: nobody, books: after, caller: next, served: true},
		"NewAndNobodyHasSeenIt":    {registry: before, books: before, caller: next},
		"Stranger":                 {registry: after, books: after, caller: newKey()},
		"StrangerWithoutARegistry": {registry: nobody, books: nobody, caller: old},
	} {
		t.Run(name, func(t *testing.T) {
			clients := fake.NewClientBuilder().WithScheme(scheme)
			if tc.books.Current() != nil {
				sale := &connectorv1alpha1.Sale{ObjectMeta: metav1.ObjectMeta{Name: "s", Labels: map[string]string{
					books.BuyerLabel: string(tc.books.ID()), books.BuyerKeyLabel: party.Fingerprint(tc.books.Current()),
				}}}
				sale.Spec.Buyer, sale.Status.Buyer.Keys = connectorv1alpha1.PartyID(tc.books.ID()), tc.books.Chain()
				clients = clients.WithObjects(sale)
			}
			c, registry := clients.Build(), shown{tc.registry}
			store, err := books.New(books.Config{Client: c, Reader: c, Parties: registry})
			if err != nil {
				t.Fatal(err)
			}
			who, err := identify(registry.identify, store)(t.Context(), tc.caller.Public())
			if err != nil && !errors.Is(err, negotiation.ErrStranger) {
				t.Fatal(err)
			}
			// Who is known by a key that is not the current one is refused, and told that it was replaced.
			if served := err == nil && who.ID() == before.ID() && who.Current().Equal(tc.caller.Public()); served != tc.served {
				t.Errorf("served: %t, as %s with the key %s, %v", served, who.ID(), party.Fingerprint(who.Current()), err)
			}
		})
	}
}

// owners are parties that registries show, and the clusters that they have; nobody else is shown.
type owners map[party.ID]cluster.ID

// Party implements purchases.Parties.
func (o owners) Party(id party.ID) (registryclient.Party, bool) {
	_, is := o[id]
	return registryclient.Party{}, is
}

// Owns implements purchases.Parties.
func (o owners) Owns(id party.ID, of cluster.ID) bool { return o[id] == of }

// TestOwns asks registries and the books together whose cluster it is: registries alone of a party that they show, and of another one its
// contracts.
func TestOwns(t *testing.T) {
	const buyer, other = party.ID("buyer"), party.ID("other")
	scheme := runtime.NewScheme()
	if err := connectorv1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	sale := &connectorv1alpha1.Sale{ObjectMeta: metav1.ObjectMeta{Name: "s", Labels: map[string]string{books.BuyerLabel: string(buyer)}}}
	sale.Spec.Buyer, sale.Spec.ContractID = connectorv1alpha1.PartyID(buyer), "x"
	record, err := json.Marshal(contract.Record{View: contract.View{
		Key: contract.Key{Buyer: string(buyer), ID: "x"}, Version: 1, State: contract.Active, Countersignature: "c",
		Terms: contract.Terms{Cluster: cluster.Identity{ID: "bought"}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	sale.Status.Record = string(record)
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(sale).Build()
	for name, tc := range map[string]struct {
		shown       owners
		of          cluster.ID
		owns, known bool
	}{
		"Its":                {shown: owners{buyer: "its", other: "others"}, of: "its", owns: true, known: true},
		"Others":             {shown: owners{buyer: "its", other: "others"}, of: "others", known: true},
		"Nobodys":            {shown: owners{buyer: "its", other: "others"}, of: "nobodys", known: true},
		"BoughtAndOthersNow": {shown: owners{buyer: "its", other: "bought"}, of: "bought", known: true},
		"LostAndBought":      {shown: owners{other: "others"}, of: "bought", owns: true, known: true},
		"LostAndNotBought":   {shown: owners{other: "others"}, of: "its"},
		"LostAndOthers":      {shown: owners{other: "others"}, of: "others"},
	} {
		t.Run(name, func(t *testing.T) {
			store, err := books.New(books.Config{Client: c, Reader: c, Parties: tc.shown})
			if err != nil {
				t.Fatal(err)
			}
			if owns, known, err := owns(tc.shown, store)(t.Context(), buyer, tc.of); err != nil || owns != tc.owns || known != tc.known {
				t.Errorf("it has the cluster: %t, known: %t, %v", owns, known, err)
			}
		})
	}
}
