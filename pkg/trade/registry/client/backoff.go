// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

// Backoff is how long somebody waits who tries again and never gives up. Zero fields have the defaults.
type Backoff struct {
	// First is about the first pause, 1 s; each next one is twice as long, up to Most, 2 min.
	First, Most time.Duration
}

// first returns about the first pause.
func (b Backoff) first() time.Duration { return cmp.Or(b.First, time.Second) }

// pauses counts the failures since the last success.
type pauses struct {
	Backoff

	failed int
}

// next returns how long to wait after one more failure: between half of it and the whole, so that not all call at the same moment who were
// cut off at the same moment. A registry may ask for more, up to the most.
func (p *pauses) next(err error) time.Duration {
	first, most := p.first(), cmp.Or(p.Most, 2*time.Minute)
	pause := most
	if p.failed < 30 {
		pause = min(most, first<<p.failed)
	}
	p.failed++
	var r *RefusalError
	if errors.As(err, &r) {
		pause = max(pause, min(most, r.RetryAfter*2))
	}
	return pause/2 + rand.N(pause/2+1) //nolint:gosec // It spreads load, and is no secret.
}

// reset begins again, after a success.
func (p *pauses) reset() { p.failed = 0 }

// sleep waits, unless ctx ends or somebody wakes it, and reports whether somebody has.
func sleep(ctx context.Context, d time.Duration, wake <-chan struct{}) (woken bool) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	case <-wake:
		woken = true
	}
	return woken
}
