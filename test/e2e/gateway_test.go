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
	"testing"
	"time"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
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
