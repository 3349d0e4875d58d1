// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package trade

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/trade/core/contract"
	"github.com/capacitorset/liqo-broker/pkg/trade/negotiation/negotiationv1"
	"github.com/capacitorset/liqo-broker/pkg/trade/party"
	"github.com/capacitorset/liqo-broker/pkg/trade/registry/registryv1"
	"github.com/capacitorset/liqo-broker/test/federation"
)

const (
	// goalSigned is how long all but one in a hundred negotiations may take until both have signed.
	goalSigned = 500 * time.Millisecond
	// byParty is how many contracts a party signs one after the other: as many as a seller lets it begin at once. byCluster is how many a
	// cluster signs, which peers for each.
	byParty, byCluster = 30, 4
)

// TestNegotiationSpeed negotiates with a seller again and again, until both have signed: a party that does nothing else, and the connector
// of a cluster, from the object that somebody makes on. The machine runs four clusters beside that, one of which peers already while the
// next contract is signed: only the median of the party is held to the goal.
func TestNegotiationSpeed(t *testing.T) {
	clean(t)
	publish(t, map[*federation.Cluster]string{fed.ProviderB: "0.10"})

	t.Run("Party", func(t *testing.T) {
		s := newStranger(t, newParty(t))
		at := s.reached(t, "quick")
		token, err := registry.Token(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		registryAPI := s.at(t, registry.URL, registry.Fingerprint)
		registryAPI.get(t, http.MethodPut, registryv1.Base+"/parties/"+s.ID, s.Enrolment(t, 1, token), nil)
		shown, keys := keysOf(t, registryAPI, fed.ProviderB)
		sellerAPI := s.at(t, shown.Endpoint, party.Fingerprint(keys.Current()))
		ask := func(id string) negotiationv1.QuoteRequest {
			now := time.Now().UTC().Truncate(time.Second)
			return negotiationv1.QuoteRequest{
				ID: id, Cluster: negotiationv1.Cluster{ID: "quick", Name: "quick"}, Offer: "compute", Plan: "small", StartsAt: now,
				EndsAt: now.Add(time.Hour),
			}
		}
		eventually(t, time.Minute, func(ctx context.Context) error { // The seller has heard of the party.
			status, said, err := sellerAPI.call(ctx, http.MethodPost, negotiationv1.Base+"/quotes", ask("first"))
			if err == nil && status != http.StatusOK {
				err = fmt.Errorf("%d %.512s", status, said)
			}
			return err
		})
		var took []time.Duration
		for n := range byParty {
			path := fmt.Sprintf("%s/contracts/quick-%d", negotiationv1.Base, n)
			began := time.Now()
			terms := sellerAPI.reserve(t, path, ask(fmt.Sprint("quick-", n)))
			signature, err := s.Key.Sign(negotiationv1.TermsType, terms)
			if err != nil {
				t.Fatal(err)
			}
			var signed negotiationv1.Contract
			sellerAPI.get(t, http.MethodPut, path+"/signature", negotiationv1.Signature{Signature: signature, Endpoints: at}, &signed)
			took = append(took, time.Since(began))
			if signed.Countersignature == "" {
				t.Fatalf("the seller has not signed: %+v", signed)
			}
			sellerAPI.get(t, http.MethodPut, path+"/termination", negotiationv1.Termination{Reason: "that was all"}, nil)
			sellerAPI.get(t, http.MethodPut, path+"/drained", nil, nil)
		}
		if median := printed(t, "a party's contracts", took); median > goalSigned {
			t.Errorf("%s (median) until both have signed, want at most %s", median, goalSigned)
		}
		if err := registry.Revoke(t.Context(), s.ID); err != nil {
			t.Fatal(err)
		}
	})

	t.Run("Cluster", func(t *testing.T) {
		var took []time.Duration
		for n := range byCluster {
			p := elastic(t, fmt.Sprint("quick-", n), fed.ProviderB)
			began := time.Now()
			if err := fed.Consumer.Create(t.Context(), p); err != nil {
				t.Fatal(err)
			}
			for !signed(contract.State(p.Status.State)) {
				if time.Since(began) > time.Minute {
					t.Fatalf("it is not signed: %+v", p.Status)
				}
				time.Sleep(10 * time.Millisecond)
				if err := fed.Consumer.Get(t.Context(), client.ObjectKeyFromObject(p), p); err != nil {
					t.Fatal(err)
				}
			}
			took = append(took, time.Since(began))
		}
		printed(t, "a cluster's contracts", took)
	})
	clean(t)
}

// signed reports whether both have signed a contract that is in a state.
func signed(s contract.State) bool {
	return slices.Contains([]contract.State{contract.Signed, contract.Provisioning, contract.Active}, s)
}

// printed prints how long contracts took until both had signed, and returns the median.
func printed(t *testing.T, what string, took []time.Duration) time.Duration {
	t.Helper()
	slices.Sort(took)
	median, most := took[len(took)/2], took[len(took)-1]
	t.Logf("%s: %d were signed by both, each in %s (median), %s at most", what, len(took), median.Round(time.Millisecond),
		most.Round(time.Millisecond))
	return median
}
