// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package trade

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/contract"
	"github.com/capacitorset/liqo-broker/pkg/trade/negotiation/negotiationv1"
	"github.com/capacitorset/liqo-broker/pkg/trade/party"
	"github.com/capacitorset/liqo-broker/pkg/trade/registry/registrytest"
	"github.com/capacitorset/liqo-broker/pkg/trade/registry/registryv1"
	"github.com/capacitorset/liqo-broker/test/federation"
	"github.com/capacitorset/liqo-broker/test/hostile"
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

// succeed makes requests by a key while it is good.
func (c caller) succeed(t *testing.T, thefts []hostile.Theft) {
	t.Helper()
	for _, theft := range thefts {
		status, err := c.status(t.Context(), theft.Method, theft.Path, theft.Body)
		done := theft.Good == http.StatusOK && status/100 == http.StatusOK/100
		if err != nil || status != theft.Good && !done {
			t.Errorf("%s, with the key: %d, want %d: %v", theft.Name, status, theft.Good, err)
		}
	}
}

// fail makes requests by a key that was replaced.
func (c caller) fail(t *testing.T, thefts []hostile.Theft) {
	t.Helper()
	attempts := make([]attempt, 0, len(thefts))
	for _, theft := range thefts {
		attempts = append(attempts, attempt{theft.Name, theft.Method, theft.Path, theft.Body, theft.Replaced, theft.Got})
	}
	c.refused(t, attempts)
}

// TestThief has somebody with the keys of a buyer and of its seller. Until their owners replace them, the thief passes for them: at the
// registry and the seller it succeeds with all that it tries, and announces and offers with the highest revisions. What would ruin the
// contract it tries so that only the contract is why not, or on one of its own. With the replaced keys, and with successors of its own
// making, it gets refusals of the registry and of the seller. The contract is as it was, and what the owners announce and offer counts.
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
	const highest = 1<<53 - 1
	thief := func(s *stranger) (*stranger, hostile.Thief) {
		own := &stranger{s.Rotate(t), s.machine, s.address}
		return own, hostile.Thief{
			Party: s.ID, Contract: bought.Status.ContractID,
			Announcement: s.Enrolment(t, math.MaxInt64, ""), Successor: own.Enrolment(t, math.MaxInt64, ""),
			Offer: registryv1.Publication{Offer: s.Offer(t, "compute", highest)},
			Keys:  negotiationv1.Keys{Keys: s.Keys.Chain()}, SuccessorKeys: negotiationv1.Keys{Keys: own.Keys.Chain()},
		}
	}
	buyersNext, buyers := thief(buyer)
	sellersNext, sellers := thief(seller)
	atRegistry(buyer).succeed(t, buyers.AtRegistry())
	atRegistry(seller).get(t, http.MethodPut, offerPath(seller), sellers.Offer, nil)
	var before negotiationv1.Contract
	atSeller := buyer.at(t, shown.Endpoint, seller.Key.Fingerprint())
	atSeller.get(t, http.MethodGet, one, nil, &before)
	if before.Terms == nil || before.State != string(contract.Active) {
		t.Fatalf("the contract is %+v", before)
	}
	// Terms of no offer of the seller: of a good key it says so, and does not change the contract.
	buyers.Larger = *before.Terms
	buyers.Larger.Revision++
	buyers.Larger.OfferDigest = "sha256:" + strings.Repeat("0", 2*sha256.Size)
	buyers.Larger.Resources = map[string]string{"cpu": "1", "memory": "1Gi", "pods": "10"}
	now := time.Now().UTC().Truncate(time.Second)
	buyers.New = "stolen-" + strconv.FormatInt(now.Unix(), 10)
	buyers.Quote = negotiationv1.QuoteRequest{
		ID: buyers.New, Cluster: before.Terms.Cluster, Offer: "compute", Plan: "elastic", Resources: map[string]string{"cpu": "250m"},
		StartsAt: now, EndsAt: now.Add(time.Hour),
	}
	buyers.Terms = atSeller.reserve(t, contracts+buyers.New, buyers.Quote)
	buyers.Ends = buyers.New
	atSeller.succeed(t, buyers.AtSeller())
	buyers.Ends = buyers.Contract

	// Their owners replace them, which the seller learns of the buyer.
	var rotated errgroup.Group
	for _, owner := range []*federation.Cluster{fed.Consumer, fed.ProviderB} {
		rotated.Go(func() error { return fed.RotateKey(t.Context(), owner) })
	}
	if err := rotated.Wait(); err != nil {
		t.Fatal(err)
	}
	sellersKeys, err := fed.ProviderB.Identity(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	buyersKeys, err := fed.Consumer.Identity(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	l := life{seller: fed.ProviderB, purchase: bought}
	eventually(t, time.Minute, func(ctx context.Context) error {
		sale, err := l.sale(ctx)
		if err != nil {
			return err
		}
		if !slices.Equal(sale.Status.Buyer.Keys, buyersKeys.Keys().Chain()) {
			return fmt.Errorf("%s knows %d keys of %s", fed.ProviderB.Name, len(sale.Status.Buyer.Keys), fed.Consumer.Name)
		}
		return fed.Published(ctx, fed.ProviderA, fed.ProviderB)
	})

	for _, each := range []struct {
		with, next *stranger
		tries      hostile.Thief
	}{{buyer, buyersNext, buyers}, {seller, sellersNext, sellers}} {
		t.Run("Registry/"+each.with.Name, func(t *testing.T) {
			atRegistry(each.with).fail(t, each.tries.AtRegistry())
			bySuccessor, _ := each.tries.BySuccessor()
			atRegistry(each.next).fail(t, bySuccessor)
		})
	}

	t.Run("Seller", func(t *testing.T) {
		fingerprint := party.Fingerprint(sellersKeys.Keys().Current())
		buyer.at(t, shown.Endpoint, fingerprint).fail(t, buyers.AtSeller())
		_, bySuccessor := buyers.BySuccessor()
		buyersNext.at(t, shown.Endpoint, fingerprint).fail(t, bySuccessor)
	})

	// What the owner announces and offers now counts: the registry shows it signed with the new key, which the thief does not have.
	at, current := atRegistry(stolen(t, fed.Consumer)), party.Fingerprint(sellersKeys.Keys().Current())
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
