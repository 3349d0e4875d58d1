// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/controller/inventory"
	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
)

// inventoryNamespace is the one of the example.
const inventoryNamespace = "cluster-inventory"

// TestInventoryExampleGrantsWhatIsNeeded compares the example with the preflight, as for deploy/broker.
func TestInventoryExampleGrantsWhatIsNeeded(t *testing.T) {
	manifest, err := os.ReadFile("../../" + inventoryExample)
	if err != nil {
		t.Fatal(err)
	}
	var granted map[string][]string
	for document := range strings.SplitSeq(string(manifest), "\n---\n") {
		var role rbacv1.Role
		if err := yaml.Unmarshal([]byte(document), &role); err != nil {
			t.Fatal(err)
		}
		if role.Kind == "Role" && role.Namespace == inventoryNamespace {
			granted = grantedBy(t, role.Rules)
		}
	}
	needed := map[string][]string{}
	for _, n := range needs(&options{orchestrator: true, inventoryNamespace: inventoryNamespace}, v09.Line{}) {
		if n.namespace == inventoryNamespace {
			n.namespace = ""
			needed[n.String()] = slices.Sorted(slices.Values(n.verbs))
		}
	}
	if diff := cmp.Diff(needed, granted); diff != "" || len(needed) != 3 {
		t.Errorf("%s: -needed +granted\n%s", inventoryExample, diff)
	}
}

// TestInventory has the daemon tell a real API server which providers there are and which were chosen, in the kinds of SIG Multicluster:
// with the rights of the manifests and of the example and no others, while others add to the objects, change them and delete them.
func TestInventory(t *testing.T) {
	s := startServer(t, "cmd/broker/testdata/inventory") // As SIG Multicluster defines them.
	s.inventory = inventoryNamespace
	f := federation{providers: 2, consumers: 1, chosen: 1}
	f.populate(s)
	s.each(1, func(int) error {
		return s.client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: inventoryNamespace}})
	})
	s.asDeployed()
	stop := s.startDaemon()
	defer stop()

	// What is chosen is in one object, and its provider in another.
	id := string(f.provider(0).ID)
	profile := func(id string) *unstructured.Unstructured { return s.shared("ClusterProfile", id) }
	s.eventually("a profile of each provider", func() bool { return profile(id) != nil && profile(string(f.provider(1).ID)) != nil })
	decision := v1alpha1.DecisionName(f.policy(0).Name, string(f.consumer(0).ID))
	first := inventory.Key(decision) + "-0"
	chosen := func() (ids []string) {
		if o := s.shared("PlacementDecision", first); o != nil {
			decisions, _, _ := unstructured.NestedSlice(o.Object, "decisions")
			for _, d := range decisions {
				name, _, _ := unstructured.NestedString(d.(map[string]any), "clusterProfileRef", "name")
				ids = append(ids, name)
			}
		}
		return ids
	}
	s.eventually("a decision", func() bool { return len(chosen()) == 1 && profile(chosen()[0]) != nil })
	s.eventually("what a provider offers", func() bool {
		return strings.Contains(fmt.Sprint(profile(id).Object["status"]), "brokering.liqo.io/offered.cpu")
	})

	// What others change is what it was, and what others add stays.
	s.patch(profile(id), `{"metadata":{"labels":{"x-k8s.io/cluster-manager":"another","theirs":"stays"}},"spec":{"displayName":"wrong"}}`)
	s.eventually("a profile that was changed", func() bool {
		labels, shown := profile(id).GetLabels(), profile(id).Object["spec"].(map[string]any)["displayName"]
		return labels["x-k8s.io/cluster-manager"] == inventory.Manager && labels["theirs"] == "stays" && shown == f.provider(0).Name
	})
	if err := s.client.Delete(t.Context(), s.shared("PlacementDecision", first)); err != nil {
		t.Fatal(err)
	}
	s.eventually("a decision that was deleted", func() bool { return len(chosen()) == 1 })

	// What is written too much goes.
	extra := s.shared("PlacementDecision", first)
	extra = &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": extra.GetAPIVersion(), "kind": extra.GetKind(), "decisions": []any{},
		"metadata": map[string]any{"namespace": inventoryNamespace, "name": inventory.Key(decision) + "-1", "ownerReferences": owners(extra)},
	}}
	labels := s.shared("PlacementDecision", first).GetLabels()
	labels["multicluster.x-k8s.io/decision-index"] = "1"
	extra.SetLabels(labels)
	if err := s.client.Create(t.Context(), extra); err != nil {
		t.Fatal(err)
	}
	s.eventually("a part too many", func() bool { return s.shared("PlacementDecision", extra.GetName()) == nil })
}

// owners returns the owners of an object, as they are in one that has no type.
func owners(o *unstructured.Unstructured) []any {
	found, _, _ := unstructured.NestedSlice(o.Object, "metadata", "ownerReferences")
	return found
}

// shared returns what was written for others, or nil.
func (s *server) shared(kind, name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(inventory.GroupVersion.WithKind(kind))
	err := s.client.Get(s.tb.Context(), types.NamespacedName{Namespace: inventoryNamespace, Name: name}, o)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		s.tb.Fatal(err)
	}
	return o
}

// asDeployed has the daemon run with the rights that the manifests give it, and the example if it writes for others, and no others.
func (s *server) asDeployed() {
	s.tb.Helper()
	files := []string{"deploy/broker/rbac.yaml"}
	if s.inventory != "" {
		files = append(files, inventoryExample)
	}
	s.as = s.allowed("liqo-broker", files...)
}

// allowed gives a program, which has the name of its namespace, the rights of some manifests, and returns who it is.
func (s *server) allowed(program string, files ...string) rest.ImpersonationConfig {
	s.tb.Helper()
	s.each(1, func(int) error {
		return client.IgnoreAlreadyExists(s.client.Create(s.tb.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: program}}))
	})
	for _, file := range files {
		manifest, err := os.ReadFile("../../" + file)
		if err != nil {
			s.tb.Fatal(err)
		}
		for document := range strings.SplitSeq(string(manifest), "\n---\n") {
			var o unstructured.Unstructured
			if err := yaml.Unmarshal([]byte(document), &o.Object); err != nil {
				s.tb.Fatal(err)
			}
			if o.GetKind() == "Namespace" {
				continue
			}
			if err := s.client.Create(s.tb.Context(), &o); client.IgnoreAlreadyExists(err) != nil {
				s.tb.Fatalf("%s: %s %s: %v", file, o.GetKind(), o.GetName(), err)
			}
		}
	}
	return rest.ImpersonationConfig{
		UserName: "system:serviceaccount:" + program + ":" + program,
		Groups:   []string{"system:serviceaccounts", "system:serviceaccounts:" + program, "system:authenticated"},
	}
}

// TestInventoryIsMissing holds that the daemon says what is missing for what it shall write.
func TestInventoryIsMissing(t *testing.T) {
	n := need{group: inventory.GroupVersion.Group, version: inventory.GroupVersion.Version, resource: "clusterprofiles"}
	if !strings.Contains(n.cure(), "--cluster-inventory-namespace") || !strings.Contains(n.grant(), inventoryExample) {
		t.Errorf("%s: %s; %s", n, n.cure(), n.grant())
	}
}
