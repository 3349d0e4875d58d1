// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
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
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v09/liqotest"
	"github.com/capacitorset/liqo-broker/pkg/resourceplugin"
	"github.com/capacitorset/liqo-broker/pkg/serving/servingtest"
	"github.com/capacitorset/liqo-broker/pkg/snapshot/snapshottest"
	"github.com/capacitorset/liqo-broker/test/metrictable"
)

// registered returns all metrics of a daemon that reads some objects.
func registered(t *testing.T, c client.Client) *prometheus.Registry {
	t.Helper()
	r := prometheus.NewRegistry()
	if err := newBrokerMetrics(c, resourceplugin.New(nil, nil, nil, 0)).register(r); err != nil {
		t.Fatalf("register(): %v", err)
	}
	shown, _ := servingtest.Certificate(t, "metrics")
	if err := register(r, programMetrics(shown.Get, shown.Get)...); err != nil {
		t.Fatal(err)
	}
	return r
}

// gather returns the values of all metrics that are told of clusters, by name and label values.
func gather(t *testing.T, c client.Client) (map[string]float64, error) {
	t.Helper()
	families, err := registered(t, c).Gather()
	values := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			key := []string{strings.TrimPrefix(f.GetName(), "liqo_broker_")}
			for _, l := range m.GetLabel() {
				key = append(key, l.GetName()+"="+l.GetValue())
			}
			values[strings.Join(key, " ")] = m.GetGauge().GetValue() + m.GetCounter().GetValue()
		}
	}
	return values, err
}

// aFederation has providers in several states, and a consumer with pods.
func aFederation() []client.Object {
	provider := func(name, reason, cpu string) *v1alpha1.Provider {
		p := &v1alpha1.Provider{ObjectMeta: metav1.ObjectMeta{Name: name}}
		p.Status.ClusterName = "cluster " + name
		if reason != "" {
			p.Status.Conditions = []metav1.Condition{
				{
					Type: v1alpha1.ConditionReady, Status: metav1.ConditionStatus(map[bool]string{true: "True", false: "False"}[reason == "Offering"]),
					Reason: reason,
				},
				{Type: v1alpha1.ConditionReachable, Status: metav1.ConditionTrue},
			}
		}
		if cpu != "" {
			p.Status.Offered = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), "example.com/gpu": resource.MustParse("4")}
			p.Status.Used = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("250m")}
		}
		return p
	}
	drained := provider("c", "Drained", "")
	drained.Spec.Scheduling = v1alpha1.SchedulingDrained
	consumer := &v1alpha1.Consumer{ObjectMeta: metav1.ObjectMeta{Name: "x"}}
	consumer.Status.Mode, consumer.Status.ClusterName = v1alpha1.ModeOrchestrated, "rome"
	consumer.Status.Offered = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")}
	consumer.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionAgentReporting, Status: metav1.ConditionFalse}}
	tells := &v1alpha1.Consumer{ObjectMeta: metav1.ObjectMeta{Name: "y"}}
	tells.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionAgentReporting, Status: metav1.ConditionTrue}}
	unasked := &v1alpha1.Consumer{ObjectMeta: metav1.ObjectMeta{Name: "z"}}
	unasked.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionAgentReporting, Status: metav1.ConditionUnknown}}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "liqo-a", Labels: map[string]string{
		liqo.LabelNodeType: liqo.NodeTypeVirtual, liqo.LabelRemoteClusterID: "a",
	}}}
	twin := liqotest.TwinNamespace("shop", cluster.Identity{ID: "x", Name: "rome"})
	pod := func(name, on string, phase corev1.PodPhase, ready corev1.ConditionStatus) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "shop"}}
		p.Spec.NodeName, p.Status.Phase = on, phase
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}
		return p
	}
	return []client.Object{
		provider("a", "Offering", "1500m"), provider("b", "Offering", "2"), drained, provider("d", "", ""), consumer, tells, unasked, node, twin,
		pod("ready", "liqo-a", corev1.PodRunning, corev1.ConditionTrue), pod("starts", "liqo-a", corev1.PodPending, corev1.ConditionFalse),
		pod("unready", "liqo-a", corev1.PodRunning, corev1.ConditionFalse), pod("done", "liqo-a", corev1.PodSucceeded, corev1.ConditionFalse),
		pod("waits", "", corev1.PodPending, corev1.ConditionFalse),
	}
}

