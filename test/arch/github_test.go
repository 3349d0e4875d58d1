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

	"sigs.k8s.io/yaml"
)

// TestGitHub checks that what the files for GitHub name is there: targets of make, and files. Workflows have few rights, and run no action
// of others that is not named by the hash of its commit.
func TestGitHub(t *testing.T) {
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	target, file := regexp.MustCompile("(?:`|run: |^ +)make ([a-z -]+)"), regexp.MustCompile(`[A-Z]+\.md|\.ci/[a-z]+`)
	action, hash := regexp.MustCompile(`uses: *(\S+)`), regexp.MustCompile(`@[0-9a-f]{40}$`)
	seen := 0
	err = filepath.WalkDir(filepath.Join(root, ".github"), func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		for _, found := range target.FindAllStringSubmatch(string(text), -1) {
			for word := range strings.FieldsSeq(found[1]) {
				seen++
				if !regexp.MustCompile(`(?m)^` + word + `:`).Match(makefile) {
					t.Errorf("%s runs make %s, which the Makefile does not have", name, word)
				}
			}
		}
		for _, found := range file.FindAllString(string(text), -1) {
			if _, err := os.Stat(filepath.Join(root, found)); err != nil {
				t.Errorf("%s names %s: %v", name, found, err)
			}
		}
		for _, found := range action.FindAllStringSubmatch(string(text), -1) {
			if !hash.MatchString(found[1]) {
				t.Errorf("%s uses %s, which can change: name it by the hash of its commit", name, found[1])
			}
		}
		if filepath.Ext(name) != ".yml" {
			return nil
		}
		var of struct {
			Permissions map[string]string `json:"permissions"`
		}
		if err := yaml.Unmarshal(text, &of); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if filepath.Base(filepath.Dir(name)) == "workflows" && (len(of.Permissions) != 1 || of.Permissions["contents"] != "read") {
			t.Errorf("%s may do more than read: %v", name, of.Permissions)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if seen < 4 {
		t.Errorf("the files for GitHub run make %d times", seen)
	}
}
