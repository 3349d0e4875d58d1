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
	"github.com/capacitorset/liqo-broker/test/federation"
	"github.com/capacitorset/liqo-broker/test/walk"
)

// TestStatusWithoutRemoteIPAM restarts a pod's process while nobody answers questions about addresses: the consumer sees the restart,
// and the pod keeps the address by which the consumer reaches it through the broker.
func TestStatusWithoutRemoteIPAM(t *testing.T) {
	needs(t, federation.RemoteIPAM)
	const namespace = "status"
	start(t, v1alpha1.ModeOrchestrated)
	toggle(t, fed.ProviderA, false)
	deploy(t, namespace, federation.Web, 1)
	pod := onPath(t, namespace, 1, federation.PathRelay, time.Minute)[0]
	restarts, err := fed.Restarts(t.Context(), namespace, pod)
	if err != nil {
		t.Fatal(err)
	}

	walk.UntilEnd(t, fed.RemoteIPAM().Kill)
	if err := fed.Restart(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	eventually(t, time.Minute, func(ctx context.Context) error {
		seen, err := fed.Restarts(ctx, namespace, pod)
		if err == nil && seen <= restarts {
			err = fmt.Errorf("the consumer sees %d restarts of pod %s, as before", seen, pod.Name)
		}
		return err
	})
	now := copies(t, namespace, 1, fed.ProviderB)
	if got, want := now[0].Address[fed.Consumer.Name], pod.Address[fed.Consumer.Name]; got != want {
		t.Errorf("pod %s had address %s and is shown with %s while the remote IPAM is down", pod.Name, want, got)
	}
	checkAddresses(t, now)
}
