// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package conflict makes a reconciler try again in silence when it wrote to an
// object that somebody else had changed. It is no failure: the change comes
// through the watch, and the next try sees it.
//
// It knows nothing of what the reconcilers do.
package conflict

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Requeue returns a reconciler that does what r does, and asks to be called again
// instead of returning a conflict.
func Requeue(r reconcile.Reconciler) reconcile.Reconciler {
	return reconcile.Func(func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
		result, err := r.Reconcile(ctx, req)
		if apierrors.IsConflict(err) {
			return reconcile.Result{Requeue: true}, nil
		}
		return result, err
	})
}
