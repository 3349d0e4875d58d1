// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestPatchesApply fails when a patch of this repository does not fit the module that go.mod requires.
func TestPatchesApply(t *testing.T) {
	root := t.TempDir()
	for _, name := range []string{"go.mod", "go.sum"} {
		copyFile(t, filepath.Join("..", "..", name), filepath.Join(root, name))
	}
	paths, err := filepath.Glob("../../patches/*.patch")
	if err != nil {
		t.Fatal(err)
	}
	if len(paths) == 0 {
		t.Fatal("there are no patches")
	}
	for _, path := range paths {
		copyFile(t, path, filepath.Join(root, "patches", filepath.Base(path)))
	}

	if err := Build(t.Context(), root, "patches", "out"); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(root, "out", "github.com", "liqotech", "liqo", "go.mod")); err != nil {
		t.Errorf("the patched copy of Liqo is not where cmd/virtual-kubelet/go.mod looks for it: %v", err)
	}
}

func TestBuildRefuses(t *testing.T) {
	cases := map[string]struct {
		patch  string
		want   string
		reason string
	}{
		"NoModule": {
			patch:  "--- a/x\n+++ b/x\n",
			want:   "has no line of the form `Module: PATH VERSION`",
			reason: "A patch that does not say what it is for cannot be applied.",
		},
		"OtherVersion": {
			patch:  "Module: github.com/liqotech/liqo v0.9.3\n",
			want:   "is for github.com/liqotech/liqo v0.9.3, and go.mod has v0.9.4",
			reason: "A patch of another version may apply and yet do the wrong thing.",
		},
		"DoesNotApply": {
			patch:  "Module: github.com/liqotech/liqo v0.9.4\n\n--- a/README.md\n+++ b/README.md\n@@ -1,1 +1,2 @@\n no such line\n+more\n",
			want:   "patch does not apply",
			reason: "A patch that does not fit stops the build.",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			for _, name := range []string{"go.mod", "go.sum"} {
				copyFile(t, filepath.Join("..", "..", name), filepath.Join(root, name))
			}
			writeFile(t, filepath.Join(root, "patches", "some.patch"), []byte(tc.patch))

			err := Build(t.Context(), root, "patches", "out")
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s\nBuild(...): got error %v, want %q in it", tc.reason, err, tc.want)
			}
			if _, err := os.Stat(filepath.Join(root, "out")); err == nil {
				t.Errorf("%s\nBuild(...) left a copy that can be built with", tc.reason)
			}
		})
	}
}

func TestReadPatches(t *testing.T) {
	folder := t.TempDir()
	writeFile(t, filepath.Join(folder, "b.patch"), []byte("Module: example.org/b v1.2.3\nWhat: something.\n"))
	writeFile(t, filepath.Join(folder, "a.patch"), []byte("Module: example.org/a v0.1.0\n"))
	writeFile(t, filepath.Join(folder, "README.md"), []byte("Not a patch."))

	got, err := ReadPatches(folder)
	if err != nil {
		t.Fatal(err)
	}
	want := []Patch{
		{Path: filepath.Join(folder, "a.patch"), Module: "example.org/a", Version: "v0.1.0"},
		{Path: filepath.Join(folder, "b.patch"), Module: "example.org/b", Version: "v1.2.3"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("ReadPatches(...): -want, +got:\n%s", diff)
	}
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	content, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, to, content)
}

func writeFile(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, content, 0o644); err != nil {
		t.Fatal(err)
	}
}
