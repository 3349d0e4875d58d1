// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"sigs.k8s.io/yaml"
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
		shown(t, packed)
		want, _ := release{}.render(t, c)
		got, _ := release{}.render(t, packed)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s -chart +package\n%s", c.Name(), diff)
		}
	}
}

// shown checks what hubs show of a packed chart: it has the kinds and the images that the chart brings, and what has changed.
func shown(t *testing.T, c *chart.Chart) {
	t.Helper()
	list := func(annotation, field string) (values []string) {
		var all []map[string]any
		if err := yaml.Unmarshal([]byte(c.Metadata.Annotations["artifacthub.io/"+annotation]), &all); err != nil {
			t.Errorf("%s of %s: %v", annotation, c.Name(), err)
		}
		for _, one := range all {
			value, _ := one[field].(string)
			values = append(values, value)
		}
		slices.Sort(values)
		return values
	}
	var kinds, images []string
	for key, o := range everywhere(t, c, "") {
		if name, is := strings.CutPrefix(key, "CustomResourceDefinition/"); is {
			kinds = append(kinds, name)
		}
		for _, found := range regexp.MustCompile(`"image":"([^"]+)"`).FindAllStringSubmatch(text(t, o), -1) {
			images = append(images, found[1])
		}
	}
	slices.Sort(kinds)
	slices.Sort(images)
	if got := list("crds", "name"); !slices.Equal(got, kinds) {
		t.Errorf("%s shows the kinds %v, and brings %v", c.Name(), got, kinds)
	}
	if got, want := list("images", "image"), slices.Compact(images); !slices.Equal(got, want) {
		t.Errorf("%s shows the images %v, and runs %v", c.Name(), got, want)
	}
	if len(list("changes", "description")) == 0 || c.Metadata.Home == "" || len(c.Metadata.Maintainers) == 0 || c.Metadata.KubeVersion == "" {
		t.Errorf("%s lacks something of what hubs show: %v", c.Name(), c.Metadata)
	}
}
