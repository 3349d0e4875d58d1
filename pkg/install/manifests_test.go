// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"io/fs"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/capacitorset/liqo-broker/deploy"
)

// TestKustomizations compares what is installed with what Kustomize makes of the same files.
func TestKustomizations(t *testing.T) {
	files := filesys.MakeFsInMemory()
	err := fs.WalkDir(deploy.Files, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := deploy.Files.ReadFile(path)
		if err != nil {
			return err
		}
		return files.WriteFile(path, content)
	})
	if err != nil {
		t.Fatal(err)
	}
	byName := func(objects []*unstructured.Unstructured) map[string]*unstructured.Unstructured {
		all := map[string]*unstructured.Unstructured{}
		for _, object := range objects {
			all[describe(object)] = object
		}
		return all
	}
	for _, folder := range []string{".", "admission"} {
		t.Run(folder, func(t *testing.T) {
			built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(files, folder)
			if err != nil {
				t.Fatal(err)
			}
			text, err := built.AsYaml()
			if err != nil {
				t.Fatal(err)
			}
			want, err := decode(text)
			if err != nil {
				t.Fatal(err)
			}
			got, err := build(folder)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(byName(want), byName(got)); diff != "" || len(got) != len(want) || len(got) == 0 {
				t.Errorf("%d objects, want %d (-Kustomize, +ours):\n%s", len(got), len(want), diff)
			}
		})
	}
}
