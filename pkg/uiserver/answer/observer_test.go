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
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/yaml"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/liqo/line"
	"github.com/capacitorset/liqo-broker/pkg/liqo/lines"
	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
	v1 "github.com/capacitorset/liqo-broker/pkg/liqo/v1"
	"github.com/capacitorset/liqo-broker/pkg/shown"
)

// TestObserver holds that the example of who may see all of the page grants what that takes with either line of Liqo, and no writes.
func TestObserver(t *testing.T) {
	manifest, err := os.ReadFile("../../../deploy/examples/observer.yaml")
	if err != nil {
		t.Fatal(err)
	}
	role, _, _ := strings.Cut(string(manifest), "\n---\n")
	var granted rbacv1.ClusterRole
	if err := yaml.UnmarshalStrict([]byte(role), &granted); err != nil {
		t.Fatal(err)
	}
	grants := func(verb, group, resource string) bool {
		return slices.ContainsFunc(granted.Rules, func(rule rbacv1.PolicyRule) bool {
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
	needed := map[string]bool{"deployments": true, "configmaps": true, "*": true}
	for _, of := range []line.Line{v09.Line{}, v1.Line{}} {
		for _, object := range shown.Needs(of.Kinds(), shown.Kinds()...) {
			kind, err := apiutil.GVKForObject(object, scheme)
			if err != nil {
				t.Fatal(err)
			}
			resource, _ := meta.UnsafeGuessKindToResource(kind)
			needed[resource.Resource] = true
			for _, verb := range []string{"list", "watch"} {
				if !grants(verb, kind.Group, resource.Resource) {
					t.Errorf("Liqo %s: it does not grant to %s %s in %q", of.Name(), verb, resource.Resource, kind.Group)
				}
			}
		}
	}
	if !grants("list", "apps", "deployments") || !grants("get", "", "configmaps") {
		t.Error("it does not grant to see what runs, or what the cluster is called")
	}
	for _, rule := range granted.Rules {
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
