// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/ed25519"
	"crypto/tls"
	"io"
	"net"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/serving/servingtest"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/books"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/identity"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/sales"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/contract"
	"github.com/capacitorset/liqo-broker/pkg/trade/negotiation"
	"github.com/capacitorset/liqo-broker/pkg/trade/negotiation/negotiationtest"
	"github.com/capacitorset/liqo-broker/pkg/trade/negotiation/negotiationv1"
	"github.com/capacitorset/liqo-broker/pkg/trade/party"
	"github.com/capacitorset/liqo-broker/pkg/trade/party/partytest"
	"github.com/capacitorset/liqo-broker/pkg/trade/registry/registrytest"
)

// TestBuyersPort has strangers hold all the connections that their network may have, from several addresses: a party's connection from
// there counts for the party, one more stranger is refused, and other networks have theirs.
func TestBuyersPort(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	if err := connectorv1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	api := fake.NewClientBuilder().WithScheme(scheme).Build()
	own, err := identity.Load(t.Context(), api, "liqo-broker-connector")
	if err != nil {
		t.Fatal(err)
	}
	store, err := books.New(books.Config{Client: api, Reader: api})
	if err != nil {
		t.Fatal(err)
	}
	known, stranger := registrytest.NewParty(t, "known"), registrytest.NewParty(t, "stranger")
	asked, answer := make(chan struct{}), make(chan struct{})
	server, err := negotiation.NewServer(negotiation.Config{
		Party: own.ID(), Key: own.Key, Store: store, Limits: negotiation.DefaultLimits(),
		Seller: contract.Seller{ReserveFor: time.Minute, DecideFor: time.Minute}, Log: logr.Discard(), Offers: struct{ negotiation.Offers }{},
		Admission: struct{ negotiation.Admission }{}, Credentials: sales.NewPeerings(api, store, nil), Reach: negotiationtest.Reach{},
		Identify: func(_ context.Context, key ed25519.PublicKey) (party.Keys, error) {
			if known.Key.Public().Equal(key) {
				return known.Keys, nil
			}
			asked <- struct{}{}
			<-answer // It takes as long as the test, so that the connection stays.
			return party.Keys{}, negotiation.ErrStranger
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	p := &parts{identity: own, negotiation: server}
	address := servingtest.Serve(t, p.serveBuyers)
	t.Cleanup(func() { close(answer) })

	// ask asks on a new connection, and returns what becomes known of it: what is answered first, or that it has ended.
	ask := func(from string, by *registrytest.Party) (begin chan string) {
		t.Helper()
		begin = make(chan string, 1)
		dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
		connection, err := dialer.DialContext(t.Context(), "tcp", address)
		if err != nil {
			begin <- err.Error() // It was refused before it was known to be there.
			return begin
		}
		t.Cleanup(func() { _ = connection.Close() })
		go func() {
			secure, first := tls.Client(connection, partytest.Client(by.Key, party.Fingerprint(own.Key().Public()))),
				make([]byte, len("HTTP/1.1 404"))
			_, err := io.WriteString(secure, "GET "+negotiationv1.Base+"/contracts/none HTTP/1.1\r\nHost: x\r\n\r\n")
			if err == nil {
				_, err = io.ReadFull(secure, first)
			}
			if err != nil {
				begin <- err.Error()
				return
			}
			begin <- string(first)
		}()
		return begin
	}
	// holds reports whether a stranger gets a connection.
	holds := func(from string) bool {
		t.Helper()
		select {
		case <-asked:
			return true
		case <-ask(from, stranger):
			return false
		}
	}
	if begin := <-ask("127.0.0.1", known); begin != "HTTP/1.1 404" {
		t.Fatalf("a party that asks for a contract that is not there: %s", begin)
	}
	for n := range maxConnectionsEach {
		if !holds([]string{"127.0.0.1", "127.0.0.2"}[n%2]) {
			t.Fatalf("stranger %d of a network has no connection, and %d may have one", n+1, maxConnectionsEach)
		}
	}
	if holds("127.0.0.3") {
		t.Error("one network has more connections than it may")
	}
	if !holds("127.0.1.1") {
		t.Error("another network has no connection")
	}
}
