// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/capacitorset/liqo-broker/test/docs"
)

const root = "../.."

// matches returns what a pattern finds in the files of a glob, its first group each.
func matches(t *testing.T, pattern, glob string) map[string]bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, glob))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: %d files, %v", glob, len(files), err)
	}
	found := map[string]bool{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range regexp.MustCompile(pattern).FindAllSubmatch(text, -1) {
			found[string(match[1])] = true
		}
	}
	return found
}

// TestPagesSayWhoRunsTheirCommands holds that each command in a page is run by a test, or that the page says why not.
func TestPagesSayWhoRunsTheirCommands(t *testing.T) {
	journeys := matches(t, `(?m)^func (Test\w+)\(`, "test/e2e/*_test.go")
	targets := matches(t, `(?m)^([a-z0-9/-]+):`, "Makefile")
	clusters := map[string]bool{"broker": true, "consumer": true, "provider": true}
	makes := regexp.MustCompile(`^make((?: [a-z0-9/-]+)+)`)
	total := 0
	pages, err := docs.Pages(root)
	if err != nil {
		t.Fatal(err)
	}
	for page, text := range pages {
		blocks, err := docs.Commands(page, text)
		if err != nil {
			t.Error(err)
		}
		total += len(blocks)
		for _, b := range blocks {
			// The targets of make are what CI and people run all day: here it is enough that they exist.
			onlyMake := true
			for line := range strings.Lines(b.Text) {
				found := makes.FindStringSubmatch(line)
				if onlyMake = onlyMake && (found != nil || strings.TrimSpace(line) == ""); found == nil {
					continue
				}
				for target := range strings.FieldsSeq(found[1]) {
					if !targets[target] {
						t.Errorf("%s: make has no target %s", b, target)
					}
				}
			}
			switch {
			case onlyMake || b.Reason != "":
			case b.On == "":
				t.Errorf("%s: no test runs this, and no comment says why not:\n%s", b, b.Text)
			case !clusters[b.On]:
				t.Errorf("%s: there is no cluster %q", b, b.On)
			case b.In != "" && !journeys[b.In]:
				t.Errorf("%s: there is no test %s", b, b.In)
			}
		}
	}
	if total < 50 {
		t.Errorf("all pages have %d blocks of commands", total)
	}
}
