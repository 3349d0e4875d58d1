// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/test/federation"
	"github.com/capacitorset/liqo-broker/test/walk"
)

// TestWithdrawal has provider-a offer nothing any more while its pods serve. Then it looks at what the broker has learned of the pods'
// start on provider-b.
func TestWithdrawal(t *testing.T) {
	needs(t, federation.LiveOffers)
	const namespace, replicas = "withdrawal", 3
	start(t, v1alpha1.ModeOrchestrated)
	deployOn(t, namespace, replicas, fed.ProviderA, fed.ProviderB)

	watch := watchReady(t, namespace)
	began := time.Now()
	share := walk.UntilEnd(t, func(ctx context.Context) (func() error, error) { return fed.ProviderA.Share(ctx, 0) })
	readiness(t, fed.ProviderA, metav1.ConditionFalse, v1alpha1.ReasonWithdrawn)
	pods := copies(t, namespace, replicas, fed.ProviderB)
	t.Logf("%d replicas moved in %.1f s, with the restart of Liqo that withdraws the offer", replicas, time.Since(began).Seconds())
	if least := watch.stop(); least < replicas-1 {
		t.Errorf("there was a moment in which only %d of %d replicas were ready", least, replicas)
	}
	checkAddresses(t, pods)
	share()
	readiness(t, fed.ProviderA, metav1.ConditionTrue, "")
	started(t, fed.ProviderB)
}

// TestEndOfPeering ends the peering with provider-b: what runs there goes to provider-a, and the peering can be made again. It is the
// last one, because Liqo's IPAM may give out addresses twice afterwards, also for Services (docs/networking.md).
func TestEndOfPeering(t *testing.T) {
	const namespace, replicas = "end-of-peering", 3
	last(t)
	start(t, v1alpha1.ModeOrchestrated)
	if !isReady(t, fed.ProviderB) {
		// Liqo did not come to an end in time when this journey was walked before.
		if err := fed.Peer(t.Context(), fed.Broker, fed.ProviderB); err != nil {
			t.Fatal(err)
		}
		readiness(t, fed.ProviderB, metav1.ConditionTrue, "")
	}
	deployOn(t, namespace, replicas, fed.ProviderB, fed.ProviderA)

	t.Cleanup(func() {
		if err := fed.Peer(context.WithoutCancel(t.Context()), fed.Broker, fed.ProviderB); err != nil {
			t.Error(err)
			return
		}
		readiness(t, fed.ProviderB, metav1.ConditionTrue, "")
	})
	began := time.Now()
	if err := fed.Unpeer(t.Context(), fed.Broker, fed.ProviderB); err != nil {
		t.Fatal(err)
	}
	pods := copies(t, namespace, replicas, fed.ProviderA)
	t.Logf("%d replicas were ready %.1f s after the end of a peering was asked for", replicas, time.Since(began).Seconds())
	checkAddresses(t, pods)
}

// deployOn runs the web workload on one provider, while the other one is off, until the test ends.
func deployOn(t *testing.T, namespace string, replicas int, on, other *federation.Cluster) {
	t.Helper()
	toggle(t, other, false)
	deploy(t, namespace, federation.Web, replicas)
	copies(t, namespace, replicas, on)
	toggle(t, other, true)
}

// readiness waits until the condition Ready of a Provider is what it should be, for a reason or, if it is empty, for any.
func readiness(t *testing.T, provider *federation.Cluster, status metav1.ConditionStatus, reason string) {
	t.Helper()
	err := federation.Until(context.WithoutCancel(t.Context()), 2*time.Minute, func(ctx context.Context) error {
		var p v1alpha1.Provider
		if err := fed.Broker.Get(ctx, client.ObjectKey{Name: string(provider.ID)}, &p); err != nil {
			return err
		}
		ready := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionReady)
		if ready == nil || ready.Status != status || reason != "" && ready.Reason != reason {
			return fmt.Errorf("%s is ready: %+v", provider.Name, ready)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// isReady reports whether a Provider is ready now.
func isReady(t *testing.T, provider *federation.Cluster) bool {
	t.Helper()
	var p v1alpha1.Provider
	if err := fed.Broker.Get(t.Context(), client.ObjectKey{Name: string(provider.ID)}, &p); err != nil {
		t.Fatal(err)
	}
	return meta.IsStatusConditionTrue(p.Status.Conditions, v1alpha1.ConditionReady)
}

// started waits until the broker knows how pods start on a provider, and fails the test if that is not plausible.
func started(t *testing.T, provider *federation.Cluster) {
	t.Helper()
	eventually(t, 2*time.Minute, func(ctx context.Context) error {
		var p v1alpha1.Provider
		if err := fed.Broker.Get(ctx, client.ObjectKey{Name: string(provider.ID)}, &p); err != nil {
			return err
		}
		for name, most := range map[string]float64{"startupMedian": 60, "startupP90": 60, "failureRate": 0.5} {
			at := slices.IndexFunc(p.Status.KPIs, func(k v1alpha1.KPI) bool { return k.Name == name })
			if at < 0 {
				return fmt.Errorf("%s has no %s: %+v", provider.Name, name, p.Status.KPIs)
			}
			if value, err := p.Status.KPIs[at].Value.Float(); err != nil || value < 0 || value > most {
				return fmt.Errorf("%s has the %s %q, want a number up to %v", provider.Name, name, p.Status.KPIs[at].Value, most)
			}
			t.Logf("%s: %s %s %s", provider.Name, name, p.Status.KPIs[at].Value, p.Status.KPIs[at].Unit)
		}
		return nil
	})
}
