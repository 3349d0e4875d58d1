// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package liqo

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
)

func TestFollows(t *testing.T) {
	required := func(terms ...corev1.NodeSelectorTerm) *corev1.Affinity {
		return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: terms},
		}}
	}
	term := ForgeSelector([]cluster.ID{"a", "b"}).NodeSelectorTerms[0]
	merged := corev1.NodeSelectorTerm{MatchExpressions: append([]corev1.NodeSelectorRequirement{
		{Key: "zone", Operator: corev1.NodeSelectorOpExists},
	}, term.MatchExpressions...)}
	tolerations := []corev1.Toleration{{Key: "virtual-node.liqo.io/not-allowed", Operator: corev1.TolerationOpExists}}
	cases := map[string]struct {
		reason string
		pod    corev1.PodSpec
		want   bool
	}{
		"Follows": {
			reason: "The webhook adds a toleration and the selection.",
			pod:    corev1.PodSpec{Tolerations: tolerations, Affinity: required(term)}, want: true,
		},
		"Merged": {
			reason: "The selection may stand beside what the pod's owner requires.",
			pod:    corev1.PodSpec{Tolerations: tolerations, Affinity: required(merged)}, want: true,
		},
		"Untouched": {reason: "A pod that the webhook did not see follows nothing.", pod: corev1.PodSpec{}},
		"NoToleration": {
			reason: "Without the toleration the scheduler keeps the pod from virtual nodes.",
			pod:    corev1.PodSpec{Affinity: required(term)},
		},
		"Older": {
			reason: "Another selection is an older one.",
			pod:    corev1.PodSpec{Tolerations: tolerations, Affinity: required(ForgeSelector([]cluster.ID{"a"}).NodeSelectorTerms[0])},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := Follows(&corev1.Pod{Spec: tc.pod}, []cluster.ID{"a", "b"}); got != tc.want {
				t.Errorf("%s\nFollows() = %v", tc.reason, got)
			}
		})
	}
}

// TestExcludes has pods that were led to clusters, once or twice.
func TestExcludes(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		to     [][]cluster.ID
		want   bool // Whether that excludes cluster a.
	}{
		"Free":     {"It requires no cluster.", nil, false},
		"Among":    {"It may be one of several.", [][]cluster.ID{{"a", "b"}}, false},
		"Other":    {"It is another one.", [][]cluster.ID{{"b"}}, true},
		"Narrowed": {"All that it requires must hold.", [][]cluster.ID{{"a", "b"}, {"b"}}, true},
	} {
		pod := &corev1.Pod{}
		for _, on := range tc.to {
			Place(pod, on)
		}
		if got := Excludes(pod, "a"); got != tc.want {
			t.Errorf("%s: %s\nExcludes() = %t", name, tc.reason, got)
		}
	}
}
