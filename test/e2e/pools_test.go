// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/podstate"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/test/federation"
	"github.com/capacitorset/liqo-broker/test/walk"
)

// TestPools gives the consumer a node for each provider: its scheduler chooses, pods run on the provider of their node, and leave it
// when it is disabled. In the end the consumer has one node again, while its pods run.
func TestPools(t *testing.T) {
	const namespace, replicas = "pools", 3
	start(t, v1alpha1.ModeOrchestrated)
	label(t, fed.Broker, "provider", string(fed.ProviderA.ID), corev1.LabelTopologyRegion, "north")
	label(t, fed.Broker, "provider", string(fed.ProviderB.ID), corev1.LabelTopologyRegion, "south")
	began := time.Now()
	perProvider(t)
	for _, provider := range fed.Providers() {
		eventually(t, 2*time.Minute, func(ctx context.Context) error { return nodeHas(ctx, provider, free) })
	}
	t.Logf("the consumer had a node for each provider after %.1f s", time.Since(began).Seconds())
	// The pods of the demo end as slowly as the machine is busy.
	eventually(t, time.Minute, func(ctx context.Context) error { return brokerNodeHas(ctx, 0) })

	// With one provider off, all pods go to the other one's node, and stay there when it is on again.
	schedule(t, fed.ProviderA, v1alpha1.SchedulingDrained)
	eventually(t, time.Minute, func(ctx context.Context) error { return nodeHas(ctx, fed.ProviderA, nothing) })
	deploy(t, namespace, federation.Web, replicas)
	checkAddresses(t, copies(t, namespace, replicas, fed.ProviderB))
	schedule(t, fed.ProviderA, v1alpha1.SchedulingActive)
	eventually(t, time.Minute, func(ctx context.Context) error { return nodeHas(ctx, fed.ProviderA, free) })
	eventually(t, time.Minute, func(ctx context.Context) error { return nodeHas(ctx, fed.ProviderB, all) })

	key, value := corev1.LabelTopologyRegion, "north"
	if !fed.Broker.Has(federation.ProviderLabels) {
		key, value = liqo.LabelProvider, string(fed.ProviderA.ID)
	}
	if err := fed.Consumer.ApplyManifests(t.Context(), fmt.Sprintf(pickyPod, namespace, key, value)); err != nil {
		t.Fatal(err)
	}
	eventually(t, time.Minute, func(ctx context.Context) error { return runsOn(ctx, namespace, "picky", fed.ProviderA) })

	watch := watchReady(t, namespace)
	began = time.Now()
	schedule(t, fed.ProviderB, v1alpha1.SchedulingDrained)
	eventually(t, 3*time.Minute, func(ctx context.Context) error {
		if err := nodeHas(ctx, fed.ProviderB, nothing); err != nil {
			return err
		}
		ready, err := fed.ReadyReplicas(ctx, namespace, federation.Web)
		if err == nil && ready != replicas {
			err = fmt.Errorf("%d of %d replicas are ready", ready, replicas)
		}
		return err
	})
	t.Logf("%d replicas had left the provider after %.1f s", replicas, time.Since(began).Seconds())
	if least := watch.stop(); least < replicas-1 {
		t.Errorf("there was a moment in which only %d of %d replicas were ready", least, replicas)
	} else {
		t.Logf("at least %d replicas were ready at any time", least)
	}
	schedule(t, fed.ProviderB, v1alpha1.SchedulingActive)
	eventually(t, time.Minute, func(ctx context.Context) error { return nodeHas(ctx, fed.ProviderB, free) })

	before := running(t, namespace)
	setNodes(t, v1alpha1.NodesOne)
	eventually(t, time.Minute, func(ctx context.Context) error {
		if err := nodeHas(ctx, fed.ProviderB, nothing); err != nil {
			return err
		}
		return nodeHas(ctx, fed.ProviderA, used)
	})
	if after := running(t, namespace); !slices.Equal(before, after) {
		t.Errorf("the pods %q run after the change, and ran before: %q", after, before)
	}
}

// pickyPod must run on a node with a label.
const pickyPod = `
apiVersion: v1
kind: Pod
metadata: {name: picky, namespace: %s}
spec:
  terminationGracePeriodSeconds: 0
  nodeSelector: {%s: %s}
  containers:
    - {name: tools, image: "lab.local/tools:1", imagePullPolicy: IfNotPresent, resources: {requests: {cpu: 10m, memory: 16Mi}}}
`

