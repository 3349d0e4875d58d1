// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/test/federation"
)

// TestGatewayStopped leaves the broker's gateway to the consumer without a node: `status` says so, and fails with 3, although tunnels,
// nodes and providers are called well. `providers` and `diagnose` say it too. When it is back nothing is said any more, and the same pods
// answer. Faults kill the gateway's process and hold the next one, which Kubernetes calls ready, so that this is not seen there.
func TestGatewayStopped(t *testing.T) {
	const namespace, replicas = "gateway", 2
	said := "replicas of Liqo's gateway are ready: no tunnel works and nothing is relayed"
	if !fed.Broker.Has(federation.OneGateway) {
		said = fmt.Sprintf("replicas of Liqo's gateway to %[1]s (%[1]s) are ready: its tunnel does not work and nothing is relayed",
			fed.Consumer.ID)
	}
	start(t, v1alpha1.ModeAggregated)
	deploy(t, namespace, federation.Web, replicas)
	pods := copies(t, namespace, replicas)
	checkAddresses(t, pods)
	if out, code := exitOf(t, fed.Broker, "status"); code != 0 && code != 3 || strings.Contains(out, said) {
		t.Fatalf("status exits with %d while the gateway runs:\n%s", code, out)
	}

	run, err := fed.Gateway(fed.Broker, fed.Consumer).Evict(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	runs := func() {
		t.Helper()
		if err := run(); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(runs)
	eventually(t, time.Minute, func(context.Context) error {
		if out, code := exitOf(t, fed.Broker, "status"); code != 3 || !strings.Contains(out, "! 0 of 1 "+said) {
			return fmt.Errorf("status exits with %d, want 3 and %q in\n%s", code, said, out)
		}
		return nil
	})
	if out := mustPlugin(t, fed.Broker, "providers"); !strings.Contains(out, said) {
		t.Errorf("providers does not say %q:\n%s", said, out)
	}
	if out, code := exitOf(t, fed.Broker, "diagnose"); code != 3 || !strings.Contains(out, said) {
		t.Errorf("diagnose exits with %d, want 3 and %q in\n%s", code, said, out)
	}

	runs()
	began := time.Now()
	eventually(t, healPatience, func(ctx context.Context) error {
		if out, _ := exitOf(t, fed.Broker, "status"); strings.Contains(out, said) {
			return fmt.Errorf("status says of a gateway that is to run\n%s", out)
		}
		for _, pod := range pods {
			address := pod.Address[fed.Consumer.Name] + ":8080"
			host, err := fed.Host(ctx, address)
			if err != nil {
				return fmt.Errorf("ask pod %s at %s: %w", pod.Name, address, err)
			}
			if host != pod.Name {
				return fmt.Errorf("at %s, the address of pod %s, %q answers", address, pod.Name, host)
			}
		}
		return nil
	})
	t.Logf("all pods answered %.1f s after the gateway was started", time.Since(began).Seconds())
}

// TestSilentGateway leaves the broker's gateway to provider-a without a node, which nobody else says how its tunnel is: the provider is
// lost, though its tunnel and its node are called well, and its pods are replaced as the policy says. It is there again with the gateway.
func TestSilentGateway(t *testing.T) {
	needs(t, federation.SilentGateways)
	const replicas = 4
	start(t, v1alpha1.ModeOrchestrated)
	failover(t, v1alpha1.FailoverAfterGrace, 5*time.Second)
	deploy(t, failoverNamespace, federation.Web, replicas)
	copies(t, failoverNamespace, replicas, fed.ProviderA, fed.ProviderB)

	run, err := fed.Gateway(fed.Broker, fed.ProviderA).Evict(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	runs := sync.OnceFunc(func() {
		if err := run(); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(runs)
	stopped := time.Now()
	eventually(t, 3*time.Minute, func(ctx context.Context) error {
		var p v1alpha1.Provider
		if err := fed.Broker.Get(ctx, client.ObjectKey{Name: string(fed.ProviderA.ID)}, &p); err != nil {
			return err
		}
		for _, kind := range []string{v1alpha1.ConditionReady, v1alpha1.ConditionReachable} {
			c := meta.FindStatusCondition(p.Status.Conditions, kind)
			if c == nil || c.Status != metav1.ConditionFalse || c.Reason != v1alpha1.ReasonGatewaySilent {
				return fmt.Errorf("condition %s of provider-a is %+v, want False because of %s", kind, c, v1alpha1.ReasonGatewaySilent)
			}
		}
		return nil
	})
	lost := time.Now()
	t.Logf("provider-a was lost %.1f s after its gateway had stopped", lost.Sub(stopped).Seconds())
	node, err := fed.Broker.VirtualNode(t.Context(), fed.ProviderA)
	if err != nil || !liqo.NodeReady(node) {
		t.Errorf("Liqo knows itself that provider-a is lost: %v", err)
	}
	eventually(t, 2*time.Minute, allReadyOn(fed.ProviderB, replicas))
	t.Logf("its pods were ready on provider-b %.1f s later", time.Since(lost).Seconds())

	runs()
	found(t)
	eventually(t, time.Minute, fed.CheckOffer)
	checkAddresses(t, copies(t, failoverNamespace, replicas, fed.ProviderB))
}

// exitOf runs a command of the plugin, and returns what it prints and its exit code.
func exitOf(t *testing.T, c *federation.Cluster, args ...string) (out string, code int) {
	t.Helper()
	out, err := plugin(t.Context(), c, args...)
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		return out, exit.ExitCode()
	case err != nil:
		t.Fatalf("kubectl liqo-broker %v on %s: %v", args, c.Name, err)
	}
	return out, 0
}
