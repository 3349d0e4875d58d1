// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package registrytest makes parties and what they sign, for tests of a registry and its clients.
package registrytest

import (
	"crypto/rand"
	"crypto/tls"
	"testing"
	"time"

	"github.com/capacitorset/liqo-broker/pkg/trade/core/offer"
	"github.com/capacitorset/liqo-broker/pkg/trade/party"
	"github.com/capacitorset/liqo-broker/pkg/trade/party/partytest"
	"github.com/capacitorset/liqo-broker/pkg/trade/registry/client"
	"github.com/capacitorset/liqo-broker/pkg/trade/registry/registryv1"
)

// Key returns a new key.
func Key(tb testing.TB) party.Key {
	tb.Helper()
	key, err := party.GenerateKey(rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	return key
}

// Party is a party with its keys.
type Party struct {
	ID   string
	Name string
	Key  party.Key // The current one.
	Keys party.Keys
	// Clusters are those that it names when it announces itself.
	Clusters []registryv1.Cluster
}

// NewParty returns a party with a new key.
func NewParty(tb testing.TB, name string) *Party {
	tb.Helper()
	key := Key(tb)
	keys, err := party.ParseKeys([]string{key.Announce()})
	if err != nil {
		tb.Fatal(err)
	}
	return &Party{ID: string(keys.ID()), Name: name, Key: key, Keys: keys}
}

// Rotate returns the same party with one more key.
func (p *Party) Rotate(tb testing.TB) *Party {
	tb.Helper()
	next := Key(tb)
	keys, err := party.Rotate(p.Keys, p.Key, next)
	if err != nil {
		tb.Fatal(err)
	}
	return &Party{ID: p.ID, Name: p.Name, Key: next, Keys: keys, Clusters: p.Clusters}
}

// Sign signs a document with the current key.
func (p *Party) Sign(tb testing.TB, typ string, payload any) string {
	tb.Helper()
	jws, err := p.Key.Sign(typ, payload)
	if err != nil {
		tb.Fatal(err)
	}
	return jws
}

// Enrolment returns how a party announces itself.
func (p *Party) Enrolment(tb testing.TB, revision int64, token string) registryv1.Enrolment {
	tb.Helper()
	said := registryv1.Announcement{
		Party: p.ID, Revision: revision, Name: p.Name, Endpoint: "https://" + p.Name + ".example:8446", Clusters: p.Clusters,
		IssuedAt: time.Now().UTC().Truncate(time.Second),
	}
	return registryv1.Enrolment{Keys: p.Keys.Chain(), Announcement: p.Sign(tb, registryv1.TypeAnnouncement, said), Token: token}
}

// Document returns an offer of a party that is valid for a day.
func (p *Party) Document(tb testing.TB, id string, revision int64) offer.Offer {
	tb.Helper()
	amount, err := offer.ParseAmount("0.25")
	if err != nil {
		tb.Fatal(err)
	}
	resources := offer.Resources{}
	for name, text := range map[string]string{"cpu": "4", "memory": "16Gi", "pods": "110"} {
		if resources[name], err = offer.ParseQuantity(text); err != nil {
			tb.Fatal(err)
		}
	}
	now := time.Now().UTC().Truncate(time.Second)
	return offer.Offer{
		Party: p.ID, ID: id, Revision: revision, IssuedAt: now, ValidUntil: now.Add(24 * time.Hour), Kind: offer.Cluster,
		Name: "Offer " + id + " of " + p.Name, Region: "eu-north", Architectures: []string{"amd64"},
		Plans: []offer.Plan{
			{ID: "small", Resources: resources, Price: offer.Price{Amount: amount, Currency: "EUR", Period: offer.Hour}, Available: 3},
		},
	}
}

// Offer returns a signed offer of a party.
func (p *Party) Offer(tb testing.TB, id string, revision int64) string {
	tb.Helper()
	return p.Sign(tb, offer.Type, p.Document(tb, id, revision))
}

// Client returns a client of the registry at an address that has a key.
func (p *Party) Client(tb testing.TB, address, registry string) *client.Client {
	tb.Helper()
	c, err := client.New("https://"+address, TLS(p.Key, registry))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(c.Close)
	return c
}

// TLS returns how a party calls a registry that has a key.
func TLS(key party.Key, registry string) *tls.Config { return partytest.Client(key, registry) }
