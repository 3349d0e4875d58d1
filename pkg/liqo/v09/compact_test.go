// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package v09

import (
	"testing"
	"time"

	offloadingv1alpha1 "github.com/liqotech/liqo/apis/offloading/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
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
	o.Spec.ClusterSelector = liqo.ForgeSelector([]cluster.ID{"receives", "refuses"})
	for id, state := range states {
		if state != nil {
			o.Status.RemoteNamespacesConditions[UniqueName(cluster.Identity{ID: id, Name: "n"})] = state
		}
	}
	type answers struct {
		liqo.Reception

		selects bool
	}
	ask := func(id cluster.ID) answers {
		return answers{ReceptionOf(o, cluster.Identity{ID: id, Name: "n"}), liqo.Selects(&o.Spec.ClusterSelector, id)}
	}
	before := map[cluster.ID]answers{}
	for id := range states {
		before[id] = ask(id)
	}
	if !before["receives"].Present || !before["refuses"].Refused || !before["refuses"].selects || before["waits"].selects {
		t.Fatalf("the states are not what they are called: %+v", before)
	}
	CompactOffloading(&liqo.Compactor{}, o)
	for id := range states {
		if after := ask(id); after != before[id] {
			t.Errorf("cluster %s: %+v before and %+v after", id, before[id], after)
		}
	}
	if len(o.Status.RemoteNamespacesConditions) != 2 || o.ManagedFields != nil {
		t.Errorf("not compact: %+v", o)
	}
}
