// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	admissionregistrationv1beta1 "k8s.io/api/admissionregistration/v1beta1"
	"sigs.k8s.io/yaml"

	"github.com/capacitorset/liqo-broker/test/admission"
)

// policySpec is that of the version before v1, which has the same fields.
type policySpec = admissionregistrationv1beta1.ValidatingAdmissionPolicySpec

// policies reads the policies of deploy/admission and deploy/guard, by name.
func policies(t *testing.T) map[string]policySpec {
	t.Helper()
	files, err := filepath.Glob("../../deploy/admission/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	ofGuard, err := filepath.Glob("../../deploy/guard/policies/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	shared, err := filepath.Glob("../../deploy/guard/policies/*/system-*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	files = slices.Concat(files, ofGuard, shared)
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

// admits reports whether all validations of a policy hold.
func admits(t *testing.T, spec policySpec, input map[string]any) bool {
	t.Helper()
	variables := map[string]any{}
	input["variables"] = variables // Each may name those before it.
	for _, v := range spec.Variables {
		variables[v.Name] = admission.Evaluate(t, v.Expression, input)
	}
	return !slices.ContainsFunc(spec.Validations,
		func(v admissionregistrationv1beta1.Validation) bool { return !admission.Holds(t, v.Expression, input) })
}

// asks reports whether the API server asks a policy about a request.
func asks(t *testing.T, spec policySpec, input map[string]any) bool {
	t.Helper()
	request := input["request"].(map[string]any)
	resource, operation := request["resource"].(map[string]any)["resource"].(string), request["operation"].(string)
	return slices.ContainsFunc(spec.MatchConstraints.ResourceRules, func(r admissionregistrationv1beta1.NamedRuleWithOperations) bool {
		return slices.Contains(r.Resources, resource) && slices.Contains(r.Operations, admissionregistrationv1.OperationType(operation))
	}) && !slices.ContainsFunc(spec.MatchConditions,
		func(c admissionregistrationv1beta1.MatchCondition) bool {
			return !admission.Holds(t, c.Expression, input)
		})
}

// TestAdmissionPolicies asks the policies about what the daemon and the sidecar write, about the offloading of namespace liqo,
// and about the pods of consumers.
func TestAdmissionPolicies(t *testing.T) {
	type fields = map[string]any
	const (
		daemon, nodes, webhooks = "daemon.brokering.liqo.io", "daemon-nodes.brokering.liqo.io", "daemon-webhooks.brokering.liqo.io"
		requested               = "daemon-slices.brokering.liqo.io"
		offering, consumers     = "protect-liqo.brokering.liqo.io", "consumers.brokering.liqo.io"
		pods, security          = "pods.brokering.liqo.io", "pod-security.brokering.liqo.io"
	)
	by := func(user, resource, operation, namespace string) fields {
		return fields{
			"resource": fields{"resource": resource}, "operation": operation, "namespace": namespace, "userInfo": fields{"username": user},
		}
	}
	request := func(resource, operation, namespace string) fields {
		return by("system:serviceaccount:liqo-broker:liqo-broker", resource, operation, namespace)
	}
	labelled := func(labels fields) fields { return fields{"metadata": fields{"labels": labels}} }
	twin, bare := labelled(fields{"liqo.io/remote-cluster-id": "c"}), fields{"metadata": fields{}}
	tenant := labelled(fields{"liqo.io/remote-cluster-id": "c", "liqo.io/tenant-namespace": "true"})
	selector := func(terms ...any) fields {
		return fields{
			"request": request("namespaceoffloadings", "UPDATE", "liqo"),
			"object":  fields{"metadata": fields{}, "spec": fields{"clusterSelector": fields{"nodeSelectorTerms": terms}}},
		}
	}
	require := func(key, operator string, values ...any) fields {
		return fields{"matchExpressions": []any{fields{"key": key, "operator": operator, "values": values}}}
	}
	signed, all := require("brokering.liqo.io/virtual-kubelet", "Exists"), require("liqo.io/type", "In", "virtual-node")
	virtual, physical := labelled(fields{"liqo.io/type": "virtual-node"}), labelled(fields{"kubernetes.io/os": "linux"})
	node := func(before, after fields) fields {
		return fields{"request": request("nodes", "UPDATE", ""), "oldObject": before, "object": after}
	}
	within := func(namespace fields, resource, operation, name string) fields {
		return fields{"request": request(resource, operation, name), "namespaceObject": namespace}
	}
	hook := func(certificate, path string, more ...any) fields {
		hooks := append([]any{fields{
			"name": "isolate", "failurePolicy": "Fail", "rules": []any{fields{"resources": []any{"pods"}}},
			"clientConfig": fields{"caBundle": certificate, "service": fields{"name": "liqo-broker-webhook", "path": path}},
		}}, more...)
		return fields{"metadata": fields{"name": "liqo-broker"}, "webhooks": hooks}
	}
	hooks := func(resource string, after fields) fields {
		return fields{"request": request(resource, "UPDATE", ""), "oldObject": hook("old", "/isolate"), "object": after}
	}
	ignored := hook("new", "/isolate")
	ignored["webhooks"].([]any)[0].(fields)["failurePolicy"] = "Ignore"
	elsewhere := hook("new", "/isolate")
	elsewhere["webhooks"].([]any)[0].(fields)["clientConfig"] = fields{"caBundle": "new", "url": "https://192.0.2.1/"}
	narrowed := hook("new", "/isolate")
	narrowed["webhooks"].([]any)[0].(fields)["matchConditions"] = []any{fields{"name": "never", "expression": "false"}}
	slice := func(label, class string, before, after fields) fields {
		of := func(status fields) fields {
			return fields{
				"metadata": fields{"labels": fields{"liqo.io/replicated": label}}, "spec": fields{"class": class}, "status": status,
			}
		}
		return fields{"request": request("resourceslices/status", "UPDATE", "tenant"), "oldObject": of(before), "object": of(after)}
	}
	authenticated := func(status, key string, more ...any) fields {
		return fields{
			"authParams": fields{"signedCRT": key},
			"conditions": append([]any{fields{"type": "Authentication", "status": status}}, more...),
		}
	}
	accepted := fields{"type": "Resources", "status": "Accepted"}
	told := func(status fields) fields {
		return fields{
			"request":   by("system:serviceaccount:liqo:liqo-network-manager", "consumers/status", "UPDATE", ""),
			"oldObject": fields{"status": fields{"mode": "Aggregated", "roundTrips": []any{}}}, "object": fields{"status": status},
		}
	}
	pod := func(spec fields, terms ...any) fields {
		spec["containers"] = []any{fields{"name": "main"}}
		if len(terms) > 0 {
			spec["affinity"] = fields{"nodeAffinity": fields{"requiredDuringSchedulingIgnoredDuringExecution": fields{"nodeSelectorTerms": terms}}}
		}
		return fields{
			"request": by("system:serviceaccount:liqo:liqo-controller-manager", "pods", "CREATE", "shop"), "object": fields{"spec": spec},
		}
	}
	privileged := fields{"initContainers": []any{fields{"name": "init", "securityContext": fields{"privileged": true}}}}
	cases := map[string]struct {
		reason string
		policy string
		input  fields
		want   bool
	}{
		"Twin":     {"The daemon removes pods of consumers.", daemon, within(twin, "pods", "DELETE", "shop"), true},
		"System":   {"It removes no others.", daemon, within(bare, "pods", "DELETE", "kube-system"), false},
		"Status":   {"Nor does it end them.", daemon, within(bare, "pods/status", "UPDATE", "kube-system"), false},
		"Offload":  {"It offloads nothing of the broker's own.", daemon, within(bare, "namespaceoffloadings", "CREATE", "kube-system"), false},
		"Protect":  {"It takes back what namespace liqo shows ...", daemon, within(bare, "namespaceoffloadings", "UPDATE", "liqo"), true},
		"NotOffer": {"... and does not offer it.", daemon, within(bare, "namespaceoffloadings", "CREATE", "liqo"), false},
		"LiqoPods": {"Nor does it remove pods there.", daemon, within(bare, "pods", "DELETE", "liqo"), false},
		"Tenant":   {"With Liqo 1.x virtual kubelets have such a label too.", daemon, within(tenant, "pods", "DELETE", "liqo-tenant-c"), false},

		"Virtual":  {"It taints virtual nodes.", nodes, node(virtual, virtual), true},
		"Real":     {"It taints no others.", nodes, node(physical, physical), false},
		"Disguise": {"It makes no node virtual.", nodes, node(physical, virtual), false},
		"Relabel":  {"Nor another cluster's.", nodes, node(virtual, labelled(fields{"liqo.io/type": "virtual-node", "a": "b"})), false},

		"Certificate": {"It announces its certificate.", webhooks, hooks("validatingwebhookconfigurations", hook("new", "/isolate")), true},
		"Mutating":    {"There are two configurations.", webhooks, hooks("mutatingwebhookconfigurations", hook("new", "/isolate")), true},
		"Path": {
			"It changes nothing else of them: not what is asked, ...", webhooks, hooks("validatingwebhookconfigurations", hook("new", "/place")),
			false,
		},
		"URL":    {"... nor who, ...", webhooks, hooks("mutatingwebhookconfigurations", elsewhere), false},
		"Ignore": {"... nor what counts without an answer, ...", webhooks, hooks("validatingwebhookconfigurations", ignored), false},
		"Never":  {"... nor when, ...", webhooks, hooks("validatingwebhookconfigurations", narrowed), false},
		"Another": {
			"... and adds none.", webhooks,
			hooks("mutatingwebhookconfigurations", hook("new", "/isolate", fields{"name": "all", "clientConfig": fields{}})), false,
		},

		"Grant": {
			"It grants what consumers ask for.", requested,
			slice("true", "liqo-broker", authenticated("Accepted", "k"), authenticated("Accepted", "k", accepted)), true,
		},
		"GrantFirst": {
			"Nobody has written a status.", requested, slice("true", "liqo-broker", fields{}, fields{"conditions": []any{accepted}}), true,
		},
		"GrantOwn": {
			"What the broker asks for itself, providers grant.", requested,
			slice("", "liqo-broker", authenticated("Accepted", "k"), authenticated("Accepted", "k", accepted)), false,
		},
		"GrantOfLiqo": {
			"Liqo answers its own class.", requested,
			slice("true", "default", authenticated("Accepted", "k"), authenticated("Accepted", "k", accepted)), false,
		},
		"GrantKey": {
			"It gives nobody another certificate.", requested,
			slice("true", "liqo-broker", authenticated("Accepted", "k"), authenticated("Accepted", "other", accepted)), false,
		},
		"GrantNoKey": {
			"Nor takes it away.", requested, slice("true", "liqo-broker", fields{"authParams": fields{"signedCRT": "k"}}, fields{}), false,
		},
		"GrantAuthentication": {
			"Nor does it say who is authenticated.", requested,
			slice("true", "liqo-broker", authenticated("Denied", "k"), authenticated("Accepted", "k", accepted)), false,
		},
		"GrantForget": {
			"Nor does it forget who is.", requested,
			slice("true", "liqo-broker", fields{"conditions": []any{fields{"type": "Authentication"}}}, fields{"conditions": []any{accepted}}),
			false,
		},

		"Signed":     {"Namespace liqo is shown by our virtual kubelets.", offering, selector(signed), true},
		"Everybody":  {"It is not by others.", offering, selector(signed, all), false},
		"NoSelector": {"No selector selects all.", offering, selector(), false},

		"RoundTrips": {
			"The sidecar tells how far providers are.", consumers, told(fields{"mode": "Aggregated", "roundTrips": []any{fields{}}}), true,
		},
		"Mode": {
			"It shows an aggregated consumer no providers.", consumers, told(fields{"mode": "Orchestrated", "roundTrips": []any{}}), false,
		},

		"Confined":    {"A consumer's pod goes to virtual nodes.", pods, pod(fields{}, all), true},
		"Anywhere":    {"It goes to no others.", pods, pod(fields{}), false},
		"NoTerms":     {"Nothing is required.", pods, pod(fields{"affinity": fields{"nodeAffinity": fields{}}}), false},
		"Alternative": {"One alternative is enough for the scheduler.", pods, pod(fields{}, all, require("a", "Exists")), false},
		"AnotherType": {"The other type may be a real node's.", pods, pod(fields{}, require("liqo.io/type", "In", "virtual-node", "x")), false},
		"NotIn":       {"It is the opposite.", pods, pod(fields{}, require("liqo.io/type", "NotIn", "virtual-node")), false},
		"NodeName":    {"The scheduler is not asked.", pods, pod(fields{"nodeName": "node"}, all), false},
		"Plain":       {"It wants nothing of its node.", security, pod(fields{}), true},
		"HostNetwork": {"It would reach what the node reaches.", security, pod(fields{"hostNetwork": true}), false},
		"HostPID":     {"It would see all processes.", security, pod(fields{"hostPID": true}), false},
		"HostIPC":     {"It would read their memory.", security, pod(fields{"hostIPC": true}), false},
		"HostPath": {
			"It would have the node's disk.", security, pod(fields{"volumes": []any{fields{"hostPath": fields{"path": "/"}}}}), false,
		},
		"Privileged": {"It would have the node, and may do it at once.", security, pod(privileged), false},
	}
	known := policies(t)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			spec, ok := known[tc.policy]
			if !ok {
				t.Fatalf("deploy/admission has no policy %s", tc.policy)
			}
			if !asks(t, spec, tc.input) {
				t.Fatalf("%s\nthe policy is not asked", tc.reason)
			}
			if got := admits(t, spec, tc.input); got != tc.want {
				t.Errorf("%s\nadmitted: %t, want %t", tc.reason, got, tc.want)
			}
		})
	}
	for _, policy := range []string{daemon, nodes, webhooks, requested, consumers} {
		person := fields{"request": fields{"userInfo": fields{"username": "admin"}}}
		for _, c := range known[policy].MatchConditions {
			if admission.Holds(t, c.Expression, person) {
				t.Errorf("people are asked as the daemon or the sidecar: %s", c.Expression)
			}
		}
	}
	for name, spec := range known {
		if *spec.FailurePolicy != admissionregistrationv1beta1.Fail {
			t.Errorf("%s admits what it cannot judge", name)
		}
	}
}
