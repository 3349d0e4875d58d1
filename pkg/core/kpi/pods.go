// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package kpi

import (
	"maps"
	"math"
	"slices"
	"time"
)

const (
	// podWindow is how long what happened to a pod counts.
	podWindow = 24 * time.Hour
	// enoughPods is the least number of pods of a consumer from which something follows.
	enoughPods = 3
	// mostPods and mostConsumers bound what is remembered: the last pods of each
	// consumer, and the consumers whose pods came last.
	mostPods, mostConsumers = 32, 32
)

// PodSeen is what became of a pod on a provider.
type PodSeen struct {
	At time.Time
	// Consumer is who the pod is of.
	Consumer string
	// Failed tells that the provider let it fail.
	Failed bool
	// Startup is how long it took from the moment in which it was bound to the provider
	// until it was ready; zero if it never was, or nobody saw.
	Startup time.Duration
}

// Pods are what became of the last pods on a provider, by consumer. The zero Pods have
// seen none.
type Pods map[string][]pod

// pod is a PodSeen in a form that takes little room.
type pod struct {
	At      int64 `json:"at"`           // Seconds since 1970.
	Startup int64 `json:"ms,omitempty"` // Milliseconds.
	Failed  bool  `json:"bad,omitempty"`
}

// Add returns the Pods with some more, without what happened too long ago.
func (p Pods) Add(now time.Time, seen []PodSeen) Pods {
	next := make(Pods, len(p))
	for consumer, pods := range p {
		next[consumer] = slices.Clone(pods)
	}
	for _, s := range seen {
		next[s.Consumer] = append(next[s.Consumer], pod{At: s.At.Unix(), Startup: max(0, s.Startup.Milliseconds()), Failed: s.Failed})
	}
	for consumer, pods := range next {
		// What comes from the future, as after a clock was set back, is dropped too.
		pods = slices.DeleteFunc(pods, func(s pod) bool { return now.Sub(time.Unix(s.At, 0)).Abs() > podWindow })
		if next[consumer] = pods[max(0, len(pods)-mostPods):]; len(pods) == 0 {
			delete(next, consumer)
		}
	}
	last := func(consumer string) int64 { return next[consumer][len(next[consumer])-1].At }
	names := slices.SortedFunc(maps.Keys(next), func(a, b string) int { return int(last(b) - last(a)) })
	for _, consumer := range names[min(len(names), mostConsumers):] {
		delete(next, consumer)
	}
	return next
}

// KPIs returns by name what is known of the pods: the share that failed, in a
// Ratio, and the median and the 90th percentile of the start-up times, in seconds.
// Each is the median of what the single consumers saw, so that one of them, whose pods
// may be slow by themselves, cannot move it beyond what the others saw.
func (p Pods) KPIs() map[string]float64 {
	seen := map[string][]float64{}
	for _, pods := range p {
		failed := 0
		var startups []float64
		for _, s := range pods {
			if s.Failed {
				failed++
			}
			if s.Startup > 0 {
				startups = append(startups, float64(s.Startup)/1e3)
			}
		}
		if len(pods) >= enoughPods {
			seen[FailureRate] = append(seen[FailureRate], float64(failed)/float64(len(pods)))
		}
		if len(startups) >= enoughPods {
			seen[StartupMedian] = append(seen[StartupMedian], quantile(startups, 0.5))
			seen[StartupP90] = append(seen[StartupP90], quantile(startups, 0.9))
		}
	}
	medians := make(map[string]float64, len(seen))
	for name, values := range seen {
		medians[name] = quantile(values, 0.5)
	}
	return medians
}

// quantile returns the smallest value that is at least as large as a part of all.
func quantile(values []float64, part float64) float64 {
	slices.Sort(values)
	return values[max(0, int(math.Ceil(part*float64(len(values))))-1)]
}

// valid reports whether Pods are some that Add can have made.
func (p Pods) valid() bool {
	for _, pods := range p {
		if len(pods) == 0 || len(pods) > mostPods || slices.ContainsFunc(pods, func(s pod) bool { return s.Startup < 0 }) {
			return false
		}
	}
	return len(p) <= mostConsumers
}
