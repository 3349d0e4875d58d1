// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package twin

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/core/placement"
	"github.com/capacitorset/liqo-broker/pkg/core/podstate"
	"github.com/capacitorset/liqo-broker/pkg/snapshot"
)

// A cause is why a pod is recreated elsewhere.
type cause string

// The values of the label reason.
const (
	misplaced cause = "misplaced" // It runs or waits where it must not.
	preferred cause = "preferred" // A policy prefers another provider.
	lost      cause = "lost"      // Its provider is out of reach.
)

// Metrics are what the controller counts and measures. They may be used concurrently.
type Metrics struct {
	// Decisions are how long it took to read a namespace and decide about it.
	Decisions prometheus.Observer
	// Recreated counts pods by the provider that they leave, empty if they were on none, and by reason.
	Recreated *prometheus.CounterVec

	moves     *prometheus.HistogramVec
	failovers prometheus.Histogram
}

// NewMetrics returns metrics for one controller, whose decisions somebody else measures.
func NewMetrics(decisions prometheus.Observer) *Metrics {
	buckets := []float64{1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600}
	m := &Metrics{
		Decisions: decisions,
		Recreated: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "liqo_broker_pods_recreated_total",
			Help: "Pods that were deleted so that they are recreated elsewhere, by the provider that they left and by reason: misplaced, " +
				"preferred or lost.",
		}, []string{"provider", "reason"}),
		moves: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "liqo_broker_move_duration_seconds", Buckets: buckets,
			Help: "Time from the deletion of a pod until the one that takes its place is ready, by reason: misplaced, preferred or lost.",
		}, []string{"reason"}),
		failovers: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "liqo_broker_failover_duration_seconds", Buckets: buckets,
			Help: "Time from the loss of a provider until a pod that was there is ready elsewhere.",
		}),
	}
	for _, reason := range []cause{misplaced, preferred, lost} {
		m.Recreated.WithLabelValues("", string(reason))
		m.moves.WithLabelValues(string(reason))
	}
	return m
}

// Collectors returns what is to be registered.
func (m *Metrics) Collectors() []prometheus.Collector {
	return []prometheus.Collector{m.Recreated, m.moves, m.failovers}
}

const (
	// movesPerNamespace bounds what is remembered: what a namespace has beyond is not measured.
	movesPerNamespace = 1000
	// forgottenAfter is how long a pod may be gone before nobody asks any more how long that took.
	forgottenAfter = time.Hour
)

// moves remembers the pods that were deleted, until others have taken their places.
type moves struct {
	metrics *Metrics

	mu   sync.Mutex
	away map[string]map[string]departure // By namespace and pod.
}

// departure is the deletion of a pod.
type departure struct {
	uid    types.UID
	reason cause
	at     time.Time
	// lost is since when the provider was out of reach; zero if it was not.
	lost time.Time
}

func newMoves(metrics *Metrics) *moves {
	return &moves{metrics: metrics, away: map[string]map[string]departure{}}
}

// left notes that a pod was deleted.
func (m *moves) left(now time.Time, pod *corev1.Pod, reason cause, from *placement.Provider) {
	gone := departure{uid: pod.UID, reason: reason, at: now}
	id := ""
	if from != nil {
		id, gone.lost = string(from.ID), from.LostSince
	}
	m.metrics.Recreated.WithLabelValues(id, string(reason)).Inc()
	m.mu.Lock()
	defer m.mu.Unlock()
	away := m.away[pod.Namespace]
	if away == nil {
		away = map[string]departure{}
		m.away[pod.Namespace] = away
	}
	if before, twice := away[pod.Name]; twice { // It goes on until some pod is ready.
		gone.at, gone.reason, gone.lost = before.at, before.reason, before.lost
	}
	if _, known := away[pod.Name]; known || len(away) < movesPerNamespace {
		away[pod.Name] = gone
	}
}

// arrived measures how long those were away in whose places pods are ready.
func (m *moves) arrived(now time.Time, namespace string, pods map[string]*corev1.Pod) {
	m.mu.Lock()
	defer m.mu.Unlock()
	away := m.away[namespace]
	for name, gone := range away {
		pod := pods[name]
		switch {
		case pod != nil && pod.UID != gone.uid && podstate.Ready(pod):
			m.metrics.moves.WithLabelValues(string(gone.reason)).Observe(now.Sub(gone.at).Seconds())
			if gone.reason == lost && !gone.lost.IsZero() {
				m.metrics.failovers.Observe(now.Sub(gone.lost).Seconds())
			}
			delete(away, name)
		case now.Sub(gone.at) > forgottenAfter:
			delete(away, name)
		}
	}
	if len(away) == 0 {
		delete(m.away, namespace)
	}
}

// forgetNamespace forgets a namespace that is gone.
func (m *moves) forgetNamespace(namespace string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.away, namespace)
}

// origin returns the provider on which a pod of a namespace is; nil if it is on none.
func origin(twin *snapshot.Twin, pod string) *placement.Provider {
	on := cluster.ID("")
	for i := range twin.Snapshot.Copies {
		if c := &twin.Snapshot.Copies[i]; c.Pod == pod {
			on = c.Provider
		}
	}
	for i := range twin.Snapshot.Providers {
		if p := &twin.Snapshot.Providers[i]; p.ID == on {
			return p
		}
	}
	return nil
}
