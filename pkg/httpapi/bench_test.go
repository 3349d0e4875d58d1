// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
	"github.com/capacitorset/liqo-broker/pkg/serving/delegatedauth"
	"github.com/capacitorset/liqo-broker/pkg/shown"
	"github.com/capacitorset/liqo-broker/pkg/shown/showntest"
	"github.com/capacitorset/liqo-broker/pkg/snapshot/snapshottest"
	"github.com/capacitorset/liqo-broker/test/percentile"
)

// busy is a cache of many objects, which it hands out without copying them, as a real one does; and an API server that knows everybody.
type busy struct {
	client.Client

	providers v1alpha1.ProviderList
	consumers v1alpha1.ConsumerList
	policies  v1alpha1.PlacementPolicyList
	decisions v1alpha1.PlacementDecisionList
}

// List implements client.Reader.
func (b *busy) List(_ context.Context, into client.ObjectList, _ ...client.ListOption) error {
	switch into := into.(type) {
	case *v1alpha1.ProviderList:
		into.Items = b.providers.Items
	case *v1alpha1.ConsumerList:
		into.Items = b.consumers.Items
	case *v1alpha1.PlacementPolicyList:
		into.Items = b.policies.Items
	case *v1alpha1.PlacementDecisionList:
		into.Items = b.decisions.Items
	}
	return nil
}

// Create implements client.Writer.
func (b *busy) Create(_ context.Context, o client.Object, _ ...client.CreateOption) error {
	people(o)
	return nil
}

// newBusy returns so many providers and consumers, and a policy that has chosen all of them for each.
func newBusy(providers, consumers int) *busy {
	b := &busy{}
	policy := v1alpha1.PlacementPolicy{ObjectMeta: metav1.ObjectMeta{Name: "all", UID: "1"}}
	policy.Spec.AppliesTo.Scope = v1alpha1.ScopeDefault
	b.policies.Items = []v1alpha1.PlacementPolicy{policy}
	var ids []cluster.ID
	for i := range providers {
		id := cluster.Identity{ID: cluster.ID(fmt.Sprintf("11111111-2222-3333-4444-%012d", i)), Name: fmt.Sprintf("provider-%d", i)}
		p := showntest.NewProvider(id)
		for k := range 15 {
			more := p.Status.KPIs[0]
			more.Name = fmt.Sprintf("kpi%d", k)
			p.Status.KPIs = append(p.Status.KPIs, more)
		}
		b.providers.Items, ids = append(b.providers.Items, *p), append(ids, id.ID)
	}
	for i := range consumers {
		id := cluster.Identity{ID: cluster.ID(fmt.Sprintf("55555555-6666-7777-8888-%012d", i)), Name: fmt.Sprintf("consumer-%d", i)}
		d := snapshottest.Decision(&policy, id.ID, ids...)
		for k := range 64 {
			d.Explained = append(d.Explained,
				v1alpha1.ExplainedProvider{ID: string(ids[k]), Chosen: true, Score: "50", Terms: []v1alpha1.ExplainedTerm{
					{KPI: "kpi1", Value: "1.5", Unit: "ms", Normalized: "0.5", Weight: 1},
					{KPI: "kpi2", Value: "2.5", Unit: "ms", Normalized: "0.5", Weight: 1},
				}})
		}
		b.consumers.Items = append(b.consumers.Items, *showntest.NewConsumer(id, v1alpha1.ModeOrchestrated))
		b.decisions.Items = append(b.decisions.Items, *d)
	}
	return b
}

// BenchmarkReads answers with first pages and with single things, at 1,000 providers and 100 consumers, while something changes all the
// time.
func BenchmarkReads(b *testing.B) {
	c := newBusy(1000, 100)
	c.Client = snapshottest.NewClient(b, interceptor.Funcs{})
	api, err := New(Config{
		Client: c, Line: v09.Line{}, Reviewer: delegatedauth.New(c, Audience), Orchestrator: true, Log: logr.Discard(), Own: broker,
	})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	done := make(chan error)
	go func() { done <- api.Start(ctx) }()
	defer func() { cancel(); <-done }()
	for _, path := range []string{
		"/providers", "/providers/" + c.providers.Items[500].Name, "/consumers", "/consumers/" + c.consumers.Items[50].Name, "/offers",
		"/policies", "/decisions?limit=10", "/decisions/all/" + c.consumers.Items[50].Name,
		"/consumers/" + c.consumers.Items[50].Name + "/advice", "/links",
	} {
		b.Run(path, func(b *testing.B) {
			read := func() {
				api.v1.feed.Changed(shown.Providers, shown.Consumers)
				r := httptest.NewRequestWithContext(ctx, http.MethodGet, "https://"+host+base+path, http.NoBody)
				r.Header.Set("Authorization", "Bearer operator")
				w := httptest.NewRecorder()
				if api.mux.ServeHTTP(w, r); w.Code != http.StatusOK {
					b.Fatalf("%d %s", w.Code, w.Body)
				}
			}
			read() // From here on it is kept ready.
			percentile.Report(b, read)
		})
	}
}
