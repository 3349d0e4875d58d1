// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	"github.com/capacitorset/liqo-broker/pkg/liqo/line"
	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
	v1 "github.com/capacitorset/liqo-broker/pkg/liqo/v1"
)

// TestObserverForesees asks what a drain and a policy would do, with the rights to read of the example of who may see all of the page. What
// the page itself shows reads is in TestObserver of pkg/uiserver/answer.
func TestObserverForesees(t *testing.T) {
	file := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(file, []byte(header+"metadata: {name: all}\nspec: {appliesTo: {scope: Default}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	may := observerRights(t)
	for name, tc := range map[string]struct {
		of         line.Line
		objects    []client.Object
		line, says string
	}{
		"Drain": {v09.Line{}, draining(t), "drain milan --dry-run", "would move at once"},
		"DrainLiqo1": {
			v1.Line{}, append(seen1(""), node1("milan", "milan"), pod("shop-rome", "web-1", "milan", "10.69.0.7")), "drain milan --dry-run", "web-1",
		},
		"Policy": {v09.Line{}, draining(t), "policy check " + file, "It would choose for consumer rome"},
		"PolicyLiqo1": {
			v1.Line{}, append(seen1(""), policy("other")), "policy check " + file, "It would choose for consumer rome",
		},
	} {
		t.Run(name, func(t *testing.T) {
			whole := newFakeOf(t, tc.of, tc.objects...)
			refuse := func(object runtime.Object, verb, namespace, name string) error {
				kind, err := apiutil.GVKForObject(object, whole.Scheme())
				if err != nil {
					return err
				}
				kind.Kind = strings.TrimSuffix(kind.Kind, "List")
				resource, _ := meta.UnsafeGuessKindToResource(kind)
				if may(verb, resource.GroupResource(), namespace, name) {
					return nil
				}
				t.Errorf("the role has no right to %s %s, name %q", verb, resource.GroupResource(), name)
				return apierrors.NewForbidden(resource.GroupResource(), name, nil)
			}
			c := &cli{client: interceptor.NewClient(whole, interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
					if err := refuse(o, "get", key.Namespace, key.Name); err != nil {
						return err
					}
					return c.Get(ctx, key, o, options...)
				},
				List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
					if err := refuse(list, "list", (&client.ListOptions{}).ApplyOptions(options).Namespace, ""); err != nil {
						return err
					}
					return c.List(ctx, list, options...)
				},
			})}
			if out, errOut, err := c.run(t, tc.line); err != nil || !strings.Contains(out, tc.says) {
				t.Errorf("%s: %v, %s\n%s", tc.line, err, errOut, out)
			}
		})
	}
}

// observerRights returns what the example grants.
func observerRights(t *testing.T) func(verb string, of schema.GroupResource, namespace, name string) bool {
	t.Helper()
	manifest, err := os.ReadFile("../../deploy/examples/observer.yaml")
	if err != nil {
		t.Fatal(err)
	}
	granted := map[string][]rbacv1.PolicyRule{} // By namespace.
	for document := range strings.SplitSeq(string(manifest), "\n---\n") {
		var role rbacv1.ClusterRole // A Role has the same fields.
		if err := yaml.Unmarshal([]byte(document), &role); err != nil {
			t.Fatal(err)
		}
		granted[role.Namespace] = append(granted[role.Namespace], role.Rules...)
	}
	return func(verb string, of schema.GroupResource, namespace, name string) bool {
		rules := granted[""]
		if namespace != "" {
			rules = slices.Concat(rules, granted[namespace])
		}
		return slices.ContainsFunc(rules, func(rule rbacv1.PolicyRule) bool {
			return slices.Contains(rule.Verbs, verb) && slices.Contains(rule.APIGroups, of.Group) &&
				(slices.Contains(rule.Resources, of.Resource) || slices.Contains(rule.Resources, "*")) &&
				(len(rule.ResourceNames) == 0 || slices.Contains(rule.ResourceNames, name))
		})
	}
}
