// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// maxLine is how many characters a line of a Go file has at most; a tab is one.
const maxLine = 140

// wide are the folders whose lines are not that short yet. Each goes from here when it is mended.
var wide = []string{
	"build", "cmd", "deploy", "test", "pkg/api", "pkg/conditions", "pkg/controller", "pkg/core",
	"pkg/httpapi", "pkg/install", "pkg/ipamguard", "pkg/lenient", "pkg/liqo", "pkg/logging", "pkg/netflag", "pkg/overview",
	"pkg/peernet", "pkg/program", "pkg/remoteipam", "pkg/resourceplugin",
	"pkg/serving", "pkg/sheet", "pkg/snapshot", "pkg/trade", "pkg/webhook",
}

// TestLines checks that no line of a Go file is longer than people like to read. It passes over what cannot be broken: tags of fields, texts in
// backquotes, and what tools read.
func TestLines(t *testing.T) {
	long := map[string]int{}
	for file, source := range goFiles(t) {
		if source.generated {
			continue
		}
		whole := unbroken(t, file, source.text)
		for i, line := range strings.Split(source.text, "\n") {
			if utf8.RuneCountInString(directive.ReplaceAllString(line, "")) <= maxLine || whole[i+1] {
				continue
			}
			at := slices.IndexFunc(wide, func(folder string) bool { return within(folder, file) })
			if at >= 0 {
				long[wide[at]]++
				continue
			}
			t.Errorf("%s:%d has more than %d characters", file, i+1, maxLine)
		}
	}
	for _, folder := range wide {
		if long[folder] == 0 {
			t.Errorf("%s has no long lines any more: take it out of the list", folder)
		}
	}
	if len(long) > 0 {
		t.Logf("long lines are left in %v: %v", slices.Sorted(maps.Keys(long)), long)
	}
}

// directive is what tools read, which have it in one line: a comment as a whole, or at the end of a line; and what a comment shows as it is.
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
