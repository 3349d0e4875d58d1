// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
)

// stockFile has the objects of Liqo's chart that an installation changes; test/chart renders them.
const stockFile = "testdata/liqo.yaml"

// readObjects returns the objects of a manifest.
func readObjects(t *testing.T, file string) []*unstructured.Unstructured {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	objects, err := decode(text)
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

// liqoCluster returns a client of a cluster with Liqo as its chart makes it, one peer, and its virtual node; its API server serves all
// kinds of some objects besides, and counts what is written. Nobody may do more than read.
func liqoCluster(t *testing.T, kinds []*unstructured.Unstructured, writes *int) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v09.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	const template = `{"spec": {"template": {"spec": {"template": {"spec": {"containers": [{"image": "liqo/virtual-kubelet:v0.9.4"}]}}}}}}`
	virtual := &v09.VirtualNode{ObjectMeta: metav1.ObjectMeta{Namespace: "liqo-tenant-milan", Name: "liqo-milan"}}
	if err := json.Unmarshal([]byte(template), virtual); err != nil {
		t.Fatal(err)
	}
	objects := []client.Object{peer("a", "milan"), virtual}
	for _, o := range readObjects(t, stockFile) {
		if o.GetKind() != "ClusterRole" {
			o.SetNamespace(liqoNamespace)
		}
		objects, kinds = append(objects, o), append(kinds, o)
	}
	versions := []schema.GroupVersion{{Group: "discovery.liqo.io", Version: "v1alpha1"},
		{Group: "virtualkubelet.liqo.io", Version: "v1alpha1"}}
	for _, o := range kinds {
		versions = append(versions, o.GroupVersionKind().GroupVersion())
	}
	serves := meta.NewDefaultRESTMapper(versions)
	serves.Add(recordKind(line09{}), meta.RESTScopeRoot)
	for _, o := range kinds {
		scope := meta.RESTScopeRoot
		if o.GetNamespace() != "" {
			scope = meta.RESTScopeNamespace
		}
		serves.Add(o.GroupVersionKind(), scope)
	}
	serves.Add(versions[1].WithKind("VirtualNode"), meta.RESTScopeNamespace)
	builder := fake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(serves).WithObjects(objects...)
	for _, kind := range []client.Object{&corev1.ConfigMap{}, &rbacv1.RoleBinding{}} {
		builder = builder.WithIndex(kind, "metadata.name", func(o client.Object) []string { return []string{o.GetName()} })
	}
	return builder.WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
			if _, is := o.(*authorizationv1.SelfSubjectAccessReview); is {
				return nil
			}
			*writes++
			return c.Create(ctx, o, options...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, options ...client.PatchOption) error {
			*writes++
			if p.Type() == types.ApplyPatchType { // The fake merges no object that it has both as a type and without.
				return c.Create(ctx, o)
			}
			return c.Patch(ctx, o, p, options...)
		},
	}).Build()
}

