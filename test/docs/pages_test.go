// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
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

// who runs blocks: the functions of a folder, and the clusters that they know.
type who struct {
	clusters []string
	// in has the text of the file that each function is in.
	in map[string]string
}

// runs returns why a block is not run by somebody of a folder, as its comment says; nil if it is.
func (w who) runs(b docs.Block) error {
	text := w.in[b.In]
	switch {
	case b.In != "" && text == "":
		return fmt.Errorf("there is no function %s", b.In)
	case b.In != "" && !strings.Contains(text, `"`+b.Page+`"`):
		return fmt.Errorf("%s does not read this page", b.In)
	}
	for _, on := range b.On {
		if !slices.Contains(w.clusters, on) {
			return fmt.Errorf("there is no cluster %q", on)
		}
	}
	return nil
}

// functions returns the text of the file that each exported function of a folder is in, and each test.
func functions(t *testing.T, glob string) map[string]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, glob))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: %d files, %v", glob, len(files), err)
	}
	texts := map[string]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range regexp.MustCompile(`(?m)^func (?:\(\w+ \*?\w+\) )?([A-Z]\w*)\(`).FindAllSubmatch(text, -1) {
			texts[string(found[1])] = string(text)
		}
	}
	return texts
}

// TestPagesSayWhoRunsTheirCommands holds that each command in a page is run by a test or by what sets clusters up, or that the page says
// why not.
func TestPagesSayWhoRunsTheirCommands(t *testing.T) {
	peered := who{[]string{"broker", "consumer", "provider"}, functions(t, "test/e2e/*_test.go")}
	strangers := who{[]string{"broker", "consumer", "provider-a", "provider-b", "registry"}, functions(t, "test/trade/*_test.go")}
	maps.Copy(strangers.in, functions(t, "test/federation/*.go"))
	newer := who{[]string{"broker", "consumer"}, functions(t, "test/stock/*_test.go")}
	early := who{[]string{"provider-a"}, functions(t, "test/early/*_test.go")}
	targets := matches(t, `(?m)^([a-z0-9/-]+):`, "Makefile")
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
			if onlyMake || b.Reason != "" {
				continue
			}
			if len(b.On) == 0 {
				t.Errorf("%s: no test runs this, and no comment says why not:\n%s", b, b.Text)
				continue
			}
			runner := peered
			for _, other := range []who{strangers, newer, early} {
				if _, known := other.in[b.In]; known {
					runner = other
				}
			}
			if err := runner.runs(b); err != nil {
				t.Errorf("%s: %v", b, err)
			}
		}
	}
	if total < 50 {
		t.Errorf("all pages have %d blocks of commands", total)
	}
}
