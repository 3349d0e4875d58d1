// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package early

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/test/federation"
)

// TestConnectorBeforeLiqo installs the connector where nothing is, and then Liqo, with the values of clusters that trade: the connector
// waits and does not fail, Liqo's controller manager finds its plugin, and the guard finds nothing of Liqo to change that the values have
// said.
func TestConnectorBeforeLiqo(t *testing.T) {
	ctx, c := t.Context(), fed.ProviderA
	if err := fed.LoadTrader(ctx, c); err != nil {
		t.Fatal(err)
	}
	install, err := c.Lab.LiqoInstallArgs()
	if err != nil {
		t.Fatal(err)
	}
	r, err := fed.ReadRelease("docs/trade/provider.md", "TestConnectorBeforeLiqo",
		"liqoctl install kubeadm", "liqoctl "+strings.Join(install, " "))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	next := func(command string) {
		t.Helper()
		began := time.Now()
		if _, err := r.Next(ctx, command); err != nil {
			t.Fatal(err)
		}
		t.Logf("%s took %.1f s", command, time.Since(began).Seconds())
	}

	// The connector waits: it runs, is not ready, and says why.
	next("kubectl create namespace liqo")
	eventually(t, func(ctx context.Context) error {
		log, err := c.Kubectl(ctx, "logs", "--namespace=liqo-broker-connector", "deployment/liqo-broker-connector")
		if err == nil && !strings.Contains(log, "Waits until Liqo is installed") {
			err = fmt.Errorf("the connector does not say for what it waits:\n%s", log)
		}
		return err
	})
	if waiting, err := connector(ctx, c); err != nil || waiting.Ready {
		t.Errorf("the connector is ready, and Liqo is not there: %+v, %v", waiting, err)
	}

	// liqoctl ends when all of Liqo runs, which it does not without an answer of the plugin.
	next("liqoctl install")
	eventually(t, func(ctx context.Context) error {
		status, err := connector(ctx, c)
		if err == nil && !status.Ready {
			err = fmt.Errorf("the connector is not ready: %+v", status)
		}
		return err
	})
	// Once it may begin again, by itself, to announce where Liqo authenticates others: that is known later than who the cluster is.
	status, err := connector(ctx, c)
	if ended := status.LastTerminationState.Terminated; err != nil || status.RestartCount > 1 || ended != nil && ended.ExitCode != 0 {
		t.Errorf("the connector has begun %d times again, %v, and last ended as %+v", status.RestartCount, err, ended)
	}
	const plugin = "--resource-plugin-address=liqo-broker-connector-plugin.liqo-broker-connector:7000"
	before, err := c.ControllerManagerArgs(ctx)
	if err != nil || !slices.Contains(before, plugin) {
		t.Errorf("Liqo does not ask the connector what to offer: %v, %v", before, err)
	}

	// The guard brings its own, and has Liqo ask the connector once, as it does already.
	next("kubectl liqo-broker guard")
	after, err := c.ControllerManagerArgs(ctx)
	if err != nil {
		t.Fatal(err)
	}
	asks := func(arg string) bool { return strings.HasPrefix(arg, "--resource-plugin-address=") }
	if at := slices.IndexFunc(after, asks); at < 0 || after[at] != plugin || slices.ContainsFunc(after[at+1:], asks) {
		t.Errorf("Liqo's controller manager has the flags\n%v\nand had\n%v", after, before)
	}
	if err := r.End(); err != nil {
		t.Error(err)
	}
}

// connector returns how the container of the connector is.
func connector(ctx context.Context, c *federation.Cluster) (corev1.ContainerStatus, error) {
	var pods corev1.PodList
	if err := c.List(ctx, &pods, client.InNamespace("liqo-broker-connector")); err != nil {
		return corev1.ContainerStatus{}, err
	}
	if len(pods.Items) != 1 || len(pods.Items[0].Status.ContainerStatuses) != 1 {
		return corev1.ContainerStatus{}, fmt.Errorf("the connector has %d pods, want one with a container: %+v", len(pods.Items), pods.Items)
	}
	return pods.Items[0].Status.ContainerStatuses[0], nil
}

// eventually waits for what Kubernetes and Liqo do on one cluster.
func eventually(t *testing.T, look func(context.Context) error) {
	t.Helper()
	if err := federation.Until(t.Context(), 2*time.Minute, look); err != nil {
		t.Fatal(err)
	}
}
