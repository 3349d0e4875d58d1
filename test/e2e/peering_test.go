// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/test/federation"
)

// TestAddressesFollowThePeering peers the consumer with a provider that runs its pods already, and ends that peering again: the
// addresses turn from relay to direct and back, and the pods stay the same.
func TestAddressesFollowThePeering(t *testing.T) {
	needs(t, federation.DirectPaths)
	const namespace, replicas = "peering", 2
	start(t, v1alpha1.ModeOrchestrated)
	toggle(t, fed.ProviderA, false)
	deploy(t, namespace, federation.Web, replicas)
	before := onPath(t, namespace, replicas, federation.PathRelay, time.Minute)
	checkAddresses(t, before)
	checkTold(t, v1alpha1.ModeOrchestrated, namespace, before)

	unpeer := peer(t, fed.Consumer, fed.ProviderB)
	peered := time.Now()
	direct := onPath(t, namespace, replicas, federation.PathDirect, time.Minute)
	t.Logf("direct %.1f s after the peering", time.Since(peered).Seconds())
	checkAddresses(t, direct)
	checkTold(t, v1alpha1.ModeOrchestrated, namespace, direct)
	checkSame(t, before, direct)

	unpeer()
	ended := time.Now()
	relayed := onPath(t, namespace, replicas, federation.PathRelay, time.Minute)
	t.Logf("relayed %.1f s after the end of the peering", time.Since(ended).Seconds())
	checkAddresses(t, relayed)
	checkTold(t, v1alpha1.ModeOrchestrated, namespace, relayed)
	checkSame(t, before, relayed)

	// An event tells of each change.
	provider := fmt.Sprintf("(provider %s)", fed.ProviderB.ID)
	eventually(t, time.Minute, func(ctx context.Context) error {
		events, err := fed.Consumer.Kubectl(ctx, "get", "events", "--namespace="+namespace, "--field-selector=reason=PathChanged",
			"--output=custom-columns=MESSAGE:.message")
		for _, change := range []string{
			"from relay " + provider + " to direct " + provider, "from direct " + provider + " to relay " + provider,
		} {
			if err == nil && strings.Count(events, change) < replicas {
				err = fmt.Errorf("not each of %d pods has an event of its change %s:\n%s", replicas, change, events)
			}
		}
		return err
	})
}

// checkTold fails unless kubectl on the consumer soon tells of each pod by which path it is reached, since when, and who runs it; the
// last only where the consumer may know.
func checkTold(t *testing.T, mode v1alpha1.Mode, namespace string, pods []federation.Copy) {
	t.Helper()
	if !fed.Consumer.Has(federation.OurKubelets) {
		return // Liqo's own say nothing of paths.
	}
	orchestrated := mode == v1alpha1.ModeOrchestrated
	eventually(t, time.Minute, func(ctx context.Context) error {
		var shown corev1.PodList
		if err := fed.Consumer.List(ctx, &shown, client.InNamespace(namespace)); err != nil {
			return err
		}
		annotations := map[string]map[string]string{}
		for i := range shown.Items {
			annotations[shown.Items[i].Name] = shown.Items[i].Annotations
		}
		for _, pod := range pods {
			told := annotations[pod.Name]
			provider, named := told[liqo.AnnotationProvider]
			switch _, err := time.Parse(time.RFC3339, told[liqo.AnnotationPathSince]); {
			case told[liqo.AnnotationPath] != string(pod.Path), orchestrated && provider != string(pod.RunsOn.ID), !orchestrated && named:
				return fmt.Errorf("pod %s, which is reached by path %s and runs on %s, is told %v", pod.Name, pod.Path, pod.RunsOn.ID, told)
			case err != nil:
				return fmt.Errorf("pod %s is told no time: %v: %w", pod.Name, told, err)
			}
		}
		return nil
	})
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
