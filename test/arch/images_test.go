// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestImagesHaveOneVersion checks that whoever follows the documentation runs the images of one version, and of a certain one.
func TestImagesHaveOneVersion(t *testing.T) {
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	tag := regexp.MustCompile(`(?m)^TAG +\?= (v\S+)$`).FindSubmatch(makefile)
	if tag == nil {
		t.Fatal("the Makefile has no default for TAG that is a version")
	}
	image := regexp.MustCompile(`capacitorset/liqo-broker[a-z-]*(:[A-Za-z0-9._-]+)?`)
	newTag := regexp.MustCompile(`newTag: (\S+)`)
	seen := 0
	for _, place := range []string{"README.md", "deploy", "patches", "docs", "build/Dockerfile"} {
		err := filepath.WalkDir(filepath.Join(root, place), func(name string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			text, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			for _, found := range image.FindAllStringSubmatch(string(text), -1) {
				if found[1] != "" {
					seen++
				}
				if found[1] != "" && found[1] != ":"+string(tag[1]) {
					t.Errorf("%s names %s, want the tag %s of the Makefile", name, found[0], tag[1])
				}
			}
			for _, found := range newTag.FindAllStringSubmatch(string(text), -1) {
				if found[1] != string(tag[1]) {
					t.Errorf("%s names the tag %s, want %s of the Makefile", name, found[1], tag[1])
				}
			}
			if base := filepath.Base(name); strings.HasSuffix(base, ".yaml") && strings.Contains(string(text), ":latest") {
				t.Errorf("%s runs whatever is the latest", name)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if seen < 5 {
		t.Errorf("only %d images with a tag are found", seen)
	}
}

// TestVirtualKubeletsHaveALimit checks that a peer that answers lists with gigabytes ends the virtual kubelet for it, and not
// the node.
func TestVirtualKubeletsHaveALimit(t *testing.T) {
	limit := regexp.MustCompile(`"--kubelet-ram-limits=[1-9][0-9]*[MG]i"`)
	for _, name := range []string{"controller-manager-broker.json", "controller-manager-consumer.json"} {
		text, err := os.ReadFile(filepath.Join(root, "patches/liqo-install", name))
		if err != nil {
			t.Fatal(err)
		}
		if !limit.Match(text) {
			t.Errorf("%s gives virtual kubelets all memory", name)
		}
	}
}
