// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestKubernetesVersion(t *testing.T) {
	source, err := FindSource()
	if err != nil {
		t.Fatal(err)
	}
	for line, version := range kubernetesVersions {
		t.Run(line, func(t *testing.T) {
			if got, err := KubernetesVersion(line); err != nil || got != version {
				t.Errorf("KubernetesVersion = %s, %v; want %s", got, err, version)
			}
			// The version that the binaries tell must be the one that they are built from.
			module, err := os.ReadFile(filepath.Join(source, "test/lab/kubernetes", line, "go.mod"))
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(string(module), "k8s.io/kubernetes "+version+"\n") {
				t.Errorf("the module for %s does not require k8s.io/kubernetes %s", line, version)
			}
		})
	}
	if _, err := KubernetesVersion("v1.2"); err == nil || !strings.Contains(err.Error(), "v1.28, v1.34, v1.37") {
		t.Errorf("error %v, want one that tells which lines there are", err)
	}
}

func TestFindLiqo(t *testing.T) {
	source, err := FindSource()
	if err != nil {
		t.Fatal(err)
	}
	for line, l := range liqoLines() {
		t.Run(line, func(t *testing.T) {
			if got, err := findLiqo(line); err != nil || got.version != l.version || !strings.HasPrefix(got.version, "v"+line+".") {
				t.Errorf("the version is %s, %v; want %s", got.version, err, l.version)
			}
			// The tag of the images must be the version that they are built from.
			module, err := os.ReadFile(filepath.Join(source, l.module, "go.mod"))
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(string(module), liqoModule+" "+l.version+" ") {
				t.Errorf("the module for %s does not require %s %s", line, liqoModule, l.version)
			}
		})
	}
	if _, err := findLiqo("1.1"); err == nil || !strings.Contains(err.Error(), "0.9, 1.2") {
		t.Errorf("error %v, want one that tells which lines there are", err)
	}
}

func TestImagesAreComplete(t *testing.T) {
	have := map[string]bool{}
	for line, l := range liqoLines() {
		have = map[string]bool{}
		for _, i := range append(images(nil, "coredns", "programs"), l.images("liqo")(nil, "programs")...) {
			if have[i.Tag] {
				t.Errorf("image %s is made twice with Liqo %s", i.Tag, line)
			}
			have[i.Tag] = true
		}
	}
	manifests, err := filepath.Glob("../kubernetes/manifests/*.yaml")
	if err != nil || len(manifests) == 0 {
		t.Fatalf("manifests %v, %v", manifests, err)
	}
	for _, path := range manifests {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, field := range strings.FieldsFunc(string(data), func(r rune) bool { return strings.ContainsRune(" \n\",{}", r) }) {
			if strings.HasPrefix(field, "lab.local/") && !have[field] {
				t.Errorf("%s uses image %s, which nobody makes", path, field)
			}
		}
	}
}
