// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package trade

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/kpi"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/offer"
	"github.com/capacitorset/liqo-broker/pkg/trade/party"
	"github.com/capacitorset/liqo-broker/test/federation"
)

// order has a cluster buy a plan from another one, and waits until it can use it.
func order(t *testing.T, buyer, from *federation.Cluster, offer, plan string) *connectorv1alpha1.Purchase {
	t.Helper()
	p := place(t, buyer, from, offer, plan)
	usable(t, buyer, p)
	return p
}

// place orders a plan of another cluster.
func place(t *testing.T, buyer, from *federation.Cluster, offer, plan string) *connectorv1alpha1.Purchase {
	t.Helper()
	p := &connectorv1alpha1.Purchase{
		ObjectMeta: metav1.ObjectMeta{Name: "from-" + from.Name},
		Spec: connectorv1alpha1.PurchaseSpec{
			Seller: seller(t, from), Offer: connectorv1alpha1.Label(offer), Plan: connectorv1alpha1.Label(plan),
			Duration: &metav1.Duration{Duration: time.Hour}, MaxPrice: anyPrice(),
		},
	}
	if err := buyer.Create(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	return p
}

// usable waits until a cluster can use what it has ordered.
func usable(t *testing.T, buyer *federation.Cluster, p *connectorv1alpha1.Purchase) {
	t.Helper()
	eventually(t, 2*time.Minute, func(ctx context.Context) error {
		return buyer.Is(ctx, &connectorv1alpha1.Purchase{}, p.Name, connectorv1alpha1.ConditionReady, connectorv1alpha1.ReasonActive)
	})
}

// priced returns an error unless the broker knows what a core of a provider costs, and how far away that is; it has to know no price if
// want is empty.
func priced(ctx context.Context, provider *federation.Cluster, want string) error {
	var p v1alpha1.Provider
	if err := fed.Broker.Get(ctx, client.ObjectKey{Name: string(provider.ID)}, &p); err != nil {
		return err
	}
	got := known(&p, kpi.PriceCPU)
	if got != want {
		return fmt.Errorf("a core of %s costs %q, want %q", provider.Name, got, want)
	}
	if want != "" && known(&p, kpi.RoundTripTime) == "" {
		return fmt.Errorf("nobody has measured how far away %s is", provider.Name)
	}
	return nil
}

// known returns a KPI of a provider; empty if it has none.
func known(p *v1alpha1.Provider, name string) string {
	for _, k := range p.Status.KPIs {
		if k.Name == name {
			return string(k.Value) + " " + k.Unit
		}
	}
	return ""
}

// tells returns an error unless an offer of a cluster says how far away what it sells is, as its party has measured it.
func tells(ctx context.Context, c *federation.Cluster, id string) error {
	var o connectorv1alpha1.Offer
	if err := c.Get(ctx, client.ObjectKey{Name: id}, &o); err != nil {
		return err
	}
	text, err := party.Payload(o.Status.Signed)
	if err != nil {
		return err
	}
	signed, err := offer.Parse(text)
	if err != nil {
		return err
	}
	for _, k := range signed.KPIs {
		if k.Name == kpi.RoundTripTime && k.MeasuredBy == signed.Party && k.Samples == 2 {
			return nil
		}
	}
	return fmt.Errorf("offer %s of %s tells %+v", id, c.Name, signed.KPIs)
}

// TestResell has a broker buy from two providers and sell what it aggregates: a consumer that knows none of them buys more than either has
// sold, gets one node of that size, and runs a workload there that answers. The broker knows what providers cost as long as it buys from
// them. The contracts end one after the other.
func TestResell(t *testing.T) {
	clean(t)
	if err := fed.BrokerTrades(t.Context(), registry, federation.NewProgress(os.Stderr)); err != nil {
		t.Fatal(err)
	}
	const connector = "liqo-broker-connector"
	own := parts(t, fed.Broker, connector)
	for what, text := range own {
		own[what] = strings.Replace(text, `"--broker",`, "", 1)
	}
	if diff := cmp.Diff(parts(t, fed.ProviderA, connector), own); diff != "" {
		t.Errorf("the broker's connector has more than --broker beyond that of a provider (-provider +broker):\n%s", diff)
	}
	publish(t, map[*federation.Cluster]string{fed.ProviderA: "0.10", fed.ProviderB: "0.10"})

	// What the broker buys it offers, and it knows what a core of each provider costs: 0.10 EUR/h buys half a one.
	var ordered []*connectorv1alpha1.Purchase
	for _, from := range fed.Providers() {
		ordered = append(ordered, place(t, fed.Broker, from, "compute", "small"))
	}
	for _, p := range ordered {
		usable(t, fed.Broker, p)
	}
	eventually(t, 2*time.Minute, func(ctx context.Context) error {
		return errors.Join(priced(ctx, fed.ProviderA, "0.2 EUR/h"), priced(ctx, fed.ProviderB, "0.2 EUR/h"))
	})
	aggregate := &connectorv1alpha1.Offer{
		ObjectMeta: metav1.ObjectMeta{Name: "aggregate"},
		Spec: connectorv1alpha1.OfferSpec{
			Title: "All of it", Kind: connectorv1alpha1.KindBroker, Mode: v1alpha1.ModeAggregated, Region: "eu-north",
			Architectures: []string{"amd64"},
			Plans: []connectorv1alpha1.OfferPlan{{
				ID: "large", Resources: federation.Sold("750m"), Price: connectorv1alpha1.Price{Amount: "0.30", Currency: "EUR", Period: "PT1H"},
			}},
			Buyers: connectorv1alpha1.Buyers{Otherwise: connectorv1alpha1.VerdictAccept},
		},
	}
	if err := fed.Broker.Offer(t.Context(), aggregate); err != nil {
		t.Fatal(err)
	}
	eventually(t, time.Minute, func(ctx context.Context) error {
		return fed.Broker.Is(ctx, &connectorv1alpha1.Offer{}, aggregate.Name, connectorv1alpha1.ConditionPublished,
			connectorv1alpha1.ReasonPublished)
	})
	if err := tells(t.Context(), fed.Broker, aggregate.Name); err != nil {
		t.Error(err)
	}

	// No provider has sold so much to anybody: only the broker can.
	request := &connectorv1alpha1.CapacityRequest{
		ObjectMeta: metav1.ObjectMeta{Name: "large"},
		Spec: connectorv1alpha1.CapacityRequestSpec{
			Resources: federation.Sold("750m"), Duration: metav1.Duration{Duration: time.Hour},
			MaxPrice: &connectorv1alpha1.Price{Amount: "0.30", Currency: "EUR", Period: "PT1H"},
			Kinds:    []connectorv1alpha1.SellerKind{connectorv1alpha1.KindBroker},
		},
	}
	if err := fed.Consumer.Create(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	eventually(t, 2*time.Minute, func(ctx context.Context) error {
		return fed.Consumer.Is(ctx, &connectorv1alpha1.CapacityRequest{}, request.Name, connectorv1alpha1.ConditionReady,
			connectorv1alpha1.ReasonActive)
	})
	eventually(t, time.Minute, func(ctx context.Context) error {
		return fed.Consumer.HasBought(ctx, fed.Broker, federation.Sold("750m"))
	})
	buyer := read(t, "docs/trade/buyer.md", "TestResell")
	buyer.Values["BROKER"] = fed.Broker.Name
	buyer.Next("kubectl liqo-broker prepare --broker BROKER")
	runWeb(t, "resold", fed.Broker)
	copies, err := fed.Copies(t.Context(), "resold")
	if err != nil || len(copies) != 1 || copies[0].RunsOn != fed.ProviderA && copies[0].RunsOn != fed.ProviderB {
		t.Errorf("the workload runs at no provider of the broker: %+v, %v", copies, err)
	}

	// The end, from the consumer on.
	if err := fed.Consumer.Delete(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	eventually(t, 3*time.Minute, func(ctx context.Context) error {
		return errors.Join(fed.Consumer.HasParted(ctx, fed.Broker), fed.Consumer.BuysNothing(ctx))
	})
	if err := fed.Remove(context.WithoutCancel(t.Context()), "resold"); err != nil {
		t.Error(err)
	}
	buyer.Next("kubectl liqo-broker unprepare")
	buyer.End()
	if err := fed.Broker.DeleteAllOf(t.Context(), &connectorv1alpha1.Purchase{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, 3*time.Minute, func(ctx context.Context) error {
		errs := []error{fed.Broker.BuysNothing(ctx)}
		for _, from := range fed.Providers() {
			errs = append(errs, fed.Broker.HasParted(ctx, from))
		}
		return errors.Join(errs...)
	})
	eventually(t, 2*time.Minute, func(ctx context.Context) error {
		return errors.Join(priced(ctx, fed.ProviderA, ""), priced(ctx, fed.ProviderB, ""))
	})
	var consumers v1alpha1.ConsumerList
	if err := fed.Broker.List(t.Context(), &consumers); err != nil {
		t.Fatal(err)
	}
	for i := range consumers.Items {
		if c := &consumers.Items[i]; c.Spec.Scheduling != v1alpha1.ConsumerSuspended {
			t.Errorf("consumer %s is still served: %s", c.Name, fmt.Sprint(c.Spec))
		}
	}
}
