// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// versioned is the lock of a Lease that refuses updates of an older one, and who does not wait for it, as an API server does and a fake
// client does not.
type versioned struct {
	resourcelock.Interface
	stored *int // How often the Lease was written.
	seen   int  // Of which the replica knows.
	// taken is called when an update was stored, and before the replica knows.
	taken func(ctx context.Context) error
}

func (v *versioned) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	v.seen = *v.stored
	return v.Interface.Get(ctx)
}

func (v *versioned) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	if v.seen != *v.stored {
		return apierrors.NewConflict(coordinationv1.Resource("leases"), v.Describe(), errors.New("the object has been modified"))
	}
	if err := v.Interface.Update(ctx, record); err != nil {
		return err
	}
	*v.stored++
	if err := v.taken(ctx); err != nil {
		return err
	}
	v.seen = *v.stored
	return nil
}

// TestReleaseDuringRenewal ends a replica whose renewal the API server has taken, and which does not know yet: other replicas are not to
// wait until the lease is over. client-go 0.28 gave up there.
func TestReleaseDuringRenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewSimpleClientset()
		own, err := resourcelock.New(resourcelock.LeasesResourceLock, "ns", "program", client.CoreV1(), client.CoordinationV1(),
			resourcelock.ResourceLockConfig{Identity: "a"})
		if err != nil {
			t.Fatal(err)
		}
		ctx, end := context.WithCancel(t.Context())
		defer end()
		stored := 0
		lock := &versioned{Interface: own, stored: &stored, taken: func(ctx context.Context) error {
			end()
			return ctx.Err() // Nothing of it is left when the lease is released.
		}}
		elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
			Lock: lock, LeaseDuration: leaseDuration, RenewDeadline: renewDeadline, RetryPeriod: time.Second, ReleaseOnCancel: true,
			Callbacks: leaderelection.LeaderCallbacks{OnStartedLeading: func(context.Context) {}, OnStoppedLeading: func() {}},
		})
		if err != nil {
			t.Fatal(err)
		}
		elector.Run(ctx)
		if stored != 2 {
			t.Errorf("the Lease was written %d times after its creation, want twice: renewed and released", stored)
		}
		held, err := client.CoordinationV1().Leases("ns").Get(t.Context(), "program", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if holder := *held.Spec.HolderIdentity; holder != "" {
			t.Errorf("the Lease is held by %q still", holder)
		}
	})
}
