// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package negotiation_test

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/capacitorset/liqo-broker/pkg/trade/core/contract"
	"github.com/capacitorset/liqo-broker/pkg/trade/negotiation"
	"github.com/capacitorset/liqo-broker/pkg/trade/negotiation/negotiationv1"
	"github.com/capacitorset/liqo-broker/pkg/trade/party"
)

// TestLyingSeller has a seller change what it would sell, in each way in which a quote can differ from its signed offer and from what was
// asked for, and holds that the buyer refuses it.
func TestLyingSeller(t *testing.T) {
	honest := open(t, nil)
	buyer := newParty(t)
	var lie func(*negotiationv1.Quote)
	liar := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := httptest.NewRecorder()
		honest.handler.ServeHTTP(answer, r)
		var quote negotiationv1.Quote
		if err := json.NewDecoder(answer.Body).Decode(&quote); err != nil {
			t.Error(err)
		}
		if lie != nil {
			lie(&quote)
		}
		var text bytes.Buffer
		if err := json.NewEncoder(&text).Encode(quote); err != nil {
			t.Error(err)
		}
		w.WriteHeader(answer.Code)
		_, _ = io.Copy(w, &text)
	}))
	liar.Listener = tls.NewListener(liar.Listener, party.ServerConfig(honest.key))
	liar.Start()
	t.Cleanup(liar.Close)
	c, err := negotiation.NewClient(negotiation.ClientConfig{
		Endpoint: "https://" + liar.Listener.Addr().String(), Seller: honest.keys, Buyer: buyer.keys, Key: func() party.Key { return buyer.key },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	if _, err := c.Quote(t.Context(), ask("honest")); err != nil {
		t.Fatalf("who does not lie is not believed: %v", err)
	}
	for name, change := range map[string]func(*negotiationv1.Quote){
		"price":       func(q *negotiationv1.Quote) { q.Terms.Price.Amount = "0.001" },
		"currency":    func(q *negotiationv1.Quote) { q.Terms.Price.Currency = "USD" },
		"digest":      func(q *negotiationv1.Quote) { q.Terms.OfferDigest = "sha256:" + string(bytes.Repeat([]byte("0"), 64)) },
		"revision":    func(q *negotiationv1.Quote) { q.Terms.OfferRevision++ },
		"cluster":     func(q *negotiationv1.Quote) { q.Terms.Cluster.ID = "other-id" },
		"contract":    func(q *negotiationv1.Quote) { q.Terms.ID = "other" },
		"buyer":       func(q *negotiationv1.Quote) { q.Terms.Buyer = string(honest.keys.ID()) },
		"plan":        func(q *negotiationv1.Quote) { q.Terms.Plan = "other" },
		"resources":   func(q *negotiationv1.Quote) { q.Terms.Resources["cpu"] = "1" },
		"end":         func(q *negotiationv1.Quote) { q.Terms.EndsAt = q.Terms.EndsAt.AddDate(1, 0, 0) },
		"notice":      func(q *negotiationv1.Quote) { q.Terms.Notice = "P99D" },
		"junk":        func(q *negotiationv1.Quote) { q.Terms.Resources["cpu"] = "1e1.5" },
		"other offer": func(q *negotiationv1.Quote) { q.Offer += "x" },
	} {
		t.Run(name, func(t *testing.T) {
			lie = change
			quoted, err := c.Quote(t.Context(), ask("lie"))
			if !errors.Is(err, contract.ErrTerms) && !errors.Is(err, party.ErrSignature) && !errors.Is(err, party.ErrDocument) {
				t.Errorf("the buyer takes %+v: %v", quoted.Terms, err)
			}
		})
	}
}
