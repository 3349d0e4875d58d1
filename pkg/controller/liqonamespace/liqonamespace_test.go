// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package liqonamespace

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/capacitorset/liqo-broker/pkg/liqo"
	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v09/liqotest"
)

// TestReconcile finds an offloading of all virtual nodes, which was made before the broker was there.
func TestReconcile(t *testing.T) {
	o := liqotest.Offloading("liqo")
	o.Spec.ClusterSelector = corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{
			{Key: liqo.LabelNodeType, Operator: corev1.NodeSelectorOpIn, Values: []string{liqo.NodeTypeVirtual}},
		},
	}}}
	c := fake.NewClientBuilder().WithScheme(liqotest.Scheme(t)).WithObjects(o).Build()
	recorder := record.NewFakeRecorder(9)
	r := &Reconciler{reader: c, client: c, recorder: recorder}
	req := ctrl.Request{NamespacedName: client.ObjectKeyFromObject(o)}
	for range 2 {
		if _, err := r.Reconcile(t.Context(), req); err != nil {
			t.Fatalf("Reconcile(): %v", err)
		}
	}
	var got v09.NamespaceOffloading
	if err := c.Get(t.Context(), req.NamespacedName, &got); err != nil {
		t.Fatal(err)
	}
	if v09.Protect(&got) {
		t.Errorf("clusters with Liqo's virtual kubelet are still selected: %+v", o.Spec.ClusterSelector)
	}
	if len(recorder.Events) != 1 || !strings.Contains(<-recorder.Events, reasonProtected) {
		t.Error("want one event for one change")
	}
	if err := c.Delete(t.Context(), &got); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Reconcile(t.Context(), req); err != nil {
		t.Errorf("Reconcile() without an offloading: %v", err)
	}
}
