// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package kpi

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestPods(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	seen := func(consumer string, startups ...int) []PodSeen {
		var pods []PodSeen
		for _, seconds := range startups {
			pods = append(pods, PodSeen{At: now, Consumer: consumer, Startup: time.Duration(seconds) * time.Second, Failed: seconds < 0})
		}
		return pods
	}
	join := func(all ...[]PodSeen) (joined []PodSeen) {
		for _, pods := range all {
			joined = append(joined, pods...)
		}
		return joined
	}
	old := seen("a", 1, 1, 1)
	for i := range old {
		old[i].At = now.Add(-25 * time.Hour)
	}
	future := seen("a", 1, 1, 1)
	for i := range future {
		future[i].At = now.Add(25 * time.Hour)
	}
	cases := map[string]struct {
		reason string
		seen   []PodSeen
		want   map[string]float64
	}{
		"None":    {reason: "Nothing is known at first.", want: map[string]float64{}},
		"Too few": {reason: "Two pods say nothing.", seen: seen("a", 3, 4), want: map[string]float64{}},
		"Started": {
			reason: "The quantiles are those of the start-up times.", seen: seen("a", 1, 2, 3, 4, 5, 6, 7, 8, 9, 10),
			want: map[string]float64{FailureRate: 0, StartupMedian: 5, StartupP90: 9},
		},
		"Failed": {
			reason: "Pods that failed before they were ready have no start-up time.", seen: seen("a", -1, 2, 2, 2),
			want: map[string]float64{FailureRate: 0.25, StartupMedian: 2, StartupP90: 2},
		},
		"AllBad": {reason: "A provider can let all fail.", seen: seen("a", -1, -1, -1), want: map[string]float64{FailureRate: 1}},
		"Old":    {reason: "What was yesterday does not count.", seen: old, want: map[string]float64{}},
		"Future": {reason: "Nor does what a wrong clock put into the future.", seen: future, want: map[string]float64{}},
		"Hostile": {
			reason: "One consumer with many slow and failing pods does not decide for the others.",
			seen:   join(seen("a", 2, 2, 2), seen("b", 3, 3, 3), seen("evil", 500, 500, 500, 500, -1, -1, -1, -1)),
			want:   map[string]float64{FailureRate: 0, StartupMedian: 3, StartupP90: 3},
		},
		"Negative": {
			reason: "A clock that was set back makes no start-up time.",
			seen:   []PodSeen{{At: now, Consumer: "a", Startup: -time.Hour}, {At: now, Consumer: "a"}, {At: now, Consumer: "a"}},
			want:   map[string]float64{FailureRate: 0},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			pods := Pods{}.Add(now, tc.seen)
			if diff := cmp.Diff(tc.want, pods.KPIs()); diff != "" {
				t.Errorf("%s\nKPIs(): -want +got\n%s", tc.reason, diff)
			}
			stored, err := Parse(History{Pods: pods}.String())
			if diff := cmp.Diff(tc.want, stored.Pods.KPIs()); diff != "" || err != nil {
				t.Errorf("after a restart: %v, -want +got\n%s", err, diff)
			}
		})
	}
}

// TestPodsAreBounded has many pods of many consumers: the last ones are remembered.
func TestPodsAreBounded(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	pods := Pods{}
	for n := range 100 {
		at := now.Add(time.Duration(n) * time.Second)
		for i := range 100 {
			pods = pods.Add(at, []PodSeen{{At: at, Consumer: fmt.Sprintf("c%02d", n), Startup: time.Duration(1+i) * time.Second}})
		}
	}
	if len(pods) != mostConsumers || len(pods["c99"]) != mostPods || pods["c00"] != nil || pods["c99"][mostPods-1].Startup != 100_000 {
		t.Errorf("%d consumers, %d pods of the last", len(pods), len(pods["c99"]))
	}
	if !pods.valid() {
		t.Error("the pods cannot be read again")
	}
	for _, text := range []string{`{"pods":{"a":[]}}`, `{"pods":{"a":[{"at":1,"ms":-1}]}}`} {
		if _, err := Parse(text); err == nil {
			t.Errorf("Parse(%s): no error", text)
		}
	}
}
