// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"go/ast"
	"go/types"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"
)

// TestObjectsHaveOwners compares which packages of the connector write our objects with the table in ARCHITECTURE.md: what is keyed by
// something else than a contract has its order only as long as nobody else writes it.
func TestObjectsHaveOwners(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "ARCHITECTURE.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(text), "<!-- owners -->\n")
	table, _, ended := strings.Cut(table, "<!-- end of owners -->")
	if !found || !ended {
		t.Fatal("ARCHITECTURE.md has no table of owners")
	}
	said := map[string][]string{}
	code := regexp.MustCompile("`([A-Za-z0-9/]+)`")
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		if len(cells) < 4 {
			continue
		}
		for _, kind := range code.FindAllStringSubmatch(cells[1], -1) {
			for _, owner := range code.FindAllStringSubmatch(cells[2], -1) {
				said[kind[1]] = append(said[kind[1]], owner[1])
			}
		}
	}
	written := writers(t)
	for _, kind := range slices.Sorted(maps.Keys(written)) {
		if slices.Sort(said[kind]); !slices.Equal(said[kind], written[kind]) {
			t.Errorf("%s is written by %v, and ARCHITECTURE.md says by %v", kind, written[kind], said[kind])
		}
	}
	if len(written) != len(said) || len(written) < 7 {
		t.Errorf("%d kinds are written, and ARCHITECTURE.md has %d", len(written), len(said))
	}
}

// writers returns the packages of the connector that write objects of our kinds, sorted, without pkg/.
func writers(t *testing.T) map[string][]string {
	t.Helper()
	loaded, err := packages.Load(&packages.Config{
		Dir: root, Mode: packages.NeedName | packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo | packages.NeedImports,
		Env: append(os.Environ(), "CGO_ENABLED=0"), // What the programs are built of is compiled already.
	}, "./pkg/trade/connector/...", "./cmd/connector/...")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string][]string{}
	for _, p := range loaded {
		if len(p.Errors) > 0 {
			t.Fatalf("%s: %v", p.PkgPath, p.Errors[0])
		}
		folder := strings.TrimPrefix(strings.TrimPrefix(p.PkgPath, module+"/"), "pkg/")
		for _, file := range p.Syntax {
			ast.Inspect(file, func(n ast.Node) bool {
				if call, is := n.(*ast.CallExpr); is {
					if kind := writes(p.TypesInfo, call); kind != "" && !slices.Contains(found[kind], folder) {
						found[kind] = append(found[kind], folder)
					}
				}
				return true
			})
		}
	}
	for _, folders := range found {
		slices.Sort(folders)
	}
	return found
}

// writes returns the kind of our objects that a call writes by a client of Kubernetes; empty if it is no such call.
func writes(info *types.Info, call *ast.CallExpr) string {
	selector, is := call.Fun.(*ast.SelectorExpr)
	if !is || len(call.Args) < 2 || !slices.Contains([]string{"Create", "Update", "Patch", "Delete"}, selector.Sel.Name) {
		return ""
	}
	method := info.Selections[selector]
	if method == nil || method.Obj().Pkg() == nil || method.Obj().Pkg().Path() != "sigs.k8s.io/controller-runtime/pkg/client" {
		return ""
	}
	pointer, is := info.TypeOf(call.Args[1]).(*types.Pointer)
	if !is {
		return ""
	}
	named, is := pointer.Elem().(*types.Named)
	if !is || named.Obj().Pkg() == nil || !within(module+"/pkg/api", named.Obj().Pkg().Path()) {
		return ""
	}
	return named.Obj().Name()
}
