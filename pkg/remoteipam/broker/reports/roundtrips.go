// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package reports

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

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
	// A consumer whose times jump is written this often; several virtual kubelets of one
	// may tell the same.
	roundTripsEvery, roundTripsAtOnce = 10 * time.Second, 6
)

// RecordRoundTrips replaces what is written about a consumer: how far each provider is,
// at this moment by the broker's clock. It writes nothing that is as good as written, nor
// for a consumer whose times change too often: what it tells next counts.
func (r *Recorder) RecordRoundTrips(ctx context.Context, consumer cluster.ID, took map[cluster.ID]time.Duration) error {
	var c v1alpha1.Consumer
	if err := r.client.Get(ctx, client.ObjectKey{Name: string(consumer)}, &c); err != nil {
		return fmt.Errorf("get consumer %s: %w", consumer, err)
	}
	now := r.clock.Now()
	if !due(c.Status.RoundTrips, took, now) || !r.roundTripWrites.paceOf(consumer).AllowN(now, 1) {
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
