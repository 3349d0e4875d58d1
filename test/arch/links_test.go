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

// TestLinksOfPublicFiles checks the links within the repository of the files that strangers read first, and of the pages about releases.
func TestLinksOfPublicFiles(t *testing.T) {
	links := regexp.MustCompile(`\]\(([^)#:]+)(?:#[^)]*)?\)`)
	seen := 0
	for _, page := range []string{
		"README.md", "SECURITY.md", "CHANGELOG.md", "CODE_OF_CONDUCT.md", "CONTRIBUTING.md", "docs/release.md", "docs/compatibility.md", "docs/kind.md",
	} {
		text, err := os.ReadFile(filepath.Join(root, page))
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range links.FindAllStringSubmatch(string(text), -1) {
			seen++
			if _, err := os.Stat(filepath.Join(root, filepath.Dir(page), found[1])); err != nil {
				t.Errorf("%s leads to %s: %v", page, found[1], err)
			}
		}
	}
	if seen < 20 {
		t.Errorf("only %d links are found", seen)
	}
	notice, err := os.ReadFile(filepath.Join(root, "NOTICE"))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(notice), "Mozilla Public License") != strings.Contains(string(text(t, "build/release/go.mod")), "x509roots") {
		t.Error("NOTICE and the images do not agree about the certificates of Mozilla")
	}
}

func text(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}
