// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"os"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1beta1 "k8s.io/api/admissionregistration/v1beta1"
	"sigs.k8s.io/yaml"

	"github.com/capacitorset/liqo-broker/test/admission"
)

// policyRules are the policies for Liqo 1.x, by name; the type is that of the version before v1, which has the same fields.
func policyRules(t *testing.T) map[string]admissionregistrationv1beta1.ValidatingAdmissionPolicySpec {
	t.Helper()
	text, err := os.ReadFile("../../../deploy/guard/policies/peers-liqo1.yaml")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]admissionregistrationv1beta1.ValidatingAdmissionPolicySpec{}
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		var p struct {
			Kind     string
			Metadata struct{ Name string }
			Spec     admissionregistrationv1beta1.ValidatingAdmissionPolicySpec
		}
		if err := yaml.Unmarshal([]byte(document), &p); err != nil {
			t.Fatal(err)
		}
		if p.Kind == "ValidatingAdmissionPolicy" {
			found[strings.TrimSuffix(p.Metadata.Name, ".brokering.liqo.io")] = p.Spec
		}
	}
	return found
}

// ask returns with which messages a policy refuses a change in the tenant namespace of c, and whether it is asked at all.
func ask(t *testing.T, policy admissionregistrationv1beta1.ValidatingAdmissionPolicySpec, c change) (refusals []string, asked bool) {
	t.Helper()
	resource, group, _ := strings.Cut(c.kind, ".")
	orNull := func(o object) any {
		if o == nil {
			return nil
		}
		return o
	}
	groups := make([]any, len(c.groups))
	for i := range c.groups {
		groups[i] = c.groups[i]
	}
	operation := "UPDATE"
	switch {
	case c.old == nil:
		operation = "CREATE"
	case c.new == nil:
		operation = "DELETE"
	}
	variables := object{}
	input := object{
		"object": orNull(c.new), "oldObject": orNull(c.old), "variables": variables,
		"request": object{
			"userInfo": object{"username": c.user, "groups": groups}, "operation": operation, "subResource": c.subresource,
			"resource": object{"group": group, "resource": resource},
		},
		"namespaceObject": object{"metadata": object{"labels": object{"liqo.io/tenant-namespace": "true", "liqo.io/remote-cluster-id": "c"}}},
		"params":          object{"data": object{"CLUSTER_ID": "own"}},
	}
	if c.subresource != "" {
		resource += "/" + c.subresource
	}
	asked = slices.ContainsFunc(policy.MatchConstraints.ResourceRules, func(r admissionregistrationv1beta1.NamedRuleWithOperations) bool {
		return slices.Contains(r.APIGroups, group) && slices.Contains(r.Resources, resource) && slices.ContainsFunc(r.Operations,
			func(o admissionregistrationv1beta1.OperationType) bool { return string(o) == operation })
	})
	if s := policy.MatchConstraints.ObjectSelector; asked && s != nil {
		for key, value := range s.MatchLabels {
			asked = asked && c.new["metadata"].(object)["labels"].(object)[key] == value
		}
	}
	for _, condition := range policy.MatchConditions {
		asked = asked && admission.Holds(t, condition.Expression, input)
	}
	if !asked {
		return nil, false
	}
	for _, v := range policy.Variables {
		variables[v.Name] = admission.Evaluate(t, v.Expression, input)
	}
	for _, v := range policy.Validations {
		if !admission.Holds(t, v.Expression, input) {
			refusals = append(refusals, v.Message+v.MessageExpression)
		}
	}
	return refusals, true
}

// TestPolicy asks the admission policies what the rules are asked: they say the same, but for what a policy cannot say.
func TestPolicy(t *testing.T) {
	cannot := []string{
		"Large", "Unreadable", // It knows neither how large an object is, nor how long it takes to read a number.
		"Public", "PublicNext", "Junk", // It is not asked to read networks.
		"UnknownByOther", // It is asked about Liqo's kinds only.
	}
	peers, copied := policyRules(t)["peers-liqo1"], policyRules(t)["copied-liqo1"]
	for name, tc := range peersWrites() {
		t.Run(name, func(t *testing.T) {
			refusals, asked := ask(t, peers, tc.change)
			if refused := len(refusals) > 0; refused != (tc.want != "") && !slices.Contains(cannot, name) {
				t.Errorf("%s\nthe policy is asked: %t, and refuses with %q, want %q", tc.reason, asked, refusals, tc.want)
			}
			if slices.Contains(refusals, "") {
				t.Errorf("%s\nno message", tc.reason)
			}
		})
	}
	for name, tc := range copies() {
		t.Run("Copied"+name, func(t *testing.T) {
			if name == "Unreadable" {
				t.Skip("The API server refuses what a policy cannot read.")
			}
			refusals, asked := ask(t, copied, tc.change)
			if refused := len(refusals) > 0; refused != (tc.want != "") {
				t.Errorf("%s\nthe policy is asked: %t, and refuses with %q, want %q", tc.reason, asked, refusals, tc.want)
			}
		})
	}
	for _, user := range []string{"system:serviceaccount:liqo:liqo-controller-manager", "admin"} {
		if _, asked := ask(t, peers, updates(resourceSlices).sub("status").by(user, "system:masters")); asked {
			t.Errorf("%s needs the policy", user)
		}
	}
}
