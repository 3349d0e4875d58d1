// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	admissionregistrationv1beta1 "k8s.io/api/admissionregistration/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"

	"github.com/capacitorset/liqo-broker/pkg/liqo/v1/api"
	"github.com/capacitorset/liqo-broker/test/admission"
)

// policyRules are the policies for Liqo 1.x, by name.
func policyRules(t *testing.T) map[string]admission.Spec {
	t.Helper()
	const policies = "../../../deploy/guard/policies/"
	return admission.Policies(t, policies+"peers-liqo1.yaml", policies+"twins.yaml")
}

// webhookRules are the webhooks of the guard for what peers write with Liqo 1.x, by name, as if they were policies.
func webhookRules(t *testing.T) map[string]admission.Spec {
	t.Helper()
	text, err := os.ReadFile("../../../deploy/guard/webhook.yaml")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]admission.Spec{}
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		var configuration struct {
			Webhooks []admissionregistrationv1.ValidatingWebhook
		}
		if err := yaml.Unmarshal([]byte(document), &configuration); err != nil {
			t.Fatal(err)
		}
		for _, w := range configuration.Webhooks {
			spec := admission.Spec{
				MatchConstraints: &admissionregistrationv1beta1.MatchResources{
					NamespaceSelector: w.NamespaceSelector, ObjectSelector: w.ObjectSelector,
				},
			}
			for _, r := range w.Rules {
				spec.MatchConstraints.ResourceRules = append(spec.MatchConstraints.ResourceRules,
					admissionregistrationv1beta1.NamedRuleWithOperations{RuleWithOperations: r})
			}
			for _, c := range w.MatchConditions {
				spec.MatchConditions = append(spec.MatchConditions, admissionregistrationv1beta1.MatchCondition(c))
			}
			found[strings.TrimSuffix(w.Name, ".brokering.liqo.io")] = spec
		}
	}
	return found
}

// TestWebhooks looks at what the API server asks the guard: all that is to be refused. Of what this cluster's own Liqo copies, which must
// not need the guard, it asks about nothing else, and never about Secrets, so that the guard does not see what is in them.
func TestWebhooks(t *testing.T) {
	policies, webhooks := policyRules(t), webhookRules(t)
	peers, copied := webhooks["peers-liqo1"], webhooks["copied-liqo1"]
	for name, webhook := range map[string]admission.Spec{
		"peers-liqo1": peers, "copied-liqo1": copied,
	} {
		policy, asked := policies[name].MatchConstraints.DeepCopy(), webhook.MatchConstraints.DeepCopy()
		policy.ResourceRules = slices.DeleteFunc(policy.ResourceRules, func(r admissionregistrationv1beta1.NamedRuleWithOperations) bool {
			return slices.Equal(r.Resources, []string{"secrets"})
		})
		for _, rules := range [][]admissionregistrationv1beta1.NamedRuleWithOperations{policy.ResourceRules, asked.ResourceRules} {
			for i := range rules {
				rules[i].Scope = nil
			}
		}
		if diff := cmp.Diff(policy, asked); diff != "" {
			t.Errorf("what the policy %s and the webhook are asked about: -policy +webhook\n%s", name, diff)
		}
	}
	for name, tc := range peersWrites() {
		_, asked := ask(t, peers, tc.change)
		if secret := tc.change.kind == secrets; secret && asked {
			t.Errorf("%s: %s\nthe guard is shown a Secret", name, tc.reason)
		} else if tc.want != "" && !secret && !asked && name != "UnknownByOther" { // That is not Liqo's kind.
			t.Errorf("%s: %s\nthe webhook is not asked", name, tc.reason)
		}
	}
	for name, tc := range copies() {
		if name == "Unreadable" {
			continue // The API server refuses what it cannot read.
		}
		if _, asked := ask(t, copied, tc.change); asked != (tc.want != "") {
			t.Errorf("%s: %s\nthe webhook is asked: %t", name, tc.reason, asked)
		}
	}
	for _, user := range []string{"system:serviceaccount:liqo:liqo-controller-manager", "admin"} {
		if _, asked := ask(t, peers, updates(resourceSlices).sub("status").by(user, "system:masters")); asked {
			t.Errorf("%s needs the webhook", user)
		}
	}
}

// ask returns with which messages a policy refuses a change in the tenant namespace of c, and whether it is asked at all.
func ask(t *testing.T, policy admission.Spec, c change) (refusals []string, asked bool) {
	t.Helper()
	return askIn(t, policy, c, map[string]string{"liqo.io/tenant-namespace": "true", "liqo.io/remote-cluster-id": "c"})
}

