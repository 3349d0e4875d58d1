// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/test/federation"
	"github.com/capacitorset/liqo-broker/test/walk"
)

// TestSecondVirtualKubelet runs two replicas of the consumer's virtual kubelet, and takes away the one that acts: the other one goes on
// before Kubernetes calls the node not ready, and pods start as before.
func TestSecondVirtualKubelet(t *testing.T) {
	needs(t, federation.OurKubelets)
	const namespace = "replicas"
	ctx := t.Context()
	start(t, v1alpha1.ModeOrchestrated)
	deploy(t, namespace, federation.Web, 2)
	walk.AtEnd(t, func(ctx context.Context) error { return fed.Consumer.RunVirtualKubelets(ctx, fed.Broker, 1) })
	if err := fed.Consumer.RunVirtualKubelets(ctx, fed.Broker, 2); err != nil {
		t.Fatal(err)
	}
	first, process, err := fed.ActingVirtualKubelet(ctx, fed.Consumer, fed.Broker)
	if err != nil {
		t.Fatal(err)
	}
	end, err := process.Kill(ctx)
	if err != nil {
		t.Fatal(err)
	}
	killed := time.Now()
	eventually(t, 2*time.Minute, func(ctx context.Context) error {
		now, _, err := fed.ActingVirtualKubelet(ctx, fed.Consumer, fed.Broker)
		if err == nil && now == first {
			err = fmt.Errorf("%s still has the lease", first)
		}
		return err
	})
	t.Logf("the second replica acts after %.1f s", time.Since(killed).Seconds())
	if err := fed.Scale(ctx, namespace, federation.Web, 4); err != nil {
		t.Fatal(err)
	}
	copies(t, namespace, 4)
	node, err := fed.Consumer.VirtualNode(ctx, fed.Broker)
	if err != nil {
		t.Fatal(err)
	}
	if since := liqo.NotReadySince(node); !liqo.NodeReady(node) || since.After(killed) {
		t.Errorf("node %s was not ready after the first replica was gone: ready since %s", node.Name, since)
	}
	if err := end(); err != nil {
		t.Fatal(err)
	}
}
