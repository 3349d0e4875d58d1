// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/capacitorset/liqo-broker/test/federation"
)

// TestJourneysOfMake holds that the journeys which the Makefile names are there, and their parts too: make would walk or skip nothing, and
// say nothing. The smoke has enough journeys with both lines of Liqo, and none that is skipped.
func TestJourneysOfMake(t *testing.T) {
	const leastSmoke = 5
	text, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	journeys := functionsOfJourneys(t, "test/e2e")
	trade := functionsOfJourneys(t, "test/trade")
	named := map[string][]string{}
	lists := regexp.MustCompile(`(?m)^(ADDRESS_TESTS|ON_ITS_OWN|OTHER_WAYS|FULL_ONLY|SMOKE|TRADE_REST) +:= (.+)$`)
	for _, found := range lists.FindAllStringSubmatch(string(text), -1) {
		journeys := journeys
		if found[1] == "TRADE_REST" {
			journeys = trade
		}
		names := slices.Sorted(maps.Keys(journeys))
		for word := range strings.SplitSeq(found[2], "|") {
			if word == "$(OTHER_WAYS)" {
				continue
			}
			journey, part, _ := strings.Cut(word, "/")
			journey, whole := strings.CutSuffix(journey, "$$")
			begins := slices.DeleteFunc(slices.Clone(names), func(name string) bool {
				return !strings.HasPrefix(name, journey) || whole && name != journey
			})
			if len(begins) == 0 {
				t.Errorf("%s of the Makefile names %s, and no journey is called so", found[1], word)
			}
			there := func(name string) bool { return strings.Contains(journeys[name].text, `t.Run("`+part+`"`) }
			if part != "" && !slices.ContainsFunc(begins, there) {
				t.Errorf("%s of the Makefile names %s, and the journey has no such part", found[1], word)
			}
			if part == "" {
				named[found[1]] = append(named[found[1]], begins...)
			}
		}
	}
	if len(named) != 6 {
		t.Fatalf("of the Makefile's lists of journeys only these have some: %v", slices.Sorted(maps.Keys(named)))
	}

	both, lacked := 0, lacks()["1.x"]
	for _, name := range named["SMOKE"] {
		if slices.Contains(slices.Concat(named["ON_ITS_OWN"], named["OTHER_WAYS"], named["FULL_ONLY"]), name) {
			t.Errorf("SMOKE of the Makefile names %s, which is skipped", name)
		}
		if !slices.ContainsFunc(journeys[name].needs, func(trait federation.Trait) bool { return lacked[trait] != "" }) {
			both++
		}
	}
	if both < leastSmoke {
		t.Errorf("SMOKE of the Makefile has %d journeys with Liqo 1.x", both)
	}
}

// A journey is a function of test/e2e or test/trade: its source, and what it, or a part of it, needs of the line of Liqo.
type journey struct {
	text  string
	needs []federation.Trait
}

