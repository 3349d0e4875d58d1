// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package negotiation_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/capacitorset/liqo-broker/pkg/serving/httpserver"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/contract"
	"github.com/capacitorset/liqo-broker/pkg/trade/negotiation"
	"github.com/capacitorset/liqo-broker/pkg/trade/negotiation/negotiationv1"
	"github.com/capacitorset/liqo-broker/pkg/trade/party"
	"github.com/capacitorset/liqo-broker/pkg/trade/party/partytest"
)

// liar is a seller on loopback that changes what an honest one answers.
type liar struct {
	// lie changes an answer; nil is honest. It must not be set while the liar is asked.
	lie func(answer map[string]any)
	url string
}

func lying(t *testing.T, honest *shop) *liar {
	t.Helper()
	l := &liar{}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		recorded := httptest.NewRecorder()
		honest.handler.ServeHTTP(recorded, r)
		var answer map[string]any
		if err := json.NewDecoder(recorded.Body).Decode(&answer); err != nil {
			t.Error(err)
		}
		if l.lie != nil && recorded.Code == http.StatusOK {
			l.lie(answer)
		}
		w.WriteHeader(recorded.Code)
		_ = json.NewEncoder(w).Encode(answer) // Who has read enough hangs up.
	}))
	server.Listener = tls.NewListener(server.Listener, party.ServerConfig(honest.key))
	server.Start()
	t.Cleanup(server.Close)
	l.url = "https://" + server.Listener.Addr().String()
	return l
}

