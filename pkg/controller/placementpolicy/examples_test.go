// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package placementpolicy

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/kpi"
)

// TestExamples decides by the policies of deploy/examples.
func TestExamples(t *testing.T) {
	providers := []v1alpha1.Provider{
		offer("near", "eu-north", "arm64", map[string]float64{
			"roundTripTime": 2, "priceCPU": 0.09, "priceMemory": 0.02, "availability1h": 1, "availability24h": 0.97,
		}),
		offer("cheap", "eu-south", "arm64", map[string]float64{
			"roundTripTime": 40, "priceCPU": 0.01, "priceMemory": 0.001, "availability1h": 1, "availability24h": 0.95,
		}),
		offer("also-south", "eu-south", "arm64", map[string]float64{
			"roundTripTime": 45, "priceCPU": 0.02, "priceMemory": 0.002, "availability1h": 1, "availability24h": 0.999,
		}),
		offer("down", "eu-north", "amd64", map[string]float64{
			"roundTripTime": 60, "priceCPU": 0.012, "availability1h": 0.5, "availability24h": 1,
		}),
		offer("free", "us-east", "arm64", map[string]float64{"roundTripTime": 120, "priceCPU": 0}),
		offer("unknown", "eu-west", "arm64", nil),
	}
	for _, i := range []int{0, 2} { // near and also-south.
		providers[i].Labels["nvidia.com/gpu.product"] = "NVIDIA-L4"
	}
	providers[1].Labels["nvidia.com/gpu.product"] = "NVIDIA-T4"
	want := map[string][]string{
		"accelerated": {"also-south"},
		"cheapest":    {"cheap"},
		"nearest":     {"cheap", "near"},
		"reliable":    {"also-south"},
		"stays":       {"down"},
		"payments":    {"near"},
		"two-regions": {"cheap", "near"},
		"delay":       {"near"}, // TestExampleDelay goes on from there.
	}
	got := map[string][]string{}
	for _, p := range examples(t) {
		chooser, scaler, err := rules(&p)
		if err != nil {
			t.Fatalf("%s: %v", p.Name, err)
		}
		decision, _, err := newRoster(providers, nil).decide(
			now, &state{chooser: chooser, scaler: scaler}, consumer("c"), v1alpha1.ConsumerDecision{}, true)
		if err != nil {
			t.Errorf("%s: %v", p.Name, err)
		}
		for _, c := range decision.Chosen {
			got[p.Name] = append(got[p.Name], c.ID)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// examples returns the policies of deploy/examples.
func examples(t *testing.T) []v1alpha1.PlacementPolicy {
	t.Helper()
	files, err := filepath.Glob("../../../deploy/examples/placementpolicies/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	policies := make([]v1alpha1.PlacementPolicy, len(files))
	for i, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := yaml.UnmarshalStrict(text, &policies[i]); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
	}
	return policies
}

// offer returns a provider with labels and KPIs.
func offer(id, region, arch string, values map[string]float64) v1alpha1.Provider {
	p := *provider(id, "")
	p.Labels = map[string]string{"topology.kubernetes.io/region": region, "kubernetes.io/arch": arch}
	p.Status.KPIs = nil
	for name, value := range values {
		p.Status.KPIs = append(p.Status.KPIs, v1alpha1.KPI{
			Name: name, KPIValue: v1alpha1.KPIValueOf(kpi.KPI{Value: value, Measured: now, Expires: now.Add(time.Hour)}),
		})
	}
	return p
}
