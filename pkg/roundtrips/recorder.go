// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package roundtrips writes down, on a broker, how far providers are from a consumer, as that one tells: into the status of the Consumer,
// where the choice for this consumer, and no other, reads it.
//
// It does not know how a consumer tells it, nor whether a time or a provider can be.
package roundtrips

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/core/kpi"
)

const (
	// validity is how long a round-trip time counts. Consumers tell one every minute.
	validity = 5 * time.Minute
	// refresh is after how long times are written again that have hardly changed.
	refresh = 2 * time.Minute
	// hardly is by how much of itself a time may change and need not be written at once.
	hardly = 10
	// A consumer whose times jump is written this often; several programs of one may tell
	// the same.
	every, atOnce = 10 * time.Second, 6
)

// Recorder writes round-trip times. It may be used concurrently.
type Recorder struct {
	client client.Client
	clock  clock.PassiveClock

	mu sync.Mutex
	// writes are the paces of the consumers that are not forgotten.
	writes map[cluster.ID]*rate.Limiter
}

// New returns a Recorder that reads Consumers, which a cache may do that lags a little, and patches their status.
func New(consumers client.Client, clock clock.PassiveClock) *Recorder {
	return &Recorder{client: consumers, clock: clock, writes: map[cluster.ID]*rate.Limiter{}}
}

// Record replaces what is written about a consumer: how far each provider is,
// at this moment by the broker's clock. It writes nothing that is as good as written, nor
// for a consumer whose times change too often: what it tells next counts.
func (r *Recorder) Record(ctx context.Context, consumer cluster.ID, took map[cluster.ID]time.Duration) error {
	var c v1alpha1.Consumer
	if err := r.client.Get(ctx, client.ObjectKey{Name: string(consumer)}, &c); err != nil {
		return fmt.Errorf("get consumer %s: %w", consumer, err)
	}
	now := r.clock.Now()
	if !due(c.Status.RoundTrips, took, now) || !r.paceOf(consumer).AllowN(now, 1) {
		return nil
	}
	before := c.DeepCopy()
	c.Status.RoundTrips = nil
	for provider, trip := range took {
		value := kpi.KPI{Value: milliseconds(trip), Unit: kpi.Milliseconds, Measured: now, Expires: now.Add(validity)}
		c.Status.RoundTrips = append(c.Status.RoundTrips, v1alpha1.RoundTrip{Provider: string(provider), KPIValue: v1alpha1.KPIValueOf(value)})
	}
	slices.SortFunc(c.Status.RoundTrips, func(a, b v1alpha1.RoundTrip) int { return strings.Compare(a.Provider, b.Provider) })
	if err := r.client.Status().Patch(ctx, &c, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("patch the round-trip times of consumer %s: %w", consumer, err)
	}
	return nil
}

// Forget forgets a consumer that is gone: the next one of its name is written at once.
func (r *Recorder) Forget(consumer cluster.ID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.writes, consumer)
}

// paceOf returns the pace of one consumer.
func (r *Recorder) paceOf(consumer cluster.ID) *rate.Limiter {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.writes[consumer] == nil {
		r.writes[consumer] = rate.NewLimiter(rate.Every(every), atOnce)
	}
	return r.writes[consumer]
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// due reports whether times have to be written: at once if a provider came or went or is
// much nearer or farther, and otherwise after a while.
func due(written []v1alpha1.RoundTrip, took map[cluster.ID]time.Duration, now time.Time) bool {
	if len(written) != len(took) {
		return true
	}
	for _, w := range written {
		value, err := w.Value.Float()
		is := milliseconds(took[cluster.ID(w.Provider)])
		if err != nil || is == 0 || is > value+value/hardly || is < value-value/hardly {
			return true
		}
		// A clock that was set back must not keep the times from being written.
		if now.Sub(w.MeasuredTime.Time).Abs() >= refresh {
			return true
		}
	}
	return false
}
