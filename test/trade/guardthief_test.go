// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package trade

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/connector/negotiation/negotiationv1"
	"github.com/capacitorset/liqo-broker/pkg/core/contract"
	"github.com/capacitorset/liqo-broker/pkg/party"
	"github.com/capacitorset/liqo-broker/pkg/registry/registrytest"
	"github.com/capacitorset/liqo-broker/pkg/registry/registryv1"
	"github.com/capacitorset/liqo-broker/test/federation"
)

// stolen returns somebody who has the key that the party of a cluster has now, and no other thing of it.
func stolen(t *testing.T, from *federation.Cluster) *stranger {
	t.Helper()
	is, err := from.Identity(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return newStranger(t, &registrytest.Party{
		ID: string(is.ID()), Name: from.Name, Key: is.Key(), Keys: is.Keys(), Clusters: []registryv1.Cluster{{ID: string(from.ID)}},
	})
}

// TestThief has somebody with the keys of a buyer and of its seller. Until their owners replace them, the thief passes for them, and announces
// and offers with the highest revisions. With the replaced keys, and with successors of its own making, it gets refusals of the registry and of
// the seller. The contract is as it was, and what the owners announce and offer counts.
func TestThief(t *testing.T) {
	bought, answers := contracted(t)
	publish(t, map[*federation.Cluster]string{fed.ProviderA: "0.20", fed.ProviderB: "0.10"})
	buyer, seller := stolen(t, fed.Consumer), stolen(t, fed.ProviderB)
	atRegistry := func(s *stranger) caller { return s.at(t, registry.URL, registry.Fingerprint) }
	partyPath := func(s *stranger) string { return registryv1.Base + "/parties/" + s.ID }
	offerPath := func(s *stranger) string { return partyPath(s) + "/offers/compute" }
	const contracts = negotiationv1.Base + "/contracts/"
	one := contracts + bought.Status.ContractID

	// The keys are good.
	shown, _ := keysOf(t, atRegistry(buyer), fed.ProviderB)
	atRegistry(buyer).get(t, http.MethodPut, partyPath(buyer), buyer.Enrolment(t, math.MaxInt64, ""), nil)
	const highest = 1<<53 - 1
	atRegistry(seller).get(t, http.MethodPut, offerPath(seller), registryv1.Publication{Offer: seller.Offer(t, "compute", highest)}, nil)
	var before negotiationv1.Contract
	buyer.at(t, shown.Endpoint, seller.Key.Fingerprint()).get(t, http.MethodGet, one, nil, &before)
	if before.Terms == nil || before.State != string(contract.Active) {
		t.Fatalf("the contract is %+v", before)
	}

	// Their owners replace them, which the seller learns of the buyer.
	var rotated errgroup.Group
	for _, owner := range []*federation.Cluster{fed.Consumer, fed.ProviderB} {
		rotated.Go(func() error { return fed.RotateKey(t.Context(), owner) })
	}
	if err := rotated.Wait(); err != nil {
		t.Fatal(err)
	}
	sellers, err := fed.ProviderB.Identity(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	buyers, err := fed.Consumer.Identity(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	l := life{seller: fed.ProviderB, purchase: bought}
	eventually(t, time.Minute, func(ctx context.Context) error {
		sale, err := l.sale(ctx)
		if err != nil {
			return err
		}
		if !slices.Equal(sale.Status.Buyer.Keys, buyers.Keys().Chain()) {
			return fmt.Errorf("%s knows %d keys of %s", fed.ProviderB.Name, len(sale.Status.Buyer.Keys), fed.Consumer.Name)
		}
		return fed.Published(ctx, fed.ProviderA, fed.ProviderB)
	})

	for _, thief := range []*stranger{buyer, seller} {
		t.Run("Registry/"+thief.Name, func(t *testing.T) {
			const old = "is not the current one of a party"
			atRegistry(thief).refused(t, []attempt{
				{"read", http.MethodGet, registryv1.Base + "/offers", nil, http.StatusForbidden, old},
				{"watch", http.MethodGet, registryv1.Base + registryv1.PathWatch, nil, http.StatusForbidden, old},
				{"be alive", http.MethodPut, partyPath(thief) + "/lease", nil, http.StatusForbidden, old},
				{"publish", http.MethodPut, offerPath(thief), registryv1.Publication{Offer: thief.Offer(t, "compute", highest)}, http.StatusForbidden, old},
				{"withdraw", http.MethodDelete, offerPath(thief), nil, http.StatusForbidden, old},
				{"announce", http.MethodPut, partyPath(thief), thief.Enrolment(t, math.MaxInt64, ""), http.StatusConflict, "body.keys"},
			})
			own := &stranger{thief.Rotate(t), thief.machine, thief.address}
			atRegistry(own).refused(t, []attempt{
				{"announce another successor", http.MethodPut, partyPath(own), own.Enrolment(t, math.MaxInt64, ""), http.StatusConflict, "body.keys"},
			})
		})
	}

	t.Run("Seller", func(t *testing.T) {
		const old = "-key" // Replaced, or not known any more.
		fingerprint := party.Fingerprint(sellers.Keys().Current())
		larger := *before.Terms
		larger.Revision++
		larger.Resources = map[string]string{"cpu": "1", "memory": "1Gi", "pods": "10"}
		now := time.Now().UTC().Truncate(time.Second)
		quote := negotiationv1.QuoteRequest{ID: "stolen", Cluster: before.Terms.Cluster, Offer: "compute", Plan: "small", StartsAt: now, EndsAt: now.Add(time.Hour)}
		known, tell := buyer.Keys.Chain(), negotiationv1.Base+"/keys"
		buyer.at(t, shown.Endpoint, fingerprint).refused(t, []attempt{
			{"look", http.MethodGet, one, nil, http.StatusForbidden, old},
			{"credentials", http.MethodGet, one + "/credentials", nil, http.StatusForbidden, old},
			{"resize", http.MethodPut, one + "/resize", negotiationv1.Proposal{Terms: larger}, http.StatusForbidden, old},
			{"renew", http.MethodPut, one + "/renewal", negotiationv1.Proposal{Terms: larger}, http.StatusForbidden, old},
			{"end", http.MethodPut, one + "/termination", negotiationv1.Termination{Reason: "stolen"}, http.StatusForbidden, old},
			{"drained", http.MethodPut, one + "/drained", nil, http.StatusForbidden, old},
			{"quote", http.MethodPost, negotiationv1.Base + "/quotes", quote, http.StatusForbidden, old},
			{"reserve", http.MethodPut, contracts + "stolen", negotiationv1.Proposal{Terms: larger}, http.StatusForbidden, old},
			{"tell the keys", http.MethodPut, tell, negotiationv1.Keys{Keys: known}, http.StatusForbidden, negotiationv1.ProblemReplaced},
		})
		own := &stranger{buyer.Rotate(t), buyer.machine, buyer.address}
		own.at(t, shown.Endpoint, fingerprint).refused(t, []attempt{
			{"tell another successor", http.MethodPut, tell, negotiationv1.Keys{Keys: own.Keys.Chain()}, http.StatusForbidden, negotiationv1.ProblemStranger},
			{"look with another successor", http.MethodGet, one, nil, http.StatusForbidden, negotiationv1.ProblemStranger},
		})
	})

	// What the owner announces and offers now counts: the registry shows it signed with the new key, which the thief does not have.
	at, current := atRegistry(stolen(t, fed.Consumer)), party.Fingerprint(sellers.Keys().Current())
	eventually(t, time.Minute, func(ctx context.Context) error {
		var announced registryv1.Party
		var offered registryv1.Offer
		for path, into := range map[string]any{partyPath(seller): &announced, offerPath(seller): &offered} {
			status, said, err := at.call(ctx, http.MethodGet, path, nil)
			if err == nil && status != http.StatusOK {
				err = fmt.Errorf("status %d: %s", status, said)
			}
			if err == nil {
				err = json.Unmarshal([]byte(said), into)
			}
			if err != nil {
				return fmt.Errorf("get %s: %w", path, err)
			}
		}
		for what, jws := range map[string]string{"announcement": announced.Announcement, "offer": offered.JWS} {
			signer, err := party.Signer(jws)
			if err != nil {
				return err
			}
			if signer != current {
				return fmt.Errorf("the %s of %s is signed with %s, and its key is %s", what, fed.ProviderB.Name, signer, current)
			}
		}
		return fed.Published(ctx, fed.ProviderA, fed.ProviderB)
	})

	// Nothing has changed for the owner.
	sale, err := l.sale(t.Context())
	if err != nil || sale.Status.State != string(contract.Active) {
		t.Errorf("the sale is %+v, %v", sale, err)
	}
	err = errors.Join(
		fed.Consumer.Is(t.Context(), bought, bought.Name, connectorv1alpha1.ConditionReady, connectorv1alpha1.ReasonActive),
		fed.Consumer.HasBought(t.Context(), fed.ProviderB, federation.Sold("500m")), answers(t.Context()),
	)
	if err != nil {
		t.Error(err)
	}
}
