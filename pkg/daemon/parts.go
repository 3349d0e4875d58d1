// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"errors"

	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/capacitorset/liqo-broker/pkg/wake"
)

// Parts are those of a program that need an API server, for who asks for them before they are made. They may be used concurrently.
type Parts[T interface{ Caches() cache.Cache }] struct{ made *wake.Later[T] }

// NewParts returns Parts that are not made yet.
func NewParts[T interface{ Caches() cache.Cache }]() Parts[T] { return Parts[T]{wake.NewLater[T]()} }

// Set gives the parts to all who wait for them, once all caches are registered. It is called once.
func (p Parts[T]) Set(made T) { p.made.Set(made) }

// Synced waits until the parts are made and their caches are filled. The error is that ctx ends before.
func (p Parts[T]) Synced(ctx context.Context) (T, error) {
	made, err := p.made.Get(ctx)
	if err == nil && !made.Caches().WaitForCacheSync(ctx) {
		err = errors.New("the caches are not filled")
	}
	return made, err
}

// Ready waits as Synced does, and returns false if ctx ends before.
func (p Parts[T]) Ready(ctx context.Context) bool {
	_, err := p.Synced(ctx)
	return err == nil
}
