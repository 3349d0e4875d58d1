// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/capacitorset/liqo-broker/pkg/liqo/lines"
	"github.com/capacitorset/liqo-broker/test/federation"
)

// lacks returns what lines of Liqo lack, and why, by what people call the lines.
func lacks() map[string]map[federation.Trait]string {
	all := map[string]map[federation.Trait]string{}
	for _, line := range lines.All() {
		all[line.Name()] = (&federation.Cluster{Line: line}).Traits().Lacks
	}
	return all
}

// TestJourneysLeftOut compares the tables of journeys that are left out with a line of Liqo with what journeys need and the line lacks:
// both have the same journeys, for the same reasons. Those of the trade are one row, for as long as there is no trade.
func TestJourneysLeftOut(t *testing.T) {
	const page = "docs/compatibility.md"
	text, err := os.ReadFile(filepath.Join(root, page))
	if err != nil {
		t.Fatal(err)
	}
	journeys := functionsOfJourneys(t, "test/e2e")
	names, row := regexp.MustCompile("`(Test\\w+)`"), regexp.MustCompile(`(?m)^\| (.+?) \| (.+) \|$`)
	least := map[string]int{"0.9": 1, "1.x": 20}
	for of, lacked := range lacks() {
		_, table, found := strings.Cut(string(text), "\n| not with Liqo "+of+", because | journeys |\n")
		if !found {
			t.Errorf("%s has no table of journeys that are left out with Liqo %s", page, of)
		}
		table, _, _ = strings.Cut(table, "\n\n")
		said, left := map[string]bool{}, map[string]bool{}
		for _, row := range row.FindAllStringSubmatch(table, -1) {
			for _, name := range names.FindAllStringSubmatch(row[2], -1) {
				said[name[1]+": "+row[1]] = true
			}
		}
		for name, journey := range journeys {
			for _, trait := range journey.needs {
				if why := lacked[trait]; why != "" {
					left[name+": "+why] = true
				}
			}
		}
		for journey := range left {
			if !said[journey] {
				t.Errorf("%s does not say that a journey is left out with Liqo %s: %s", page, of, journey)
			}
		}
		for journey := range said {
			if !left[journey] {
				t.Errorf("%s has a journey that is not left out with Liqo %s, or for another reason: %s", page, of, journey)
			}
		}
		if len(left) < least[of] {
			t.Errorf("%d journeys are left out with Liqo %s", len(left), of)
		}
		if of == "1.x" && strings.Contains(table, "all of `test/trade`") != strings.Contains(string(text), "**Liqo 1.x: no trade") {
			t.Errorf("%s says of the trade with Liqo 1.x both that it is there and that it is not", page)
		}
	}
}

// TestJourneysAskForTraits holds that journeys ask for what a line of Liqo has, and not which one it is: what leaves one out otherwise is
// said to be Kubernetes'.
func TestJourneysAskForTraits(t *testing.T) {
	asks := regexp.MustCompile(`HasPlugin|DirectPaths\(|LIQO_BROKER_LIQO|\b(?:Line\.Name|LiqoVersion)\(\) *[=!]=|"v?(?:0\.9|1\.)`)
	skips := regexp.MustCompile(`\bt\.Skip.*`)
	looked := 0
	for file, source := range goFiles(t) {
		if path.Dir(file) != "test/e2e" {
			continue
		}
		looked++
		if found := asks.FindString(source.text); found != "" {
			t.Errorf("%s asks which line of Liqo there is (%s): make what it is about a Trait of test/federation", file, found)
		}
		for _, skip := range skips.FindAllString(source.text, -1) {
			if !strings.HasPrefix(skip, `t.Skip("this Kubernetes has no `) && (file != "test/e2e/main_test.go" || skip != "t.Skip(why)") {
				t.Errorf("%s leaves a journey out by %s: say what it needs", file, skip)
			}
		}
	}
	if looked < 40 {
		t.Errorf("%d files are looked at", looked)
	}
}

// TestTraits holds that each trait is called as it is in Go, that one line of Liqo has it and one lacks it, and that somebody asks for it.
func TestTraits(t *testing.T) {
	const declared = "test/federation/line.go"
	var asked strings.Builder
	files := goFiles(t)
	syntax, err := parser.ParseFile(token.NewFileSet(), declared, files[declared].text, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	for file, source := range files {
		if in := path.Dir(file); in == "test/e2e" || in == "test/federation" && !strings.HasPrefix(path.Base(file), "line") {
			asked.WriteString(source.text)
		}
	}
	traits := map[federation.Trait]bool{}
	ast.Inspect(syntax, func(n ast.Node) bool {
		spec, is := n.(*ast.ValueSpec)
		if !is {
			return true
		}
		if of, is := spec.Type.(*ast.Ident); !is || of.Name != "Trait" {
			return true
		}
		for i, name := range spec.Names {
			traits[federation.Trait(name.Name)] = true
			if value, is := spec.Values[i].(*ast.BasicLit); !is || value.Value != strconv.Quote(name.Name) {
				t.Errorf("%s: trait %s is called otherwise", declared, name.Name)
			}
			if !regexp.MustCompile(`(?:federation\.|Has\()` + name.Name + `\b`).MatchString(asked.String()) {
				t.Errorf("%s: nobody asks for trait %s", declared, name.Name)
			}
		}
		return true
	})
	lacking := map[federation.Trait][]string{}
	for of, lacked := range lacks() {
		for trait, why := range lacked {
			lacking[trait] = append(lacking[trait], of)
			if !traits[trait] || why == "" {
				t.Errorf("Liqo %s lacks %q, which is no trait, or nobody knows why: %q", of, trait, why)
			}
		}
	}
	for trait := range traits {
		if len(lacking[trait]) != 1 {
			t.Errorf("trait %s is lacking with %v of two lines of Liqo, want one", trait, lacking[trait])
		}
	}
}
