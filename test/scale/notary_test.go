// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v09/liqotest"
	"github.com/capacitorset/liqo-broker/pkg/serving/httpserver"
	"github.com/capacitorset/liqo-broker/pkg/serving/servingtest"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/books"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/identity"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/peering/outofband"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/sales"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/contract"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/ledger"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/offer"
	"github.com/capacitorset/liqo-broker/pkg/trade/negotiation"
	"github.com/capacitorset/liqo-broker/pkg/trade/negotiation/negotiationtest"
	"github.com/capacitorset/liqo-broker/pkg/trade/negotiation/negotiationv1"
	"github.com/capacitorset/liqo-broker/pkg/trade/party"
	registryclient "github.com/capacitorset/liqo-broker/pkg/trade/registry/client"
	"github.com/capacitorset/liqo-broker/pkg/trade/registry/registrytest"
	"github.com/capacitorset/liqo-broker/pkg/trade/registry/registryv1"
)

const (
	// contractTime is how long contracts last, and drainTime how long before their end workloads leave: nothing of either comes near.
	contractTime, drainTime = 30 * 24 * time.Hour, 5 * time.Minute
	// soldCores is what each contract gives.
	soldCores = 2
)

// sold is an active contract: what its buyer knows of it, and what the seller's cluster has of it.
type sold struct {
	buyer   *registrytest.Party
	view    contract.View
	cluster cluster.Identity

	sale    *connectorv1alpha1.Sale
	holds   []connectorv1alpha1.SalesHold
	foreign *v09.ForeignCluster
	tunnel  *v09.TunnelEndpoint
}

// notary makes contracts of one seller, one after another, by the connector's own parts and without an API server: through a real one, the
// ledger of so many would be written so often that it takes an hour. It is the seller's offers, and what it knows of parties.
type notary struct {
	*books.Store // That of the contract which is being made.

	tb     testing.TB
	seller identity.Identity
	scheme *runtime.Scheme
	offer  offer.Offer
	url    string
	buyer  *registrytest.Party // Of the same contract.
}

// newNotary returns a notary of a seller, whose offer has one plan.
func newNotary(tb testing.TB, seller identity.Identity) *notary {
	tb.Helper()
	n := &notary{tb: tb, seller: seller, scheme: liqotest.Scheme(tb)}
	if err := connectorv1alpha1.AddToScheme(n.scheme); err != nil {
		tb.Fatal(err)
	}
	now := time.Now().UTC().Truncate(time.Second)
	var err error
	if n.offer, err = offer.Parse(fmt.Appendf(nil, `{"party":%q,"id":"small","revision":1,"issuedAt":%q,"validUntil":%q,"kind":"Cluster","name":"Small",
		"region":"eu-north","plans":[{"id":"one","resources":{"cpu":"%d","memory":"8Gi","pods":"110"},"price":{"amount":"0.1","currency":"EUR","period":"PT1H"},
		"available":5}]}`, seller.ID(), now.Format(time.RFC3339), now.Add(24*time.Hour).Format(time.RFC3339), soldCores)); err != nil {
		tb.Fatal(err)
	}
	rules, err := negotiation.NewRules(nil, contract.Accept)
	if err != nil {
		tb.Fatal(err)
	}
	server, err := negotiation.NewServer(negotiation.Config{
		Party: seller.ID(), Key: seller.Key, Identify: negotiationtest.FirstKeys, Store: n, Offers: n, Admission: rules, Credentials: n,
		Seller: n.waits(), Reach: negotiationtest.Reach{},
		Drain: drainTime, Limits: negotiation.DefaultLimits(), Log: logr.Discard(),
	})
	if err != nil {
		tb.Fatal(err)
	}
	n.url = "https://" + servingtest.Serve(tb, func(ctx context.Context, l net.Listener) error {
		return httpserver.Server{Name: "negotiations", Handler: server, TLS: party.TLS{Current: seller.Key}.Server(),
			Timeout: time.Minute}.Run(ctx, l)
	})
	return n
}