// TestLyingViews has a seller show a signed contract as what it is not: the buyer believes nothing of it, and stays where it was.
func TestLyingViews(t *testing.T) {
	honest, buyer, thief := open(t, nil), newParty(t), newParty(t)
	l := lying(t, honest)
	c := honest.clientAt(t, l.url, buyer)
	view, request := buy(t, c, buyer, "a")
	other, _ := buy(t, c, buyer, "b")
	purchase, err := contract.NewPurchase(request.Terms, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	reserved := purchase
	purchase.Signature = request.Signature
	if purchase, err = purchase.Observe(view, time.Now()); err != nil || purchase.State() != contract.Signed {
		t.Fatalf("what is true is not believed: %s, %v", purchase.State(), err)
	}
	renewed := request.Terms
	renewed.Revision, renewed.EndsAt = 2, renewed.EndsAt.Add(time.Hour)
	renewal, err := negotiation.SignTerms(buyer.key, renewed)
	if err != nil {
		t.Fatal(err)
	}
	countersigned := func(by somebody, signature string) string {
		text, err := by.key.Sign(negotiationv1.CountersignatureType, negotiationv1.Countersignature{Terms: signature})
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	signedBy := func(by somebody) func(map[string]any) {
		return func(v map[string]any) { v["countersignature"] = countersigned(by, request.Signature) }
	}
	unsigned := func(state string) func(map[string]any) {
		return func(v map[string]any) {
			v["state"] = state
			delete(v, "countersignature")
			delete(v, "signature")
		}
	}
	dear := map[string]string{"amount": "9", "currency": "EUR", "period": "PT1H"}
	terms := func(v map[string]any) map[string]any {
		terms, is := v["terms"].(map[string]any)
		if !is {
			t.Fatalf("an answer without terms: %v", v)
		}
		return terms
	}
	// What the seller has signed for other terms is no signature of these, whoever has signed them.
	for name, pair := range map[string][2]string{
		"old countersignature": {renewal, view.Countersignature}, "another contract's": {view.Signature, other.Countersignature},
		"another seller's": {view.Signature, countersigned(thief, view.Signature)},
	} {
		if terms, err := negotiation.VerifySigned(pair[0], pair[1], buyer.keys, honest.keys); !errors.Is(err, party.ErrSignature) {
			t.Errorf("%s: %+v, %v", name, terms, err)
		}
	}
	for name, tc := range map[string]struct {
		reason string
		from   contract.Purchase
		lie    func(map[string]any)
	}{
		"granted before it is signed":  {"nothing was signed", reserved, unsigned("Provisioning")},
		"active before it is signed":   {"nothing was signed", reserved, unsigned("Active")},
		"signed by the seller alone":   {"the buyer has not signed", reserved, func(map[string]any) {}},
		"back to the reservation":      {"both have signed", purchase, unsigned("Reserved")},
		"rejected after it was signed": {"both have signed", purchase, unsigned("Rejected")},
		"another price": {"it is not what was quoted", purchase, func(v map[string]any) {
			terms(v)["price"] = dear
		}},
		"reserved at another price": {"it is not what was quoted", reserved, func(v map[string]any) {
			unsigned("Reserved")(v)
			terms(v)["price"] = dear
		}},
		"reserved for another cluster": {"it is not what was quoted", reserved, func(v map[string]any) {
			unsigned("Reserved")(v)
			terms(v)["cluster"] = map[string]string{"id": "x", "name": "x"}
		}},
		"fewer resources": {"they were signed", purchase, func(v map[string]any) { terms(v)["resources"] = map[string]string{"cpu": "1"} }},
		"another plan":    {"they were signed", purchase, func(v map[string]any) { terms(v)["plan"] = "other" }},
		"reserved of another plan": {"it is not what was quoted", reserved, func(v map[string]any) {
			unsigned("Reserved")(v)
			terms(v)["plan"] = "other"
		}},
		"no quantity": {
			"8GB is none", purchase, func(v map[string]any) { terms(v)["resources"] = map[string]string{"cpu": "8GB"} },
		},
		"countersigned by another":   {"it is not the seller", purchase, signedBy(thief)},
		"countersigned by the buyer": {"it is not the seller", purchase, signedBy(buyer)},
		"an old countersignature": {
			"it is of the terms before", purchase, func(v map[string]any) { v["signature"], terms(v)["revision"] = renewal, 2 },
		},
		"another contract's signatures": {"they are of contract b", purchase, func(v map[string]any) {
			v["signature"], v["countersignature"] = other.Signature, other.Countersignature
		}},
		"another contract": {"contract a was asked for", purchase, func(v map[string]any) { v["id"] = "b" }},
		"another contract under its name": {"the buyer has signed b, not a", purchase, func(v map[string]any) {
			v["signature"], v["countersignature"] = other.Signature, other.Countersignature
			terms(v)["id"] = "b"
		}},
		"no signature, only terms": {"a countersignature is of a signature", purchase, func(v map[string]any) { v["signature"] = "" }},
		"a state of its own":       {"there is no such state", purchase, func(v map[string]any) { v["state"] = "Free" }},
		"a field of its own":       {"fields are closed", purchase, func(v map[string]any) { v["token"] = "x" }},
		"a large answer":           {"answers are bounded", purchase, func(v map[string]any) { v["reason"] = strings.Repeat("x", 1<<20) }},
	} {
		t.Run(name, func(t *testing.T) {
			l.lie = func(v map[string]any) {
				v["version"] = view.Version + 1
				tc.lie(v)
			}
			seen, err := c.Get(t.Context(), "a", 0, 0)
			after := tc.from
			if err == nil {
				after, err = tc.from.Observe(seen, time.Now())
			}
			if !errors.Is(err, contract.ErrTerms) && !errors.Is(err, party.ErrSignature) && !errors.Is(err, party.ErrDocument) {
				t.Errorf("%s: %s is believed: %v", tc.reason, seen.State, err)
			}
			if after.State() != tc.from.State() || after.Next(time.Now()).Deed == contract.Peer {
				t.Errorf("%s: the buyer is in state %s", tc.reason, after.State())
			}
		})
	}
}

// TestStolenReservation holds that who continues a contract by another key finds none, and what its buyer has reserved stays: a thief that
// has seen all of it gets neither credentials nor the reservation.
func TestStolenReservation(t *testing.T) {
	s, buyer, thief := open(t, nil), newParty(t), newParty(t)
	c := s.client(t, buyer)
	quoted, err := c.Quote(t.Context(), ask("a"))
	if err != nil {
		t.Fatal(err)
	}
	request := contract.Request{Event: contract.Reserve, Key: quoted.Terms.Key(), Terms: quoted.Terms}
	if _, err := c.Do(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	if request.Signature, err = negotiation.SignTerms(buyer.key, quoted.Terms); err != nil {
		t.Fatal(err)
	}
	by := s.client(t, thief)
	for _, event := range []contract.Event{
		contract.Reserve, contract.Sign, contract.Peered, contract.Resize, contract.Renew, contract.Confirm, contract.Terminate, contract.Drained,
	} {
		request.Event = event
		if view, err := by.Do(t.Context(), request); err == nil {
			t.Errorf("%s by another key: %+v", event, view)
		}
	}
	if _, err := by.Credentials(t.Context(), "a"); !errors.Is(err, contract.ErrUnknown) {
		t.Errorf("credentials for another key: %v", err)
	}
	count, err := s.Count(t.Context(), string(thief.key.ID()))
	if err != nil || count.Kept != 0 || len(s.Ledger().Holds) != 1 {
		t.Errorf("the thief has %+v, %v, and %d are held", count, err, len(s.Ledger().Holds))
	}
	request.Event = contract.Sign
	if view, err := c.Do(t.Context(), request); err != nil || view.State != contract.Signed {
		t.Errorf("the buyer signs: %s, %v", view.State, err)
	}
}

// TestSlow has parties send requests slower than anybody needs, and strangers half a handshake: their connections end, others are answered
// meanwhile, and nothing is held.
func TestSlow(t *testing.T) {
	s, buyer := open(t, nil), newParty(t)
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- httpserver.Server{
			Name: "negotiations", Handler: s.handler, TLS: party.TLS{Current: func() party.Key { return s.key }}.Server(), Timeout: time.Second,
		}.Run(ctx, httpserver.Bound(listener, httpserver.Bounds{All: 16, Each: 16}))
	}()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	address := listener.Addr().String()
	put := "PUT " + negotiationv1.Base + "/contracts/a HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
	ended := make(chan error, 3)
	for _, slow := range []struct {
		what  string
		plain bool
		text  string
	}{{"half a handshake", true, "\x16\x03"}, {"half a header", false, put}, {"half a body", false, put + "Content-Length: 20000\r\n\r\n{"}} {
		go func() {
			connection, err := net.DialTimeout("tcp", address, 10*time.Second)
			if err != nil {
				ended <- err
				return
			}
			if !slow.plain {
				connection = tls.Client(connection, partytest.Client(buyer.key, s.key.Fingerprint()))
			}
			defer connection.Close()
			if _, err := io.WriteString(connection, slow.text); err != nil {
				ended <- fmt.Errorf("%s: %w", slow.what, err)
				return
			}
			_ = connection.SetReadDeadline(time.Now().Add(20 * time.Second))
			_, err = io.Copy(io.Discard, connection)
			if late := net.Error(nil); errors.As(err, &late) && late.Timeout() {
				ended <- fmt.Errorf("%s: the connection is still there: %w", slow.what, err)
				return
			}
			ended <- nil
		}()
	}
	honest := newParty(t)
	buy(t, s.clientAt(t, "https://"+address, honest), honest, "a")
	for range 3 {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	if len(s.Ledger().Holds) != 1 {
		t.Errorf("%d are held", len(s.Ledger().Holds))
	}
}
