// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/test/federation"
)

// TestAddressesFollowThePeering peers the consumer with a provider that runs its pods already, and ends that peering again: the
// addresses turn from relay to direct and back, and the pods stay the same.
func TestAddressesFollowThePeering(t *testing.T) {
	const namespace, replicas = "peering", 2
	start(t, v1alpha1.ModeOrchestrated)
	toggle(t, fed.ProviderA, false)
	deploy(t, namespace, federation.Web, replicas)
	before := onPath(t, namespace, replicas, federation.PathRelay, time.Minute)
	checkAddresses(t, before)

	unpeer := peer(t, fed.Consumer, fed.ProviderB)
	peered := time.Now()
	direct := onPath(t, namespace, replicas, federation.PathDirect, 30*time.Second)
	t.Logf("direct %.1f s after the peering", time.Since(peered).Seconds())
	checkAddresses(t, direct)
	checkSame(t, before, direct)

	unpeer()
	ended := time.Now()
	relayed := onPath(t, namespace, replicas, federation.PathRelay, 30*time.Second)
	t.Logf("relayed %.1f s after the end of the peering", time.Since(ended).Seconds())
	checkAddresses(t, relayed)
	checkSame(t, before, relayed)
}

// peer makes a peering, and returns a function that ends it; the end of the test does so at the latest.
func peer(t *testing.T, consumer, provider *federation.Cluster) (unpeer func()) {
	t.Helper()
	unpeer = sync.OnceFunc(func() {
		if err := fed.Unpeer(context.WithoutCancel(t.Context()), consumer, provider); err != nil {
			t.Errorf("end the peering of %s with %s: %v", consumer.Name, provider.Name, err)
		}
	})
	t.Cleanup(unpeer)
	if err := fed.Peer(t.Context(), consumer, provider); err != nil {
		t.Fatal(err)
	}
	return unpeer
}

// onPath returns the pods of a namespace, all on provider-b, once the consumer reaches each of them by a path.
func onPath(t *testing.T, namespace string, replicas int, path federation.Path, timeout time.Duration) []federation.Copy {
	t.Helper()
	pods := copies(t, namespace, replicas, fed.ProviderB)
	eventually(t, timeout, func(ctx context.Context) (err error) {
		if pods, err = fed.Copies(ctx, namespace); err != nil {
			return err
		}
		for _, pod := range pods {
			if pod.Path != path {
				return fmt.Errorf("pod %s is reached by path %q, not %s, at %s", pod.Name, pod.Path, path, pod.Address[fed.Consumer.Name])
			}
		}
		return nil
	})
	return pods
}

// checkSame fails unless the pods run where they ran before, with the address that the provider gave them.
func checkSame(t *testing.T, before, after []federation.Copy) {
	t.Helper()
	own := func(pods []federation.Copy) map[string]string {
		addresses := map[string]string{}
		for _, pod := range pods {
			addresses[pod.Name] = pod.Address[fed.ProviderB.Name]
		}
		return addresses
	}
	was, is := own(before), own(after)
	for name, address := range was {
		if is[name] != address {
			t.Errorf("pod %s had address %s on the provider and has %q now: it was recreated", name, address, is[name])
		}
	}
}
