// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package peers_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/cel-go/common/types/ref"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	admissionregistrationv1beta1 "k8s.io/api/admissionregistration/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	"github.com/capacitorset/liqo-broker/pkg/liqo/v09/liqotest"
	"github.com/capacitorset/liqo-broker/pkg/webhook/peers"
	"github.com/capacitorset/liqo-broker/test/admission"
)

// documents reads the documents of a kind from a manifest, each into another T.
func documents[T any](t *testing.T, file, kind string) map[string]T {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]T{}
	for document := range bytes.SplitSeq(text, []byte("\n---\n")) {
		var head struct {
			Kind     string `json:"kind"`
			Metadata struct {
				Name string `json:"name"`
			} `json:"metadata"`
		}
		if err := yaml.Unmarshal(document, &head); err != nil {
			t.Fatal(err)
		}
		if head.Kind != kind {
			continue
		}
		var into T
		if err := yaml.UnmarshalStrict(document, &into); err != nil {
			t.Fatal(err)
		}
		found[head.Metadata.Name] = into
	}
	if len(found) == 0 {
		t.Fatalf("%s has no %s", file, kind)
	}
	return found
}

// policies are the admission policies; the type is that of the version before v1, which
// has the same fields.
func policies(t *testing.T) map[string]admissionregistrationv1beta1.ValidatingAdmissionPolicy {
	t.Helper()
	return documents[admissionregistrationv1beta1.ValidatingAdmissionPolicy](t, "../../../deploy/guard/policies/peers.yaml",
		"ValidatingAdmissionPolicy")
}

// webhooks are those that ask about what peers write with Liqo 0.9.
func webhooks(t *testing.T) map[string]admissionregistrationv1.ValidatingWebhook {
	t.Helper()
	configuration := documents[admissionregistrationv1.ValidatingWebhookConfiguration](t, "../../../deploy/guard/webhook.yaml",
		"ValidatingWebhookConfiguration")["liqo-broker-guard"]
	found := map[string]admissionregistrationv1.ValidatingWebhook{}
	for _, webhook := range configuration.Webhooks {
		if *webhook.ClientConfig.Service.Path == peers.Path && !strings.Contains(webhook.Name, "-liqo1.") {
			found[webhook.Name] = webhook
		}
	}
	return found
}

// evaluator evaluates expressions as the API server does.
type evaluator struct {
	t         *testing.T
	variables map[string]any
}

// newEvaluator returns an evaluator of a request.
func newEvaluator(t *testing.T, w write) *evaluator {
	t.Helper()
	req := w.request(t)
	var request object
	text, err := json.Marshal(req.AdmissionRequest)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &request); err != nil {
		t.Fatal(err)
	}
	orNull := func(o object) any {
		if o == nil {
			return nil
		}
		return o
	}
	return &evaluator{t: t, variables: map[string]any{
		"object": orNull(w.new), "oldObject": orNull(w.old), "request": request, "variables": object{},
		"namespaceObject": object{"metadata": object{"labels": object{"discovery.liqo.io/cluster-id": string(peer.ID)}}},
		"params":          object{"data": object{"CLUSTER_ID": string(own)}},
	}}
}

func (e *evaluator) eval(expression string) ref.Val {
	e.t.Helper()
	return admission.Evaluate(e.t, expression, e.variables)
}

// holds reports whether an expression is true.
func (e *evaluator) holds(expression string) bool {
	e.t.Helper()
	return admission.Holds(e.t, expression, e.variables)
}

// matches reports whether rules are for a write.
func matches(w write, operations []admissionregistrationv1.OperationType, group string, resources []string) bool {
	name := w.resource
	if w.subresource != "" {
		name += "/" + w.subresource
	}
	return group == groups[w.resource] && slices.Contains(resources, name) &&
		slices.Contains(operations, admissionregistrationv1.OperationType(w.operation))
}

// labelled reports whether an object selector is for a write.
func labelled(w write, labels map[string]string) bool {
	for key, value := range labels {
		has, _ := w.new["metadata"].(object)["labels"].(object)[key].(string)
		if has != value {
			return false
		}
	}
	return true
}

