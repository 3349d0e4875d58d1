// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package twin

import (
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
	corev1 "k8s.io/api/core/v1"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// observed returns how often something was measured, and the sum.
func observed(t *testing.T, m prometheus.Observer) (times uint64, seconds float64) {
	t.Helper()
	var value dto.Metric
	if err := m.(prometheus.Metric).Write(&value); err != nil {
		t.Fatal(err)
	}
	return value.GetHistogram().GetSampleCount(), value.GetHistogram().GetSampleSum()
}

// TestFailoverIsMeasured loses a provider, and lets one of its two pods become ready elsewhere, twice.
func TestFailoverIsMeasured(t *testing.T) {
	now := testingclock.NewFakeClock(began.Add(30 * time.Second))
	h := startLost(t, now)
	h.r.clock = now
	h.reconcile()
	h.reconcile()
	if len(h.deleted) != 2 {
		t.Fatalf("deleted %v, want the pods of the lost provider", h.deleted)
	}
	metrics := h.r.metrics
	if n := testutil.ToFloat64(metrics.Recreated.WithLabelValues(string(providerA.ID), string(lost))); n != 2 {
		t.Errorf("%v pods are counted, want 2", n)
	}
	if n, _ := observed(t, metrics.Decisions); n != 2 {
		t.Errorf("%d decisions are measured, want 2", n)
	}

	// A pod that is not ready yet has not arrived.
	all := workload("liqo-provider-b", "web-0")
	again := all[slices.IndexFunc(all, func(o client.Object) bool { _, is := o.(*corev1.Pod); return is })].(*corev1.Pod)
	again.UID, again.Status = "another", corev1.PodStatus{}
	if err := h.client.Create(t.Context(), again); err != nil {
		t.Fatal(err)
	}
	now.Step(5 * time.Second)
	h.reconcile()
	if n, _ := observed(t, metrics.failovers); n != 0 {
		t.Errorf("%d failovers are measured before a pod is ready", n)
	}

	// It counts from the loss, and once.
	again.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	if err := h.client.Status().Update(t.Context(), again, &client.SubResourceUpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	now.Step(10 * time.Second)
	h.reconcile()
	h.reconcile()
	if n, seconds := observed(t, metrics.failovers); n != 1 || seconds != 45 {
		t.Errorf("%d failovers in %v s, want one in 45", n, seconds)
	}
	if n, seconds := observed(t, metrics.moves.WithLabelValues(string(lost))); n != 1 || seconds != 15 {
		t.Errorf("%d moves in %v s, want one in 15", n, seconds)
	}

	// Nobody waits for ever.
	now.Step(forgottenAfter)
	h.reconcile()
	if len(h.r.moves.away) != 0 {
		t.Errorf("%v is still awaited", h.r.moves.away)
	}
}
