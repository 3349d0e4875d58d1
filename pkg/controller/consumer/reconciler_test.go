// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package consumer

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo/liqotest"
	"github.com/capacitorset/liqo-broker/pkg/registry"
	"github.com/capacitorset/liqo-broker/pkg/registry/registrytest"
)

var consumer = cluster.Identity{ID: "id-c", Name: "consumer"}

func provider(name, cpu string, enabled bool) *v1alpha1.Provider {
	p := &v1alpha1.Provider{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.ProviderSpec{Enabled: &enabled}}
	p.Status.Offered = corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse(cpu),
		corev1.ResourceMemory: resource.MustParse("1Gi"),
		corev1.ResourcePods:   resource.MustParse("10"),
	}
	return p
}

func TestReconcile(t *testing.T) {
	peered := liqotest.ForeignCluster(consumer, false, true)
	wants := func(mode v1alpha1.Mode) *v1alpha1.Consumer {
		return &v1alpha1.Consumer{ObjectMeta: metav1.ObjectMeta{Name: string(consumer.ID)}, Spec: v1alpha1.ConsumerSpec{Mode: mode}}
	}
	both := Modes{Orchestrator: true, Aggregator: true}
	cases := map[string]struct {
		reason  string
		modes   Modes
		objects []client.Object
		absent  bool
		mode    v1alpha1.Mode
		cpu     string
		ready   metav1.ConditionStatus
		why     string
	}{
		"Sum": {
			reason: "A consumer is offered the sum of the providers that are turned on, without itself.",
			modes:  both,
			objects: []client.Object{
				peered, provider("id-a", "1500m", true), provider("id-b", "1", true), provider("off", "8", false), provider("id-c", "16", true),
			},
			mode: v1alpha1.ModeOrchestrated, cpu: "2500m", ready: metav1.ConditionTrue, why: v1alpha1.ReasonOffering,
		},
		"NoProvider": {
			reason: "Without providers the consumer is offered nothing, and the condition says so.",
			modes:  both, objects: []client.Object{peered},
			mode: v1alpha1.ModeOrchestrated, cpu: "0", ready: metav1.ConditionFalse, why: v1alpha1.ReasonNoProvider,
		},
		"NotPeered": {
			reason: "A cluster that does not peer gets no Consumer.",
			modes:  both, objects: []client.Object{liqotest.ForeignCluster(consumer, true, false)}, absent: true,
		},
		"NoLongerPeered": {
			reason: "A Consumer stays when the peering ends.",
			modes:  both, objects: []client.Object{liqotest.ForeignCluster(consumer, true, false), wants("")},
			mode: v1alpha1.ModeOrchestrated, cpu: "0", ready: metav1.ConditionFalse, why: v1alpha1.ReasonNotPeered,
		},
		"Wish": {
			reason: "A mode that the broker runs is granted.",
			modes:  both, objects: []client.Object{peered, provider("id-a", "1", true), wants(v1alpha1.ModeAggregated)},
			mode: v1alpha1.ModeAggregated, cpu: "1", ready: metav1.ConditionTrue, why: v1alpha1.ReasonOffering,
		},
		"WishNotServed": {
			reason:  "A mode that the broker does not run is replaced, and the condition says so.",
			modes:   Modes{Aggregator: true},
			objects: []client.Object{peered, provider("id-a", "1", true), wants(v1alpha1.ModeOrchestrated)},
			mode:    v1alpha1.ModeAggregated, cpu: "1", ready: metav1.ConditionTrue, why: v1alpha1.ReasonModeNotServed,
		},
		"Aggregator": {
			reason: "An aggregator aggregates.",
			modes:  Modes{Aggregator: true}, objects: []client.Object{peered, provider("id-a", "1", true)},
			mode: v1alpha1.ModeAggregated, cpu: "1", ready: metav1.ConditionTrue, why: v1alpha1.ReasonOffering,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := registrytest.NewClient(t, interceptor.Funcs{}, tc.objects...)
			r := New(c, registry.New(c), tc.modes)
			req := ctrl.Request{NamespacedName: client.ObjectKey{Name: string(consumer.ID)}}
			for range 2 { // The first time may create it.
				if _, err := r.Reconcile(t.Context(), req); err != nil {
					t.Fatalf("%s\nReconcile(): %v", tc.reason, err)
				}
			}
			got := &v1alpha1.Consumer{}
			err := c.Get(t.Context(), req.NamespacedName, got)
			if tc.absent {
				if client.IgnoreNotFound(err) != nil || err == nil {
					t.Errorf("%s\ngot %+v, %v", tc.reason, got, err)
				}
				return
			}
			if err != nil {
				t.Fatalf("%s\nGet(): %v", tc.reason, err)
			}
			cpu := got.Status.Offered[corev1.ResourceCPU]
			if got.Status.Mode != tc.mode || cpu.Cmp(resource.MustParse(tc.cpu)) != 0 || got.Status.ClusterName != consumer.Name {
				t.Errorf("%s\nmode %s, %s cpu, name %s, want %s, %s", tc.reason, got.Status.Mode, cpu.String(), got.Status.ClusterName, tc.mode, tc.cpu)
			}
			ready := meta.FindStatusCondition(got.Status.Conditions, v1alpha1.ConditionReady)
			if ready == nil || ready.Status != tc.ready || ready.Reason != tc.why {
				t.Errorf("%s\nReady: %+v, want %s, %s", tc.reason, ready, tc.ready, tc.why)
			}
			if len(got.OwnerReferences) != 1 {
				t.Errorf("%s\nowners: %v", tc.reason, got.OwnerReferences)
			}
		})
	}
}