// refuses returns the messages with which a policy refuses a write.
func refuses(t *testing.T, p admissionregistrationv1beta1.ValidatingAdmissionPolicy, w write) (messages []string) {
	t.Helper()
	rules := p.Spec.MatchConstraints
	if !slices.ContainsFunc(rules.ResourceRules, func(r admissionregistrationv1beta1.NamedRuleWithOperations) bool {
		return matches(w, r.Operations, r.APIGroups[0], r.Resources)
	}) || rules.ObjectSelector != nil && !labelled(w, rules.ObjectSelector.MatchLabels) {
		return nil
	}
	e := newEvaluator(t, w)
	for _, condition := range p.Spec.MatchConditions {
		if !e.holds(condition.Expression) {
			return nil
		}
	}
	for _, variable := range p.Spec.Variables {
		e.variables["variables"].(object)[variable.Name] = e.eval(variable.Expression)
	}
	for _, validation := range p.Spec.Validations {
		if e.holds(validation.Expression) {
			continue
		}
		message := validation.Message
		if validation.MessageExpression != "" {
			message = fmt.Sprint(e.eval(validation.MessageExpression).Value())
		}
		messages = append(messages, message)
	}
	return messages
}

// TestPolicy asks the admission policies what the webhook is asked: they say the same.
func TestPolicy(t *testing.T) {
	policies := policies(t)
	for name, tc := range asked() {
		t.Run(name, func(t *testing.T) {
			var messages []string
			for _, policy := range policies {
				messages = append(messages, refuses(t, policy, tc.write)...)
			}
			if refused := len(messages) > 0; refused != (tc.refusal != "") {
				t.Errorf("%s\nrefused: %q, want %q", tc.reason, messages, tc.refusal)
			}
			if slices.Contains(messages, "") {
				t.Errorf("%s\nno message", tc.reason)
			}
		})
	}
}

// TestConfiguration looks at what the API server asks the webhook: all that is to be refused,
// and nothing about Liqo's own components that is to pass, because they must not need it.
func TestConfiguration(t *testing.T) {
	webhooks := webhooks(t)
	asks := func(t *testing.T, w write) bool {
		t.Helper()
		for _, webhook := range webhooks {
			if !slices.ContainsFunc(webhook.Rules, func(r admissionregistrationv1.RuleWithOperations) bool {
				return matches(w, r.Operations, r.APIGroups[0], r.Resources)
			}) || webhook.ObjectSelector != nil && !labelled(w, webhook.ObjectSelector.MatchLabels) {
				continue
			}
			e := newEvaluator(t, w)
			if !slices.ContainsFunc(webhook.MatchConditions, func(c admissionregistrationv1.MatchCondition) bool { return !e.holds(c.Expression) }) {
				return true
			}
		}
		return false
	}
	for name, tc := range asked() {
		t.Run(name, func(t *testing.T) {
			asked, component := asks(t, tc.write), slices.Contains(tc.write.groups, "system:serviceaccounts")
			if tc.refusal != "" && !asked {
				t.Errorf("%s\nthe webhook is not asked", tc.reason)
			}
			if tc.refusal == "" && component && asked {
				t.Errorf("%s\nLiqo needs the webhook", tc.reason)
			}
		})
	}
	administrator := of(admissionv1.Update, "resourceoffers")
	administrator.user, administrator.groups = "kubernetes-admin", []string{"system:masters"}
	if asks(t, administrator) {
		t.Error("an administrator needs the webhook")
	}
	// It does what the API server asks it to.
	check(t, newHandler(t, interceptor.Funcs{}), "An administrator may do everything.", administrator, "")
	want := map[string]admissionregistrationv1.FailurePolicyType{
		"peers.brokering.liqo.io": admissionregistrationv1.Ignore, "mappings.brokering.liqo.io": admissionregistrationv1.Fail,
	}
	for name, webhook := range webhooks {
		// Liqo does not repeat a write that failed: an honest peer must not be refused because the daemon is late.
		if *webhook.FailurePolicy != want[name] {
			t.Errorf("%s: the failure policy is %s, want %s", name, *webhook.FailurePolicy, want[name])
		}
		if got := webhook.NamespaceSelector.MatchExpressions[0].Key; liqotest.TenantNamespace(peer).Labels[got] == "" {
			t.Errorf("%s is not for tenant namespaces", name)
		}
	}
}
