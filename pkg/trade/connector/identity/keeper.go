// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"context"
	"errors"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// AnnotationRotate is on the Secret while somebody wants a new key for the party, with any value.
const AnnotationRotate = "brokering.liqo.io/rotate-key"

// keptEvery is how often a Keeper looks at the Secret.
const keptEvery = 10 * time.Second

// ErrRotated means that the party has another key now: whoever uses the old one has to begin again.
var ErrRotated = errors.New("the party has a new key")

// Keeper gives the party a new key when the Secret says so, and ends when the key is another one than that in use. Every replica needs one:
// whichever is first rotates.
type Keeper struct {
	// Client must not be one that caches.
	Client    client.Client
	Namespace string
	// InUse is the identity that this process uses.
	InUse Identity
	Log   logr.Logger
	// Every is how often the Secret is looked at; 10 s if it is zero.
	Every time.Duration
}

// Run looks at the Secret until ctx ends, which is no error, or the key is another one: then the error is [ErrRotated]. What goes wrong
// meanwhile is logged, and the key in use stays in use.
func (k Keeper) Run(ctx context.Context) error {
	every := k.Every
	if every <= 0 {
		every = keptEvery
	}
	err := wait.PollUntilContextCancel(ctx, every, true, func(ctx context.Context) (bool, error) {
		rotated, err := k.look(ctx)
		if err != nil && ctx.Err() == nil {
			k.Log.Error(err, "Cannot keep the key of the party; the one in use stays")
		}
		return rotated && err == nil, nil
	})
	if err == nil {
		return ErrRotated
	}
	return nil // The context has ended.
}

// look reports whether the key is another one than that in use, after having replaced it if that is wanted.
func (k Keeper) look(ctx context.Context) (rotated bool, err error) {
	now, secret, err := readIdentity(ctx, k.Client, k.Namespace)
	if err != nil {
		return false, err
	}
	if now.Key().Fingerprint() != k.InUse.Key().Fingerprint() {
		return true, nil
	}
	if _, wanted := secret.Annotations[AnnotationRotate]; !wanted {
		return false, nil
	}
	next, err := rotate(ctx, k.Client, now, secret)
	if apierrors.IsConflict(err) {
		return false, nil // Another replica was faster, or somebody else has written: the next look shows it.
	}
	if err == nil {
		k.Log.Info("The party has a new key", "party", next.ID(), "key", next.Key().Fingerprint(), "rotations", len(next.Keys().Chain())-1)
	}
	return err == nil, err
}
