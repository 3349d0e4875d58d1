// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/peering"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/peering/outofband"
	"github.com/capacitorset/liqo-broker/test/federation"
	"github.com/capacitorset/liqo-broker/test/walk"
)

// TestPeeringByCredentials has the consumer peer with provider-b by what that one's connector issues, run pods there, drain and part; the
// credentials are withdrawn, and open nothing any more. Nothing is left on either side.
func TestPeeringByCredentials(t *testing.T) {
	needs(t, federation.Trade)
	const namespace, replicas = "bought", 2
	start(t, v1alpha1.ModeOrchestrated)
	buyer, seller := newDriver(t, fed.Consumer), newDriver(t, fed.ProviderB)
	consumer := cluster.Identity{ID: fed.Consumer.ID, Name: fed.Consumer.Name}

	issued, err := seller.Issue(t.Context(), consumer)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { part(context.WithoutCancel(t.Context()), t, buyer, seller) })
	eventually(t, 90*time.Second, func(ctx context.Context) error {
		if err := buyer.Peer(ctx, issued); err != nil {
			return err
		}
		state, err := buyer.State(ctx, fed.ProviderB.ID)
		if err == nil && (!state.Established || len(state.Nodes) != 1 || !state.Nodes[0].Ready) {
			err = fmt.Errorf("the consumer is not peered with provider-b: %+v", state)
		}
		return err
	})
	if err := fed.DeployTo(t.Context(), namespace, fed.ProviderB, replicas); err != nil {
		t.Fatal(err)
	}
	walk.AtEnd(t, func(ctx context.Context) error { return fed.Remove(ctx, namespace) })

	// A workload is not cut: it is evicted first.
	eventually(t, time.Minute, func(ctx context.Context) error {
		left, err := buyer.Drain(ctx, fed.ProviderB.ID)
		if err == nil && left > 0 {
			err = fmt.Errorf("%d pods are left on the node of provider-b", left)
		}
		return err
	})
	began := time.Now()
	part(t.Context(), t, buyer, seller)
	t.Logf("nothing is left %.1f s after the clusters were told to part", time.Since(began).Seconds())

	again, err := seller.Issue(t.Context(), consumer)
	if err != nil {
		t.Fatal(err)
	}
	if again.Token() == issued.Token() {
		t.Error("what was withdrawn opens the cluster again")
	}
	part(t.Context(), t, buyer, seller)
}

// newDriver returns what peers and parts for a cluster, without the controllers that look after it.
func newDriver(t *testing.T, c client.Client) *outofband.Driver {
	t.Helper()
	driver, err := outofband.New(outofband.Config{Client: c, Namespace: liqo.DefaultNamespace, Clock: clock.RealClock{}})
	if err != nil {
		t.Fatal(err)
	}
	return driver
}

// part ends the peering of the consumer with provider-b on both sides, and waits until nothing is left.
func part(ctx context.Context, t *testing.T, buyer peering.Buyer, seller peering.Seller) {
	t.Helper()
	err := federation.Until(ctx, 2*time.Minute, func(ctx context.Context) error {
		unpeered, err := buyer.Unpeer(ctx, fed.ProviderB.ID)
		withdrawn, err2 := seller.Withdraw(ctx, fed.Consumer.ID)
		if err := errors.Join(err, err2); err != nil {
			return err
		}
		if !unpeered || !withdrawn {
			return fmt.Errorf("the clusters have not parted: buyer %t, seller %t", unpeered, withdrawn)
		}
		return errors.Join(unknown(ctx, fed.Consumer, fed.ProviderB), unknown(ctx, fed.ProviderB, fed.Consumer))
	})
	if err != nil {
		t.Error(err)
	}
}

// unknown fails if a cluster has anything that is about another one, but for its tenant namespace, which Liqo leaves.
func unknown(ctx context.Context, c, other *federation.Cluster) error {
	err := c.Get(ctx, client.ObjectKey{Namespace: liqo.DefaultNamespace, Name: "remote-token-" + string(other.ID)}, &corev1.Secret{})
	if err == nil {
		err = fmt.Errorf("%s has a token of %s", c.Name, other.Name)
	}
	return errors.Join(c.HasForgotten(ctx, other), client.IgnoreNotFound(err))
}
