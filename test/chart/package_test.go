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

// TestPackage reads the chart as a release packs it with Helm, and compares what it renders with the one in the repository.
func TestPackage(t *testing.T) {
	file, err := filepath.Abs(filepath.Join(t.TempDir(), "chart.tgz"))
	if err != nil {
		t.Fatal(err)
	}
	run := exec.CommandContext(t.Context(), "go", "run", "-C", filepath.Join(root, "build/release"), ".", "chart", "-root", "../..", "-epoch", "1", "-o", file)
	if output, err := run.CombinedOutput(); err != nil {
		t.Fatalf("pack the chart: %v\n%s", err, output)
	}
	packed, err := loader.LoadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := packed.Validate(); err != nil {
		t.Error(err)
	}
	if packed.Metadata.AppVersion != "v"+packed.Metadata.Version {
		t.Errorf("version %s runs images %s", packed.Metadata.Version, packed.Metadata.AppVersion)
	}
	want, _ := release{}.render(t, load(t, filepath.Join(root, "deploy/chart")))
	got, _ := release{}.render(t, packed)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-chart +package\n%s", diff)
	}
}
