// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

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
