// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package placementpolicy

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/kpi"
)

// uuid returns an ID of the usual length.
func uuid(kind, n int) string { return fmt.Sprintf("5f0e8c7a-1b2c-4d3e-8f9%d-%012d", kind, n) }

// TestStatusCanBeStored chooses all of 1,000 providers for 100 consumers, half of which provide as well.
func TestStatusCanBeStored(t *testing.T) {
	policy := cheapest()
	policy.Spec.MaxProviders = nil
	objects := []client.Object{policy}
	for i := range 1000 {
		p := provider(uuid(0, i), "1")
		p.Status.ClusterName = fmt.Sprintf("provider-%04d", i)
		objects = append(objects, p)
	}
	for i := range 50 {
		objects = append(objects, consumer(uuid(0, i)), consumer(uuid(1, i)))
	}
	h := begin(t, objects...)
	p, _ := h.decide(0)
	text, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	if len(text) > maxDecisions || condition(p) != "True Decided" {
		t.Errorf("the PlacementPolicy has %d bytes, condition %s", len(text), condition(p))
	}
	for _, d := range p.Status.PerConsumer() {
		want := 1000
		if d.Consumer < uuid(1, 0) {
			want-- // Not itself.
		}
		if len(d.Chosen) != want || slices.ContainsFunc(d.Chosen, func(c v1alpha1.ChosenProvider) bool { return c.ID == d.Consumer }) {
			t.Fatalf("%s: %d providers are chosen, want %d", d.Consumer, len(d.Chosen), want)
		}
	}
	if writes := h.writes; h.writes != 1 {
		t.Errorf("%d writes", writes)
	}
	h.decide(30 * time.Second)
	if h.writes != 1 {
		t.Error("the same is written again")
	}
}

// TestManagedFieldsStaySmall looks at the lists of the status: of one that is a map the API server keeps, a second time,
// who wrote each field of each entry.
func TestManagedFieldsStaySmall(t *testing.T) {
	text, err := os.ReadFile("../../../deploy/crds/brokering.liqo.io_placementpolicies.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal(text, &crd); err != nil {
		t.Fatal(err)
	}
	status := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["status"]
	for _, name := range []string{"decisions", "explanations"} {
		if list := status.Properties[name].XListType; list == nil || *list != "atomic" {
			t.Errorf("%s is no atomic list", name)
		}
	}
}

// TestTooLarge has consumers of which each has other providers near it, and so many that it cannot be stored.
func TestTooLarge(t *testing.T) {
	policy := cheapest()
	policy.Spec.Weights = map[string]v1alpha1.Weight{kpi.ConsumerRoundTripTime: -10}
	policy.Spec.MaxProviders = new(int32(5))
	h := begin(t, append(farApart(), policy)...)
	before, _ := h.decide(0)
	if condition(before) != "True Decided" {
		t.Fatalf("few for each: %s", condition(before))
	}
	h.change(policy, func() { policy.Spec.MaxProviders, policy.Generation = new(int32(150)), 2 })
	after, _ := h.decide(pause)
	if condition(after) != "False TooLarge" || after.Status.ObservedGeneration != 2 {
		t.Errorf("many for each: %s", condition(after))
	}
	was, is := before.Status.PerConsumer(), after.Status.PerConsumer()
	for i := range was {
		if !slices.Equal(ids(was[i].Chosen), ids(is[i].Chosen)) || slices.ContainsFunc(is[i].Chosen, func(c v1alpha1.ChosenProvider) bool { return c.Barred }) {
			t.Fatalf("%s: chosen %v, and %v before", was[i].Consumer, is[i].Chosen, was[i].Chosen)
		}
	}
	// What is chosen cannot be stored, and yet the policy forbids who was chosen before.
	first := is[0].Chosen[0].ID
	h.change(policy, func() {
		policy.Spec.Filters, policy.Generation = []v1alpha1.Filter{v1alpha1.Filter(fmt.Sprintf("id != %q", first))}, 3
	})
	after, _ = h.decide(pause)
	for _, c := range after.Status.DecisionFor(is[0].Consumer).Chosen {
		if c.Barred != (c.ID == first) {
			t.Errorf("%s is barred: %t", c.ID, c.Barred)
		}
	}
	h.change(policy, func() { policy.Spec.MaxProviders, policy.Generation = new(int32(5)), 4 })
	if after, _ = h.decide(pause); condition(after) != "True Decided" {
		t.Errorf("few for each again: %s", condition(after))
	}
}

func ids(chosen []v1alpha1.ChosenProvider) (ids []string) {
	for _, c := range chosen {
		ids = append(ids, c.ID)
	}
	return ids
}

// TestTooLargeWhatWasShared has all consumers share what is chosen, and then each want something else: what is kept of before is shared
// as it was, so that it can be stored.
func TestTooLargeWhatWasShared(t *testing.T) {
	policy := cheapest()
	policy.Spec.MaxProviders = nil
	h := begin(t, append(farApart(), policy)...)
	if before, _ := h.decide(0); condition(before) != "True Decided" || len(before.Status.Decisions) != 1 {
		t.Fatalf("all for all: %s, %d decisions", condition(before), len(before.Status.Decisions))
	}
	h.change(policy, func() {
		policy.Spec.Weights = map[string]v1alpha1.Weight{kpi.ConsumerRoundTripTime: -10}
		policy.Spec.MaxProviders, policy.Generation = new(int32(150)), 2
	})
	after, _ := h.decide(pause)
	if size := sizeOf(after.Status); condition(after) != "False TooLarge" || len(after.Status.Decisions) != 1 || size > maxDecisions {
		t.Errorf("others for each: %s, %d decisions, %d bytes", condition(after), len(after.Status.Decisions), size)
	}
	for _, c := range after.Status.DecisionFor(uuid(1, 0)).Chosen {
		if !c.Barred {
			t.Fatalf("%s takes pods, though the policy forbids it to some", c.ID)
		}
	}
}

// farApart returns 200 providers, and 100 consumers each of which is near to others of them.
func farApart() []client.Object {
	r := rand.New(rand.NewPCG(1, 2))
	var objects []client.Object
	for i := range 200 {
		objects = append(objects, provider(uuid(0, i), "1"))
	}
	for i := range 100 {
		c := consumer(uuid(1, i))
		for n := range 200 {
			c.Status.RoundTrips = append(c.Status.RoundTrips, v1alpha1.RoundTrip{
				Provider: uuid(0, n),
				KPIValue: v1alpha1.KPIValueOf(kpi.KPI{Value: float64(1 + r.IntN(100)), Unit: kpi.Milliseconds, Measured: now, Expires: now.Add(time.Hour)}),
			})
		}
		objects = append(objects, c)
	}
	return objects
}
