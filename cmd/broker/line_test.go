// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/liqo/lines"
	v1 "github.com/capacitorset/liqo-broker/pkg/liqo/v1"
)

// TestCatalogNeeds renders deploy/catalog: the daemon is a catalog there and no more, its account may do what it needs as one with Liqo 1.x
// and nothing else, and the API server neither asks it anything nor has kinds of it.
func TestCatalogNeeds(t *testing.T) {
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), "../../deploy/catalog")
	if err != nil {
		t.Fatal(err)
	}
	var deployment appsv1.Deployment
	var bindings []rbacv1.RoleBinding
	kinds, roles := map[string]bool{}, map[rbacv1.RoleRef]map[string][]rbacv1.PolicyRule{} // By the namespace of the role.
	for _, object := range built.Resources() {
		kinds[object.GetKind()] = true
		text, err := object.AsYAML()
		if err != nil {
			t.Fatal(err)
		}
		switch object.GetKind() {
		case "Deployment":
			err = yaml.UnmarshalStrict(text, &deployment)
		case "Role", "ClusterRole":
			var role rbacv1.Role // A ClusterRole has what is read of it.
			err = yaml.Unmarshal(text, &role)
			ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: role.Kind, Name: role.Name}
			if roles[ref] == nil {
				roles[ref] = map[string][]rbacv1.PolicyRule{}
			}
			roles[ref][role.Namespace] = role.Rules
		case "RoleBinding", "ClusterRoleBinding":
			var binding rbacv1.RoleBinding // A ClusterRoleBinding has the same fields.
			err = yaml.UnmarshalStrict(text, &binding)
			bindings = append(bindings, binding)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	known := []string{
		"ClusterRole", "ClusterRoleBinding", "ConfigMap", "Deployment", "Namespace", "NetworkPolicy", "PodDisruptionBudget", "Role",
		"RoleBinding", "Service", "ServiceAccount",
	}
	if got := slices.Sorted(maps.Keys(kinds)); !slices.Equal(got, known) {
		t.Errorf("deploy/catalog has %v, want %v", got, known)
	}
	pod := deployment.Spec.Template.Spec
	args := []string{"--with-catalog", "--leader-elect", "--leader-election-identity=$(POD_NAME)"}
	if got := pod.Containers[0].Args; len(pod.Containers) != 1 || !slices.Equal(got, args) {
		t.Errorf("the daemon runs with %s, want %s", got, args)
	}

	// What the account is bound to, in all namespaces and in single ones.
	own := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: deployment.Namespace, Name: pod.ServiceAccountName}
	granted := map[string]map[string][]string{}
	for _, b := range bindings {
		if !slices.Equal(b.Subjects, []rbacv1.Subject{own}) {
			t.Errorf("%s %s is for %v, want %v", b.Kind, b.Name, b.Subjects, own)
		}
		home := b.Namespace
		if b.RoleRef.Kind == "ClusterRole" {
			home = ""
		}
		rules, is := roles[b.RoleRef][home]
		if _, twice := granted[b.Namespace]; twice || !is {
			t.Errorf("%s %s is for %v, which is not there, or not alone in namespace %q", b.Kind, b.Name, b.RoleRef, b.Namespace)
		}
		granted[b.Namespace] = grantedBy(t, rules)
	}
	needed := map[string]map[string][]string{"": {}, deployment.Namespace: {}}
	catalog := options{
		catalog: true, leaderElect: true, leaderNamespace: deployment.Namespace, namespace: deployment.Namespace,
		liqoNamespace: liqo.DefaultNamespace,
	}
	for _, n := range needs(&catalog, v1.Line{}) {
		if !n.ofCatalog {
			t.Errorf("%s is said to be granted by deploy/", n)
		}
		namespace := n.namespace
		n.namespace = ""
		needed[namespace][n.String()] = slices.Sorted(slices.Values(n.verbs))
	}
	if diff := cmp.Diff(needed, granted); diff != "" {
		t.Errorf("deploy/catalog: -needed +granted, by namespace\n%s", diff)
	}
}

// TestModesOfLines checks in which modes the daemon is asked with which line of Liqo.
func TestModesOfLines(t *testing.T) {
	for _, of := range lines.All() {
		for name, o := range map[string]options{
			"catalog": {catalog: true}, "orchestrator": {catalog: true, orchestrator: true}, "aggregator": {aggregator: true},
		} {
			if asked := of.Name() == "0.9" || name != "catalog"; o.isAsked(of) != asked {
				t.Errorf("with Liqo %s, %s: the API server asks it: %t", of.Name(), name, !asked)
			}
		}
	}
}
