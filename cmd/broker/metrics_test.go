// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/resourceplugin"
	"github.com/capacitorset/liqo-broker/pkg/snapshot/snapshottest"
)

// gather returns the values of all metrics, by name and label values.
func gather(t *testing.T, c client.Client) (map[string]float64, error) {
	t.Helper()
	r := prometheus.NewRegistry()
	if err := newBrokerMetrics(c, resourceplugin.New(nil, nil, nil, 0)).register(r); err != nil {
		t.Fatalf("register(): %v", err)
	}
	families, err := r.Gather()
	values := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			key := []string{f.GetName()}
			for _, l := range m.GetLabel() {
				key = append(key, l.GetName()+"="+l.GetValue())
			}
			values[strings.Join(key, " ")] = m.GetGauge().GetValue() + m.GetCounter().GetValue()
		}
	}
	return values, err
}

func TestMetrics(t *testing.T) {
	provider := func(name, reason, cpu string) *v1alpha1.Provider {
		p := &v1alpha1.Provider{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if reason != "" {
			p.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Reason: reason}}
		}
		if cpu != "" {
			p.Status.Offered = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
			p.Status.Used = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("250m")}
		}
		return p
	}
	c := snapshottest.NewClient(t, interceptor.Funcs{},
		provider("a", "Offering", "1500m"), provider("b", "Offering", "2"), provider("c", "Drained", ""), provider("d", "", ""))
	got, err := gather(t, c)
	if err != nil {
		t.Fatalf("Gather(): %v", err)
	}
	want := map[string]float64{
		"liqo_broker_providers state=Offering":    2,
		"liqo_broker_providers state=Drained":     1,
		"liqo_broker_providers state=Unknown":     1,
		"liqo_broker_offered resource=cpu":        3.5,
		"liqo_broker_used resource=cpu":           0.5,
		"liqo_broker_pods_recreated_total":        0,
		"liqo_broker_pods_given_back_total":       0,
		"liqo_broker_resource_plugin_subscribers": 0,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

func TestMetricsSayThatTheyFailed(t *testing.T) {
	c := snapshottest.NewClient(t, interceptor.Funcs{
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			return errors.New("boom")
		},
	})
	if _, err := gather(t, c); err == nil {
		t.Error("Gather(): no error")
	}
}
