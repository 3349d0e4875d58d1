// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package placementpolicy

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/promquery"
	"github.com/capacitorset/liqo-broker/pkg/promquery/promquerytest"
	"github.com/capacitorset/liqo-broker/pkg/snapshot/snapshottest"
)

// TestPrometheus keeps what a real Prometheus measures, in real time: it rises, its
// exporter fails, it falls, and Prometheus ends.
func TestPrometheus(t *testing.T) {
	server := promquerytest.Start(t)
	policy := keeping()
	policy.Spec.Scaling.Window = &metav1.Duration{Duration: 6 * time.Second}
	policy.Spec.Scaling.Expiry = &metav1.Duration{Duration: 10 * time.Second}
	h := begin(t, policy, consumer("c"), provider("a", "1"), provider("b", "2"))
	asker, err := promquery.New(promquery.Config{URL: server.Address(), Timeout: promquery.DefaultTimeout})
	if err != nil {
		t.Fatalf("New(): %v", err)
	}
	h.r = New(Config{
		Client: h.client, Reader: snapshottest.Reader(h.client, ""), Recorder: h.recorder, Clock: clock.RealClock{}, Asker: asker,
	})
	until := func(providers, condition string) {
		t.Helper()
		for end := time.Now().Add(time.Minute); ; {
			key := client.ObjectKeyFromObject(policy)
			result, err := h.r.Reconcile(t.Context(), ctrl.Request{NamespacedName: key})
			if err != nil {
				t.Fatalf("Reconcile(): %v", err)
			}
			p := &v1alpha1.PlacementPolicy{}
			if err := h.client.Get(t.Context(), key, p); err != nil {
				t.Fatalf("Get(): %v", err)
			}
			if h.chosen()["c"] == providers && measured(p) == condition {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("chosen %s, %s: want %s, %s", h.chosen()["c"], measured(p), providers, condition)
			}
			select {
			case <-t.Context().Done():
			case <-time.After(result.RequeueAfter):
			}
		}
	}
	report := func(delay int) { server.Expose(fmt.Sprintf("delay{consumer=\"c\"} %d\n", delay)) }
	report(150)
	until("a", "True Measured")
	began := time.Now()
	report(300)
	until("a,b", "True Measured")
	if took := time.Since(began); took < 6*time.Second {
		t.Errorf("a step after %s, before the window is over", took)
	}
	server.Expose("")
	until("a,b", "False NoData")
	report(0)
	until("a", "True Measured")
	server.Stop()
	until("a", "False PrometheusUnavailable")
}
