// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
)

// Patiently takes a step until it succeeds, the context ends, or it fails for a reason
// that does not pass by itself. A virtual kubelet that ended because an API server is slow
// would be started ever more rarely, and would be missing when that is fast again. It returns the
// last error of the step.
func Patiently(ctx context.Context, log logr.Logger, step func() error) error {
	backoff := wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 0.1, Steps: 5, Cap: 30 * time.Second}
	for {
		err := step()
		if err == nil || ctx.Err() != nil || !passes(err) {
			return err
		}
		pause := backoff.Step()
		log.Error(err, "An API server does not answer", "retryIn", pause.String())
		select {
		case <-ctx.Done():
			return err
		case <-time.After(pause):
		}
	}
}

// passes reports whether an error says only that an API server was not reached, is
// starting, or has too much to do, or that somebody else was faster.
func passes(err error) bool {
	if network := net.Error(nil); errors.As(err, &network) {
		return true
	}
	for _, passing := range []func(error) bool{
		apierrors.IsTimeout, apierrors.IsServerTimeout, apierrors.IsTooManyRequests, apierrors.IsServiceUnavailable,
		apierrors.IsInternalError, apierrors.IsConflict, apierrors.IsAlreadyExists,
	} {
		if passing(err) {
			return true
		}
	}
	return errors.Is(err, context.DeadlineExceeded)
}
