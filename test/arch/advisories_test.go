// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

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
	if late := overdue(string(text), time.Now()); late != "" {
		t.Log(late) // A test that fails by itself on some day would fail for whoever builds an old release.
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

// advisoriesLast is how long nobody need have asked the world for new advisories.
const advisoriesLast = 90 * 24 * time.Hour

// overdue says that a list of advisories is old, by the date in it; nothing if it is not.
func overdue(list string, now time.Time) string {
	found := regexp.MustCompile(`(?m)^# As of (\d{4}-\d\d-\d\d)$`).FindStringSubmatch(list)
	if found == nil {
		return "build/advisories.txt does not say of when it is"
	}
	of, err := time.Parse(time.DateOnly, found[1])
	if err != nil || now.Sub(of) > advisoriesLast {
		return fmt.Sprintf("build/advisories.txt is of %s: run make advisories, and write down what is new and the date", found[1])
	}
	return ""
}

// TestOverdue holds that the list of advisories has a date, and that somebody is told when that is long ago.
func TestOverdue(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "build/advisories.txt"))
	if err != nil {
		t.Fatal(err)
	}
	of := time.Date(2026, time.November, 27, 0, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		list string
		now  time.Time
		says string
	}{
		"Ours":    {string(text), of, ""},
		"Fresh":   {"# a list\n# As of 2026-11-27\n", of.Add(advisoriesLast), ""},
		"Old":     {"# a list\n# As of 2026-11-27\n", of.Add(advisoriesLast + time.Hour), "is of 2026-11-27: run make advisories"},
		"NoDay":   {"# As of 2026-13-27\n", of, "is of 2026-13-27: run make advisories"},
		"Undated": {"# a list\n", of, "does not say of when it is"},
	} {
		if says := overdue(tc.list, tc.now); (says != "") != (tc.says != "") || !strings.Contains(says, tc.says) {
			t.Errorf("%s: %q, want %q", name, says, tc.says)
		}
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
