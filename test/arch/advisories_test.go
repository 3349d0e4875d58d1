// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/version"
)

// TestAdvisories checks that no program links a module in a version that is known to have a hole, by the list of build/advisories.txt, and
// that the list names nothing that no program links.
func TestAdvisories(t *testing.T) {
	linked := map[string]string{}
	folders, err := os.ReadDir(filepath.Join(root, "cmd"))
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range folders {
		const module = "{{with .Module}}{{.Path}} {{.Version}}{{end}}"
		for _, line := range listed(t, "cmd/"+folder.Name(), "-f", module) {
			if name, is, found := strings.Cut(line, " "); found && is != "" {
				if before := linked[name]; before == "" || older(t, is, before) {
					linked[name] = is
				}
			}
		}
	}
	text, err := os.ReadFile(filepath.Join(root, "build/advisories.txt"))
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		column := strings.Split(line, "|")
		if len(column) != 4 {
			t.Fatalf("build/advisories.txt has a row that is not MODULE | FIXED IN | ADVISORY | WHY: %s", line)
		}
		for i := range column {
			column[i] = strings.TrimSpace(column[i])
		}
		name, fixed, advisory, reason := column[0], column[1], column[2], column[3]
		rows++
		switch is := linked[name]; {
		case is == "":
			t.Errorf("no program links %s any more: %s can leave build/advisories.txt", name, advisory)
		case fixed == "-" && reason == "":
			t.Errorf("%s has %s, and build/advisories.txt does not say why no program is open by it", name, advisory)
		case fixed != "-" && older(t, is, fixed):
			t.Errorf("a program links %s %s: %s is mended in %s", name, is, advisory, fixed)
		}
	}
	if rows == 0 {
		t.Error("build/advisories.txt has no rows")
	}
}

// older reports whether a version of a module is before another one.
func older(t *testing.T, is, than string) bool {
	t.Helper()
	a, err := version.ParseSemantic(is)
	if err != nil {
		t.Fatal(err)
	}
	b, err := version.ParseSemantic(than)
	if err != nil {
		t.Fatal(err)
	}
	return a.LessThan(b)
}
