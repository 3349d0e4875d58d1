// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package placementpolicy

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/kpi"
)

// maxObject is what etcd takes of an object by default, in bytes.
const maxObject = 3 << 19

// uuid returns an ID of the usual length.
func uuid(kind, n int) string { return fmt.Sprintf("5f0e8c7a-1b2c-4d3e-8f9%d-%012d", kind, n) }

// TestDecisionsCanBeStored chooses 900 of 1,000 providers for 100 consumers, half of which provide as well, and each of which is
// near to others.
func TestDecisionsCanBeStored(t *testing.T) {
	const providers, consumers, chosen = 1000, 100, 900
	policy := cheapest()
	policy.Spec.Weights, policy.Spec.MaxProviders = map[string]v1alpha1.Weight{kpi.ConsumerRoundTripTime: -10}, new(int32(chosen))
	objects := []client.Object{policy}
	for i := range providers {
		p := provider(uuid(0, i), "1")
		p.Status.ClusterName = fmt.Sprintf("provider-%04d", i)
		objects = append(objects, p)
	}
	r := rand.New(rand.NewPCG(1, 2))
	for i := range consumers {
		c := consumer(uuid(i%2, i))
		for n := range providers {
			c.Status.RoundTrips = append(c.Status.RoundTrips, v1alpha1.RoundTrip{
				Provider: uuid(0, n), KPIValue: v1alpha1.KPIValueOf(kpi.KPI{
					Value: float64(1 + r.IntN(100)), Unit: kpi.Milliseconds, Measured: now, Expires: now.Add(time.Hour),
				}),
			})
		}
		objects = append(objects, c)
	}
	h := begin(t, objects...)
	p, _ := h.decide(0)
	if condition(p) != "True Decided" || p.Status.Consumers != consumers || p.Status.Summary != "provider-0000, provider-0001 and 998 more" {
		t.Errorf("condition %s, %d consumers, %s", condition(p), p.Status.Consumers, p.Status.Summary)
	}
	choices := map[string]bool{}
	for _, d := range h.all() {
		text, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		choices[strings.Join(ids(d.Chosen), " ")] = true
		// The API server notes who wrote which field, at most once more for each.
		if own := strings.Contains(strings.Join(ids(d.Chosen), " "), d.Consumer); len(d.Chosen) != chosen || own || 2*len(text) > 1<<20 {
			t.Fatalf("%s: %d providers are chosen, itself %t, in %d bytes", d.Consumer, len(d.Chosen), own, len(text))
		}
	}
	if len(choices) != consumers || h.writes != consumers+1 {
		t.Errorf("%d choices and %d writes, want one for each of %d consumers, and the status", len(choices), h.writes, consumers)
	}
	h.decide(30 * time.Second)
	if h.writes != consumers+1 {
		t.Error("the same is written again")
	}
}

// TestLargestDecisionCanBeStored has as many providers as a decision holds, and of each as much as there is room for.
func TestLargestDecisionCanBeStored(t *testing.T) {
	name, at := strings.Repeat("n", v1alpha1.MaxName), metav1.NewTime(now)
	explained := func(terms int) v1alpha1.ExplainedProvider {
		e := v1alpha1.ExplainedProvider{ID: name, Name: name, Chosen: true, Score: "-100.0", Excluded: strings.Repeat("e", maxExcluded)}
		for range terms {
			e.Terms = append(e.Terms, v1alpha1.ExplainedTerm{
				KPI: name, Value: v1alpha1.Number(name[:32]), Unit: name[:32], Unknown: name[:128], Normalized: "0.00", Weight: -10,
			})
		}
		return e
	}
	d := v1alpha1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{Name: name}, Policy: name}
	d.Consumer, d.ConsumerName, d.Summary = name, name, summary([]v1alpha1.ChosenProvider{{Name: name}, {Name: name}, {}})
	for range v1alpha1.MaxChosen {
		d.Chosen = append(d.Chosen, v1alpha1.ChosenProvider{ID: name, Name: name, AwaySinceTime: &at, Substitute: true, Barred: true})
	}
	for range 16 {
		d.Better = append(d.Better, v1alpha1.BetterProvider{ID: name, SinceTime: at})
	}
	d.Scaling = &v1alpha1.ScalingStatus{Unknown: strings.Repeat("u", v1alpha1.MaxMessage)}
	for range explainedChosen + explainedPassed {
		d.Explained = append(d.Explained, explained(32))
	}
	for range explainedExcluded {
		d.Explained = append(d.Explained, explained(0))
	}
	text, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	const fields = 4 << 10 // The names of its few fields, for each of a few who wrote them: lists are one field.
	if len(text)+fields > maxObject {
		t.Errorf("the largest decision has %d bytes, and etcd takes %d", len(text), maxObject)
	}
}

// TestManagedFieldsStaySmall looks at the lists of a decision: of one that is a map the API server keeps, a second time,
// who wrote each field of each entry.
func TestManagedFieldsStaySmall(t *testing.T) {
	text, err := os.ReadFile("../../../deploy/crds/brokering.liqo.io_placementdecisions.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal(text, &crd); err != nil {
		t.Fatal(err)
	}
	fields := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties
	for _, name := range []string{"chosen", "better", "explained"} {
		if list := fields[name].XListType; list == nil || *list != "atomic" {
			t.Errorf("%s is no atomic list", name)
		}
	}
	if most := fields["chosen"].MaxItems; most == nil || *most != v1alpha1.MaxChosen {
		t.Errorf("the API server takes %v chosen providers, want %d", most, v1alpha1.MaxChosen)
	}
}
