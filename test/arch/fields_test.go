// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"go/ast"
	"go/types"
	"os"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"
)

// liqosTypes are where Liqo's objects have their types, by the only folder that reads their fields: those of 1.x are types of our own.
var liqosTypes = map[string]string{"pkg/liqo/v09": liqo, "pkg/liqo/v1": module + "/pkg/liqo/v1/api"}

// TestLiqosFieldsEndInOnePlace checks that who is given one of Liqo's objects asks pkg/liqo/v09 or pkg/liqo/v1 what it says: with another
// version of Liqo, fields move. The virtual kubelet, which is composed of Liqo's packages, is a module of its own, and lists are lists in
// every version.
func TestLiqosFieldsEndInOnePlace(t *testing.T) {
	loaded, err := packages.Load(&packages.Config{
		Dir: root, Mode: packages.NeedName | packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo | packages.NeedImports,
		Env: append(os.Environ(), "CGO_ENABLED=0"), // What the programs are built of is compiled already.
	}, "./pkg/...", "./cmd/...")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for _, p := range loaded {
		if len(p.Errors) > 0 {
			t.Fatalf("%s: %v", p.PkgPath, p.Errors[0])
		}
		folder := strings.TrimPrefix(p.PkgPath, module+"/")
		for _, file := range p.Syntax {
			ast.Inspect(file, func(n ast.Node) bool {
				selector, is := n.(*ast.SelectorExpr)
				if !is {
					return true
				}
				for reader, types := range liqosTypes {
					if !ofLiqo(p.TypesInfo.Selections[selector], types) {
						continue
					}
					seen[reader]++
					if !within(reader, folder) {
						t.Errorf("%s reads %s of one of Liqo's types: let %s say what it means", p.Fset.Position(n.Pos()), selector.Sel.Name, reader)
					}
				}
				return true
			})
		}
	}
	for reader := range liqosTypes {
		if seen[reader] < 20 {
			t.Errorf("only %d fields of Liqo's types are found that %s reads", seen[reader], reader)
		}
	}
}

// ofLiqo reports whether a field is declared in a folder of Liqo's types, and is none of those that all objects have.
func ofLiqo(s *types.Selection, folder string) bool {
	if s == nil || s.Kind() != types.FieldVal {
		return false
	}
	field, is := s.Obj().(*types.Var)
	return is && field.Pkg() != nil && within(folder, field.Pkg().Path()) && field.Name() != "Items" && !field.Embedded()
}

// group1 is a text that names a group of Liqo 1.x which 0.9 has not, or has in another version.
var group1 = regexp.MustCompile(`"[^"\n]*\b(?:(?:core|authentication|networking|ipam)\.liqo\.io|offloading\.liqo\.io/v1beta1)\b`)

// TestGroupsOfLiqo1AreNamedInOnePlace checks that only pkg/liqo/v1 names them: which they are is checked there.
func TestGroupsOfLiqo1AreNamedInOnePlace(t *testing.T) {
	named := 0
	for name, f := range goFiles(t) {
		if !ofPrograms(name) {
			continue
		}
		found := len(group1.FindAllString(f.text, -1))
		if named += found; found > 0 && !within("pkg/liqo/v1", name) {
			t.Errorf("%s names a group of Liqo 1.x: take it from pkg/liqo/v1/api", name)
		}
	}
	if named < 4 {
		t.Errorf("groups of Liqo 1.x are named %d times", named)
	}
}

// signed is a value that says of an offer that its seller has signed it.
var signed = regexp.MustCompile(`\boffer\.Signed\{[^}]`)

// TestSigned holds that whoever has an offer.Signed need not look at its signature: only what signs and what verifies makes one.
func TestSigned(t *testing.T) {
	for name, f := range goFiles(t) {
		if !strings.HasSuffix(name, "_test.go") && signed.MatchString(f.text) {
			t.Errorf("%s makes an offer.Signed: only offer.Sign and offer.ReadSigned do", name)
		}
	}
}

// makesManager is what makes a manager of controllers.
var makesManager = regexp.MustCompile(`\bctrl\.NewManager\(`)

// TestManagers holds that all controllers have queues as pkg/daemon gives them: no other program makes a manager, and what runs controllers
// for tests does not either.
func TestManagers(t *testing.T) {
	made := 0
	for name, f := range goFiles(t) {
		if !ofPrograms(name) && name != "test/watches/watches.go" || !makesManager.MatchString(f.text) {
			continue
		}
		if made++; name != "pkg/daemon/manager.go" {
			t.Errorf("%s makes a manager: let daemon.NewManager do it", name)
		}
	}
	if made == 0 {
		t.Error("nobody makes a manager")
	}
}

// cacheOf is where a cache is told what it keeps.
var cacheOf = regexp.MustCompile(`\bcache\.Options\{[^}]`)

// TestCaches holds that all caches of programs read what there is page by page, which they do with options of one function.
func TestCaches(t *testing.T) {
	told := 0
	for name, f := range goFiles(t) {
		if !ofPrograms(name) || !cacheOf.MatchString(f.text) {
			continue
		}
		if told++; name != "pkg/cached/pages.go" {
			t.Errorf("%s makes options of a cache: let cached.Options do it", name)
		}
	}
	if told == 0 {
		t.Error("nobody makes options of a cache")
	}
}