func (*notary) waits() contract.Seller {
	return contract.Seller{ReserveFor: time.Minute, DecideFor: time.Hour}
}

// Offer implements negotiation.Offers.
func (n *notary) Offer(context.Context, string) (offer.Signed, error) {
	return offer.Sign(n.offer, n.seller.Key().Sign)
}

// Limits implements negotiation.Offers.
func (*notary) Limits(context.Context, string, string) (ledger.Limits, error) {
	return ledger.Limits{Capacity: corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("1M"), corev1.ResourceMemory: resource.MustParse("1Pi"),
		corev1.ResourcePods: resource.MustParse("1G"),
	}}, nil
}

// Credentials implements negotiation.Credentials.
func (*notary) Credentials(context.Context, contract.Record) (json.RawMessage, error) {
	return json.RawMessage(`{}`), nil
}

// Party implements books.Parties.
func (n *notary) Party(party.ID) (registryclient.Party, bool) {
	said := registryv1.Announcement{Party: n.buyer.ID, Name: n.buyer.Name, Endpoint: "https://" + n.buyer.Name + ".example:8446"}
	return registryclient.Party{Said: said, Keys: n.buyer.Keys}, true
}

// client returns a client of a buyer at an address.
func (n *notary) client(buyer *registrytest.Party, url string) *negotiation.Client {
	n.tb.Helper()
	c, err := negotiation.NewClient(negotiation.ClientConfig{
		Endpoint: url, Seller: n.seller.Keys(), Buyer: buyer.Keys, Key: func() party.Key { return buyer.Key },
	})
	if err != nil {
		n.tb.Fatal(err)
	}
	n.tb.Cleanup(c.Close)
	return c
}

// sell makes one contract: it is negotiated and granted, the buyer's cluster comes with what it was issued, and the contract is active.
func (n *notary) sell(i int) *sold {
	n.tb.Helper()
	own := cluster.Identity{ID: ownID, Name: "own"}
	s := &sold{
		buyer:   registrytest.NewParty(n.tb, fmt.Sprintf("buyer-%04d", i)),
		cluster: cluster.Identity{ID: cluster.ID(fmt.Sprintf("%08x-1f2e-4d3c-8b5a-111111111111", i)), Name: fmt.Sprintf("cluster-%04d", i)},
		sale:    &connectorv1alpha1.Sale{},
	}
	s.tunnel = s.connect(i)
	api := fake.NewClientBuilder().WithScheme(n.scheme).WithStatusSubresource(s.sale).WithObjects(liqotest.Liqo(own, "first")...).Build()
	store, err := books.New(books.Config{Client: api, Reader: api, Parties: n})
	if err != nil {
		n.tb.Fatal(err)
	}
	n.Store, n.buyer = store, s.buyer
	driver, err := outofband.New(outofband.Config{Client: api, Namespace: liqo.DefaultNamespace, Clock: clock.RealClock{}})
	if err != nil {
		n.tb.Fatal(err)
	}
	controller, err := sales.New(sales.Config{
		Client: api, Reader: api, Peerings: sales.NewPeerings(api, store, driver), Retention: sales.DefaultRetention(),
		Applier: negotiation.Applier{Store: store, Offers: n, Seller: n.waits(), Clock: clock.RealClock{}},
	})
	if err != nil {
		n.tb.Fatal(err)
	}
	c := n.client(s.buyer, n.url)
	defer c.Close()
	ctx := n.tb.Context()
	if err := errors.Join(n.negotiate(ctx, c, s), n.grant(ctx, api, controller, driver, s)); err != nil {
		n.tb.Fatal(err)
	}
	if s.view, err = c.Do(ctx, contract.Request{Event: contract.Peered, Key: s.view.Key}); err != nil || s.view.State != contract.Active {
		n.tb.Fatalf("contract %d is %s: %v", i, s.view.State, err)
	}
	name := client.ObjectKey{Name: books.Name(s.view.Key)}
	if _, err := controller.Reconcile(ctx, ctrl.Request{NamespacedName: name}); err != nil {
		n.tb.Fatal(err)
	}
	var held connectorv1alpha1.SalesLedger
	if err := errors.Join(api.Get(ctx, name, s.sale), api.Get(ctx, client.ObjectKey{Name: connectorv1alpha1.LedgerName}, &held)); err != nil {
		n.tb.Fatal(err)
	}
	s.holds = held.Holds
	return s
}

