// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package trade

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/shown/apiv1"
	"github.com/capacitorset/liqo-broker/pkg/shown/tradev1"
	"github.com/capacitorset/liqo-broker/test/federation"
	"github.com/capacitorset/liqo-broker/test/webpage"
)

// told waits until the page is told of a contract that is as wanted.
func told(p *webpage.Page, wanted func(c *tradev1.Contract) bool) *tradev1.Contract {
	type event struct {
		Contract *tradev1.Contract `json:"contract"`
	}
	return webpage.Until(p.Stream("contracts"), func(_ string, e event) bool { return e.Contract != nil && wanted(e.Contract) }).Contract
}

// TestPage buys by the page of a cluster that is no broker: what is needed is found in the order of choice, what is tried writes nothing,
// the price that is shown is the price that is signed, and the contract is ended by who has seen it as it is.
func TestPage(t *testing.T) {
	clean(t)
	publish(t, map[*federation.Cluster]string{fed.ProviderA: "0.20", fed.ProviderB: "0.10"})
	p := webpage.Open(t, webpage.Serve(t, fed.Consumer.Lab.KubeconfigPath()))
	me := webpage.Ask[apiv1.Me](p, http.MethodGet, "/api/v1/me", nil)
	if text := fmt.Sprint(me.Kinds); !strings.Contains(text, "market") || strings.Contains(text, "providers") {
		t.Errorf("a cluster that trades and is no broker shows %s", text)
	}

	// The cheapest comes first, and costs what its seller has signed.
	need := tradev1.Need{
		Resources: tradev1.Quantities{"cpu": "500m", "memory": "256Mi", "pods": "5"}, Duration: "2h", Regions: []string{"eu-north"},
	}
	found := webpage.Ask[tradev1.Found](p, http.MethodPost, "/api/v1/market/find", need)
	if len(found.Plans) == 0 || found.Plans[0].Seller.ID != string(seller(t, fed.ProviderB)) || found.Plans[0].Total == nil {
		t.Fatalf("found is %+v", found)
	}
	best := found.Plans[0]

	// What is tried writes nothing.
	order := tradev1.Order{Need: need, Name: "by-page", Reference: best.Reference}
	order.MaxPrice = best.Price.Text
	ordered := webpage.Ask[tradev1.Ordered](p, http.MethodPost, "/api/v1/orders?dryRun=All", order)
	if len(ordered.Would) != 1 || ordered.Would[0].Reference != best.Reference {
		t.Errorf("it would buy %+v", ordered)
	}
	if err := fed.Consumer.BuysNothing(t.Context()); err != nil {
		t.Errorf("a dry run has written something: %v", err)
	}

	// It is bought, and the stream tells how far it is.
	p.Text(http.MethodPost, "/api/v1/orders", order)
	active := told(p, func(c *tradev1.Contract) bool {
		return c.Name == "by-page" && c.State == "Active" && c.Ready.Status == "True"
	})
	if active.Price == nil || active.Price.Text != best.Price.Text || active.Cost == nil || len(active.Steps) == 0 {
		t.Errorf("%s was shown, and signed is %+v", best.Price.Text, active)
	}

	// Who has seen something else ends nothing; who has seen it as it is does.
	old := p.Request(http.MethodPost, "/api/v1/contracts/buys/by-page/end", tradev1.Deed{Version: "0"})
	old.Body.Close()
	if old.StatusCode != http.StatusConflict {
		t.Errorf("a deed about what was never seen is answered with %s", old.Status)
	}
	p.Text(http.MethodPost, "/api/v1/contracts/buys/by-page/end", tradev1.Deed{Version: active.Version, Reason: "seen enough"})
	ended := told(p, func(c *tradev1.Contract) bool { return c.Name == "by-page" && c.State == "Ended" })
	if text := fmt.Sprint(ended.Steps); !strings.Contains(text, "seen enough") || len(ended.Deeds) != 0 {
		t.Errorf("it has ended as %+v", ended)
	}
	bought := &connectorv1alpha1.Purchase{}
	bought.Name = "by-page"
	if err := fed.Consumer.Delete(t.Context(), bought); client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	eventually(t, 3*time.Minute, func(ctx context.Context) error { return fed.Consumer.HasParted(ctx, fed.ProviderB) })
	eventually(t, time.Minute, func(ctx context.Context) error { return fed.Consumer.BuysNothing(ctx) })
}
