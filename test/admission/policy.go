// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/cel-go/common/types"
	admissionregistrationv1beta1 "k8s.io/api/admissionregistration/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"
)

// Spec is what a policy says; the type is that of the version before v1, which has the same fields.
type Spec = admissionregistrationv1beta1.ValidatingAdmissionPolicySpec

// Policies reads the policies in files, by the names that they have before the group of this project.
func Policies(tb testing.TB, files ...string) map[string]Spec {
	tb.Helper()
	found := map[string]Spec{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			tb.Fatal(err)
		}
		for document := range strings.SplitSeq(string(text), "\n---\n") {
			var p struct {
				Kind     string
				Metadata struct{ Name string }
				Spec     Spec
			}
			if err := yaml.Unmarshal([]byte(document), &p); err != nil {
				tb.Fatal(err)
			}
			if p.Kind == "ValidatingAdmissionPolicy" {
				found[strings.TrimSuffix(p.Metadata.Name, ".brokering.liqo.io")] = p.Spec
			}
		}
	}
	return found
}

// Request is what the API server is to do for somebody.
type Request struct {
	// Operation is what is to be done with an object of a resource of a group, or with a subresource of it.
	Operation, Group, Resource, Subresource string
	User                                    string
	Groups                                  []string
	// Object is as it is to be, and Old as it is; one of them may be nil.
	Object, Old map[string]any
	// Namespace is where it is, with the labels of that namespace. Params is the object by which the policy is bound.
	Namespace string
	Labels    map[string]string
	Params    map[string]any
}

// Refusals returns with which messages a policy refuses a request, and whether it is asked at all.
func Refusals(tb testing.TB, policy Spec, r Request) (refusals []string, asked bool) {
	tb.Helper()
	variables := map[string]any{}
	input := map[string]any{
		"object": orNull(r.Object), "oldObject": orNull(r.Old), "variables": variables, "params": orNull(r.Params),
		"request": map[string]any{
			"userInfo": map[string]any{"username": r.User, "groups": plain(r.Groups)}, "operation": r.Operation, "subResource": r.Subresource,
			"resource": map[string]any{"group": r.Group, "resource": r.Resource}, "namespace": r.Namespace,
		},
		"namespaceObject": map[string]any{"metadata": map[string]any{"name": r.Namespace, "labels": plainMap(r.Labels)}},
	}
	if !r.matches(tb, policy.MatchConstraints) {
		return nil, false
	}
	env := environment(tb)
	for _, condition := range policy.MatchConditions {
		if evaluate(tb, env, condition.Expression, input) != types.True {
			return nil, false
		}
	}
	for _, v := range policy.Variables {
		variables[v.Name] = evaluate(tb, env, v.Expression, input)
	}
	for _, v := range policy.Validations {
		if evaluate(tb, env, v.Expression, input) != types.True {
			refusals = append(refusals, v.Message+v.MessageExpression)
		}
	}
	return refusals, true
}

// matches reports whether what a policy is about is what is to be done.
func (r Request) matches(tb testing.TB, c *admissionregistrationv1beta1.MatchResources) bool {
	tb.Helper()
	resource := r.Resource
	if r.Subresource != "" {
		resource += "/" + r.Subresource
	}
	about := slices.ContainsFunc(c.ResourceRules, func(rule admissionregistrationv1beta1.NamedRuleWithOperations) bool {
		return slices.Contains(rule.APIGroups, r.Group) && slices.Contains(rule.Resources, resource) && slices.ContainsFunc(rule.Operations,
			func(o admissionregistrationv1beta1.OperationType) bool { return string(o) == r.Operation })
	})
	return about && selects(tb, c.NamespaceSelector, r.Labels) &&
		(selects(tb, c.ObjectSelector, labelsOf(r.Object)) || selects(tb, c.ObjectSelector, labelsOf(r.Old)))
}

// labelsOf returns the labels of an object, none of what is no object.
func labelsOf(o map[string]any) map[string]string {
	meta, _ := o["metadata"].(map[string]any)
	has, _ := meta["labels"].(map[string]any)
	of := map[string]string{}
	for key, value := range has {
		of[key], _ = value.(string)
	}
	return of
}

func selects(tb testing.TB, selector *metav1.LabelSelector, of map[string]string) bool {
	tb.Helper()
	if selector == nil {
		return true
	}
	s, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		tb.Fatal(err)
	}
	return s.Matches(labels.Set(of))
}

func orNull(o map[string]any) any {
	if o == nil {
		return nil
	}
	return o
}

func plain(all []string) []any {
	as := make([]any, len(all))
	for i := range all {
		as[i] = all[i]
	}
	return as
}

func plainMap(all map[string]string) map[string]any {
	as := map[string]any{}
	for key, value := range all {
		as[key] = value
	}
	return as
}
