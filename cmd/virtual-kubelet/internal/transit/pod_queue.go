// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package transit

import (
	"context"
	"sync"

	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

// podQueue are pods of this cluster that are to be looked at. The zero value is empty; it must be started before anything
// is added.
type podQueue struct {
	queue  workqueue.TypedRateLimitingInterface[cache.ObjectName]
	worker sync.WaitGroup
}

// start looks at one pod after the other until the context ends. One with which look fails is looked at again,
// with increasing delays; failed is told why.
func (q *podQueue) start(ctx context.Context, look func(context.Context, cache.ObjectName) error, failed func(error)) {
	q.queue = workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[cache.ObjectName]())
	context.AfterFunc(ctx, q.queue.ShutDown)
	q.worker.Go(func() {
		for {
			name, ended := q.queue.Get()
			if ended {
				return
			}
			if err := look(ctx, name); err != nil {
				failed(err)
				q.queue.AddRateLimited(name)
			} else {
				q.queue.Forget(name)
			}
			q.queue.Done(name)
		}
	})
}

// add has a pod looked at.
func (q *podQueue) add(name cache.ObjectName) { q.queue.Add(name) }

// Join returns when no pod is looked at any more; the context must have ended.
func (q *podQueue) Join() { q.worker.Wait() }
