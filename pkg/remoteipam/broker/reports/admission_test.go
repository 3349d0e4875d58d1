// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package reports_test

import (
	"os"
	"reflect"
	"strings"
	"testing"

	admissionv1beta1 "k8s.io/api/admissionregistration/v1beta1"
	"sigs.k8s.io/yaml"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/test/admission"
)

// TestAdmission evaluates deploy/admission/consumers.yaml for each field of a Consumer's
// status, as the API server does.
func TestAdmission(t *testing.T) {
	content, err := os.ReadFile("../../../../deploy/admission/consumers.yaml")
	if err != nil {
		t.Fatal(err)
	}
	document, _, _ := strings.Cut(string(content), "\n---\n")
	var policy admissionv1beta1.ValidatingAdmissionPolicy // The version v1 has the same fields.
	if err := yaml.UnmarshalStrict([]byte(document), &policy); err != nil {
		t.Fatal(err)
	}
	admits := func(before, after map[string]any) bool {
		t.Helper()
		return admission.Holds(t, policy.Spec.Validations[0].Expression, map[string]any{"oldObject": before, "object": after})
	}
	with := func(field, value string) map[string]any {
		return map[string]any{"status": map[string]any{field: map[string]any{"x": value}}}
	}
	for status := range reflect.TypeFor[v1alpha1.ConsumerStatus]().Fields() {
		field, _, _ := strings.Cut(status.Tag.Get("json"), ",")
		want := field == "roundTrips"
		for reason, changed := range map[string]bool{
			"changed": admits(with(field, "a"), with(field, "b")),
			"set":     admits(map[string]any{}, with(field, "b")),
			"removed": admits(with(field, "a"), map[string]any{"status": map[string]any{}}),
		} {
			if changed != want {
				t.Errorf("the remote IPAM has %s status.%s: admitted %t, want %t", reason, field, changed, want)
			}
		}
		if !admits(with(field, "a"), with(field, "a")) {
			t.Errorf("status.%s stays as it is, and that is refused", field)
		}
	}
	for user, want := range map[string]bool{
		"system:serviceaccount:liqo:liqo-network-manager": true, "system:serviceaccount:liqo-broker:liqo-broker": false,
	} {
		request := map[string]any{"userInfo": map[string]any{"username": user}}
		if got := admission.Holds(t, policy.Spec.MatchConditions[0].Expression, map[string]any{"request": request}); got != want {
			t.Errorf("the policy is about %s: %t, want %t", user, got, want)
		}
	}
}
