// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/test/federation"
	"github.com/capacitorset/liqo-broker/test/walk"
)

// TestAggregatedOffer changes what a provider can offer: the consumer's node for the broker has the new sum soon.
func TestAggregatedOffer(t *testing.T) {
	start(t, v1alpha1.ModeAggregated)
	eventually(t, time.Minute, fed.CheckOffer)
	before, err := fed.OfferedToBroker(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	if !fed.Broker.Has(federation.LiveOffers) {
		// What is offered changes when a provider goes.
		toggle(t, fed.ProviderA, false)
		changed := time.Now()
		eventually(t, time.Minute, func(ctx context.Context) error {
			after, err := fed.OfferedToConsumer(ctx)
			if memory := after[corev1.ResourceMemory]; err == nil && memory.Cmp(*before.Memory()) >= 0 {
				err = fmt.Errorf("the consumer is still offered %s of memory", memory.String())
			}
			return err
		})
		t.Logf("the consumer sees the change %.1f s after it", time.Since(changed).Seconds())
		eventually(t, time.Minute, fed.CheckOffer)
		return
	}

	// A pod of its own takes a quarter of what provider-a can share. Liqo v0.9.4 compares offers in whole units, so that it
	// would overlook half a CPU.
	var node corev1.Node
	if err := fed.ProviderA.Get(t.Context(), client.ObjectKey{Name: fed.ProviderA.Name}, &node); err != nil {
		t.Fatal(err)
	}
	pod := fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata: {name: tenant, namespace: default}
spec:
  terminationGracePeriodSeconds: 0
  containers:
    - {name: tools, image: "lab.local/tools:1", imagePullPolicy: IfNotPresent, resources: {requests: {memory: %d}}}
`, node.Status.Allocatable.Memory().Value()/4)
	if err := fed.ProviderA.ApplyManifests(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	walk.KubectlAtEnd(t, fed.ProviderA, "delete", "pod", "tenant")

	eventually(t, 2*time.Minute, func(ctx context.Context) error {
		after, err := fed.OfferedToBroker(ctx)
		if err != nil {
			return err
		}
		if after.Memory().Cmp(*before.Memory()) >= 0 {
			return fmt.Errorf("the providers still offer the broker %s of memory", after.Memory())
		}
		return nil
	})
	changed := time.Now()
	eventually(t, time.Minute, fed.CheckOffer)
	t.Logf("the consumer sees the change %.1f s after the broker", time.Since(changed).Seconds())
}

// TestAggregator runs six replicas in aggregator mode: they spread over both providers, and the consumer reaches each of them
// through the broker.
func TestAggregator(t *testing.T) {
	start(t, v1alpha1.ModeAggregated)
	deploy(t, "aggregator", federation.Web, 6)
	pods := copies(t, "aggregator", 6, fed.ProviderA, fed.ProviderB)
	for _, pod := range pods {
		if pod.Path != federation.PathRelay {
			t.Errorf("pod %s on %s is reached by path %q: the aggregator hides its providers", pod.Name, pod.RunsOn.Name, pod.Path)
		}
	}
	checkAddresses(t, pods)

	// The Service leads to all of them.
	missing := map[string]bool{}
	for _, pod := range pods {
		missing[pod.Name] = true
	}
	eventually(t, time.Minute, func(ctx context.Context) error {
		hosts, err := fed.Hosts(ctx, "web.aggregator", 30)
		if err != nil {
			return err
		}
		for _, host := range hosts {
			delete(missing, host)
		}
		if len(missing) > 0 {
			return fmt.Errorf("the Service has not led to %d of the pods", len(missing))
		}
		return nil
	})
}
