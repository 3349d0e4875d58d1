// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// labels returns labels of pairs of keys and values.
func labels(pairs ...string) map[string]string {
	all := map[string]string{"app": "shop", "liqo.io/managed-by": "shadowpod", "virtualkubelet.liqo.io/x": "y"}
	for i := 0; i < len(pairs); i += 2 {
		all[pairs[i]] = pairs[i+1]
	}
	return all
}

// TestWorkload has pods as the controllers of Kubernetes 1.34 make them.
func TestWorkload(t *testing.T) {
	const set, deployment, daemon, job = "statefulset.kubernetes.io/pod-name", "pod-template-hash", "controller-revision-hash",
		"batch.kubernetes.io/job-name"
	long := strings.Repeat("a", 40)
	cases := map[string]struct {
		reason string
		name   string
		labels map[string]string
		want   string
	}{
		"StatefulSet": {
			reason: "It numbers its pods.", name: "pg-0",
			labels: labels(set, "pg-0", "apps.kubernetes.io/pod-index", "0", daemon, "pg-6f"), want: "StatefulSet pg",
		},
		"Role": {
			reason: "The copy that leads has got a label, and is of the same set.", name: "pg-11",
			labels: labels(set, "pg-11", "role", "primary"), want: "StatefulSet pg",
		},
		"StatefulSetOdd": {
			reason: "What is no number is no copy's.", name: "pg", labels: labels(set, "pg"), want: "app=shop",
		},
		"Deployment": {
			reason: "Its ReplicaSets have its name and a hash, their pods random letters besides.", name: "web-5d4f8c7b9-x2x4z",
			labels: labels(deployment, "5d4f8c7b9"), want: "Deployment web",
		},
		"Rollout": {
			reason: "The new ReplicaSet has another hash.", name: "web-7c6b5d-bcd24",
			labels: labels(deployment, "7c6b5d", "version", "2"), want: "Deployment web",
		},
		"DeploymentLong": {
			reason: "A long name is cut where the hash is.", name: long + "-aaaaaaaaaaaa-7c6b" + "x2x4z",
			labels: labels(deployment, "7c6b5d8f9"), want: "Deployment " + long + "-aaaaaaaaaaaa",
		},
		"DeploymentLonger": {
			reason: "Or before it.", name: strings.Repeat("a", 58) + "x2x4z",
			labels: labels(deployment, "7c6b5d8f9"), want: "Deployment " + strings.Repeat("a", 58),
		},
		"DeploymentLongest": {
			reason: "Or at the dash.", name: strings.Repeat("a", 57) + "-x2x4z",
			labels: labels(deployment, "7c6b5d8f9"), want: "Deployment " + strings.Repeat("a", 57),
		},
		"DeploymentOdd": {
			reason: "A pod that somebody gave such a label is not of a Deployment, and a hash is no difference.", name: "web",
			labels: labels(deployment, "5d4f8c7b9"), want: "app=shop",
		},
		"DeploymentOther": {
			reason: "Nor is one of another controller.", name: "web-1-x2x4z", labels: labels(deployment, "5d4f8c7b9"), want: "app=shop",
		},
		"DaemonSet": {
			reason: "Its pods have its name and random letters.", name: "logs-x2x4z", labels: labels(daemon, "5d4f8c7b9"), want: "DaemonSet logs",
		},
		"Job": {
			reason: "It names itself.", name: "night-0-x2x4z",
			labels: labels(job, "night", "job-name", "night", "batch.kubernetes.io/job-completion-index", "0"), want: "Job night",
		},
		"Labels": {
			reason: "Of other controllers only the labels tell.", name: "web-0", labels: labels("tier", "front"), want: "app=shop,tier=front",
		},
		"Operator": {
			reason: "Without those by which it tells its pods apart.", name: "pg-1",
			labels: labels("cnpg.io/instanceName", "pg-1", "cnpg.io/instanceRole", "primary", "role", "primary"), want: "app=shop",
		},
		"OtherRole": {
			reason: "A role that is none of a copy is another workload's.", name: "a", labels: labels("role", "front"), want: "app=shop,role=front",
		},
		"Bare": {
			reason: "Pods without labels cannot stand in for each other.", name: "name",
			labels: map[string]string{"liqo.io/managed-by": "shadowpod"}, want: "pod name",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := Workload(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: tc.name, Labels: tc.labels}}); got != tc.want {
				t.Errorf("%s\nWorkload(%q) = %q, want %q", tc.reason, tc.name, got, tc.want)
			}
		})
	}
}

// FuzzWorkload has names and labels that no controller makes.
func FuzzWorkload(f *testing.F) {
	f.Add("web-5d-x2x4z", "5d", "")
	f.Add("-", "", "-0")
	f.Fuzz(func(t *testing.T, name, hash, set string) {
		if got := workload(name, labels("pod-template-hash", hash, "statefulset.kubernetes.io/pod-name", set)); got == "" {
			t.Errorf("workload(%q) with hash %q, set %q: nothing", name, hash, set)
		}
	})
}