// TestExport has a cluster's installation written as files, and made on the cluster: kustomize makes of the files, with Liqo's chart, what
// is on the cluster then, but for the virtual kubelets that exist. Writing them changes nothing, and needs no rights.
func TestExport(t *testing.T) {
	chosen := Options{Registry: "registry.example/team", Tag: "v9.9.9", Modes: []string{"catalog"}}
	milan := v09.Identity(peer("a", "milan"))
	for role, tc := range map[string]struct {
		do      func(*Installer, context.Context, *Setup) error
		steps   func(*Installer) ([]step, error)
		folders []string
	}{
		"broker": {(*Installer).Install, (*Installer).brokerSteps, []string{"broker", "flux", "liqo", "offering"}},
		"consumer": {
			(*Installer).Prepare, func(i *Installer) ([]step, error) { return i.consumerSteps(milan) }, []string{"flux", "liqo"},
		},
		"trader": {(*Installer).Guard, (*Installer).guardSteps, []string{"flux", "guard", "liqo"}},
	} {
		t.Run(role, func(t *testing.T) {
			var kinds []*unstructured.Unstructured
			for _, folder := range []string{".", "admission"} {
				some, err := build(folder)
				if err != nil {
					t.Fatal(err)
				}
				kinds = append(kinds, some...)
			}
			writes := 0
			c := liqoCluster(t, kinds, &writes)
			folder := filepath.Join(t.TempDir(), "new", role)
			options := chosen
			options.Export = folder
			var out strings.Builder
			i, err := New(c, options, &out)
			if err != nil {
				t.Fatal(err)
			}
			setup, err := i.Look(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if err := tc.do(i, t.Context(), &setup); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(out.String(), "1 virtual nodes have another virtual kubelet") || writes > 0 {
				t.Errorf("%d writes:\n%s", writes, out.String())
			}
			if err := tc.do(i, t.Context(), &setup); err == nil || !strings.Contains(err.Error(), "it is not empty") {
				t.Errorf("it is written twice: %v", err)
			}
			built := composed(t, folder, tc.folders)

			install(t, c, chosen, tc.steps)
			live := map[string]any{}
			for key, o := range built {
				is := &unstructured.Unstructured{}
				is.SetGroupVersionKind(o.GroupVersionKind())
				if err := c.Get(t.Context(), client.ObjectKeyFromObject(o), is); err != nil {
					t.Errorf("%s is not installed: %v", key, err)
					continue
				}
				live[key] = settledObject(t, is)
			}
			exported := map[string]any{}
			for key, o := range built {
				exported[key] = settledObject(t, o)
			}
			if diff := cmp.Diff(live, exported, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("-installed +exported\n%s", diff)
			}
		})
	}
}

// composed returns what kustomize makes of all folders of an export: liqo is a component of Liqo's chart.
func composed(t *testing.T, folder string, want []string) map[string]*unstructured.Unstructured {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	var there []string
	for _, entry := range entries {
		there = append(there, entry.Name())
	}
	if !slices.Equal(there, want) {
		t.Fatalf("the folders are %v, want %v", there, want)
	}
	stock, err := os.ReadFile(stockFile)
	if err != nil {
		t.Fatal(err)
	}
	resources := strings.Join(slices.DeleteFunc(there, func(f string) bool { return f == "flux" || f == "liqo" }), ", ../")
	if resources != "" {
		resources = ", ../" + resources
	}
	for file, text := range map[string]string{
		"stock/liqo.yaml":          string(stock),
		"stock/kustomization.yaml": "namespace: liqo\nresources: [liqo.yaml]\ncomponents: [../liqo]\n",
		"all/kustomization.yaml":   "resources: [../stock" + resources + "]\n",
	} {
		at := filepath.Join(folder, file)
		if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.WriteFile(at, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), filepath.Join(folder, "all"))
	if err != nil {
		t.Fatal(err)
	}
	text, err := built.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	objects, err := decode(text)
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]*unstructured.Unstructured{}
	for _, o := range objects {
		byName[describe(o)] = o
	}
	return byName
}

// install takes the steps of an installation, and waits for nothing.
func install(t *testing.T, c client.Client, options Options, steps func(*Installer) ([]step, error)) {
	t.Helper()
	i, err := New(c, options, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	all, err := steps(i)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		changes, err := s.changes(t.Context())
		if err == nil {
			err = i.run.apply(t.Context(), changes)
		}
		if err != nil {
			t.Fatalf("%s: %v", s.name, err)
		}
	}
}

// settledObject returns an object without what the API server notes, and without the order of what has none: kustomize and kubectl put
// what a patch adds to a list at different ends, and of flags the last of a name counts.
func settledObject(t *testing.T, o *unstructured.Unstructured) any {
	t.Helper()
	o = withoutBookkeeping(o)
	unstructured.RemoveNestedField(o.Object, "status")
	unstructured.RemoveNestedField(o.Object, "metadata", "creationTimestamp")
	into := func(typed any) {
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, typed); err != nil {
			t.Fatal(err)
		}
	}
	switch o.GetKind() {
	case kindDeployment:
		d := &appsv1.Deployment{}
		into(d)
		byName := map[string]corev1.Container{}
		for _, of := range containers(&d.Spec.Template.Spec) {
			byName[of.Name] = *of
		}
		d.Spec.Template.Spec.Containers, d.Spec.Template.Spec.InitContainers = nil, nil
		if d.Name == controllerManager {
			manager := byName["controller-manager"]
			last := map[string]string{}
			for _, arg := range manager.Args {
				name, _, _ := strings.Cut(arg, "=")
				last[name] = arg
			}
			manager.Args = slices.Sorted(maps.Values(last))
			byName["controller-manager"] = manager
		}
		return []any{d, byName}
	case "Service":
		s := &corev1.Service{}
		into(s)
		slices.SortFunc(s.Spec.Ports, func(a, b corev1.ServicePort) int { return strings.Compare(a.Name, b.Name) })
		return s
	case "ClusterRole":
		r := &rbacv1.ClusterRole{}
		into(r)
		return r
	}
	if o.GetKind() == "Namespace" {
		unstructured.RemoveNestedField(o.Object, "spec") // The fake writes an empty one.
	}
	text, err := json.Marshal(o.Object)
	if err != nil {
		t.Fatal(err)
	}
	var object any
	if err := json.Unmarshal(text, &object); err != nil {
		t.Fatal(err)
	}
	return object
}
