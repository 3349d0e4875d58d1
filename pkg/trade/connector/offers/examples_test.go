// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package offers_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/contract"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/offer"
	"github.com/capacitorset/liqo-broker/pkg/trade/negotiation"
	"github.com/capacitorset/liqo-broker/pkg/trade/party"
)

// example reads an object of deploy/examples.
func example(t *testing.T, file string, into any) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../../../deploy/examples/trade", file))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(text, into); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

// TestExamples sells the offer that people copy, decides by its rules, and finds it by the request that people copy.
func TestExamples(t *testing.T) {
	var published connectorv1alpha1.Offer
	example(t, "offer.yaml", &published)
	published.Generation, published.Spec.Sale = 1, connectorv1alpha1.SaleOpen // As the API server sets it.
	w := newWorld(t, &published)
	w.look()
	if reason, message := w.published("compute"); reason != connectorv1alpha1.ReasonPublished {
		t.Fatalf("the offer is not published for %s: %s", reason, message)
	}
	signed := w.parse(w.listed["compute"])

	known := strings.Repeat("a", 52)
	day := 24 * time.Hour
	for name, tc := range map[string]struct {
		buyer, plan, cpu string
		lasts            time.Duration
		want             contract.Verdict
	}{
		"Known":    {known, "small", "2", day, contract.Accept},
		"Stranger": {strings.Repeat("b", 52), "small", "2", day, contract.Ask},
		"Other":    {known, "elastic", "9", day, contract.Ask},
		"Much":     {known, "elastic", "9", 8 * day, contract.Deny},
	} {
		terms := contract.Terms{Offer: "compute", Plan: tc.plan, StartsAt: w.now, EndsAt: w.now.Add(tc.lasts)}
		terms.Resources = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(tc.cpu)}
		verdict, reason, err := w.Admit(t.Context(), negotiation.Application{Buyer: party.ID(tc.buyer), Terms: terms, Offer: signed})
		if verdict != tc.want || err != nil || (verdict == contract.Deny) != (reason != "") {
			t.Errorf("%s: %s %q %v, want %s", name, verdict, reason, err, tc.want)
		}
	}

	var request connectorv1alpha1.CapacityRequest
	example(t, "capacityrequest.yaml", &request)
	spec := request.Spec
	matcher, err := offer.Filter{Duration: offer.Duration(spec.Duration.Duration), Regions: spec.Regions, Architectures: spec.Architectures,
		Expression: spec.Expression}.Compile()
	if err != nil {
		t.Fatal(err)
	}
	if found := matcher.Match(signed); len(found) != 2 {
		t.Errorf("the request finds %d plans of the offer, want both", len(found))
	}
}
