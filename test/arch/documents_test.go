// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestDocumentsNameWhatIsThere checks the paths and the tests that the documents of developers name.
func TestDocumentsNameWhatIsThere(t *testing.T) {
	tests := map[string]bool{}
	for file, source := range goFiles(t) {
		if !strings.HasSuffix(file, "_test.go") {
			continue
		}
		for _, found := range regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`).FindAllStringSubmatch(source.text, -1) {
			tests[found[1]] = true
		}
	}
	paths := regexp.MustCompile("`((?:pkg|cmd|test|deploy|patches|build|docs)/[A-Za-z0-9_./-]*)")
	names := regexp.MustCompile("`((?:Test|Fuzz)[A-Z]\\w*)`")
	for _, page := range []string{"ARCHITECTURE.md", "CONTRIBUTING.md", "README.md"} {
		text, err := os.ReadFile(filepath.Join(root, page))
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range paths.FindAllStringSubmatch(string(text), -1) {
			if _, err := os.Stat(filepath.Join(root, found[1])); err != nil && !strings.Contains(found[1], "NAME") {
				t.Errorf("%s names %s: %v", page, found[1], err)
			}
		}
		for _, found := range names.FindAllStringSubmatch(string(text), -1) {
			if !tests[found[1]] {
				t.Errorf("%s names %s, which no test is called", page, found[1])
			}
		}
	}
}
