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

	"github.com/google/go-cmp/cmp"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/test/federation"
)

// TestRelayAddressesLastAsLongAsTheirPods restarts everything that has to do with relay addresses, after which each pod has the one
// that it had.
func TestRelayAddressesLastAsLongAsTheirPods(t *testing.T) {
	needs(t, federation.RemoteIPAM)
	const namespace, replicas = "relays", 3
	start(t, v1alpha1.ModeOrchestrated)
	toggle(t, fed.ProviderA, false)
	deploy(t, namespace, federation.Web, replicas)
	pods := onPath(t, namespace, replicas, federation.PathRelay, time.Minute)
	checkAddresses(t, pods)
	before := relaysOf(t, pods)

	restart(t, fed.Broker, "liqo", "app.kubernetes.io/name=network-manager")
	restart(t, fed.Consumer, "--all-namespaces", "app.kubernetes.io/component=virtual-kubelet")
	again := onPath(t, namespace, replicas, federation.PathRelay, 2*time.Minute)
	checkAddresses(t, again)
	checkSame(t, pods, again)
	if diff := cmp.Diff(before, relaysOf(t, again)); diff != "" {
		t.Errorf("the restart changed relay addresses (-before +after):\n%s", diff)
	}
}

// TestRelayAddressesEndWithTheirPods ends pods, after which their relay addresses are free within a minute.
func TestRelayAddressesEndWithTheirPods(t *testing.T) {
	needs(t, federation.RemoteIPAM)
	const namespace, replicas = "freed", 3
	together(t, v1alpha1.ModeOrchestrated)
	pin(t, namespace, fed.ProviderB)
	deploy(t, namespace, federation.Web, replicas)
	pods := onPath(t, namespace, replicas, federation.PathRelay, time.Minute)
	relaysOf(t, pods)
	if err := fed.Scale(t.Context(), namespace, federation.Web, 1); err != nil {
		t.Fatal(err)
	}
	last := copies(t, namespace, 1, fed.ProviderB)
	ended := time.Now()
	eventually(t, time.Minute, func(ctx context.Context) error {
		var kept []string
		mapped, err := fed.RelayMappings(ctx)
		for _, pod := range pods {
			if address := pod.Address[fed.Broker.Name]; pod.Name != last[0].Name && mapped[address] != "" {
				kept = append(kept, address)
			}
		}
		if err == nil && len(kept) > 0 {
			err = fmt.Errorf("the relay addresses of %s are kept", strings.Join(kept, ", "))
		}
		return err
	})
	t.Logf("the relay addresses of %d pods were free %.0f s after their end", replicas-1, time.Since(ended).Seconds())
	checkAddresses(t, last)
}

// restart deletes the pods with a label, and waits until there are ready ones again.
func restart(t *testing.T, c *federation.Cluster, namespace, selector string) {
	t.Helper()
	if !strings.HasPrefix(namespace, "--") {
		namespace = "--namespace=" + namespace
	}
	if _, err := c.Kubectl(t.Context(), "delete", "pods", namespace, "--selector="+selector); err != nil {
		t.Fatal(err)
	}
	eventually(t, 2*time.Minute, func(ctx context.Context) error {
		output, err := c.Kubectl(ctx, "get", "pods", namespace, "--selector="+selector, "--no-headers",
			"-o=custom-columns=READY:.status.conditions[?(@.type=='Ready')].status")
		if err == nil && (strings.Contains(output, "False") || !strings.Contains(output, "True")) {
			err = fmt.Errorf("pods with label %s on %s are ready: %s", selector, c.Name, strings.Fields(output))
		}
		return err
	})
}

// relaysOf returns the relay addresses of pods, by the address that the broker shows.
func relaysOf(t *testing.T, pods []federation.Copy) map[string]string {
	t.Helper()
	mapped, err := fed.RelayMappings(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	relays := map[string]string{}
	for _, pod := range pods {
		address := pod.Address[fed.Broker.Name]
		if mapped[address] == "" {
			t.Fatalf("pod %s at %s has no relay address among %v", pod.Name, address, mapped)
		}
		relays[address] = mapped[address]
	}
	return relays
}
