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

// TestLiqosFieldsEndInOnePlace checks that who is given one of Liqo's objects asks pkg/liqo/v09 what it says: with another version of Liqo,
// fields move. The virtual kubelet, which is composed of Liqo's packages, is a module of its own, and lists are lists in every version.
func TestLiqosFieldsEndInOnePlace(t *testing.T) {
	loaded, err := packages.Load(&packages.Config{
		Dir: root, Mode: packages.NeedName | packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo | packages.NeedImports,
		Env: append(os.Environ(), "CGO_ENABLED=0"), // What the programs are built of is compiled already.
	}, "./pkg/...", "./cmd/...")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, p := range loaded {
		if len(p.Errors) > 0 {
			t.Fatalf("%s: %v", p.PkgPath, p.Errors[0])
		}
		folder := strings.TrimPrefix(p.PkgPath, module+"/")
		may := within("pkg/liqo/v09", folder)
		for _, file := range p.Syntax {
			ast.Inspect(file, func(n ast.Node) bool {
				if selector, is := n.(*ast.SelectorExpr); is && ofLiqo(p.TypesInfo.Selections[selector]) {
					seen++
					if !may {
						t.Errorf("%s reads %s of one of Liqo's types: let pkg/liqo/v09 say what it means", p.Fset.Position(n.Pos()), selector.Sel.Name)
					}
				}
				return true
			})
		}
	}
	if seen < 20 {
		t.Errorf("only %d fields of Liqo's types are found", seen)
	}
}

// ofLiqo reports whether a field is declared by Liqo, and is none of those that all objects have.
func ofLiqo(s *types.Selection) bool {
	if s == nil || s.Kind() != types.FieldVal {
		return false
	}
	field, is := s.Obj().(*types.Var)
	return is && field.Pkg() != nil && within(liqo, field.Pkg().Path()) && field.Name() != "Items" && !field.Embedded()
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
