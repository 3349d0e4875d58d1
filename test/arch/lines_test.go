// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"sigs.k8s.io/yaml"

	"github.com/capacitorset/liqo-broker/test/docs"
)

// maxLine is how many characters a line of a Go file has at most; a tab is one.
const maxLine = 140

// TestLines checks that no line of a Go file is longer than people like to read. It passes over what cannot be broken: tags of fields,
// texts in backquotes, and what tools read.
func TestLines(t *testing.T) {
	for file, source := range goFiles(t) {
		if source.generated {
			continue
		}
		whole := unbroken(t, file, source.text)
		for i, line := range strings.Split(source.text, "\n") {
			if utf8.RuneCountInString(directive.ReplaceAllString(line, "")) <= maxLine || whole[i+1] {
				continue
			}
			t.Errorf("%s:%d has more than %d characters", file, i+1, maxLine)
		}
	}
}

// directive is what tools read, which have it in one line: a comment as a whole, or at the end of a line; and what a comment shows as it
// is.
var directive = regexp.MustCompile(`^\s*//(?:\t| ?(?:\+|go:|nolint:)).*|\s//nolint:.*`)

// maxRaw is how long a text in backquotes may be beside others on a line.
const maxRaw = 100

// unbroken returns the lines with tags of fields, and those with texts in backquotes that are written over several lines or fill one.
func unbroken(t *testing.T, name, text string) map[int]bool {
	t.Helper()
	set := token.NewFileSet()
	syntax, err := parser.ParseFile(set, name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	lines := map[int]bool{}
	ast.Inspect(syntax, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Field:
			if n.Tag != nil {
				lines[set.Position(n.Tag.Pos()).Line] = true
			}
		case *ast.BasicLit:
			if strings.HasPrefix(n.Value, "`") && utf8.RuneCountInString(n.Value) > maxRaw {
				lines[set.Position(n.Pos()).Line] = true
			}
			first, last := set.Position(n.Pos()).Line, set.Position(n.End()).Line
			for line := first; first < last && line <= last; line++ {
				lines[line] = true
			}
		}
		return true
	})
	return lines
}

// maxProse is how many characters a line of a page in docs has at most: more do not fit beside each other where changes are looked at.
const maxProse = 176

// TestLinesOfPages checks that no line of a page in docs is longer than that. It passes over what cannot be broken: tables, what is
// indented as code is, names of tests of Kubernetes, and pages that a program writes.
func TestLinesOfPages(t *testing.T) {
	pages, err := docs.Pages(root)
	if err != nil {
		t.Fatal(err)
	}
	whole := regexp.MustCompile(`^(?: {4}|\s*\||\* \[sig-)`)
	looked := 0
	for page, text := range pages {
		if !strings.HasPrefix(page, "docs/") || strings.Contains(text, "<!-- Written by make text. -->") {
			continue
		}
		fenced := false
		for i, line := range strings.Split(text, "\n") {
			if strings.HasPrefix(strings.TrimSpace(line), "```") {
				fenced = !fenced
			}
			if fenced || whole.MatchString(line) {
				continue
			}
			if looked++; utf8.RuneCountInString(line) > maxProse {
				t.Errorf("%s:%d has more than %d characters", page, i+1, maxProse)
			}
		}
	}
	if looked < 1000 {
		t.Errorf("%d lines are looked at", looked)
	}
}

// TestVetIsALinter holds that the linters have vet among them, and see what is compiled for journeys: make verify does not run it besides.
func TestVetIsALinter(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, ".golangci.yml"))
	if err != nil {
		t.Fatal(err)
	}
	var config struct {
		Run struct {
			Tags []string `json:"build-tags"`
		} `json:"run"`
		Linters struct {
			Default  string         `json:"default"`
			Disable  []string       `json:"disable"`
			Settings map[string]any `json:"settings"`
		} `json:"linters"`
	}
	if err := yaml.Unmarshal(text, &config); err != nil {
		t.Fatal(err)
	}
	if _, changed := config.Linters.Settings["govet"]; changed || config.Linters.Default != "all" ||
		slices.Contains(config.Linters.Disable, "govet") || !slices.Contains(config.Run.Tags, "e2e") {
		t.Errorf("vet is not run on all: %+v", config)
	}
}
