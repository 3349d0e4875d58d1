// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package liqo

import (
	"fmt"
	"testing"
	"time"
	"unsafe"

	offloadingv1alpha1 "github.com/liqotech/liqo/apis/offloading/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
)

// TestCompactOffloading asks an offloading the same questions before and after.
func TestCompactOffloading(t *testing.T) {
	then := time.Unix(1e9, 0)
	condition := func(required, ready corev1.ConditionStatus, reason string) offloadingv1alpha1.RemoteNamespaceConditions {
		return offloadingv1alpha1.RemoteNamespaceConditions{
			{Type: offloadingv1alpha1.NamespaceReady, Status: ready, Reason: reason, Message: "m", LastTransitionTime: metav1.NewTime(then)},
			{Type: offloadingv1alpha1.NamespaceOffloadingRequired, Status: required},
		}
	}
	states := map[cluster.ID]offloadingv1alpha1.RemoteNamespaceConditions{
		"receives":    condition(corev1.ConditionTrue, corev1.ConditionTrue, "Created"),
		"refuses":     condition(corev1.ConditionTrue, corev1.ConditionFalse, creationFailed),
		"waits":       condition(corev1.ConditionTrue, corev1.ConditionFalse, "Creating"),
		"notRequired": condition(corev1.ConditionFalse, corev1.ConditionTrue, "Created"),
		"unknown":     nil,
	}
	o := &NamespaceOffloading{Status: offloadingv1alpha1.NamespaceOffloadingStatus{
		RemoteNamespacesConditions: map[string]offloadingv1alpha1.RemoteNamespaceConditions{},
	}}
	o.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "m"}}
	o.Spec.ClusterSelector = ForgeSelector([]cluster.ID{"receives", "refuses"})
	for id, state := range states {
		if state != nil {
			o.Status.RemoteNamespacesConditions[UniqueName(cluster.Identity{ID: id, Name: "n"})] = state
		}
	}
	type answers struct {
		receives, refuses, selects bool
		since                      time.Time
	}
	ask := func(id cluster.ID) answers {
		identity := cluster.Identity{ID: id, Name: "n"}
		since, refuses := Refused(o, identity)
		if !refuses {
			since = time.Time{}
		}
		return answers{Receives(o, identity), refuses, Selects(o, id), since}
	}
	before := map[cluster.ID]answers{}
	for id := range states {
		before[id] = ask(id)
	}
	if !before["receives"].receives || !before["refuses"].refuses || !before["refuses"].selects || before["waits"].selects {
		t.Fatalf("the states are not what they are called: %+v", before)
	}
	(&Compactor{}).Offloading(o)
	for id := range states {
		if after := ask(id); after != before[id] {
			t.Errorf("cluster %s: %+v before and %+v after", id, before[id], after)
		}
	}
	if len(o.Status.RemoteNamespacesConditions) != 2 || o.ManagedFields != nil {
		t.Errorf("not compact: %+v", o)
	}
}

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
		return unsafe.StringData(p.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchExpressions[0].Values[0])
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
