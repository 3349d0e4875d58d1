// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package trade

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/shown/tradev1"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/contract"
	"github.com/capacitorset/liqo-broker/test/federation"
	"github.com/capacitorset/liqo-broker/test/webpage"
)

// TestBrowser has a buyer and a seller open the pages of their clusters in browsers. The buyer sees what fits in the order of choice, buys
// for the price that was shown, asks for more, and ends it; the seller, who has said nothing of who may buy, approves each of the terms.
func TestBrowser(t *testing.T) {
	const name = "by-browser"
	clean(t)
	everybodyAsks := func(o *connectorv1alpha1.Offer) { o.Spec.Buyers = connectorv1alpha1.Buyers{} }
	publish(t, map[*federation.Cluster]string{fed.ProviderA: "0.10", fed.ProviderB: "0.20"}, everybodyAsks)
	p := webpage.Open(t, webpage.Serve(t, fed.Consumer.Lab.KubeconfigPath()))
	buyer := webpage.Browse(t, webpage.Serve(t, fed.Consumer.Lab.KubeconfigPath()))
	seller := webpage.Browse(t, webpage.Serve(t, fed.ProviderA.Lab.KubeconfigPath()))

	// What fits is there in the order in which the connector would buy it, and costs what is said.
	found := webpage.Ask[tradev1.Found](p, http.MethodPost, "/api/v1/market/find", tradev1.Need{
		Resources: tradev1.Quantities{"cpu": "250m", "memory": "256Mi", "pods": "5"}, Duration: "2h",
	})
	i := slices.IndexFunc(found.Plans, func(p tradev1.PlanForSale) bool { return p.Plan == "elastic" })
	if i < 0 || len(found.Plans) < 2 {
		t.Fatalf("found is %+v", found)
	}
	const need = "?cpu=250m&memory=256Mi&pods=5&for=2h"
	buyer.See("Market")
	buyer.Go("/market" + need)
	_, table, _ := strings.Cut(buyer.See("Best choice", time.Minute), "In all")
	for _, plan := range found.Plans {
		_, rest, is := strings.Cut(table, plan.Price.Text)
		if !is {
			t.Errorf("%s of %s for %s is not where it belongs:\n%s", plan.Plan, plan.Seller.ID, plan.Price.Text, table)
			continue
		}
		table = rest
	}

	// It is tried, and bought.
	wanted := found.Plans[i]
	buyer.Go("/market/" + wanted.Reference + need)
	buyer.See(wanted.Price.Text)
	buyer.Press("Buy")
	buyer.Write("Name", name)
	buyer.Press("Try it")
	buyer.See("What would be bought")
	if err := fed.Consumer.BuysNothing(t.Context()); err != nil {
		t.Errorf("what was tried is written: %v", err)
	}
	buyer.Press("Buy")
	buyer.See(name + " is ordered")

	// The seller approves the terms by their number, and so another time when they are to change.
	approve := func() {
		t.Helper()
		var sale string
		eventually(t, time.Minute, func(ctx context.Context) error {
			var sales connectorv1alpha1.SaleList
			if err := fed.ProviderA.List(ctx, &sales); err != nil {
				return err
			}
			for i := range sales.Items {
				if state := sales.Items[i].Status.State; state != string(contract.Ended) {
					sale = sales.Items[i].Name
					return nil
				}
			}
			return errors.New("the seller has heard of nothing yet")
		})
		seller.Go("/contracts/sells/" + sale)
		seller.See("Approve", time.Minute)
		seller.Press("Approve")
		seller.Press("Try it")
		seller.See("It was tried")
		seller.Press("Approve")
		seller.See(sale + " is approved")
	}
	has := func(cpu string) {
		t.Helper()
		want := federation.Sold(cpu)
		eventually(t, 3*time.Minute, func(ctx context.Context) error { return fed.Consumer.HasBought(ctx, fed.ProviderA, want) })
	}
	approve()
	active := told(p, func(c *tradev1.Contract) bool {
		return c.Name == name && c.State == "Active" && c.Ready.Status == "True"
	})
	if active.Price == nil || active.Price.Text != wanted.Price.Text {
		t.Errorf("%s was shown, and signed is %+v", wanted.Price.Text, active.Price)
	}
	buyer.SeeLabelled("Active, is", time.Minute)
	buyer.Press("Resize")
	buyer.Write("CPU", "500m")
	buyer.Press("Try it")
	buyer.See("It was tried")
	buyer.Press("Resize")
	buyer.See(fmt.Sprintf("%s asks", name), 20*time.Second)
	approve()
	told(p, func(c *tradev1.Contract) bool { return c.Name == name && c.Resources["cpu"] == "500m" })
	has("500m")

	// It ends, and the clusters part.
	buyer.Press("End")
	buyer.Write("Reason, which the other side is told", "seen enough")
	buyer.Press("Try it")
	buyer.See("which cannot be taken back: the pods on node")
	buyer.Press("End")
	buyer.SeeLabelled("Ended, is", time.Minute)
	seller.See("seen enough", time.Minute)
	buyer.Ends()
	seller.Ends()
	clean(t)
	eventually(t, 3*time.Minute, func(ctx context.Context) error { return fed.Consumer.HasParted(ctx, fed.ProviderA) })
}
