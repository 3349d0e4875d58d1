// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWorkload(t *testing.T) {
	cases := map[string]struct {
		reason string
		labels map[string]string
		want   string
	}{
		"Deployment": {
			reason: "Labels in order, without those of Liqo.",
			labels: map[string]string{
				"pod-template-hash": "5d", "app": "web", "liqo.io/managed-by": "shadowpod", "virtualkubelet.liqo.io/x": "y",
			},
			want: "app=web,pod-template-hash=5d",
		},
		"StatefulSet": {
			reason: "What differs per pod does not count.",
			labels: map[string]string{"app": "db", "statefulset.kubernetes.io/pod-name": "db-0", "apps.kubernetes.io/pod-index": "0"},
			want:   "app=db",
		},
		"Bare": {
			reason: "Pods without labels cannot stand in for each other.",
			labels: map[string]string{"liqo.io/managed-by": "shadowpod"},
			want:   "pod name",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, workload("name", tc.labels)); diff != "" {
				t.Errorf("%s\nworkload(): -want +got\n%s", tc.reason, diff)
			}
		})
	}
}
