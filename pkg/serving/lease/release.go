// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// Releasing returns a lock that is given back also by a replica that ends while it renews the lease. The API server may have taken
// the renewal of which the replica did not wait for the answer, and then refuses the release, which is made for the Lease of before:
// client-go 0.28 leaves it at that (LeaderElector.release), and the other replicas wait until the lease is over.
func Releasing(lock resourcelock.Interface) resourcelock.Interface { return releasing{lock} }

type releasing struct{ resourcelock.Interface }

// Update implements resourcelock.Interface. A record without a holder is a release.
func (r releasing) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	err := r.Interface.Update(ctx, record)
	if record.HolderIdentity != "" || !apierrors.IsConflict(err) {
		return err
	}
	held, _, getErr := r.Get(ctx)
	if getErr != nil {
		return getErr
	}
	if held.HolderIdentity != r.Identity() {
		return err // Another replica leads by now.
	}
	return r.Interface.Update(ctx, record)
}
