// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package liqo

import (
	"fmt"
	"testing"
	"unsafe"

	corev1 "k8s.io/api/core/v1"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
)

// TestCompactPod keeps what a waiting pod requires, and shares the names in it.
func TestCompactPod(t *testing.T) {
	var c Compactor
	selected := func() []cluster.ID { return []cluster.ID{cluster.ID([]byte("some-cluster"))} }
	pod := func(node string) *corev1.Pod {
		p := &corev1.Pod{Spec: corev1.PodSpec{NodeName: node, Tolerations: []corev1.Toleration{{Key: "virtual-node.liqo.io/not-allowed"}}}}
		Place(p, selected())
		p.Spec.Affinity.PodAffinity = &corev1.PodAffinity{}
		c.Pod(p)
		return p
	}
	if got := pod("node").Spec.Affinity; got != nil {
		t.Errorf("a pod that is bound keeps %v", got)
	}
	one, two := pod(""), pod("")
	if !Follows(one, selected()) || one.Spec.Affinity.PodAffinity != nil {
		t.Errorf("a pod that waits keeps %v", one.Spec.Affinity)
	}
	data := func(p *corev1.Pod) *byte {
		return unsafe.StringData(
			p.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchExpressions[0].Values[0],
		)
	}
	if data(one) != data(two) {
		t.Error("two pods have the name of one cluster twice")
	}
}

// TestCompactorIsBounded has a consumer write names as it likes: what says nothing of clusters is dropped, and of the rest only so
// many names are kept.
func TestCompactorIsBounded(t *testing.T) {
	c := &Compactor{}
	for i := range 12 {
		values := make([]string, 1000)
		for j := range values {
			values[j] = fmt.Sprintf("value-%d-%d", i, j)
		}
		pod := &corev1.Pod{}
		Place(pod, []cluster.ID{"a"})
		terms := pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
		terms[0].MatchExpressions = append(terms[0].MatchExpressions,
			corev1.NodeSelectorRequirement{Key: "disk", Operator: corev1.NodeSelectorOpIn, Values: values},
			corev1.NodeSelectorRequirement{Key: LabelRemoteClusterID, Operator: corev1.NodeSelectorOpNotIn, Values: values})
		c.Pod(pod)
		left := pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchExpressions
		if len(left) != 2 || left[0].Key != LabelRemoteClusterID || left[1].Key != LabelRemoteClusterID {
			t.Fatalf("kept %d requirements", len(left))
		}
	}
	if len(c.names) > maxNames {
		t.Errorf("%d names are kept, more than %d", len(c.names), maxNames)
	}
}