func TestMetrics(t *testing.T) {
	got, err := gather(t, snapshottest.NewClient(t, interceptor.Funcs{}, aFederation()...))
	if err != nil {
		t.Fatalf("Gather(): %v", err)
	}
	want := map[string]float64{
		"providers state=Offering":                               2,
		"providers state=Drained":                                1,
		"providers state=Unknown":                                1,
		"providers state=NodeNotReady":                           0,
		"provider_info name=cluster a provider=a state=Offering": 1,
		"provider_info name=cluster d provider=d state=Unknown":  1,
		"provider_ready provider=a":                              1,
		"provider_ready provider=c":                              0,
		"provider_reachable provider=a":                          1,
		"provider_reachable provider=d":                          0,
		"provider_scheduling provider=a scheduling=Active":       1,
		"provider_scheduling provider=a scheduling=Drained":      0,
		"provider_scheduling provider=c scheduling=Drained":      1,
		"provider_offered_cpu_cores provider=a":                  1.5,
		"provider_used_cpu_cores provider=a":                     0.25,
		"provider_offered_cpu_cores provider=d":                  0,
		"provider_pods provider=a state=ready":                   1,
		"provider_pods provider=a state=unready":                 1,
		"provider_pods provider=a state=pending":                 1,
		"provider_pods provider=a state=ended":                   1,
		"provider_pods provider=b state=ready":                   0,
		"consumer_info consumer=x mode=Orchestrated name=rome":   1,
		"consumer_ready consumer=x":                              0,
		"consumer_agent_reporting consumer=x":                    0,
		"consumer_agent_reporting consumer=y":                    1,
		"consumer_offered_memory_bytes consumer=x":               1 << 30,
		"consumer_pods consumer=x state=pending":                 2,
		"consumer_pods consumer=x state=ready":                   1,
		"pods_given_back_total consumer=x":                       0,
		"pods_recreated_total provider= reason=lost":             0,
		"resource_plugin_subscribers":                            0,
	}
	for name, value := range want {
		if number, told := got[name]; !told || number != value {
			t.Errorf("%s is %v (told: %t), want %v", name, number, told, value)
		}
	}
	for name := range got {
		if strings.Contains(name, "gpu") {
			t.Errorf("%s is told: its name is a peer's own", name)
		}
		if name == "consumer_agent_reporting consumer=z" {
			t.Errorf("%s is told of one that need not tell anything", name)
		}
	}
}

// TestMetricTable compares what the daemon measures with the reference.
func TestMetricTable(t *testing.T) {
	metrictable.Check(t, registered(t, snapshottest.NewClient(t, interceptor.Funcs{}, aFederation()...)))
}

// TestSeriesAreBounded counts the series of many clusters: so many for each, and no product of two kinds.
func TestSeriesAreBounded(t *testing.T) {
	series := func(clusters int) int {
		objects := aFederation()
		for i := range clusters {
			name := metav1.ObjectMeta{Name: fmt.Sprint("more-", i)}
			objects = append(objects, &v1alpha1.Provider{ObjectMeta: name}, &v1alpha1.Consumer{ObjectMeta: name})
		}
		got, err := gather(t, snapshottest.NewClient(t, interceptor.Funcs{}, objects...))
		if err != nil {
			t.Fatal(err)
		}
		return len(got)
	}
	const each, most = 29, 30_000
	few, many := series(0), series(1000)
	if diff := cmp.Diff(each*1000, many-few); diff != "" {
		t.Errorf("1,000 providers that are consumers too have: -want +got\n%s", diff)
	}
	if many > most {
		t.Errorf("%d series, want at most %d", many, most)
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
