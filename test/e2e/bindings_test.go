// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"fmt"
	"testing"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/test/federation"
)

// TestBindings moves a workload in the three ways in which a policy comes to a namespace: by the name that the consumer gave it, by a
// label that the broker's people put on its twin, and by a wish of the consumer on its pods.
func TestBindings(t *testing.T) {
	const namespace, replicas = "bindings", 2
	together(t, v1alpha1.ModeOrchestrated)
	bind(t, "named", fed.ProviderB, "{scope: Namespaces, namespaces: {names: [bindings]}}")
	deploy(t, namespace, federation.Web, replicas)
	copies(t, namespace, replicas, fed.ProviderB)

	bind(t, "labeled", fed.ProviderA, "{scope: Namespaces, namespaces: {selector: {matchLabels: {level: secret}}}}")
	if _, err := fed.Broker.Kubectl(t.Context(), "label", "namespace", twinOf(t, namespace), "level=secret"); err != nil {
		t.Fatal(err)
	}
	copies(t, namespace, replicas, fed.ProviderA)

	bind(t, "wished", fed.ProviderB, "{scope: OnRequest}")
	const wish = `{"spec": {"template": {"metadata": {"labels": {"brokering.liqo.io/policy": "wished"}}}}}`
	if _, err := fed.Consumer.Kubectl(t.Context(), "patch", "--namespace="+namespace, "deployment/"+federation.Web,
		"--patch="+wish); err != nil {
		t.Fatal(err)
	}
	checkAddresses(t, copies(t, namespace, replicas, fed.ProviderB))
}

// bind makes a policy that chooses one provider for whom it is bound to, until the test ends.
func bind(t *testing.T, name string, provider *federation.Cluster, appliesTo string) {
	t.Helper()
	const policy = `
apiVersion: brokering.liqo.io/v1alpha1
kind: PlacementPolicy
metadata:
  name: %s
spec:
  appliesTo: %s
  filters: ['id == "%s"']
`
	apply(t, fmt.Sprintf(policy, name, appliesTo, provider.ID))
}

// twinOf returns the name of the twin on the broker of a namespace of the consumer.
func twinOf(t *testing.T, namespace string) string {
	t.Helper()
	twin, err := fed.Broker.Twin(t.Context(), fed.Consumer, namespace)
	if err != nil {
		t.Fatal(err)
	}
	return twin
}
