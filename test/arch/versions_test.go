// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"
	"k8s.io/apimachinery/pkg/util/version"
)

// TestVersionsOfKubernetes checks that the documents name the versions of Kubernetes on which tests run: from the oldest that the lab can
// build to the newest.
func TestVersionsOfKubernetes(t *testing.T) {
	folders, err := filepath.Glob(filepath.Join(root, "test/lab/kubernetes/v1.*"))
	if err != nil {
		t.Fatal(err)
	}
	var versions []*version.Version
	for _, folder := range folders {
		versions = append(versions, version.MustParseGeneric(strings.TrimPrefix(filepath.Base(folder), "v")))
	}
	if len(versions) < 2 {
		t.Fatalf("the lab builds %v", versions)
	}
	older := func(a, b *version.Version) int {
		if a.LessThan(b) {
			return -1
		}
		return 1
	}
	want := fmt.Sprintf("%s to %s", slices.MinFunc(versions, older), slices.MaxFunc(versions, older))
	for _, page := range []string{"README.md", "docs/compatibility.md", "docs/trade/buyer.md", "docs/trade/provider.md"} {
		text, err := os.ReadFile(filepath.Join(root, page))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), want) {
			t.Errorf("%s does not say that tests run on Kubernetes %s", page, want)
		}
	}
}

// TestModulesAgree checks that what several modules of the tree need has one version in all of them. Else a build has every library that
// stands on it twice, compiled and linted, and a hole that is closed in one module is open in another. The modules of the lab and of
// Kubernetes' conformance tests build programs of others, each as it was released.
func TestModulesAgree(t *testing.T) {
	// What a module is there to compare with is of another version by intent.
	compared := map[string]string{"test/liqo1": "github.com/liqotech/liqo"}
	versions := map[string]map[string][]string{}
	for _, folder := range []string{".", "build/release", "build/tools", "cmd/virtual-kubelet", "test/chart", "test/liqo1"} {
		text, err := os.ReadFile(filepath.Join(root, folder, "go.mod"))
		if err != nil {
			t.Fatal(err)
		}
		file, err := modfile.Parse(folder+"/go.mod", text, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, needed := range file.Require {
			if name := needed.Mod.Path; name != compared[folder] {
				if versions[name] == nil {
					versions[name] = map[string][]string{}
				}
				versions[name][needed.Mod.Version] = append(versions[name][needed.Mod.Version], folder)
			}
		}
	}
	several := 0
	for _, name := range slices.Sorted(maps.Keys(versions)) {
		if len(versions[name]) > 1 {
			t.Errorf("%s has several versions: %v; go get the newest in each of these folders", name, versions[name])
		}
		for _, folders := range versions[name] {
			if len(folders) > 1 {
				several++
			}
		}
	}
	if several == 0 {
		t.Error("no two modules need the same: were they read?")
	}
}
