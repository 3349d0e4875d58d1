// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package clocktest is a clock for tests that say what time it is.
package clocktest

import "time"

// Func is a clock.PassiveClock that shows what it returns.
type Func func() time.Time

// Now implements clock.PassiveClock.
func (f Func) Now() time.Time { return f() }

// Since implements clock.PassiveClock.
func (f Func) Since(t time.Time) time.Duration { return f().Sub(t) }
