// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	"github.com/capacitorset/liqo-broker/pkg/liqo/v09/liqotest"
	"github.com/capacitorset/liqo-broker/pkg/snapshot/snapshottest"
	"github.com/capacitorset/liqo-broker/pkg/webhook/isolation"
	"github.com/capacitorset/liqo-broker/test/admission"
)

// TestGuardWebhooks checks about what the API server asks the guard, in which namespaces, and what counts while the guard does not answer.
// That the paths are served holds for each of them: the API server refuses what it cannot ask about.
func TestGuardWebhooks(t *testing.T) {
	manifest, err := os.ReadFile("../../deploy/guard/webhook.yaml")
	if err != nil {
		t.Fatal(err)
	}
	asked, narrowed := map[string]string{}, map[string][]admissionregistrationv1.MatchCondition{}
	paths := map[string]bool{}
	for document := range strings.SplitSeq(string(manifest), "\n---\n") {
		// The two kinds of configurations differ in what a mutating webhook may do besides.
		var configuration struct {
			Webhooks []admissionregistrationv1.ValidatingWebhook
		}
		if err := yaml.Unmarshal([]byte(document), &configuration); err != nil {
			t.Fatal(err)
		}
		for i := range configuration.Webhooks {
			w := &configuration.Webhooks[i]
			name, path := strings.TrimSuffix(w.Name, ".brokering.liqo.io"), *w.ClientConfig.Service.Path
			asked[name] = fmt.Sprintf("%s%s, else %s", rulesOf(w.Rules), selectorsOf(t, w), *w.FailurePolicy)
			narrowed[name], paths[path] = w.MatchConditions, true
		}
	}
	const peers = "CREATE UPDATE DELETE resourcerequests resourcerequests/status; CREATE UPDATE DELETE resourceoffers " +
		"resourceoffers/status; CREATE UPDATE DELETE networkconfigs networkconfigs/status; CREATE UPDATE DELETE namespacemaps " +
		"namespacemaps/status"
	const inTwins = " in namespaces with liqo.io/remote-cluster-id,!liqo.io/tenant-namespace, else Fail"
	want := map[string]string{
		"confine-services": "CREATE UPDATE services" + inTwins,
		"services":         "CREATE UPDATE services" + inTwins,
		"isolate":          "CREATE pods; CREATE UPDATE shadowpods" + inTwins,
		"allowance":        "CREATE pods; CREATE UPDATE shadowpods" + inTwins,
		"guard-identities": "CREATE certificatesigningrequests, else Fail",
		"peers":            peers + " in namespaces with discovery.liqo.io/tenant-namespace, else Ignore", // Liqo does not ask again.
		"mappings": "UPDATE namespacemaps/status in namespaces with discovery.liqo.io/tenant-namespace " +
			"of objects with liqo.io/replication=true, else Fail",
		"tunnels": "CREATE UPDATE tunnelendpoints, else Ignore", // Networks do not wait for the guard.
	}
	if diff := cmp.Diff(want, asked); diff != "" {
		t.Errorf("about what the guard is asked: -want +got\n%s", diff)
	}
	for name, conditions := range narrowed {
		if strings.Contains(want[name], "remote-cluster-id") && len(conditions) > 0 {
			t.Errorf("%s is not asked about all that peers write: %v", name, conditions)
		}
	}

	// Whoever asks for a certificate as Liqo does, or to see that it is refused, is asked about.
	for _, tc := range []struct {
		user, signer string
		want         bool
	}{
		{"system:serviceaccount:liqo:liqo-auth", "kubernetes.io/kube-apiserver-client", true},
		{"system:serviceaccount:elsewhere:liqo-auth", "kubernetes.io/kube-apiserver-client", true},
		{"system:serviceaccount:liqo-broker-connector:liqo-broker-connector", "kubernetes.io/kube-apiserver-client", true},
		{"system:serviceaccount:liqo:liqo-auth", "kubernetes.io/kubelet-serving", false},
		{"system:node:a", "kubernetes.io/kube-apiserver-client", false},
	} {
		input := map[string]any{
			"request": map[string]any{"userInfo": map[string]any{"username": tc.user}},
			"object":  map[string]any{"spec": map[string]any{"signerName": tc.signer}},
		}
		got := true
		for _, c := range narrowed["guard-identities"] {
			got = got && admission.Holds(t, c.Expression, input)
		}
		if got != tc.want {
			t.Errorf("a certificate by %s for %s: the guard is asked: %t, want %t", tc.signer, tc.user, got, tc.want)
		}
	}

	api := snapshottest.NewClient(t, interceptor.Funcs{})
	served, err := (&guard{guardOptions: guardOptions{liqoNamespace: "liqo"}, level: isolation.DefaultLevel, scheme: liqotest.Scheme(t)}).
		handlers(snapshottest.Reader(api, "own"), nil, api)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(served)), slices.Sorted(maps.Keys(paths))); diff != "" {
		t.Errorf("the paths that are asked, and those that are served: -served +asked\n%s", diff)
	}
}

// rulesOf says about what a webhook is asked.
func rulesOf(rules []admissionregistrationv1.RuleWithOperations) string {
	all := make([]string, 0, len(rules))
	for _, r := range rules {
		words := make([]string, 0, len(r.Operations)+len(r.Resources))
		for _, o := range r.Operations {
			words = append(words, string(o))
		}
		all = append(all, strings.Join(append(words, r.Resources...), " "))
	}
	return strings.Join(all, "; ")
}

// selectorsOf says where a webhook is asked.
func selectorsOf(t *testing.T, w *admissionregistrationv1.ValidatingWebhook) string {
	t.Helper()
	var said strings.Builder
	for _, at := range []struct {
		what     string
		selector *metav1.LabelSelector
	}{{" in namespaces with ", w.NamespaceSelector}, {" of objects with ", w.ObjectSelector}} {
		if at.selector == nil {
			continue
		}
		read, err := metav1.LabelSelectorAsSelector(at.selector)
		if err != nil {
			t.Fatal(err)
		}
		said.WriteString(at.what + read.String())
	}
	return said.String()
}
