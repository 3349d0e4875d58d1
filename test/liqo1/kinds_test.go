// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package liqo1

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	authv1beta1 "github.com/liqotech/liqo/apis/authentication/v1beta1"
	liqov1beta1 "github.com/liqotech/liqo/apis/core/v1beta1"
	ipamv1alpha1 "github.com/liqotech/liqo/apis/ipam/v1alpha1"
	networkingv1beta1 "github.com/liqotech/liqo/apis/networking/v1beta1"
	offloadingv1beta1 "github.com/liqotech/liqo/apis/offloading/v1beta1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/capacitorset/liqo-broker/pkg/liqo/v1/api"
)

// kind is a kind of Liqo that we have a type of.
type kind struct {
	group, version, resource string
	scope                    apiextensionsv1.ResourceScope
}

// kinds are all of them, as the rest of this repository takes them: in rights, in selectors of webhooks, and in calls.
var kinds = map[string]kind{
	"ForeignCluster":        {"core.liqo.io", "v1beta1", "foreignclusters", apiextensionsv1.ClusterScoped},
	"Tenant":                {"authentication.liqo.io", "v1beta1", "tenants", apiextensionsv1.NamespaceScoped},
	"Identity":              {"authentication.liqo.io", "v1beta1", "identities", apiextensionsv1.NamespaceScoped},
	"ResourceSlice":         {"authentication.liqo.io", "v1beta1", "resourceslices", apiextensionsv1.NamespaceScoped},
	"Renew":                 {"authentication.liqo.io", "v1beta1", "renews", apiextensionsv1.NamespaceScoped},
	"NamespaceMap":          {"offloading.liqo.io", "v1beta1", "namespacemaps", apiextensionsv1.NamespaceScoped},
	"NamespaceOffloading":   {"offloading.liqo.io", "v1beta1", "namespaceoffloadings", apiextensionsv1.NamespaceScoped},
	"VirtualNode":           {"offloading.liqo.io", "v1beta1", "virtualnodes", apiextensionsv1.NamespaceScoped},
	"ShadowPod":             {"offloading.liqo.io", "v1beta1", "shadowpods", apiextensionsv1.NamespaceScoped},
	"Configuration":         {"networking.liqo.io", "v1beta1", "configurations", apiextensionsv1.NamespaceScoped},
	"Connection":            {"networking.liqo.io", "v1beta1", "connections", apiextensionsv1.NamespaceScoped},
	"FirewallConfiguration": {"networking.liqo.io", "v1beta1", "firewallconfigurations", apiextensionsv1.NamespaceScoped},
	"Network":               {"ipam.liqo.io", "v1alpha1", "networks", apiextensionsv1.NamespaceScoped},
	"IP":                    {"ipam.liqo.io", "v1alpha1", "ips", apiextensionsv1.NamespaceScoped},
}

// incomplete are the fields of elements of lists that we leave out, as KIND.FIELD.
var incomplete = []string{
	// Everybody has FirewallConfigurations of their own, and ours only filter by addresses and devices.
	"FirewallConfiguration.natRules", "FirewallConfiguration.routeRules", "FirewallConfiguration.value",
	"FirewallConfiguration.port", "FirewallConfiguration.proto",
}

