// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package wake has what some parts of a program wait for and others bring: a [Signal] wakes one loop, and is remembered once
// however often it is set, a [Broadcast] wakes all that wait, and a [Later] is a value that is made after those who use it. It
// does not know what there is to do.
package wake

// Signal is set by callers, and taken by one loop. The zero Signal is never taken; New makes
// others. It may be used concurrently, and copied.
type Signal struct{ token chan struct{} }

// New returns a Signal that is not set.
func New() Signal { return Signal{token: make(chan struct{}, 1)} }

// Set sets the signal until the loop takes it. It does not block.
func (s Signal) Set() {
	select {
	case s.token <- struct{}{}:
	default:
	}
}

// Taken returns a channel from which the loop receives once for all calls of Set before.
func (s Signal) Taken() <-chan struct{} { return s.token }
