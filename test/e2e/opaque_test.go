// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/test/federation"
)

// TestAggregatedConsumerLearnsNoProvider reads what kubectl on an aggregated consumer shows of its pods, of those that run, that crash
// and that nobody can take: no name, ID or node of a provider.
func TestAggregatedConsumerLearnsNoProvider(t *testing.T) {
	const namespace = "opaque"
	together(t, v1alpha1.ModeAggregated)
	deploy(t, namespace, federation.Web, 3)
	// The pods are told that they are relayed, and not who runs them.
	checkTold(t, v1alpha1.ModeAggregated, namespace, copies(t, namespace, 3))
	crashing := strings.Replace(fmt.Sprintf(lonePod, namespace, "crashing", fed.Broker.ID),
		"imagePullPolicy: IfNotPresent", "imagePullPolicy: IfNotPresent\n      command: [/nowhere]", 1)
	// It fits the sum, and no provider.
	offered, err := fed.OfferedToConsumer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	memory := offered[corev1.ResourceMemory]
	huge := strings.Replace(fmt.Sprintf(lonePod, namespace, "huge", fed.Broker.ID),
		"requests: {cpu: 10m, memory: 16Mi}\n        limits: {cpu: 500m, memory: 64Mi}",
		fmt.Sprintf("requests: {memory: %dMi}", memory.Value()>>20*3/4), 1)
	if err := fed.Consumer.ApplyManifests(t.Context(), crashing+huge); err != nil {
		t.Fatal(err)
	}
	// The events of the provider's kubelet arrive: those that say how the pod does.
	eventually(t, time.Minute, func(ctx context.Context) error {
		events, err := fed.Consumer.Kubectl(ctx, "get", "events", "--namespace="+namespace)
		if err == nil && !strings.Contains(events, "nowhere") {
			err = fmt.Errorf("no event says why the pod crashes:\n%s", events)
		}
		return err
	})
	wished(t, namespace, "huge")
	time.Sleep(5 * time.Second) // What the broker's scheduler says of it takes a moment to arrive, if it does.
	for _, what := range []string{"events", "pods", "endpointslices", "services", "configmaps", "secrets"} {
		output, err := fed.Consumer.Kubectl(t.Context(), "get", what, "--namespace="+namespace, "--output=yaml")
		if err != nil {
			t.Fatal(err)
		}
		for _, provider := range fed.Providers() {
			for _, secret := range []string{provider.Name, string(provider.ID)} {
				for line := range strings.Lines(output) {
					if strings.Contains(line, secret) {
						t.Errorf("%s of the consumer tell of %s: %s", what, provider.Name, line)
					}
				}
			}
		}
		for line := range strings.Lines(output) {
			if strings.Contains(line, "nodes are available") {
				t.Errorf("%s of the consumer count the providers: %s", what, line)
			}
		}
	}
}
