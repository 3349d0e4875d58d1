// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package answer

import (
	"os"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/yaml"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/liqo/line"
	"github.com/capacitorset/liqo-broker/pkg/liqo/lines"
	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
	v1 "github.com/capacitorset/liqo-broker/pkg/liqo/v1"
	"github.com/capacitorset/liqo-broker/pkg/shown"
	"github.com/capacitorset/liqo-broker/pkg/uiserver/consuming"
)

// TestObserver holds that the example of who may see all of the page grants what that takes with either line of Liqo, and no writes. What
// it takes to foresee is in TestObserverForesees of cmd/kubectl-liqo_broker.
func TestObserver(t *testing.T) {
	manifest, err := os.ReadFile("../../../deploy/examples/observer.yaml")
	if err != nil {
		t.Fatal(err)
	}
	granted := map[string][]rbacv1.PolicyRule{} // By namespace.
	for document := range strings.SplitSeq(string(manifest), "\n---\n") {
		if !strings.Contains(document, "\nrules:\n") {
			continue
		}
		var role rbacv1.ClusterRole // A Role has the same fields.
		if err := yaml.UnmarshalStrict([]byte(document), &role); err != nil {
			t.Fatal(err)
		}
		granted[role.Namespace] = role.Rules
	}
	grants := func(namespace, verb, group, resource string) bool {
		return slices.ContainsFunc(granted[namespace], func(rule rbacv1.PolicyRule) bool {
			return slices.Contains(rule.Verbs, verb) && slices.Contains(rule.APIGroups, group) &&
				(slices.Contains(rule.Resources, resource) || slices.Contains(rule.Resources, "*"))
		})
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme, lines.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	needed := map[string]bool{"deployments": true, "configmaps": true, "shadowpods": true, "*": true}
	for _, of := range []line.Line{v09.Line{}, v1.Line{}} {
		var all []client.Object
		for _, kind := range shown.Kinds() {
			musts, adds := shown.Needs(of.Kinds(), kind)
			all = slices.Concat(all, musts, adds)
		}
		for _, kind := range consuming.Kinds() {
			musts, adds := consuming.Needs(of.Kinds(), kind)
			all = slices.Concat(all, musts, adds)
		}
		for _, object := range all {
			kind, err := apiutil.GVKForObject(object, scheme)
			if err != nil {
				t.Fatal(err)
			}
			resource, _ := meta.UnsafeGuessKindToResource(kind)
			needed[resource.Resource] = true
			for _, verb := range []string{"list", "watch"} {
				if !grants(object.GetNamespace(), verb, kind.Group, resource.Resource) {
					t.Errorf("Liqo %s: it does not grant to %s %s in %q, namespace %q", of.Name(), verb, resource.Resource, kind.Group,
						object.GetNamespace())
				}
			}
		}
	}
	if !grants("", "list", "apps", "deployments") || !grants("", "get", "", "configmaps") {
		t.Error("it does not grant to see what runs, or what the cluster is called")
	}
	for _, rule := range slices.Concat(granted[""], granted["default"]) {
		for _, verb := range rule.Verbs {
			if !slices.Contains([]string{"get", "list", "watch"}, verb) {
				t.Errorf("it grants to %s %q", verb, rule.Resources)
			}
		}
		for _, resource := range rule.Resources {
			if !needed[resource] {
				t.Errorf("it grants to see %s, which nothing is made of", resource)
			}
		}
		if slices.Contains(rule.APIGroups, "") && slices.Contains(rule.Resources, "*") {
			t.Errorf("it grants to read Secrets: %v", rule)
		}
	}
}
