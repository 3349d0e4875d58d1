// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package twin

import (
	"sync"
	"time"

	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/utils/clock"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
)

// pacer bounds how many pods are moved because the choice of a policy has
// changed. It may be used concurrently.
type pacer struct {
	clock clock.Clock

	mu     sync.Mutex
	limits map[string]limit // By the policy's name.
}

// limit is how many pods one policy moves in a minute.
type limit struct {
	perMinute int32
	flowcontrol.PassiveRateLimiter
}

func newPacer(clock clock.Clock) *pacer { return &pacer{clock: clock, limits: map[string]limit{}} }

// allow returns the first of some pods, as many as may be moved at this moment,
// and when to try the others; zero if there are none.
func (p *pacer) allow(policy *v1alpha1.PlacementPolicy, pods []string) ([]string, time.Duration) {
	if policy == nil || len(pods) == 0 {
		return nil, 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	perMinute := max(1, policy.Spec.MaxMovesPerMinute)
	l := p.limits[policy.Name]
	if l.perMinute != perMinute {
		l = limit{perMinute, flowcontrol.NewTokenBucketPassiveRateLimiterWithClock(float32(perMinute)/60, 1, p.clock)}
		p.limits[policy.Name] = l
	}
	n := 0
	for n < len(pods) && l.TryAccept() {
		n++
	}
	if n == len(pods) {
		return pods, 0
	}
	return pods[:n], time.Minute / time.Duration(perMinute)
}
