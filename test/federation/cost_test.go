// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package federation

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestCost(t *testing.T) {
	const busy, lazy, get, put = "broker: etcd", "consumer: kubelet", "broker: GET pods", "consumer: PUT leases"
	before := Cost{CPU: map[string]time.Duration{busy: time.Second}, Requests: map[string]float64{get: 5}}
	after := Cost{
		CPU: map[string]time.Duration{busy: 5 * time.Second, lazy: time.Second}, Requests: map[string]float64{get: 45, put: 10},
	}
	idle := Cost{CPU: map[string]time.Duration{busy: 6 * time.Second, lazy: 6 * time.Second}, Requests: map[string]float64{put: 60}}

	used := after.Less(before)
	want := Cost{CPU: map[string]time.Duration{busy: 4 * time.Second, lazy: time.Second}, Requests: map[string]float64{get: 40, put: 10}}
	if diff := cmp.Diff(want, used); diff != "" {
		t.Errorf("Less: -want +got\n%s", diff)
	}
	// What is idle takes a minute's part.
	net := used.Net(10*time.Second, idle, time.Minute)
	want = Cost{CPU: map[string]time.Duration{busy: 3 * time.Second, lazy: 0}, Requests: map[string]float64{get: 40, put: 0}}
	if diff := cmp.Diff(want, net); diff != "" {
		t.Errorf("Net: -want +got\n%s", diff)
	}
	if cpu, requests := used.Sum(); cpu != 5*time.Second || requests != 50 {
		t.Errorf("Sum() = %s, %v; want 5s, 50", cpu, requests)
	}
}

// TestNetBelowNothing keeps what is less than idle as it is: cut off at nothing, the sum would be more than was used.
func TestNetBelowNothing(t *testing.T) {
	idle := Cost{CPU: map[string]time.Duration{"a": time.Second}}
	net := Cost{CPU: map[string]time.Duration{"a": 0}}.Net(time.Second, idle, time.Second)
	if cpu, _ := net.Sum(); cpu != -time.Second {
		t.Errorf("the sum is %s, want -1s", cpu)
	}
}

func TestShownBy(t *testing.T) {
	cases := map[string]struct {
		reason string
		args   []string
		want   string
	}{
		"Name": {"people know names", []string{"--foreign-cluster-id=4e1c", "--foreign-cluster-name=broker", "--nodename=liqo-broker"}, "broker"},
		"ID":   {"with Liqo 1.x the ID is the name", []string{"--foreign-cluster-id=broker", "--nodename=b"}, "broker"},
		"None": {"a virtual kubelet without either is counted, too", nil, "nobody"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := shownBy(tc.args); got != tc.want {
				t.Errorf("shownBy(%q) = %q, want %q: %s", tc.args, got, tc.want, tc.reason)
			}
		})
	}
}
