// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package wake

import "context"

// Later is a value that others wait for before it is made. It may be used concurrently.
type Later[T any] struct {
	made  chan struct{} // Closed when the value is set.
	value T
}

// NewLater returns a Later whose value is not made yet.
func NewLater[T any]() *Later[T] { return &Later[T]{made: make(chan struct{})} }

// Set gives the value to all who wait for it. It is called once.
func (l *Later[T]) Set(value T) {
	l.value = value
	close(l.made)
}

// Get waits for the value. The error is that ctx ends before it is made.
func (l *Later[T]) Get(ctx context.Context) (value T, err error) {
	select {
	case <-ctx.Done():
		return value, ctx.Err()
	case <-l.made:
		return l.value, nil
	}
}
