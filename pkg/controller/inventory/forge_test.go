// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/controller/inventory"
)

const namespace = "cluster-inventory"

var measured = metav1.NewTime(time.Date(2024, 1, 31, 12, 0, 0, 0, time.FixedZone("CET", 3600)))

// provider returns a provider that offers 4 cores, with one KPI.
func provider(name string) *v1alpha1.Provider {
	kpi := v1alpha1.KPI{Name: "roundTripTime", KPIValue: v1alpha1.KPIValue{Value: "8", Unit: "ms", MeasuredTime: measured}}
	return &v1alpha1.Provider{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: "uid-" + "1"},
		Status: v1alpha1.ProviderStatus{
			ClusterName: "milan",
			Offered:     corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4")},
			Free:        corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1500m")},
			KPIs:        []v1alpha1.KPI{kpi},
			Conditions: []metav1.Condition{
				{Type: v1alpha1.ConditionReady, Status: "True", Reason: "Offering", Message: "It offers", LastTransitionTime: measured},
				{Type: v1alpha1.ConditionDraining, Status: "False", Reason: "NotDraining", LastTransitionTime: measured},
				{Type: v1alpha1.ConditionReachable, Status: "False", Reason: "NodesNotReady", LastTransitionTime: measured},
			},
		},
	}
}

func TestProfile(t *testing.T) {
	got := inventory.Profile(provider("p1"), namespace)
	want := map[string]any{
		"apiVersion": "multicluster.x-k8s.io/v1alpha1", "kind": "ClusterProfile",
		"metadata": map[string]any{
			"name": "p1", "namespace": namespace, "labels": map[string]any{"x-k8s.io/cluster-manager": "liqo-broker"},
			"ownerReferences": []any{map[string]any{
				"apiVersion": "brokering.liqo.io/v1alpha1", "kind": "Provider", "name": "p1", "uid": "uid-1", "controller": true,
			}},
		},
		"spec": map[string]any{"displayName": "milan", "clusterManager": map[string]any{"name": "liqo-broker"}},
		"status": map[string]any{
			"conditions": []any{
				map[string]any{
					"type": "brokering.liqo.io/Ready", "status": "True", "reason": "Offering", "message": "It offers",
					"lastTransitionTime": "2024-01-31T11:00:00Z",
				},
				map[string]any{
					"type": "ControlPlaneHealthy", "status": "False", "reason": "NodesNotReady", "message": "",
					"lastTransitionTime": "2024-01-31T11:00:00Z",
				},
			},
			"properties": []any{
				map[string]any{"name": "brokering.liqo.io/free.cpu", "value": "1500m"},
				map[string]any{
					"name": "brokering.liqo.io/kpi.roundTripTime", "value": "8 ms", "lastObservedTime": "2024-01-31T11:00:00Z",
				},
				map[string]any{"name": "brokering.liqo.io/offered.cpu", "value": "4"},
				map[string]any{"name": "cluster.clusterset.k8s.io", "value": "p1"},
			},
		},
	}
	if diff := cmp.Diff(want, got.Object); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// TestLongNames has a KPI whose name leaves no room for what stands before it.
func TestLongNames(t *testing.T) {
	p := provider("p1")
	p.Status.QueriedKPIs = []v1alpha1.KPI{{Name: strings.Repeat("k", 253)}, {Name: "kept", KPIValue: v1alpha1.KPIValue{Value: "1"}}}
	status, _, _ := unstructured.NestedSlice(inventory.Profile(p, namespace).Object, "status", "properties")
	names := []string{}
	for _, s := range status {
		names = append(names, s.(map[string]any)["name"].(string))
	}
	if all := strings.Join(names, " "); !strings.Contains(all, "brokering.liqo.io/query.kept") || strings.Contains(all, "kkk") {
		t.Errorf("the properties are %v", names)
	}
}

func TestDecisions(t *testing.T) {
	chosen := func(n int) (all []v1alpha1.ChosenProvider) {
		for i := range n {
			all = append(all, v1alpha1.ChosenProvider{ID: fmt.Sprintf("p%03d", i)})
		}
		return all
	}
	cases := map[string]struct {
		reason  string
		chosen  []v1alpha1.ChosenProvider
		want    []int
		reasons []string
	}{
		"None":    {reason: "A decision that chose nobody says so.", want: []int{0}},
		"One":     {reason: "The reason names the policy.", chosen: chosen(1), want: []int{1}, reasons: []string{"policy cheapest: score 87"}},
		"Full":    {reason: "An object has a hundred clusters.", chosen: chosen(100), want: []int{100}},
		"Several": {reason: "And no more.", chosen: chosen(201), want: []int{100, 100, 1}},
		"Barred":  {reason: "What gets no new pods is not chosen.", chosen: []v1alpha1.ChosenProvider{{ID: "p1", Barred: true}}, want: []int{0}},
		"Away": {
			reason: "Nor is what cannot be used; its substitute is.",
			chosen: []v1alpha1.ChosenProvider{{ID: "p1", AwaySinceTime: &measured}, {ID: "p2", Substitute: true}},
			want:   []int{1}, reasons: []string{"stands in for a provider that cannot be used"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d := &v1alpha1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{Name: "cheapest.consumer"}, Policy: "cheapest"}
			d.Chosen, d.Explained = tc.chosen, []v1alpha1.ExplainedProvider{{ID: "p000", Chosen: true, Score: "87"}}
			var counts []int
			for i, o := range inventory.Decisions(d, namespace) {
				decisions, _, _ := unstructured.NestedSlice(o.Object, "decisions")
				counts = append(counts, len(decisions))
				if want := fmt.Sprintf("cheapest.consumer-%d", i); o.GetName() != want {
					t.Errorf("%s is called %s", want, o.GetName())
				}
				for _, d := range decisions {
					// The definition has these two fields, and the API server refuses to apply others.
					reference, _, _ := unstructured.NestedMap(d.(map[string]any), "clusterProfileRef")
					if len(reference) != 2 || reference["namespace"] != namespace || !strings.HasPrefix(fmt.Sprint(reference["name"]), "p") {
						t.Errorf("%s: it refers to %v", tc.reason, reference)
					}
				}
				for j, reason := range tc.reasons {
					if got, _, _ := unstructured.NestedString(decisions[j].(map[string]any), "reason"); got != reason {
						t.Errorf("%s: the reason is %q", tc.reason, got)
					}
				}
			}
			if diff := cmp.Diff(tc.want, counts); diff != "" {
				t.Errorf("%s -want +got\n%s", tc.reason, diff)
			}
		})
	}
}

// TestKey holds that each decision has a key of its own that is the value of a label.
func TestKey(t *testing.T) {
	long := strings.Repeat("x", 64)
	seen := map[string]string{}
	for _, name := range []string{"a.b", long, long + "y"} {
		key := inventory.Key(name)
		if problems := validation.IsValidLabelValue(key); len(problems) > 0 || seen[key] != "" {
			t.Errorf("%s has the key %s, as %q: %v", name, key, seen[key], problems)
		}
		seen[key] = name
	}
}
