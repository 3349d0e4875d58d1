// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"context"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/leaderelection"
)

// TestLease has a leader killed: the same replica leads again at once, another one only when the lease is over.
func TestLease(t *testing.T) {
	client := fake.NewSimpleClientset()
	lead(t, client, "broker-a", true)
	lead(t, client, "broker-b", false)
	lead(t, client, "broker-a", true)
	lead(t, client, "", false)
}

// lead runs a replica that is killed when it leads, or after some time, and fails unless it led as expected.
func lead(t *testing.T, client kubernetes.Interface, identity string, want bool) {
	t.Helper()
	const killedAfter = 2 * time.Second
	lock, err := Lease{Namespace: "liqo-broker", Name: "liqo-broker", Identity: identity}.lock(client)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), killedAfter)
	defer cancel()
	leads := make(chan struct{})
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: lock, LeaseDuration: leaseDuration, RenewDeadline: renewDeadline, RetryPeriod: 100 * time.Millisecond,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { close(leads) },
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		elector.Run(ctx)
	}()
	got := false
	select {
	case <-leads:
		got = true
	case <-ctx.Done():
	}
	cancel()
	<-ended
	if got != want {
		t.Errorf("replica %q leads: %t, want %t", identity, got, want)
	}
}