// functionsOfJourneys returns the journeys of a folder by name.
func functionsOfJourneys(t *testing.T, folder string) map[string]journey {
	t.Helper()
	journeys := map[string]journey{}
	for file, source := range goFiles(t) {
		if path.Dir(file) != folder {
			continue
		}
		set := token.NewFileSet()
		syntax, err := parser.ParseFile(set, file, source.text, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, declared := range syntax.Decls {
			f, is := declared.(*ast.FuncDecl)
			if !is {
				continue
			}
			needs := needsOf(t, f)
			if is := strings.HasPrefix(f.Name.Name, "Test") && f.Name.Name != "TestMain"; is {
				text := source.text[set.Position(f.Pos()).Offset:set.Position(f.End()).Offset]
				journeys[f.Name.Name] = journey{text: text, needs: needs}
			} else if len(needs) > 0 {
				t.Errorf("%s: %s leaves journeys out, and is none: call needs where they begin", file, f.Name.Name)
			}
		}
	}
	return journeys
}

// needsOf returns what a function calls needs with.
func needsOf(t *testing.T, f *ast.FuncDecl) []federation.Trait {
	t.Helper()
	var needs []federation.Trait
	ast.Inspect(f, func(n ast.Node) bool {
		call, is := n.(*ast.CallExpr)
		if !is {
			return true
		}
		if called, is := call.Fun.(*ast.Ident); !is || called.Name != "needs" {
			return true
		}
		trait, is := call.Args[1].(*ast.SelectorExpr)
		if !is {
			t.Errorf("%s needs what is no trait", f.Name.Name)
			return true
		}
		needs = append(needs, federation.Trait(trait.Sel.Name))
		return true
	})
	return needs
}

// TestMakeSaysTheLine asks make what it would run: journeys are told their line of Liqo, whichever of both
// FULL_LIQO names.
func TestMakeSaysTheLine(t *testing.T) {
	// A run of make tells those below it by the environment what it was told.
	told := regexp.MustCompile(`^(MAKE\w*|MFLAGS|LIQO|FULL_LIQO|OTHER_LIQO|LIQO_BROKER_LIQO)=`)
	walk := regexp.MustCompile(`(?m)LIQO_BROKER_LIQO=(\S*) \S+/journeys (.*) \./test/e2e$`)
	for name, tc := range map[string]struct {
		reason string
		args   []string
		env    string
		want   []string
	}{
		"Test09": {
			"It is one of the two that the Makefile may name.", []string{"test", "FULL_LIQO=0.9"}, "", []string{"0.9", "1.2 smoke"},
		},
		"Test12": {"It is the other one.", []string{"test", "FULL_LIQO=1.2"}, "", []string{"1.2", "0.9 smoke"}},
		"TestLIQO": {
			"For one run LIQO says it.", []string{"test", "FULL_LIQO=0.9", "LIQO=1.2"}, "", []string{"1.2", "0.9 smoke"},
		},
		"E2E":         {"Without a word it is 0.9.", []string{"test-e2e", "FULL_LIQO=1.2"}, "", []string{"0.9"}},
		"E2E12":       {"It is what one says.", []string{"test-e2e", "LIQO=1.2"}, "", []string{"1.2"}},
		"Environment": {"Or what journeys without make are told.", []string{"test-e2e"}, "LIQO_BROKER_LIQO=1.2", []string{"1.2"}},
		"Smoke":       {"By itself it is not the other line.", []string{"test-smoke", "LIQO=1.2"}, "", []string{"1.2 smoke"}},
		"Other":       {"It is what LIQO does not say.", []string{"test-other", "LIQO=1.2"}, "", []string{"0.9 smoke"}},
		"Rest": {
			"Faults, slow API servers, other ways, and what is on its own.", []string{"test-rest", "LIQO=1.2"}, "",
			slices.Repeat([]string{"1.2 part"}, 4),
		},
		"Full": {
			"Both lines are walked in full, and 0.9 on two more versions of Kubernetes.", []string{"test-full", "FULL_LIQO=1.2"}, "",
			slices.Concat([]string{"1.2", "0.9 smoke", "0.9"}, slices.Repeat([]string{"1.2 part"}, 4),
				slices.Repeat([]string{"0.9 part"}, 4), slices.Repeat([]string{"0.9"}, 2)),
		},
	} {
		t.Run(name, func(t *testing.T) {
			dry := exec.CommandContext(t.Context(), "make", append([]string{"--dry-run", "--no-print-directory", "-C", root}, tc.args...)...)
			dry.Env = slices.DeleteFunc(os.Environ(), told.MatchString)
			if tc.env != "" {
				dry.Env = append(dry.Env, tc.env)
			}
			out, err := dry.Output()
			if err != nil {
				t.Fatal(err)
			}
			var walked []string
			for _, found := range walk.FindAllStringSubmatch(string(out), -1) {
				skips, runs := strings.Contains(found[2], "-skip "), strings.Contains(found[2], "-run ")
				switch {
				case skips && runs:
					found[1] += " smoke"
				case runs:
					found[1] += " part"
				case !skips:
					t.Errorf("neither skips nor chooses journeys: %s", found[0])
				}
				walked = append(walked, found[1])
			}
			if diff := cmp.Diff(tc.want, walked); diff != "" {
				t.Errorf("make %s walks (-want +got), %s\n%s", strings.Join(tc.args, " "), tc.reason, diff)
			}
		})
	}
}
