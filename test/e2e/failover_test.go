// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/test/federation"
	"github.com/capacitorset/liqo-broker/test/walk"
)

const failoverNamespace = "failover"

// TestFailover loses provider-a twice. At first only the broker loses it, and its pods stay because the consumer reaches them. Then
// the consumer loses it too, and the policy is never to replace its pods, and then to do so after more time than the loss lasts:
// everything is as before when the provider is back. The second time its pods are replaced on provider-b, and nothing of them is
// left on provider-a when that is back.
func TestFailover(t *testing.T) {
	const replicas = 4
	start(t, v1alpha1.ModeOrchestrated)
	failover(t, v1alpha1.FailoverImmediate, 0)
	deploy(t, failoverNamespace, federation.Web, replicas)
	copies(t, failoverNamespace, replicas, fed.ProviderA, fed.ProviderB)
	before := twins(t)
	const unclear = `{"spec": {"failover": {"grace": "soon"}}}`
	if _, err := fed.Broker.Kubectl(t.Context(), "patch", "placementpolicy", "failover", "--type=merge", "--patch", unclear); err == nil {
		t.Error("the API server takes a grace that is no duration")
	}

	mend := func() {}
	if direct() {
		mend, _ = lose(t, fed.Broker)
		stays(t, before, 20*time.Second)
	}
	failover(t, v1alpha1.FailoverNever, 0)
	if !direct() {
		mend, _ = lose(t, fed.Broker)
	}
	mendOther, _ := lose(t, fed.Consumer)
	stays(t, before, 30*time.Second)
	failover(t, v1alpha1.FailoverAfterGrace, time.Hour)
	stays(t, before, 10*time.Second)
	mend()
	mendOther()
	found(t)
	copies(t, failoverNamespace, replicas, fed.ProviderA, fed.ProviderB)
	if after := twins(t); !maps.Equal(before, after) {
		t.Errorf("the pods on the broker were %v, and are %v after provider-a was lost for less than the grace", before, after)
	}

	failover(t, v1alpha1.FailoverAfterGrace, 5*time.Second)
	mend, lost := lose(t, fed.Broker, fed.Consumer)
	eventually(t, 2*time.Minute, allReadyOn(fed.ProviderB, replicas))
	t.Logf("the pods of provider-a were ready on provider-b %.1f s after it was seen to be lost", time.Since(lost).Seconds())
	replaced := twins(t)
	if still, err := presentOn(t.Context(), fed.ProviderA); err != nil || len(still) == 0 {
		t.Errorf("nobody could end what runs on provider-a, and yet there is only %v (%v)", still, err)
	}

	mend()
	found(t)
	back := time.Now()
	eventually(t, 2*time.Minute, func(ctx context.Context) error {
		left, err := presentOn(ctx, fed.ProviderA)
		if err == nil && len(left) > 0 {
			err = fmt.Errorf("%v are left on provider-a", left)
		}
		return err
	})
	t.Logf("nothing of them was left on provider-a %.1f s after it was back", time.Since(back).Seconds())
	stays(t, replaced, 10*time.Second)
	checkAddresses(t, copies(t, failoverNamespace, replicas, fed.ProviderB))
}

// failover gives the consumer a policy until the test ends, or changes it.
func failover(t *testing.T, mode v1alpha1.FailoverMode, grace time.Duration) {
	t.Helper()
	const policy = `
apiVersion: brokering.liqo.io/v1alpha1
kind: PlacementPolicy
metadata:
  name: failover
spec:
  appliesTo: {scope: Consumers, consumers: [%s]}
  failover: {mode: %s, grace: %s}
`
	apply(t, fmt.Sprintf(policy, fed.Consumer.ID, mode, grace))
	chosen(t, "failover", fed.Providers()...)
}

