// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package stock

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/capacitorset/liqo-broker/test/lab"
)

// withoutAPIServer has Liqo leave out what leads a pod to the API server of its own cluster.
var withoutAPIServer = map[string]string{"liqo.io/api-server-support": "disabled"}

// TestOneHop has a pod run on the cluster beyond one peering: it is shown with an address that leads to it.
func TestOneHop(t *testing.T) {
	const namespace = "one-hop"
	offload(t, broker, namespace, provider)
	apply(t, broker, web(namespace, "near", nil))
	shown := awaitReady(t, broker, namespace, "near")
	eventually(t, func(ctx context.Context) error {
		host, err := ask(ctx, broker, shown.address)
		if err == nil && host != "near" {
			err = fmt.Errorf("%s is answered by %q, want near", shown.address, host)
		}
		return err
	})
}

// chain makes a namespace of the consumer whose pods go to the broker, and from there to the provider, and returns the name that it has at
// the broker.
func chain(t *testing.T, namespace string) (twin string) {
	t.Helper()
	apply(t, consumer, fmt.Sprintf(`{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": %q}}`, namespace))
	reoffload(t, consumer, namespace, "DefaultName", broker)
	twin = namespace + "-" + consumer.Name
	reoffload(t, broker, twin, "DefaultName", provider)
	return twin
}

// TestChain has pods go two hops. As Liqo comes, the second hop does not start: each hop adds the variables of an API server, and the
// second ones are refused. With the annotation that turns this off the pod runs, and the consumer shows an address that leads it nowhere.
func TestChain(t *testing.T) {
	const namespace = "two-hops"
	twin := chain(t, namespace)
	apply(t, consumer, web(namespace, "quiet", withoutAPIServer)+"---"+web(namespace, "plain", nil))
	shown := awaitReady(t, consumer, namespace, "quiet")

	far := twin + "-" + broker.Name
	if p, err := look(t.Context(), provider, far, "quiet"); err != nil || p.ready != "True" {
		t.Errorf("the provider has the pod as %+v, %v, want it ready", p, err)
	}
	// By accident the consumer may see the provider, with which it peers as well, as the broker does.
	seen := func(c *lab.Cluster) string {
		return kubectl(t, c, "get", "configurations.networking.liqo.io", "-n", "liqo-tenant-"+provider.Name, provider.Name, "-o",
			"jsonpath={.status.remote.cidr.pod}")
	}
	if host, err := ask(t.Context(), consumer, shown.address); err == nil && seen(consumer) != seen(broker) {
		t.Errorf("the consumer reaches %s, which %q answers: views of the broker need not be announced any more", shown.address, host)
	}
	eventually(t, func(ctx context.Context) error {
		logs, err := broker.Kubectl(ctx, "logs", "-n", "liqo-tenant-"+provider.Name, "-l", "offloading.liqo.io/component=virtual-kubelet",
			"--tail=-1", "--prefix")
		if err == nil && !strings.Contains(logs, "Duplicate value") {
			err = fmt.Errorf("the broker's virtual kubelet does not say that a value is there twice: %.2000s", logs)
		}
		return err
	})
	if p, err := look(t.Context(), consumer, namespace, "plain"); err != nil || p.phase != "Pending" {
		t.Errorf("the pod without the annotation is %+v, %v, want it to wait: it need not be set any more", p, err)
	}
}

// TestMovedPodIsLost deletes a pod at the broker, as a drain does. It ends while it is deleted, Liqo takes that for its end, and makes no
// other one: the consumer has lost it.
func TestMovedPodIsLost(t *testing.T) {
	const namespace = "moved"
	twin := chain(t, namespace)
	apply(t, consumer, web(namespace, "moving", withoutAPIServer))
	awaitReady(t, consumer, namespace, "moving")
	before, err := look(t.Context(), broker, twin, "moving")
	if err != nil {
		t.Fatal(err)
	}
	kubectl(t, broker, "delete", "pod", "-n", twin, "moving", "--wait=false")
	eventually(t, func(ctx context.Context) error {
		phase, err := broker.Kubectl(ctx, "get", "shadowpods", "-n", twin, "moving", "-o", "jsonpath={.status.phase}")
		if err == nil && phase != "Failed" && phase != "Succeeded" {
			err = fmt.Errorf("the ShadowPod is %q, want its end", phase)
		}
		return err
	})
	eventually(t, func(ctx context.Context) error {
		p, err := look(ctx, consumer, namespace, "moving")
		if err == nil && p.phase != "Failed" && p.phase != "Succeeded" {
			err = fmt.Errorf("the consumer's pod is %+v, want it over", p)
		}
		return err
	})
	if after, err := look(t.Context(), broker, twin, "moving"); err != nil || after.uid != "" && after.uid != before.uid {
		t.Errorf("the broker has another pod, %+v, %v: moves need no webhook any more", after, err)
	}
}
