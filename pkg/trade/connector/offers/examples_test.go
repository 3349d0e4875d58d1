// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package offers_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/capacity"
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

// TestGPUs sells the offer of GPUs that people copy, of a cluster with one, and finds it by the request that people copy; each GPU has its
// price. A cluster without GPUs sells none.
func TestGPUs(t *testing.T) {
	const gpu = "nvidia.com/gpu"
	var published connectorv1alpha1.Offer
	example(t, "gpu.yaml", &published)
	published.Generation, published.Spec.Sale = 1, connectorv1alpha1.SaleOpen // As the API server sets it.
	var request connectorv1alpha1.CapacityRequest
	example(t, "gpurequest.yaml", &request)
	for have, want := range map[string]int{"0": 0, "1": 1, "2": 1} {
		w := newWorld(t, published.DeepCopy())
		w.has[gpu] = resource.MustParse(have)
		w.look()
		if reason, message := w.published("gpus"); reason != connectorv1alpha1.ReasonPublished {
			t.Fatalf("the offer is not published for %s: %s", reason, message)
		}
		signed := w.parse(w.listed["gpus"])
		needed, err := offer.ParseResources(map[string]string{"cpu": "4", "memory": "16Gi", "pods": "5", gpu: "1"})
		if err != nil {
			t.Fatal(err)
		}
		matcher, err := offer.Filter{Resources: needed, Expression: request.Spec.Expression}.Compile()
		if err != nil {
			t.Fatal(err)
		}
		found := matcher.Match(signed)
		if len(found) != want {
			t.Errorf("with %s GPUs the request finds %d plans", have, len(found))
		}
		for _, m := range found { // 0.05 and four cores at 0.02 and a GPU at 0.60.
			if price := m.Price.String(); !strings.HasPrefix(price, "0.73 EUR") {
				t.Errorf("a GPU costs %s", price)
			}
		}
	}
}

// TestAttributes has offers tell what nodes say of their devices: of those that they sell, in plans of one size and of several, and
// nothing that the Offer says otherwise itself. What nodes say otherwise then is signed at once.
func TestAttributes(t *testing.T) {
	const gpu, product, memory = "nvidia.com/gpu", "nvidia.com/gpu.product", "nvidia.com/gpu.memory"
	fixed, ranged, none := small("fixed"), small("ranged"), small("none")
	fixed.Spec.Labels = map[string]connectorv1alpha1.LabelValue{memory: "16000", "own": "true"}
	fixed.Spec.Plans[0].Resources[gpu] = resource.MustParse("1")
	most := list("8", "16Gi", "80")
	most[gpu] = resource.MustParse("2")
	ranged.Spec.Plans[0].Resources, ranged.Spec.Plans[0].Range = nil, &connectorv1alpha1.OfferRange{
		Min: list("2", "4Gi", "20"), Max: most, Step: list("2", "4Gi", "20"),
	}
	ranged.Spec.Plans[0].Range.Min[gpu], ranged.Spec.Plans[0].Range.Step[gpu] = resource.MustParse("1"), resource.MustParse("1")
	w := newWorld(t, fixed, ranged, none)
	w.has[gpu] = resource.MustParse("4")
	for model := range strings.SplitSeq("NVIDIA-L4 NVIDIA-A100", " ") {
		w.attributes = capacity.Attributes{gpu: {product: model, memory: "23034"}, "example.com/npu": {"npu": "one"}}
		w.look()
		for id, want := range map[string]map[string]string{
			"fixed":  {product: model, memory: "16000", "own": "true"},
			"ranged": {product: model, memory: "23034"},
			"none":   nil,
		} {
			if reason, message := w.published(id); reason != connectorv1alpha1.ReasonPublished {
				t.Fatalf("offer %s is not published for %s: %s", id, reason, message)
			}
			if diff := cmp.Diff(want, w.parse(w.listed[id]).Labels); diff != "" {
				t.Errorf("offer %s: -want +got\n%s", id, diff)
			}
		}
	}
}

// TestPageOfAccelerators holds that the Job which the page shows is one, and that the page names the label of a node without a provider.
func TestPageOfAccelerators(t *testing.T) {
	page, err := os.ReadFile("../../../../docs/placement/accelerators.md")
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]bool{}
	for block := range strings.SplitSeq(string(page), "\n\n") {
		if !strings.HasPrefix(block, "    apiVersion: ") {
			continue
		}
		text := strings.ReplaceAll(strings.TrimPrefix(block, "    "), "\n    ", "\n")
		var object unstructured.Unstructured
		if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
			t.Fatalf("%v:\n%s", err, text)
		}
		kinds[object.GetKind()] = true
		if object.GetKind() == "Job" {
			var job batchv1.Job
			if err := yaml.UnmarshalStrict([]byte(text), &job); err != nil {
				t.Fatal(err)
			}
			if n := job.Spec.Template.Spec.Containers[0].Resources.Limits["nvidia.com/gpu"]; n.Value() != 1 {
				t.Errorf("the Job wants %s GPUs", n.String())
			}
		}
	}
	if len(kinds) != 1 || !strings.Contains(string(page), "`"+liqo.LabelRemoteClusterID+"`") {
		t.Errorf("the page shows %v, and says nothing of %s", kinds, liqo.LabelRemoteClusterID)
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
