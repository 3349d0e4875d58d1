// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package wakequeue has controllers look at something when a signal is set. It does not know what that is.
package wakequeue

import (
	"context"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/capacitorset/liqo-broker/pkg/wake"
)

// Queue is what a controller looks at next.
type Queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// Source is a source of a controller that adds to its queue each time it takes a signal, until ctx ends.
func Source(signal wake.Signal, add func(context.Context, Queue)) source.Source {
	return source.Func(func(ctx context.Context, queue Queue) error {
		go func() {
			for {
				select {
				case <-ctx.Done():
					return
				case <-signal.Taken():
					add(ctx, queue)
				}
			}
		}()
		return nil
	})
}