// askIn is the same in a namespace with labels.
func askIn(t *testing.T, policy admission.Spec, c change, labels map[string]string) (refusals []string, asked bool) {
	t.Helper()
	resource, group, _ := strings.Cut(c.kind, ".")
	operation := "UPDATE"
	switch {
	case c.old == nil:
		operation = "CREATE"
	case c.new == nil:
		operation = "DELETE"
	}
	return admission.Refusals(t, policy, admission.Request{
		Operation: operation, Group: group, Resource: resource, Subresource: c.subresource, User: c.user, Groups: c.groups,
		Object: c.new, Old: c.old, Namespace: "tenant-c", Labels: labels, Params: object{"data": object{"CLUSTER_ID": "own"}},
	})
}

// TestPolicy asks the admission policies what the rules are asked: they say the same, but for what a policy cannot say.
func TestPolicy(t *testing.T) {
	cannot := []string{
		"Large", "Unreadable", // It knows neither how large an object is, nor how long it takes to read a number.
		"Public", "PublicNext", "Junk", // It is not asked to read networks.
		"EndpointHere", "EndpointLink", "EndpointMapped", // Nor addresses.
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

// twinned returns the change in the twin namespace of a consumer, by its virtual kubelet: that creates or updates a copy of one of the
// consumer's own objects, of a type if it is a Secret.
func twinned(does func(string) change, kind, secretType string) change {
	c := does(kind).by("big-5e6f", "c", "system:authenticated")
	for _, o := range []object{c.old, c.new} {
		if o == nil {
			continue
		}
		o["metadata"] = object{
			"name": "web", "labels": object{"app": "web", "offloading.liqo.io/origin": "c", "offloading.liqo.io/destination": "own"},
			"annotations": object{"example.com/x": "y"},
		}
		delete(o, "spec")
		if kind == secrets {
			o["type"], o["data"] = secretType, object{"key": "eA=="}
		}
	}
	return c
}

// The resources that a consumer writes in its twin namespaces (liqo/deployments/liqo/files/liqo-virtual-kubelet-remote-ClusterRole.yaml).
const (
	shadowPods = "shadowpods." + api.OffloadingGroup
	volumes    = "persistentvolumeclaims."
)

func twinResources() []string {
	return []string{
		"configmaps.", "events.", volumes, secrets, "services.", "ingresses.networking.k8s.io", shadowPods,
		"shadowendpointslices." + api.OffloadingGroup,
	}
}

// TestTwins asks the admission policy about what consumers write in their twin namespaces.
func TestTwins(t *testing.T) {
	const opaque, account = "Opaque", "kubernetes.io/service-account-token"
	const markMessage, goes, owners = "mark that is not the peer's", "keeps nothing here from going", "metadata.ownerReferences is not"
	mine, protected := []any{"example.com/mine"}, []any{"kubernetes.io/pvc-protection"}
	cases := map[string]asked{
		"Certificate": {"Consumers have Secrets of all kinds.", twinned(creates, secrets, "kubernetes.io/tls"), ""},
		"PullSecret":  {"Of these too.", twinned(updates, secrets, "kubernetes.io/dockerconfigjson"), ""},
		"Tokens": {
			"A virtual kubelet keeps the tokens of a pod there.",
			twinned(creates, secrets, opaque).with("sa", "metadata", "labels", "offloading.liqo.io/service-account-name").with("web", "metadata",
				"annotations", "offloading.liqo.io/service-account-for-pod-name"), "",
		},
		"OpaqueAccount": {
			"It makes an opaque one of those of accounts.",
			twinned(creates, secrets, opaque).with("sa", "metadata", "annotations", "kubernetes.io/service-account.name"), "",
		},
		"Kept": {
			"People may say what is copied.",
			twinned(updates, secrets, opaque).with("true", "metadata", "annotations", "liqo.io/allow-reflection"), "",
		},
		"Bare": {"It need not have labels.", twinned(creates, secrets, opaque).with(object{"name": "web"}, "metadata"), ""},
		"Account": {
			"Kubernetes would write a token of this cluster into it.", twinned(creates, secrets, account), "a token of this cluster",
		},
		"AccountLater": {"People have made it: it stays as it is.", twinned(updates, secrets, account), "a token of this cluster"},
		"AccountOf09": {
			"With Liqo 0.9 as well.", twinned(creates, secrets, account).by("c", "liqo.io"), "a token of this cluster",
		},
		"AccountByOther": {"Whoever it is.", twinned(creates, secrets, account).by("v", "liqo.io"), "a token of this cluster"},
		"Bootstrap": {
			"A machine could join with it.", twinned(creates, secrets, "bootstrap.kubernetes.io/token"), "a token of this cluster",
		},
		"AccountOfPeople": {
			"They know what they do.", twinned(creates, secrets, account).by("alice", "staff"), "",
		},

		"Finalizer":      {"The namespace would stay.", twinned(creates, shadowPods, "").with(mine, "metadata", "finalizers"), goes},
		"FinalizerLater": {"Also later.", twinned(updates, "configmaps.", "").with(mine, "metadata", "finalizers"), goes},
		"FinalizerGone":  {"It is somebody's here.", twinned(updates, "services.", "").of(mine, "metadata", "finalizers"), goes},
		"FinalizerKept": {
			"A load balancer goes first.",
			twinned(updates, "services.", "").of(mine, "metadata", "finalizers").with(mine, "metadata", "finalizers"), "",
		},
		"Protected":      {"The API server protects a volume.", twinned(creates, volumes, "").with(protected, "metadata", "finalizers"), ""},
		"VolumeStays":    {"It would not go with its namespace.", twinned(creates, volumes, "").with(mine, "metadata", "finalizers"), goes},
		"ProtectedOther": {"And nothing else.", twinned(creates, secrets, opaque).with(protected, "metadata", "finalizers"), goes},
		"Unprotected":    {"That it stays.", twinned(updates, volumes, "").of(protected, "metadata", "finalizers"), goes},
		"FinalizerOf09": {
			"It is as it was with Liqo 0.9.", twinned(creates, "configmaps.", "").by("c", "liqo.io").with(mine, "metadata", "finalizers"), "",
		},
		"Owner": {
			"It would go with that, or that would wait for it.",
			twinned(creates, "ingresses.networking.k8s.io", "").with([]any{owner("Node")}, "metadata", "ownerReferences"), owners,
		},
		"OwnerGone": {"It is to go with that.", twinned(updates, shadowPods, "").of([]any{owner("X")}, "metadata", "ownerReferences"), owners},
		"OwnerKept": {
			"Somebody here has said so.",
			twinned(updates, shadowPods, "").of([]any{owner("X")}, "metadata", "ownerReferences").with([]any{owner("X")}, "metadata",
				"ownerReferences"), "",
		},
	}
	for _, mark := range secretMarks() {
		cases["Label"+mark] = asked{
			"Liqo would take it for its own.", twinned(creates, secrets, opaque).with("x", "metadata", "labels", mark), markMessage,
		}
		cases["Annotation"+mark] = asked{
			"Also later.", twinned(updates, secrets, opaque).with("x", "metadata", "annotations", mark), markMessage,
		}
		cases["Unmark"+mark] = asked{"It may be mended.", twinned(updates, secrets, opaque).of("x", "metadata", "labels", mark), ""}
		cases["ConfigMap"+mark] = asked{"It is no Secret.", twinned(creates, "configmaps.", "").with("x", "metadata", "labels", mark), ""}
	}
	for _, kind := range twinResources() {
		for name, does := range map[string]func(string) change{"Create": creates, "Update": updates} {
			cases[name+kind] = asked{"An honest peer is never refused.", twinned(does, kind, opaque), ""}
			cases[name+"09"+kind] = asked{"Nor one with Liqo 0.9.", twinned(does, kind, opaque).by("c", "liqo.io"), ""}
		}
	}
	policy := policyRules(t)["twins"]
	twin := map[string]string{"liqo.io/remote-cluster-id": "c"}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			refusals, is := askIn(t, policy, tc.change, twin)
			if !is {
				t.Fatalf("%s\nthe policy is not asked", tc.reason)
			}
			if got := strings.Join(refusals, ", "); (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
				t.Errorf("%s\nthe policy refuses with %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
	for _, user := range []string{"system:serviceaccount:liqo:liqo-controller-manager", "admin"} {
		if _, is := askIn(t, policy, twinned(creates, secrets, account).by(user, "system:masters"), twin); is {
			t.Errorf("%s needs the policy", user)
		}
	}

	// It is asked where consumers write, and nowhere else.
	selector, err := metav1.LabelSelectorAsSelector(policy.MatchConstraints.NamespaceSelector)
	if err != nil {
		t.Fatal(err)
	}
	for _, of := range []struct {
		reason string
		labels labels.Set
		want   bool
	}{
		{"It is a twin namespace, of either line.", labels.Set{"liqo.io/remote-cluster-id": "c"}, true},
		{"It is a tenant namespace.", labels.Set{"liqo.io/remote-cluster-id": "c", "liqo.io/tenant-namespace": "true"}, false},
		{"It is people's.", labels.Set{"kubernetes.io/metadata.name": "shop"}, false},
	} {
		if got := selector.Matches(of.labels); got != of.want {
			t.Errorf("%s\nasked: %t, want %t", of.reason, got, of.want)
		}
	}
}