// negotiate takes a contract from the quote to both signatures.
func (n *notary) negotiate(ctx context.Context, c *negotiation.Client, s *sold) error {
	now := time.Now().UTC().Truncate(time.Second)
	quoted, err := c.Quote(ctx, negotiationv1.QuoteRequest{
		ID: "0a4dd9a4-6a2a-4b0c-8a4c-3f6a4f2f9a11", Cluster: negotiationv1.Cluster{ID: string(s.cluster.ID), Name: s.cluster.Name},
		Offer: n.offer.ID, Plan: n.offer.Plans[0].ID, StartsAt: now, EndsAt: now.Add(contractTime),
	})
	if err != nil {
		return err
	}
	request := contract.Request{Event: contract.Reserve, Key: quoted.Terms.Key(), Terms: quoted.Terms}
	if _, err := c.Do(ctx, request); err != nil {
		return err
	}
	request.Event = contract.Sign
	if request.Signature, err = negotiation.SignTerms(s.buyer.Key, quoted.Terms); err != nil {
		return err
	}
	s.view, err = c.Do(ctx, request)
	return err
}

// connect returns the network that Liqo has made to a buyer's cluster.
func (s *sold) connect(i int) *v09.TunnelEndpoint {
	tunnel := liqotest.Tunnel(s.cluster, "1ms", time.Now())
	spec := &tunnel.Spec
	spec.LocalPodCIDR, spec.LocalNATPodCIDR, spec.LocalExternalCIDR, spec.LocalNATExternalCIDR = "10.200.0.0/16", "None",
		"10.201.0.0/16", "None"
	spec.RemotePodCIDR, spec.RemoteNATPodCIDR = "10.60.0.0/16", fmt.Sprintf("10.%d.%d.0/24", i>>8, i&0xff)
	spec.RemoteExternalCIDR, spec.RemoteNATExternalCIDR = "10.61.0.0/16", fmt.Sprintf("10.%d.%d.0/24", 100+i>>8, i&0xff)
	spec.EndpointIP, spec.BackendType = "192.0.2.7", "wireguard"
	spec.BackendConfig = map[string]string{"publicKey": "yl5tjvnU2GbyoFFcLwmfNYHMqJTm8Ww1RdvcVOUKTSY=", "port": "5871"}
	return tunnel
}

// grant has the seller grant a contract, and Liqo write down that the buyer's cluster has come.
func (n *notary) grant(ctx context.Context, api client.Client, controller *sales.Reconciler, driver *outofband.Driver, s *sold) error {
	if _, err := controller.Reconcile(ctx, ctrl.Request{NamespacedName: client.ObjectKey{Name: books.Name(s.view.Key)}}); err != nil {
		return err
	}
	s.foreign = liqotest.CameUnasked(s.cluster)
	s.foreign.Spec.OutgoingPeeringEnabled, s.foreign.Spec.IncomingPeeringEnabled = "Auto", "Auto"
	s.foreign.Spec.ForeignAuthURL = "https://" + s.cluster.Name + ".example.org:30443"
	if err := api.Create(ctx, s.foreign); err != nil {
		return err
	}
	named := client.ObjectKeyFromObject(s.foreign)
	if _, err := outofband.NewArrivals(driver).Reconcile(ctx, ctrl.Request{NamespacedName: named}); err != nil {
		return err
	}
	return api.Get(ctx, named, s.foreign)
}
