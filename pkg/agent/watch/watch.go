// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package watch has the controllers of the agent look at all that they keep when something else changes: what they keep depends on
// several kinds, whose objects do not say on which of it they have an effect.
//
// It does not know what they keep, nor which changes matter.
package watch

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Find returns the names of all that a controller keeps.
type Find func(ctx context.Context, objects client.Reader) ([]client.ObjectKey, error)

// All asks for all that is found, whatever has changed. An error is logged under a message, and nothing is asked for then.
func All(objects client.Reader, find Find, message string) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, _ client.Object) []reconcile.Request {
		names, err := find(ctx, objects)
		if err != nil {
			ctrl.LoggerFrom(ctx).Error(err, message)
			return nil
		}
		requests := make([]reconcile.Request, len(names))
		for i := range names {
			requests[i].NamespacedName = names[i]
		}
		return requests
	})
}
