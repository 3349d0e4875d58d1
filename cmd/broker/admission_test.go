// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/cel-go/cel"
	"sigs.k8s.io/yaml"
)

// policySpec is what is tested of a ValidatingAdmissionPolicy.
type policySpec struct {
	MatchConditions, Validations []struct{ Expression string }
}

// policies reads the policies of deploy/admission, by name.
func policies(t *testing.T) map[string]policySpec {
	t.Helper()
	files, err := filepath.Glob("../../deploy/admission/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]policySpec{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for document := range strings.SplitSeq(string(text), "\n---\n") {
			var p struct {
				Kind     string
				Metadata struct{ Name string }
				Spec     policySpec
			}
			if err := yaml.Unmarshal([]byte(document), &p); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			if p.Kind == "ValidatingAdmissionPolicy" {
				found[p.Metadata.Name] = p.Spec
			}
		}
	}
	return found
}

// holds evaluates an expression as far as the API server does: without types, and with optional fields.
func holds(t *testing.T, expression string, input map[string]any) bool {
	t.Helper()
	var variables []cel.EnvOption
	for _, name := range []string{"object", "oldObject", "request", "namespaceObject"} {
		variables = append(variables, cel.Variable(name, cel.DynType))
		if _, given := input[name]; !given {
			input[name] = map[string]any{}
		}
	}
	env, err := cel.NewEnv(append(variables, cel.OptionalTypes())...)
	if err != nil {
		t.Fatal(err)
	}
	ast, issues := env.Compile(expression)
	if issues.Err() != nil {
		t.Fatalf("%s: %v", expression, issues.Err())
	}
	program, err := env.Program(ast)
	if err != nil {
		t.Fatal(err)
	}
	got, _, err := program.Eval(input)
	if err != nil {
		t.Fatalf("%s: %v", expression, err)
	}
	return got.Value() == true
}

// TestAdmissionPolicies asks the policies about the daemon and about the offloading of namespace liqo.
func TestAdmissionPolicies(t *testing.T) {
	type fields = map[string]any
	const daemon, offering, nodes = "daemon.brokering.liqo.io", "protect-liqo.brokering.liqo.io", "daemon-nodes.brokering.liqo.io"
	request := func(resource, operation, namespace string) fields {
		return fields{
			"resource": fields{"resource": resource}, "operation": operation, "namespace": namespace,
			"userInfo": fields{"username": "system:serviceaccount:liqo-broker:liqo-broker"},
		}
	}
	labelled := func(labels fields) fields { return fields{"metadata": fields{"labels": labels}} }
	twin, bare := labelled(fields{"liqo.io/remote-cluster-id": "c"}), fields{"metadata": fields{}}
	selector := func(terms ...any) fields {
		return fields{"metadata": fields{}, "spec": fields{"clusterSelector": fields{"nodeSelectorTerms": terms}}}
	}
	signed := fields{"matchExpressions": []any{fields{"key": "brokering.liqo.io/virtual-kubelet", "operator": "Exists"}}}
	all := fields{"matchExpressions": []any{fields{"key": "liqo.io/type", "operator": "In", "values": []any{"virtual-node"}}}}
	virtual, real := labelled(fields{"liqo.io/type": "virtual-node"}), labelled(fields{"kubernetes.io/os": "linux"})
	cases := map[string]struct {
		reason string
		policy string
		input  fields
		want   bool
	}{
		"Twin":       {"The daemon removes pods of consumers.", daemon, fields{"request": request("pods", "DELETE", "shop"), "namespaceObject": twin}, true},
		"System":     {"It removes no others.", daemon, fields{"request": request("pods", "DELETE", "kube-system"), "namespaceObject": bare}, false},
		"Offload":    {"It offloads nothing of the broker's own.", daemon, fields{"request": request("namespaceoffloadings", "CREATE", "kube-system"), "namespaceObject": bare}, false},
		"Protect":    {"It takes back what namespace liqo shows ...", daemon, fields{"request": request("namespaceoffloadings", "UPDATE", "liqo"), "namespaceObject": bare}, true},
		"NotOffer":   {"... and does not offer it.", daemon, fields{"request": request("namespaceoffloadings", "CREATE", "liqo"), "namespaceObject": bare}, false},
		"LiqoPods":   {"Nor does it remove pods there.", daemon, fields{"request": request("pods", "DELETE", "liqo"), "namespaceObject": bare}, false},
		"Virtual":    {"It taints virtual nodes.", nodes, fields{"request": request("nodes", "UPDATE", ""), "oldObject": virtual, "object": virtual}, true},
		"Real":       {"It taints no others.", nodes, fields{"request": request("nodes", "UPDATE", ""), "oldObject": real, "object": real}, false},
		"Disguise":   {"It makes no node virtual.", nodes, fields{"request": request("nodes", "UPDATE", ""), "oldObject": real, "object": virtual}, false},
		"Relabel":    {"Nor another cluster's.", nodes, fields{"request": request("nodes", "UPDATE", ""), "oldObject": virtual, "object": labelled(fields{"liqo.io/type": "virtual-node", "a": "b"})}, false},
		"Signed":     {"Namespace liqo is shown by our virtual kubelets.", offering, fields{"object": selector(signed)}, true},
		"Everybody":  {"It is not by others.", offering, fields{"object": selector(signed, all)}, false},
		"NoSelector": {"No selector selects all.", offering, fields{"object": fields{"metadata": fields{}, "spec": fields{}}}, false},
	}
	known := policies(t)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			spec, ok := known[tc.policy]
			if !ok {
				t.Fatalf("deploy/admission has no policy %s", tc.policy)
			}
			for _, c := range spec.MatchConditions {
				if !holds(t, c.Expression, tc.input) {
					t.Fatalf("%s\nthe policy is not asked: %s", tc.reason, c.Expression)
				}
			}
			got := true
			for _, v := range spec.Validations {
				got = got && holds(t, v.Expression, tc.input)
			}
			if got != tc.want {
				t.Errorf("%s\nadmitted: %t, want %t", tc.reason, got, tc.want)
			}
		})
	}
	person := fields{"request": fields{"userInfo": fields{"username": "admin"}}}
	for _, c := range known[daemon].MatchConditions {
		if holds(t, c.Expression, person) {
			t.Errorf("people are asked as the daemon: %s", c.Expression)
		}
	}
}
