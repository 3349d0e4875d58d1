// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	v1 "github.com/capacitorset/liqo-broker/pkg/liqo/v1"
)

// served is an API server's resources, by group and version. Of a version without any it cannot be asked.
type served map[string][]metav1.APIResource

var errDown = errors.New("it is down")

func (s served) ServerResourcesForGroupVersion(version string) (*metav1.APIResourceList, error) {
	resources, known := s[version]
	switch {
	case !known:
		return nil, apierrors.NewNotFound(schema.GroupResource{}, version)
	case resources == nil:
		return nil, errDown
	default:
		return &metav1.APIResourceList{APIResources: resources}, nil
	}
}

func TestFindLine(t *testing.T) {
	records := []metav1.APIResource{{Name: "foreignclusters", Kind: "ForeignCluster"}}
	others := []metav1.APIResource{{Name: "others", Kind: "Other"}}
	both := served{"discovery.liqo.io/v1alpha1": records, "core.liqo.io/v1beta1": records}
	scheme := runtime.NewScheme()
	if err := addLines(scheme); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		reason string
		served served
		want   string
		err    error
	}{
		"Zero":    {"Liqo 0.9 has its own group.", served{"discovery.liqo.io/v1alpha1": records}, "0.9", nil},
		"One":     {"Liqo 1.x has its own group.", served{"core.liqo.io/v1beta1": records}, "1.x", nil},
		"None":    {"Nobody has installed Liqo.", served{}, "", errNoLiqo},
		"Other":   {"Somebody else has the group.", served{"core.liqo.io/v1beta1": others}, "", errNoLiqo},
		"Both":    {"One of them was here before.", both, "", errTwoLiqos},
		"Unknown": {"Who does not answer is not taken for who has none.", served{"core.liqo.io/v1beta1": nil}, "", errDown},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := findLine(tc.served, scheme)
			if !errors.Is(err, tc.err) || tc.err == nil && got.Name() != tc.want {
				t.Errorf("%s\nfindLine() = %v, %v, want %s, %v", tc.reason, got, err, tc.want, tc.err)
			}
		})
	}
}

// TestCatalogNeeds compares the rights in deploy/catalog with what the daemon checks at its start.
func TestCatalogNeeds(t *testing.T) {
	patch, err := os.ReadFile("../../deploy/catalog/role.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var operations []struct {
		Op    string              `json:"op"`
		Path  string              `json:"path"`
		Value []rbacv1.PolicyRule `json:"value"`
	}
	if err := yaml.UnmarshalStrict(patch, &operations); err != nil || len(operations) != 1 || operations[0].Path != "/rules" {
		t.Fatalf("deploy/catalog/role.yaml does not replace the rules: %v", err)
	}
	needed := map[string][]string{}
	for _, n := range needs(&options{catalog: true}, v1.Line{}) {
		if !n.ofCatalog {
			t.Errorf("%s is said to be granted by deploy/", n)
		}
		needed[n.String()] = slices.Sorted(slices.Values(n.verbs))
	}
	if diff := cmp.Diff(needed, grantedBy(t, operations[0].Value)); diff != "" {
		t.Errorf("deploy/catalog/role.yaml: -needed +granted\n%s", diff)
	}
}

// TestModesOfLines checks which modes the daemon has with which line of Liqo.
func TestModesOfLines(t *testing.T) {
	for _, of := range lines() {
		if hasPlugin(of) != (of.Name() == "0.9") {
			t.Errorf("Liqo %s asks a plugin what to offer: %t", of.Name(), hasPlugin(of))
		}
		for name, o := range map[string]options{
			"catalog": {catalog: true}, "orchestrator": {catalog: true, orchestrator: true}, "aggregator": {aggregator: true},
		} {
			may := of.Name() == "0.9" || name == "catalog"
			if err := o.mayRun(of); may != (err == nil) {
				t.Errorf("with Liqo %s, %s: %v", of.Name(), name, err)
			}
		}
	}
}