// registered returns a scheme with our types, or with Liqo's.
func registered(t *testing.T, add ...func(*runtime.Scheme) error) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	for _, types := range add {
		if err := types(s); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func ours(t *testing.T) *runtime.Scheme {
	t.Helper()
	return registered(t, api.AddToScheme)
}

func upstream(t *testing.T) *runtime.Scheme {
	t.Helper()
	return registered(t, liqov1beta1.AddToScheme, authv1beta1.AddToScheme, offloadingv1beta1.AddToScheme, networkingv1beta1.AddToScheme,
		ipamv1alpha1.AddToScheme)
}

// liqoFolder returns where the source of Liqo is.
func liqoFolder(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/liqotech/liqo").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// definitions returns the CRDs of Liqo's chart, by kind.
func definitions(t *testing.T) map[string]apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(liqoFolder(t), "deployments/liqo/charts/liqo-crds/crds/*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]apiextensionsv1.CustomResourceDefinition{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var crd apiextensionsv1.CustomResourceDefinition
		if err := yaml.Unmarshal(text, &crd); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		all[crd.Spec.Names.Kind] = crd
	}
	return all
}

// TestKinds compares what our scheme has, and how we call it, with what Liqo installs.
func TestKinds(t *testing.T) {
	installed, seen := definitions(t), map[string]bool{}
	for gvk, known := range ours(t).AllKnownTypes() {
		if known.PkgPath() != reflect.TypeFor[api.ForeignCluster]().PkgPath() {
			continue // What all schemes have.
		}
		name := strings.TrimSuffix(gvk.Kind, "List")
		seen[name] = true
		want, is := kinds[name]
		if got := (schema.GroupVersion{Group: want.group, Version: want.version}); !is || gvk.GroupVersion() != got {
			t.Errorf("%s is in %s, want %s", gvk.Kind, gvk.GroupVersion(), got)
		}
		if _, is := upstream(t).AllKnownTypes()[gvk]; !is {
			t.Errorf("Liqo has no %s", gvk)
		}
	}
	for name, want := range kinds {
		if !seen[name] {
			t.Errorf("there is no type of %s", name)
		}
		crd := installed[name]
		got := kind{group: crd.Spec.Group, resource: crd.Spec.Names.Plural, scope: crd.Spec.Scope}
		if slices.ContainsFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool {
			return v.Served && v.Storage && v.Name == want.version
		}) {
			got.version = want.version
		}
		if got != want {
			t.Errorf("Liqo installs %s as %+v, and we take it for %+v", name, got, want)
		}
	}
}

// field is a field of an object as JSON has it.
type field struct {
	goType  reflect.Type
	options string
}

// fieldsOf returns the fields of a structure by their names in JSON, those of what is inlined among them.
func fieldsOf(t reflect.Type) map[string]field {
	all := map[string]field{}
	for f := range t.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" && f.Anonymous {
			maps.Copy(all, fieldsOf(f.Type))
			continue
		}
		all[name] = field{f.Type, options}
	}
	return all
}

// comparison compares our type of one kind with Liqo's.
type comparison struct {
	*testing.T

	kind   string
	fields int
}

// compare holds that what we write is what Liqo reads, and the other way round; element says that it is in a list.
func (c *comparison) compare(path string, ours, theirs reflect.Type, element bool) {
	if ours == theirs {
		return
	}
	if ours.Kind() != theirs.Kind() {
		c.Errorf("%s is a %s, and in Liqo a %s", path, ours.Kind(), theirs.Kind())
		return
	}
	switch ours.Kind() { //nolint:exhaustive // All others have nothing in them.
	case reflect.Pointer, reflect.Map:
		c.compare(path, ours.Elem(), theirs.Elem(), element)
	case reflect.Slice:
		c.compare(path+"[]", ours.Elem(), theirs.Elem(), true)
	case reflect.Struct:
		of := fieldsOf(theirs)
		for name, f := range fieldsOf(ours) {
			their, is := of[name]
			switch c.fields++; {
			case !is:
				c.Errorf("Liqo has no %s.%s", path, name)
			case f.options != their.options:
				c.Errorf("%s.%s has the options %q, and in Liqo %q", path, name, f.options, their.options)
			default:
				c.compare(path+"."+name, f.goType, their.goType, element)
			}
			delete(of, name)
		}
		for name := range of {
			if element && !slices.Contains(incomplete, c.kind+"."+name) {
				c.Errorf("%s, in a list, lacks %s: whoever patches the list removes it", path, name)
			}
		}
	}
}

// TestFields holds that each field of ours is one of Liqo's of the same name and a type that is written in the same way.
func TestFields(t *testing.T) {
	liqos := upstream(t).AllKnownTypes()
	for gvk, our := range ours(t).AllKnownTypes() {
		if _, is := kinds[gvk.Kind]; !is {
			continue
		}
		c := comparison{T: t, kind: gvk.Kind}
		c.compare(gvk.Kind, our, liqos[gvk], false)
		if c.fields < 7 {
			t.Errorf("only %d fields of %s are compared", c.fields, gvk.Kind)
		}
	}
}