// lose cuts provider-a off from other clusters, and returns when the broker knew that it has lost it.
func lose(t *testing.T, from ...*federation.Cluster) (mend func(), lost time.Time) {
	t.Helper()
	var ends []func()
	for _, c := range from {
		ends = append(ends, walk.UntilEnd(t, cut(c, fed.ProviderA)))
	}
	mend = func() {
		for _, end := range ends {
			end()
		}
	}
	cut := time.Now()
	eventually(t, 2*time.Minute, func(ctx context.Context) error {
		since, err := lostSince(ctx)
		if err == nil && since == nil {
			err = fmt.Errorf("provider-a is not known to be lost")
		}
		return err
	})
	lost = time.Now()
	t.Logf("provider-a was seen to be lost %.1f s after it was cut off", lost.Sub(cut).Seconds())
	return mend, lost
}

// found waits until the broker sees that provider-a is back: it may not know how the node is, and then does not call it lost either.
func found(t *testing.T) {
	t.Helper()
	mended := time.Now()
	eventually(t, 2*time.Minute, func(ctx context.Context) error {
		since, err := lostSince(ctx)
		if err != nil {
			return err
		}
		node, err := fed.Broker.VirtualNode(ctx, fed.ProviderA)
		if err == nil && (since != nil || !liqo.NodeReady(node)) {
			err = fmt.Errorf("provider-a is lost since %s, or its node is not ready", since)
		}
		return err
	})
	t.Logf("provider-a was seen to be back %.1f s after its links were mended", time.Since(mended).Seconds())
}

// lostSince returns since when provider-a is lost for the broker, or nil.
func lostSince(ctx context.Context) (*time.Time, error) {
	var p v1alpha1.Provider
	if err := fed.Broker.Get(ctx, client.ObjectKey{Name: string(fed.ProviderA.ID)}, &p); err != nil || p.UnreachableSince() == nil {
		return nil, err
	}
	return &p.UnreachableSince().Time, nil
}

// twins returns the pods that stand on the broker for those of the consumer, with their UIDs and where they are.
func twins(t *testing.T) map[string]string {
	t.Helper()
	found, err := twinsOf(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func twinsOf(ctx context.Context) (map[string]string, error) {
	var pods corev1.PodList
	if err := fed.Broker.List(ctx, &pods, client.MatchingLabelsSelector{Selector: liqo.ShadowPodSelector()}); err != nil {
		return nil, err
	}
	found := map[string]string{}
	for i := range pods.Items {
		pod := &pods.Items[i]
		if strings.HasPrefix(pod.Namespace, failoverNamespace) {
			found[pod.Name] = fmt.Sprintf("%s on %s, deleted %v", pod.UID, pod.Spec.NodeName, !pod.DeletionTimestamp.IsZero())
		}
	}
	return found, nil
}

// stays fails the test if the pods on the broker change in some time.
func stays(t *testing.T, before map[string]string, during time.Duration) {
	t.Helper()
	for end := time.Now().Add(during); time.Now().Before(end); time.Sleep(time.Second) {
		if now := twins(t); !maps.Equal(before, now) {
			t.Fatalf("the pods on the broker were %v, and are %v", before, now)
		}
	}
}

// allReadyOn returns a check that all replicas are ready, and run on a cluster.
func allReadyOn(on *federation.Cluster, replicas int) func(context.Context) error {
	return func(ctx context.Context) error {
		ready, err := fed.ReadyReplicas(ctx, failoverNamespace, federation.Web)
		if err != nil {
			return err
		}
		there, err := presentOn(ctx, on)
		if err != nil {
			return err
		}
		if ready != replicas || len(there) != replicas {
			return fmt.Errorf("%d of %d replicas are ready, and %v run on %s", ready, replicas, there, on.Name)
		}
		return nil
	}
}

// presentOn returns the pods of the consumer that run on the nodes of a cluster.
func presentOn(ctx context.Context, on *federation.Cluster) ([]string, error) {
	var pods corev1.PodList
	if err := on.List(ctx, &pods); err != nil {
		return nil, err
	}
	var names []string
	for i := range pods.Items {
		if strings.HasPrefix(pods.Items[i].Namespace, failoverNamespace) {
			names = append(names, pods.Items[i].Name)
		}
	}
	slices.Sort(names)
	return names, nil
}
