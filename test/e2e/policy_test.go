// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/test/federation"
	"github.com/capacitorset/liqo-broker/test/walk"
)

// cheapest is a policy that has one provider at a time.
const cheapest = `
apiVersion: brokering.liqo.io/v1alpha1
kind: PlacementPolicy
metadata:
  name: cheapest
spec:
  appliesTo: {scope: Namespaces, consumers: [%s], namespaces: {names: [policy]}}
  filters: ['has(kpi.priceCPU)']
  weights:
    priceCPU: -10
  maxProviders: 1
  steady:
    duration: %s
`

// TestPolicy runs pods on the cheaper of two providers, and flips the prices while they serve.
func TestPolicy(t *testing.T) {
	const namespace, replicas, steady = "policy", 3, 5 * time.Second
	start(t, v1alpha1.ModeOrchestrated)
	price(t, fed.ProviderA, "0.02")
	price(t, fed.ProviderB, "0.03")
	apply(t, fmt.Sprintf(cheapest, fed.Consumer.ID, steady))
	chosen(t, "cheapest", fed.ProviderA)
	deploy(t, namespace, federation.Web, replicas)
	copies(t, namespace, replicas, fed.ProviderA)

	watch := watchReady(t, namespace)
	began := time.Now()
	price(t, fed.ProviderA, "0.04")
	chosen(t, "cheapest", fed.ProviderB)
	if took := time.Since(began); took < steady {
		t.Errorf("another provider was chosen after %s, before it was cheaper for %s", took, steady)
	} else {
		t.Logf("another provider was chosen after %.1f s", took.Seconds())
	}
	// One pod moves after the other.
	eventually(t, 5*time.Minute, func(ctx context.Context) error {
		found, err := fed.Copies(ctx, namespace)
		for _, pod := range found {
			if pod.RunsOn != fed.ProviderB {
				return fmt.Errorf("pod %s does not run on %s", pod.Name, fed.ProviderB.Name)
			}
		}
		return err
	})
	pods := copies(t, namespace, replicas, fed.ProviderB)
	t.Logf("%d replicas were there after %.1f s", replicas, time.Since(began).Seconds())
	if least := watch.stop(); least < replicas-1 {
		t.Errorf("there was a moment in which only %d of %d replicas were ready", least, replicas)
	} else {
		t.Logf("at least %d replicas were ready at any time", least)
	}
	checkAddresses(t, pods)
	explains(t)
}

// price gives a provider a price until the test ends.
func price(t *testing.T, provider *federation.Cluster, cpu string) {
	t.Helper()
	set := func(ctx context.Context, price string) error {
		_, err := fed.Broker.Kubectl(ctx, "patch", "provider", string(provider.ID), "--type=merge", "--patch", `{"spec": {"price": `+price+`}}`)
		return err
	}
	if err := set(t.Context(), fmt.Sprintf(`{"currency": "EUR", "cpu": %q}`, cpu)); err != nil {
		t.Fatal(err)
	}
	walk.AtEnd(t, func(ctx context.Context) error { return set(ctx, "null") })
}

// apply makes an object of the broker's API, or changes it. At the end of the test it goes.
func apply(t *testing.T, manifest string) {
	t.Helper()
	var object metav1.PartialObjectMetadata
	if err := yaml.Unmarshal([]byte(manifest), &object); err != nil {
		t.Fatal(err)
	}
	walk.KubectlAtEnd(t, fed.Broker, "delete", object.Kind, object.Name, "--ignore-not-found")
	if err := fed.Broker.ApplyManifests(t.Context(), manifest); err != nil {
		t.Fatal(err)
	}
}

// chosen waits until a policy has chosen these providers for the consumer, and no others.
func chosen(t *testing.T, policy string, providers ...*federation.Cluster) {
	t.Helper()
	eventually(t, time.Minute, func(ctx context.Context) error {
		_, decision, err := decided(ctx, policy)
		if err != nil {
			return err
		}
		if got := choiceIn(decision); !slices.Equal(got, ids(providers)) {
			return fmt.Errorf("policy %s has chosen %v, want %v", policy, got, ids(providers))
		}
		return nil
	})
}

// decided returns the status of a policy that has been looked at as it is now, and what it has decided for the consumer.
func decided(ctx context.Context, policy string) (*v1alpha1.PlacementPolicyStatus, *v1alpha1.PlacementDecision, error) {
	var p v1alpha1.PlacementPolicy
	if err := fed.Broker.Get(ctx, client.ObjectKey{Name: policy}, &p); err != nil {
		return nil, nil, err
	}
	if p.Status.ObservedGeneration != p.Generation {
		return nil, nil, fmt.Errorf("policy %s has not been looked at since it was changed", policy)
	}
	var all v1alpha1.PlacementDecisionList
	if err := fed.Broker.List(ctx, &all); err != nil {
		return nil, nil, err
	}
	var its *v1alpha1.PlacementDecision
	for i := range all.Items {
		switch d := &all.Items[i]; {
		case d.IsOf(&p, string(fed.Consumer.ID)):
			its = d
		case d.Policy == policy:
			return nil, nil, fmt.Errorf("policy %s decides for %s, which it is not bound to", policy, d.Consumer)
		}
	}
	if its == nil {
		return nil, nil, fmt.Errorf("policy %s has not decided for the consumer", policy)
	}
	return &p.Status, its, nil
}

// choiceIn returns the IDs, in order, of the providers that are chosen.
func choiceIn(d *v1alpha1.PlacementDecision) []string {
	var chosen []string
	for _, c := range d.Chosen {
		chosen = append(chosen, c.ID)
	}
	slices.Sort(chosen)
	return chosen
}

// ids returns the IDs of clusters, in order.
func ids(clusters []*federation.Cluster) []string {
	var of []string
	for _, c := range clusters {
		of = append(of, string(c.ID))
	}
	slices.Sort(of)
	return of
}

// explains looks at what kubectl and the HTTP API show of the decision.
func explains(t *testing.T) {
	t.Helper()
	for _, tc := range []struct {
		args []string
		want string
	}{
		{[]string{"get", "placementpolicies"}, fed.ProviderB.Name},
		{[]string{"get", "placementdecisions"}, fed.ProviderB.Name},
		{
			[]string{
				"get", "bdec", v1alpha1.DecisionName("cheapest", string(fed.Consumer.ID)), "--output=jsonpath={.explained[0].terms[0]['value','unit']}",
			}, "0.03 EUR/h",
		},
		{[]string{"explain", "placementpolicies.spec.weights"}, "less is better"},
	} {
		output, err := fed.Broker.Kubectl(t.Context(), tc.args...)
		if err != nil {
			t.Error(err)
		} else if !strings.Contains(output, tc.want) {
			t.Errorf("kubectl %s: want %q in\n%s", strings.Join(tc.args, " "), tc.want, output)
		}
	}

	path := "/api/v1/decisions?consumer=" + string(fed.Consumer.ID)
	if status, body := apiAs(t, "", path); status != "401" {
		t.Errorf("somebody without a token gets status %s: %s", status, body)
	}
	status, body := api(t, path)
	if status != "200" || !strings.Contains(body, `"policy":"cheapest"`) || !strings.Contains(body, ": 0.03 EUR/h (") {
		t.Errorf("who may list decisions gets status %s: %s", status, body)
	}
}
