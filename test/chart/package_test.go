// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/chart/loader"
)

// TestPackage reads the charts as a release packs them with Helm, and compares what they render with those in the repository.
func TestPackage(t *testing.T) {
	folder, err := filepath.Abs(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	run := exec.CommandContext(t.Context(), "go", "run", "-C", filepath.Join(root, "build/release"), ".", "charts", "-root", "../..", "-epoch",
		"1", "-o", folder)
	if output, err := run.CombinedOutput(); err != nil {
		t.Fatalf("pack the charts: %v\n%s", err, output)
	}
	for _, dir := range charts() {
		c := load(t, dir)
		packed, err := loader.LoadFile(filepath.Join(folder, c.Name()+"-"+c.Metadata.Version+".tgz"))
		if err != nil {
			t.Fatal(err)
		}
		if err := packed.Validate(); err != nil {
			t.Error(err)
		}
		if packed.Metadata.AppVersion != "v"+packed.Metadata.Version {
			t.Errorf("version %s of %s runs images %s", packed.Metadata.Version, c.Name(), packed.Metadata.AppVersion)
		}
		want, _ := release{}.render(t, c)
		got, _ := release{}.render(t, packed)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s -chart +package\n%s", c.Name(), diff)
		}
	}
}