// perProvider gives the consumer a node for each provider until the test ends. The node of the broker was the first, and stays.
func perProvider(t *testing.T) {
	t.Helper()
	walk.AtEnd(t, func(ctx context.Context) error {
		setNodes(t, v1alpha1.NodesOne)
		return errors.Join(fed.EndNodes(ctx), federation.Until(ctx, 4*time.Minute, func(ctx context.Context) error {
			if _, err := fed.Consumer.VirtualNode(ctx, fed.Broker); err != nil {
				return err
			}
			return fed.Consumer.NodesReady(ctx)
		}))
	})
	setNodes(t, v1alpha1.NodesPerProvider)
}

func setNodes(t *testing.T, nodes v1alpha1.Nodes) {
	t.Helper()
	_, err := fed.Broker.Kubectl(context.WithoutCancel(t.Context()), "patch", "consumer", string(fed.Consumer.ID), "--type=merge",
		fmt.Sprintf(`--patch={"spec":{"nodes":%q}}`, nodes))
	if err != nil {
		t.Fatal(err)
	}
}

// amount is what the consumer's node of a provider is to have.
type amount string

const (
	free    amount = "what is free of the provider, and nothing is used" // Of memory, as all of these.
	all     amount = "what the provider has, of which the consumer alone uses something"
	used    amount = "what the consumer's pods on it use"
	nothing amount = "nothing"
)

// nodeOf returns the consumer's node of a provider.
func nodeOf(ctx context.Context, provider *federation.Cluster) (*corev1.Node, error) {
	var nodes corev1.NodeList
	if err := fed.Consumer.List(ctx, &nodes, client.MatchingLabels{liqo.LabelProvider: string(provider.ID)}); err != nil {
		return nil, err
	}
	if len(nodes.Items) != 1 {
		return nil, fmt.Errorf("the consumer has %d nodes of %s", len(nodes.Items), provider.Name)
	}
	return &nodes.Items[0], nil
}

// nodeHas returns an error unless the consumer's node of a provider has so much memory, and the provider's labels.
func nodeHas(ctx context.Context, provider *federation.Cluster, want amount) error {
	node, err := nodeOf(ctx, provider)
	if err != nil {
		return err
	}
	var p v1alpha1.Provider
	if err := fed.Broker.Get(ctx, client.ObjectKey{Name: string(provider.ID)}, &p); err != nil {
		return err
	}
	if fed.Broker.Has(federation.ProviderLabels) && node.Labels[corev1.LabelTopologyRegion] != p.Labels[corev1.LabelTopologyRegion] {
		return fmt.Errorf("node %s is in region %q", node.Name, node.Labels[corev1.LabelTopologyRegion])
	}
	expected := map[amount]int64{free: p.Status.Free.Memory().Value(), all: p.Status.Offered.Memory().Value(),
		used: p.Status.Used.Memory().Value()}[want]
	ready := liqo.NodeReady(node)
	if got := node.Status.Allocatable.Memory().Value(); got != expected || ready != (want != nothing) || (got == 0) != (want == nothing) {
		return fmt.Errorf("node %s has %d bytes of memory, ready: %t; want %d: %s", node.Name, got, ready, expected, want)
	}
	return nil
}

// brokerNodeHas returns an error unless the consumer's node of the broker has so much memory.
func brokerNodeHas(ctx context.Context, want int64) error {
	var node corev1.Node
	if err := fed.Consumer.Get(ctx, client.ObjectKey{Name: fed.Broker.NodeName()}, &node); err != nil {
		return err
	}
	if got := node.Status.Allocatable.Memory().Value(); got != want {
		return fmt.Errorf("node %s has %d bytes of memory, want %d", node.Name, got, want)
	}
	return nil
}

// runsOn returns an error unless a pod of the consumer runs on a provider.
func runsOn(ctx context.Context, namespace, name string, provider *federation.Cluster) error {
	found, err := fed.Copies(ctx, namespace)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(found, func(c federation.Copy) bool { return c.Name == name })
	if i < 0 || !found[i].Ready || found[i].RunsOn != provider {
		return fmt.Errorf("pod %s does not run on %s: %+v", name, provider.Name, found)
	}
	return nil
}

// running returns the UIDs of the ready pods of a namespace of the consumer, in order.
func running(t *testing.T, namespace string) []string {
	t.Helper()
	var pods corev1.PodList
	if err := fed.Consumer.List(t.Context(), &pods, client.InNamespace(namespace)); err != nil {
		t.Fatal(err)
	}
	var uids []string
	for i := range pods.Items {
		if podstate.Ready(&pods.Items[i]) {
			uids = append(uids, string(pods.Items[i].UID))
		}
	}
	slices.Sort(uids)
	return uids
}
