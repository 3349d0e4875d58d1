// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/capacitorset/liqo-broker/test/docs"
)

// maxBare is how many functions of programs may have the same name of one word at most: who searches for one finds it among so many.
const maxBare = 9

// TestBareVerbs checks that a word which names many functions of packages is followed by what it is done to, as in forgetCluster.
func TestBareVerbs(t *testing.T) {
	named := map[string]int{}
	for file, source := range goFiles(t) {
		if source.generated || !ofPrograms(file) {
			continue
		}
		syntax, err := parser.ParseFile(token.NewFileSet(), file, source.text, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, declared := range syntax.Decls {
			f, is := declared.(*ast.FuncDecl)
			if is && !f.Name.IsExported() && strings.IndexFunc(f.Name.Name, unicode.IsUpper) < 0 {
				named[f.Name.Name]++
			}
		}
	}
	for name, count := range named {
		if count > maxBare {
			t.Errorf("%d functions are called %s: say of each what it is done to", count, name)
		}
	}
	if named["set"] == 0 {
		t.Error("no function called set is found")
	}
}

// TestModernWords refuses words that people do not use any more, in code and on pages, and on pages sentences that begin with "Who has",
// and what is "for who has" something: they need a subject, as "whoever has".
func TestModernWords(t *testing.T) {
	old := regexp.MustCompile(`\b(anew|of late|whereof|hitherto)\b`)
	headless := regexp.MustCompile(`(?m)(^|\. |\| |^[*-] )Who [a-z]+ [^?.|\n]*[.|\n]`)
	object := regexp.MustCompile(`\b(to|for|by|of) who (may|reads|copies|has|does)\b`)
	texts, err := docs.Pages(root)
	if err != nil {
		t.Fatal(err)
	}
	for file, source := range goFiles(t) {
		if file != "test/arch/words_test.go" {
			texts[file] = source.text
		}
	}
	for file, text := range texts {
		for _, found := range old.FindAllString(text, -1) {
			t.Errorf("%s has the old word %q", file, found)
		}
		if filepath.Ext(file) == ".md" && !strings.HasPrefix(file, "docs/decisions/") {
			for _, found := range append(headless.FindAllString(text, -1), object.FindAllString(text, -1)...) {
				t.Errorf("%s has a sentence without a subject: %q", file, found)
			}
		}
	}
}
