// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/test/admission"
)

// budget reads the example of a budget.
func budget(t *testing.T) (p admissionregistrationv1.ValidatingAdmissionPolicy, role rbacv1.ClusterRole) {
	t.Helper()
	text, err := os.ReadFile("../../deploy/examples/trade/budget.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		var into any
		switch {
		case strings.Contains(document, "\nkind: ValidatingAdmissionPolicy\n"):
			into = &p
		case strings.Contains(document, "\nkind: ClusterRole\n"):
			into = &role
		default:
			continue
		}
		if err := yaml.UnmarshalStrict([]byte(document), into); err != nil {
			t.Fatal(err)
		}
	}
	return p, role
}

// refusal returns the message with which the policy refuses a request of a group; empty if it admits it.
func refusal(t *testing.T, p *admissionregistrationv1.ValidatingAdmissionPolicy, group, operation string, o client.Object) string {
	t.Helper()
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	var object map[string]any
	if err := json.Unmarshal(text, &object); err != nil {
		t.Fatal(err)
	}
	variables := map[string]any{}
	input := map[string]any{
		"object": object, "oldObject": object, "variables": variables,
		"request": map[string]any{"operation": operation, "userInfo": map[string]any{"groups": []string{"system:authenticated", group}}},
	}
	if operation == "DELETE" {
		input["object"] = nil
	}
	for _, c := range p.Spec.MatchConditions {
		if !admission.Holds(t, c.Expression, input) {
			return ""
		}
	}
	for _, v := range p.Spec.Variables {
		variables[v.Name] = admission.Evaluate(t, v.Expression, input)
	}
	for _, v := range p.Spec.Validations {
		if !admission.Holds(t, v.Expression, input) {
			return v.Message
		}
	}
	return ""
}

// TestBudget asks the example of a budget about what a group buys, and others.
func TestBudget(t *testing.T) {
	p, role := budget(t)
	price := func(amount, currency, period string) *connectorv1alpha1.Price {
		return &connectorv1alpha1.Price{
			Amount: connectorv1alpha1.Amount(amount), Currency: currency, Period: connectorv1alpha1.Period(period),
		}
	}
	good := connectorv1alpha1.CapacityRequest{ObjectMeta: metav1.ObjectMeta{Name: "team-a-nightly"}}
	good.Spec.Resources = v1alpha1.Quantities{
		corev1.ResourceCPU: resource.MustParse("8"), corev1.ResourceMemory: resource.MustParse("32Gi"),
		corev1.ResourcePods: resource.MustParse("20"),
	}
	good.Spec.Duration, good.Spec.MaxPrice = metav1.Duration{Duration: time.Hour}, price("0.50", "EUR", "PT1H")
	good.Spec.MaxTotal = &connectorv1alpha1.Money{Amount: "100", Currency: "EUR"}
	with := func(change func(*connectorv1alpha1.CapacityRequest)) client.Object {
		o := good.DeepCopy()
		change(o)
		return o
	}
	bought := func(change func(*connectorv1alpha1.Purchase)) client.Object {
		o := &connectorv1alpha1.Purchase{ObjectMeta: metav1.ObjectMeta{Name: "team-a-render"}}
		o.Spec.MaxPrice, o.Spec.MaxTotal = good.Spec.MaxPrice, good.Spec.MaxTotal
		change(o)
		return o
	}
	dear := func(o *connectorv1alpha1.Purchase) { o.Spec.MaxPrice = price("0.51", "EUR", "PT1H") }
	const named, hourly, total, size = "called team-a-", "maxPrice, of at most", "maxTotal, of at most", "at most 8 cores"
	for name, tc := range map[string]struct {
		group, operation string
		object           client.Object
		refused          string
	}{
		"Within":  {"team-a", "CREATE", &good, ""},
		"Plan":    {"team-a", "CREATE", bought(func(*connectorv1alpha1.Purchase) {}), ""},
		"Others":  {"team-b", "CREATE", bought(dear), ""},
		"Unnamed": {"team-a", "CREATE", with(func(o *connectorv1alpha1.CapacityRequest) { o.Name = "nightly" }), named},
		"Any":     {"team-a", "CREATE", with(func(o *connectorv1alpha1.CapacityRequest) { o.Spec.MaxPrice = nil }), hourly},
		"Dear":    {"team-a", "UPDATE", bought(dear), hourly},
		"Daily": {"team-a", "CREATE", with(func(o *connectorv1alpha1.CapacityRequest) {
			o.Spec.MaxPrice = price("0.50", "EUR", "PT1M")
		}), hourly},
		"Go":       {"team-a", "CREATE", bought(func(o *connectorv1alpha1.Purchase) { o.Spec.MaxPrice = price("0.50", "EUR", "1h") }), ""},
		"GoMinute": {"team-a", "CREATE", bought(func(o *connectorv1alpha1.Purchase) { o.Spec.MaxPrice = price("0.50", "EUR", "1m") }), hourly},
		"Dollars": {"team-a", "CREATE", with(func(o *connectorv1alpha1.CapacityRequest) {
			o.Spec.MaxPrice = price("0.50", "KWD", "PT1H")
		}), hourly},
		"Endless": {"team-a", "CREATE", with(func(o *connectorv1alpha1.CapacityRequest) { o.Spec.MaxTotal = nil }), total},
		"Long":    {"team-a", "CREATE", with(func(o *connectorv1alpha1.CapacityRequest) { o.Spec.MaxTotal.Amount = "100.01" }), total},
		"Cores": {"team-a", "UPDATE", with(func(o *connectorv1alpha1.CapacityRequest) {
			o.Spec.Resources[corev1.ResourceCPU] = resource.MustParse("8001m")
		}), size},
		"Memory": {"team-a", "CREATE", with(func(o *connectorv1alpha1.CapacityRequest) {
			o.Spec.Resources[corev1.ResourceMemory] = resource.MustParse("33Gi")
		}), size},
		"Ends": {"team-a", "UPDATE", bought(func(o *connectorv1alpha1.Purchase) {
			dear(o)
			o.Spec.End = &connectorv1alpha1.ContractEnd{}
		}), ""},
		"Deletes":       {"team-a", "DELETE", bought(dear), ""},
		"DeletesOthers": {"team-a", "DELETE", bought(func(o *connectorv1alpha1.Purchase) { o.Name = "render" }), named},
	} {
		got := refusal(t, &p, tc.group, tc.operation, tc.object)
		if (got == "") != (tc.refused == "") || !strings.Contains(got, tc.refused) {
			t.Errorf("%s: refused with %q, want %q", name, got, tc.refused)
		}
	}
	// What it is asked about is all by which the group buys.
	asked := map[string]bool{}
	for _, rule := range p.Spec.MatchConstraints.ResourceRules {
		for _, resource := range rule.Resources {
			asked[resource] = len(rule.Operations) == 3
		}
	}
	writes := map[string]bool{}
	for _, rule := range role.Rules {
		for _, resource := range rule.Resources {
			writes[resource] = writes[resource] || slices.Contains(rule.Verbs, "create")
		}
	}
	maps.DeleteFunc(writes, func(_ string, may bool) bool { return !may })
	if !maps.Equal(asked, writes) {
		t.Errorf("it is asked about %v, and the group may write %v", asked, writes)
	}
}
