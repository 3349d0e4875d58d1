// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package trade

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/contract"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/offer"
	"github.com/capacitorset/liqo-broker/pkg/trade/negotiation"
	"github.com/capacitorset/liqo-broker/pkg/trade/negotiation/negotiationv1"
	"github.com/capacitorset/liqo-broker/pkg/trade/party"
	"github.com/capacitorset/liqo-broker/pkg/trade/registry/registrytest"
	"github.com/capacitorset/liqo-broker/pkg/trade/registry/registryv1"
	"github.com/capacitorset/liqo-broker/test/federation"
	"github.com/capacitorset/liqo-broker/test/walk"
)

// tooLarge is a body that nobody needs.
var tooLarge = `{"offer":"` + strings.Repeat("x", 10<<20) + `"}`

// noQuantities are texts that some programs take for quantities.
var noQuantities = []string{"8GB", "-1", "1e1.5"}

// TestHostile has a stranger try what nobody may: at the registry, which has let it in, at a seller that another cluster has bought from,
// and as a registry itself, which lies. It is refused with a reason, and nobody else notices: the contract stays as it was, and offers pass
// on as before.
func TestHostile(t *testing.T) {
	clean(t)
	publish(t, map[*federation.Cluster]string{fed.ProviderA: "0.20", fed.ProviderB: "0.10"})
	victim := order(t, fed.Consumer, fed.ProviderB, "compute", "small")
	s := newStranger(t, newParty(t))
	registryAPI := s.at(t, registry.URL, registry.Fingerprint)
	owner := seller(t, fed.ProviderA)
	path := func(who, id string) string { return registryv1.Base + "/parties/" + who + "/offers/" + id }

	// Without a token it waits for an approval, and is nobody for sellers.
	registryAPI.get(t, http.MethodPut, registryv1.Base+"/parties/"+s.ID, s.Enrolment(t, 1, ""), nil)
	registryAPI.refused(t, []attempt{
		{
			"not let in: publish", http.MethodPut, path(s.ID, "mine"), registryv1.Publication{Offer: s.Offer(t, "mine", 1)}, http.StatusForbidden,
			"waits for the approval",
		},
		{"not let in: read", http.MethodGet, registryv1.Base + "/offers", nil, http.StatusForbidden, "waits for the approval"},
	})
	token, err := registry.Token(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	registryAPI.get(t, http.MethodPut, registryv1.Base+"/parties/"+s.ID, s.Enrolment(t, 2, token), nil)
	var before registryv1.Offer
	registryAPI.get(t, http.MethodGet, path(string(owner), "compute"), nil, &before)

	t.Run("Registry", func(t *testing.T) {
		ownersDocument := s.Document(t, "compute", 1<<40)
		ownersDocument.Party = string(owner)
		forged := s.Sign(t, offer.Type, ownersDocument)
		attempts := []attempt{
			{
				"another's offer overwritten", http.MethodPut, path(string(owner), "compute"), registryv1.Publication{Offer: forged},
				http.StatusForbidden, "may not write what belongs to",
			},
			{
				"another's offer replayed", http.MethodPut, path(string(owner), "compute"), registryv1.Publication{Offer: before.JWS},
				http.StatusForbidden, "may not write what belongs to",
			},
			{
				"another's offer withdrawn", http.MethodDelete, path(string(owner), "compute"), nil, http.StatusForbidden,
				"may not write what belongs to",
			},
			{
				"in another's name", http.MethodPut, path(s.ID, "compute"), registryv1.Publication{Offer: forged}, http.StatusForbidden,
				"body.offer.party",
			},
			{
				"another's signature", http.MethodPut, path(s.ID, "compute"), registryv1.Publication{Offer: before.JWS}, http.StatusUnprocessableEntity,
				"body.offer",
			},
			{"another's keys", http.MethodPut, registryv1.Base + "/parties/" + string(owner), s.Enrolment(t, 3, ""), http.StatusForbidden, ""},
			{"10 MB", http.MethodPut, path(s.ID, "large"), tooLarge, http.StatusRequestEntityTooLarge, ""},
		}
		for _, text := range noQuantities {
			attempts = append(attempts, attempt{
				"quantity " + text, http.MethodPut, path(s.ID, "odd"), registryv1.Publication{Offer: s.Sign(t, offer.Type, withCPU(t, s, text))},
				http.StatusUnprocessableEntity, text,
			})
		}
		registryAPI.refused(t, attempts)

		// As many offers as it likes: it has some, and then no more.
		published, status, said := 0, 0, ""
		for ; published < 10_000; published++ {
			id := fmt.Sprintf("many-%d", published)
			for {
				status, said, err = registryAPI.call(t.Context(), http.MethodPut, path(s.ID, id), registryv1.Publication{Offer: s.Offer(t, id, 1)})
				if err != nil {
					t.Fatal(err)
				}
				if status != http.StatusTooManyRequests {
					break
				}
				time.Sleep(100 * time.Millisecond)
			}
			if status != http.StatusOK {
				break
			}
		}
		t.Logf("the registry takes %d offers of one party, and refuses more with %d", published, status)
		if published == 0 || published > 1000 || status < 400 || status >= 500 || !strings.Contains(said, "offers") {
			t.Errorf("%d offers were published, and the next one is answered with %d %.512s", published, status, said)
		}
		var after registryv1.Offer
		registryAPI.get(t, http.MethodGet, path(string(owner), "compute"), nil, &after)
		if after.JWS != before.JWS {
			t.Errorf("the offer of %s has changed", fed.ProviderA.Name)
		}
		// Those of others pass as before.
		if err := fed.Publish(t.Context(), map[*federation.Cluster]string{fed.ProviderA: "0.30"}); err != nil {
			t.Fatal(err)
		}
		eventually(t, time.Minute, func(context.Context) error {
			registryAPI.get(t, http.MethodGet, path(string(owner), "compute"), nil, &after)
			if after.Revision <= before.Revision {
				return fmt.Errorf("the registry has revision %d of the offer of %s", after.Revision, fed.ProviderA.Name)
			}
			return nil
		})
	})

	t.Run("Seller", func(t *testing.T) {
		shown, keys := keysOf(t, registryAPI, fed.ProviderB)
		fingerprint := party.Fingerprint(keys.Current())
		if err := fed.Consumer.Get(t.Context(), client.ObjectKeyFromObject(victim), victim); err != nil {
			t.Fatal(err)
		}
		id := victim.Status.ContractID
		one := func(id string) string { return negotiationv1.Base + "/contracts/" + id }
		var record struct {
			Purchase contract.Purchase `json:"purchase"`
		}
		if err := json.Unmarshal([]byte(victim.Status.Record), &record); err != nil || record.Purchase.Signature == "" {
			t.Fatalf("the purchase has no signature: %v", err)
		}
		stolen := negotiationv1.Signature{Signature: record.Purchase.Signature}
		quote := func(cpu string) negotiationv1.QuoteRequest {
			now := time.Now().UTC().Truncate(time.Second)
			return negotiationv1.QuoteRequest{
				ID: "strange", Cluster: negotiationv1.Cluster{ID: "strange", Name: "strange"}, Offer: "compute", Plan: "elastic",
				Resources: map[string]string{"cpu": cpu}, StartsAt: now, EndsAt: now.Add(time.Hour),
			}
		}
		nobody := &stranger{Party: registrytest.NewParty(t, "nobody"), machine: s.machine}
		nobody.at(t, shown.Endpoint, fingerprint).refused(t, []attempt{
			{"a key that nobody has", http.MethodPost, negotiationv1.Base + "/quotes", quote("250m"), http.StatusForbidden, ""},
		})
		sellerAPI := s.at(t, shown.Endpoint, fingerprint)
		attempts := []attempt{
			{"another's contract", http.MethodGet, one(id), nil, http.StatusNotFound, ""},
			{"another's credentials", http.MethodGet, one(id) + "/credentials", nil, http.StatusNotFound, ""},
			{
				"another's signature, replayed", http.MethodPut, one(id) + "/signature", stolen, http.StatusUnprocessableEntity,
				"not one of party " + s.ID,
			},
			{"another's contract has peered", http.MethodPut, one(id) + "/provisioned", nil, http.StatusNotFound, ""},
			{"another's contract is drained", http.MethodPut, one(id) + "/drained", nil, http.StatusNotFound, ""},
			{"10 MB", http.MethodPost, negotiationv1.Base + "/quotes", tooLarge, http.StatusRequestEntityTooLarge, ""},
		}
		for _, text := range noQuantities {
			attempts = append(attempts, attempt{
				"quantity " + text, http.MethodPost, negotiationv1.Base + "/quotes", quote(text), http.StatusUnprocessableEntity, "resources",
			})
		}
		sellerAPI.refused(t, attempts)

		// It reserves as others do, and then says that it is somebody else, or that something else was agreed.
		var quoted negotiationv1.Quote
		sellerAPI.get(t, http.MethodPost, negotiationv1.Base+"/quotes", quote("250m"), &quoted)
		another, cheaper, odd := quoted.Terms, quoted.Terms, quoted.Terms
		another.Buyer = string(seller(t, fed.Consumer))
		cheaper.Price.Amount = "0"
		odd.Resources = map[string]string{"cpu": "8GB", "memory": "1Gi", "pods": "10"}
		sellerAPI.refused(t, []attempt{
			{"as another buyer", http.MethodPut, one("strange"), negotiationv1.Proposal{Terms: another}, http.StatusForbidden, "cannot buy for"},
			{"at another price", http.MethodPut, one("strange"), negotiationv1.Proposal{Terms: cheaper}, http.StatusUnprocessableEntity, "price"},
			{"of another size", http.MethodPut, one("strange"), negotiationv1.Proposal{Terms: odd}, http.StatusUnprocessableEntity, "cpu"},
		})
		// It orders for the cluster of another party: no quote and no reservation promises that.
		var denied negotiationv1.Quote
		others := quote("250m")
		others.ID, others.Cluster = "others", negotiationv1.Cluster{ID: string(fed.Consumer.ID), Name: fed.Consumer.Name}
		const notIts = "is not one that the buyer announces"
		sellerAPI.get(t, http.MethodPost, negotiationv1.Base+"/quotes", others, &denied)
		if denied.Verdict != string(contract.Deny) || !strings.Contains(denied.Reason, notIts) {
			t.Errorf("a quote for another party's cluster: %s, %q", denied.Verdict, denied.Reason)
		}
		sellerAPI.reserve(t, one("others"), others)
		var refused negotiationv1.Contract
		sellerAPI.get(t, http.MethodGet, one("others"), nil, &refused)
		if refused.State != string(contract.Rejected) || !strings.Contains(refused.Reason, notIts) {
			t.Errorf("a contract for another party's cluster: %s, %q", refused.State, refused.Reason)
		}

		sellerAPI.reserve(t, one("strange"), quote("250m"))
		forged, err := negotiation.SignTerms(nobody.Key, record.Purchase.Terms)
		if err != nil {
			t.Fatal(err)
		}
		sellerAPI.refused(t, []attempt{
			{
				"signed by another contract's buyer", http.MethodPut, one("strange") + "/signature", stolen, http.StatusUnprocessableEntity,
				"signature",
			},
			{
				"signed by nobody", http.MethodPut, one("strange") + "/signature", negotiationv1.Signature{Signature: forged},
				http.StatusUnprocessableEntity, "signature",
			},
			{"credentials before both have signed", http.MethodGet, one("strange") + "/credentials", nil, http.StatusConflict, ""},
		})
		sellerAPI.get(t, http.MethodPut, one("strange")+"/termination", negotiationv1.Termination{Reason: "enough"}, nil)
		// What it ends by the name of another's contract is none: the end of this journey looks at that one.
		if status, said, err := sellerAPI.call(t.Context(), http.MethodPut, one(id)+"/termination",
			negotiationv1.Termination{Reason: "mine"}); err != nil || status >= 500 {
			t.Errorf("end another's contract: %d %s, %v", status, said, err)
		}
	})

	t.Run("LyingRegistry", func(t *testing.T) {
		honest, _ := keysOf(t, registryAPI, fed.ProviderA)
		lied := honest
		said := registryv1.Announcement{
			Party: honest.ID, Revision: honest.Revision + 1, Name: honest.Name, Endpoint: "https://" + s.address + ":8446",
			IssuedAt: time.Now().UTC().Truncate(time.Second),
		}
		lied.Announcement = s.Sign(t, registryv1.TypeAnnouncement, said)
		cheap := s.Document(t, "compute", 1<<40)
		cheap.Party = honest.ID
		url := s.lie(t,
			registryv1.Upsert{Party: &honest},
			registryv1.Upsert{Party: &lied},
			registryv1.Upsert{Offer: &registryv1.Offer{Party: honest.ID, ID: "compute", Revision: 1 << 40, JWS: s.Sign(t, offer.Type, cheap)}},
			registryv1.Upsert{Offer: &registryv1.Offer{Party: honest.ID, ID: "cheap", Revision: before.Revision, JWS: before.JWS}},
			registryv1.Upsert{Offer: &before}, // It was true, and has been replaced.
		)
		liar := &connectorv1alpha1.Registry{
			ObjectMeta: metav1.ObjectMeta{Name: "liar"}, Spec: connectorv1alpha1.RegistrySpec{URL: url, Fingerprint: s.Key.Fingerprint()},
		}
		if err := fed.Consumer.Create(t.Context(), liar); err != nil {
			t.Fatal(err)
		}
		walk.AtEnd(t, func(ctx context.Context) error { return fed.Consumer.Delete(ctx, liar) })
		eventually(t, time.Minute, func(ctx context.Context) error {
			return fed.Consumer.Is(ctx, &connectorv1alpha1.Registry{}, "liar", connectorv1alpha1.ConditionFollowing,
				connectorv1alpha1.ReasonMisbehaving)
		})
		// Nothing is as cheap as the liar says, nor as it was: what is bought costs what its seller says today, and is bought from it.
		want := func(name, price, reason string) {
			t.Helper()
			request := &connectorv1alpha1.CapacityRequest{
				ObjectMeta: metav1.ObjectMeta{Name: name},
				Spec: connectorv1alpha1.CapacityRequestSpec{
					Resources: federation.Sold("500m"), Duration: metav1.Duration{Duration: time.Hour}, Sellers: []connectorv1alpha1.PartyID{owner},
					MaxPrice: &connectorv1alpha1.Price{Amount: connectorv1alpha1.Amount(price), Currency: "EUR", Period: "PT1H"},
				},
			}
			if err := fed.Consumer.Create(t.Context(), request); err != nil {
				t.Fatal(err)
			}
			eventually(t, 2*time.Minute, func(ctx context.Context) error {
				return fed.Consumer.Is(ctx, &connectorv1alpha1.CapacityRequest{}, name, connectorv1alpha1.ConditionReady, reason)
			})
		}
		want("cheap", "0.25", connectorv1alpha1.ReasonNoOffer)
		want("honest", "0.30", connectorv1alpha1.ReasonActive)
	})

	// The operator of the registry has had enough of it: it is out, with all that it offered.
	if err := registry.Revoke(t.Context(), s.ID); err != nil {
		t.Fatal(err)
	}
	eventually(t, time.Minute, func(ctx context.Context) error { return fed.Published(ctx, fed.ProviderA, fed.ProviderB) })
	registryAPI.refused(t, []attempt{{"revoked: read", http.MethodGet, registryv1.Base + "/offers", nil, http.StatusForbidden, "is revoked"}})

	// The contract that was attacked is as it was, and only what the consumer has bought is held.
	if err := fed.Consumer.Is(t.Context(), &connectorv1alpha1.Purchase{}, victim.Name, connectorv1alpha1.ConditionReady,
		connectorv1alpha1.ReasonActive); err != nil {
		t.Error(err)
	}
	if err := fed.Consumer.HasBought(t.Context(), fed.ProviderB, federation.Sold("500m")); err != nil {
		t.Error(err)
	}
	books := &connectorv1alpha1.SalesLedger{}
	if err := fed.ProviderB.Get(t.Context(), client.ObjectKey{Name: connectorv1alpha1.LedgerName}, books); err != nil ||
		len(books.Holds) != 1 {
		t.Errorf("%s holds %+v, %v", fed.ProviderB.Name, books.Holds, err)
	}
	clean(t)
}

// withCPU returns an offer of a stranger as JSON, with a text for the cores of its plan.
func withCPU(t *testing.T, s *stranger, text string) json.RawMessage {
	t.Helper()
	document, err := json.Marshal(s.Document(t, "odd", 1))
	if err != nil {
		t.Fatal(err)
	}
	odd := strings.Replace(string(document), `"cpu":"4"`, fmt.Sprintf(`"cpu":%q`, text), 1)
	if odd == string(document) {
		t.Fatalf("the document has no cores: %s", document)
	}
	return json.RawMessage(odd)
}
