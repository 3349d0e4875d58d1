// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/test/federation"
)

// api asks the broker's HTTP API from a pod of the consumer as its operator, and returns the status and the body.
func api(t *testing.T, path string) (status, body string) {
	t.Helper()
	token, err := fed.APIToken(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return apiAs(t, token, path)
}

// apiAs asks the HTTP API with a token, or as nobody if it is empty.
func apiAs(t *testing.T, token, path string, args ...string) (status, body string) {
	t.Helper()
	status, body, err := fed.AskAPI(t.Context(), token, path, args...)
	if err != nil {
		t.Fatal(err)
	}
	return status, body
}

// toggle switches a provider on or off, as a user of the HTTP API does.
func toggle(t *testing.T, provider *federation.Cluster, enable bool) {
	t.Helper()
	status, body := api(t, fmt.Sprintf("/api/toggle?id=%s&enable=%t", provider.ID, enable))
	if status[0] != '2' {
		t.Fatalf("toggle %s %t: status %s: %s", provider.Name, enable, status, body)
	}
}

// cordon keeps new pods from a provider, as a user of kubectl does. A toggle ends it.
func cordon(t *testing.T, provider *federation.Cluster) {
	t.Helper()
	_, err := fed.Broker.Kubectl(t.Context(), "patch", "provider", string(provider.ID), "--type=merge",
		`--patch={"spec": {"scheduling": "Cordoned"}}`)
	if err != nil {
		t.Fatal(err)
	}
}

// start gives a test a broker that serves the consumer in a mode, with all providers on. See together.
func start(t *testing.T, mode v1alpha1.Mode) {
	t.Helper()
	installed(t)
	for _, provider := range fed.Providers() {
		toggle(t, provider, true)
	}
	consumer := &v1alpha1.Consumer{}
	key := client.ObjectKey{Name: string(fed.Consumer.ID)}
	if err := fed.Broker.Get(t.Context(), key, consumer); err != nil {
		t.Fatal(err)
	}
	before := consumer.DeepCopy()
	consumer.Spec.Mode = mode
	if err := fed.Broker.Patch(t.Context(), consumer, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	eventually(t, time.Minute, func(ctx context.Context) error {
		if err := fed.Broker.Get(ctx, key, consumer); err != nil {
			return err
		}
		if consumer.Status.Mode != mode {
			return fmt.Errorf("the consumer is served in mode %q, not %q", consumer.Status.Mode, mode)
		}
		return nil
	})
}

// deploy runs a workload of the consumer on the federation until the test ends.
func deploy(t *testing.T, namespace, workload string, replicas int) {
	t.Helper()
	removeAtEnd(t, namespace)
	if err := fed.Deploy(t.Context(), namespace, workload, replicas); err != nil {
		t.Fatal(err)
	}
}

// copies returns the pods of a namespace once, within a minute, there are so many, ready and with an address, on each of the given
// providers and on no other; without any given, on whichever.
func copies(t *testing.T, namespace string, replicas int, on ...*federation.Cluster) []federation.Copy {
	t.Helper()
	var found []federation.Copy
	eventually(t, 3*time.Minute, func(ctx context.Context) (err error) {
		if found, err = fed.Copies(ctx, namespace); err != nil {
			return err
		}
		if len(found) != replicas {
			return fmt.Errorf("there are %d pods, want %d", len(found), replicas)
		}
		seen := map[*federation.Cluster]int{}
		for _, copied := range found {
			if !copied.Ready || copied.RunsOn == nil || copied.Address[fed.Consumer.Name] == "" {
				return fmt.Errorf("pod %s is not ready or has no address", copied.Name)
			}
			seen[copied.RunsOn]++
		}
		for _, c := range on {
			if seen[c] == 0 {
				return fmt.Errorf("no pod runs on %s", c.Name)
			}
			delete(seen, c)
		}
		for c, pods := range seen {
			if len(on) > 0 {
				return fmt.Errorf("%d of %d pods run on %s: %s", pods, replicas, c.Name, draining(ctx, c))
			}
		}
		return nil
	})
	return found
}

// draining returns what the broker says about the pods that are to leave a provider.
func draining(ctx context.Context, provider *federation.Cluster) string {
	var p v1alpha1.Provider
	if err := fed.Broker.Get(ctx, client.ObjectKey{Name: string(provider.ID)}, &p); err != nil {
		return err.Error()
	}
	c := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionDraining)
	if c == nil {
		return "the broker says nothing about them"
	}
	return fmt.Sprintf("%s, %s (the provider is to be %s)", c.Reason, c.Message, p.EffectiveScheduling())
}

// checkAddresses fails unless each pod answers as itself at the address that the consumer shows for it.
func checkAddresses(t *testing.T, pods []federation.Copy) {
	t.Helper()
	byAddress := map[string]string{}
	for _, pod := range pods {
		address := pod.Address[fed.Consumer.Name]
		if other := byAddress[address]; other != "" {
			t.Errorf("pods %s and %s are shown with one address, %s", other, pod.Name, address)
		}
		byAddress[address] = pod.Name
		var host string
		err := federation.Until(t.Context(), time.Minute, func(ctx context.Context) (err error) {
			host, err = fed.Host(ctx, address+":8080")
			return err
		})
		if err != nil {
			t.Errorf("pod %s on %s, %s: no answer at %s: %v", pod.Name, pod.RunsOn.Name, pod.Path, address, err)
			continue
		}
		if host != pod.Name {
			t.Errorf("pod %s is shown with address %s, where %s answers", pod.Name, address, host)
		}
	}
}

// eventually fails the test unless check returns nil in time.
func eventually(t *testing.T, timeout time.Duration, check func(context.Context) error) {
	t.Helper()
	if err := federation.Until(t.Context(), timeout, check); err != nil {
		t.Fatal(err)
	}
}

// enabled reports whether provider-a is active.
func enabled(t *testing.T) bool {
	t.Helper()
	var provider v1alpha1.Provider
	if err := fed.Broker.Get(t.Context(), client.ObjectKey{Name: string(fed.ProviderA.ID)}, &provider); err != nil {
		t.Fatal(err)
	}
	return provider.EffectiveScheduling() == v1alpha1.SchedulingActive
}
