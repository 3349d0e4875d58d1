// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package text

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/capacitorset/liqo-broker/test/golden"
)

const root = "../.."

// A sentence is text of a program, and where it goes: the function that is called with it, the field or the constant that it is the
// value of, "return", or "text".
type sentence struct{ goes, text string }

// TestSentences compares all text in the sources of the programs that somebody may read, in conditions, events, errors, logs and answers,
// with the golden file. Files and lines are left out, so that a sentence that only moves within its package changes nothing.
func TestSentences(t *testing.T) {
	said := map[string]map[sentence]bool{} // By package.
	for _, below := range []string{"cmd", "pkg"} {
		err := filepath.WalkDir(filepath.Join(root, below), func(name string, entry fs.DirEntry, err error) error {
			folder := filepath.Dir(name)
			if err != nil || !speaks(folder, entry) {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments|parser.SkipObjectResolution)
			if err != nil || ast.IsGenerated(file) {
				return err
			}
			pkg, err := filepath.Rel(root, folder)
			if err != nil {
				return err
			}
			if said[pkg] == nil {
				said[pkg] = map[sentence]bool{}
			}
			listen(file, said[pkg])
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	out, count := strings.Builder{}, 0
	for _, pkg := range slices.Sorted(maps.Keys(said)) {
		if len(said[pkg]) == 0 {
			continue
		}
		fmt.Fprintf(&out, "# %s\n\n", filepath.ToSlash(pkg))
		for _, s := range slices.SortedFunc(maps.Keys(said[pkg]), func(a, b sentence) int {
			return cmp.Or(strings.Compare(a.goes, b.goes), strings.Compare(a.text, b.text))
		}) {
			if ofClone.MatchString(s.text) {
				t.Errorf("%s: %q names a file that only a clone of the repository has: see pkg/version", pkg, s.text)
			}
			fmt.Fprintf(&out, "%s: %s\n", s.goes, s.text)
			count++
		}
		fmt.Fprintln(&out)
	}
	if count < 500 {
		t.Errorf("only %d sentences are found", count)
	}
	golden.Check(t, "sentences.txt", out.String())
}

// ofClone matches the paths of files in the repository, which who has only a program does not have. Before a name, deploy/ is a Deployment.
var ofClone = regexp.MustCompile(`(^|[ (])(docs/|patches/|-k deploy|deploy/(admission|chart|connector|crds|examples|guard|monitoring|registry)\b)`)

// speaks reports whether a file is part of a program.
func speaks(folder string, entry fs.DirEntry) bool {
	name := entry.Name()
	return !entry.IsDir() && strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") &&
		!strings.HasSuffix(path.Base(folder), "test")
}

var (
	// words are two words with a space between them, of which one may be a verb of package fmt.
	words = regexp.MustCompile(`(?:[[:alpha:]),:;]|%[a-z+#]+) (?:[[:alpha:]("]|%[a-z+#])`)
	// named are constants and fields whose value is one word that users read.
	named = regexp.MustCompile(`^(?i:reason|condition)|^Reason$`)
	// elsewhere are functions whose argument nobody reads, such as expressions, or reads in the help of a command.
	elsewhere = regexp.MustCompile(`^(regexp\.MustCompile|\w*Var)$`)
)

// listen adds the sentences of a file.
func listen(file *ast.File, said map[sentence]bool) {
	imported := map[string]bool{}
	for _, spec := range file.Imports {
		name := path.Base(strings.Trim(spec.Path.Value, `"`))
		if spec.Name != nil {
			name = spec.Name.Name
		}
		imported[name] = true
	}
	var stack []ast.Node
	ast.Inspect(file, func(n ast.Node) bool {
		if n == nil {
			stack = stack[:len(stack)-1]
			return true
		}
		if _, tag := n.(*ast.Field); tag {
			stack = append(stack, n)
			return true // Its tag is looked at, and has no words.
		}
		if expression, is := n.(ast.Expr); is && !inside(stack) {
			text, literal := spell(expression)
			goes := destination(stack, expression, imported)
			if literal && !elsewhere.MatchString(goes) && (words.MatchString(text) || named.MatchString(goes)) {
				said[sentence{goes, text}] = true
			}
		}
		stack = append(stack, n)
		return true
	})
}

// inside reports whether a node is part of a text that was taken as a whole.
func inside(stack []ast.Node) bool {
	if len(stack) == 0 {
		return false
	}
	sum, is := stack[len(stack)-1].(*ast.BinaryExpr)
	if !is {
		return false
	}
	_, literal := spell(sum)
	return literal
}

// spell returns the text of a literal, or of a sum with one, in which what is known only later stands in braces.
func spell(e ast.Expr) (text string, literal bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind != token.STRING {
			return "", false
		}
		text, err := strconv.Unquote(e.Value)
		return strings.ReplaceAll(text, "\n", `\n`), err == nil
	case *ast.BinaryExpr:
		if e.Op != token.ADD {
			return "", false
		}
		left, isLeft := spell(e.X)
		right, isRight := spell(e.Y)
		if !isLeft && !isRight {
			return "", false
		}
		return later(left, isLeft, e.X) + later(right, isRight, e.Y), true
	case *ast.ParenExpr:
		return spell(e.X)
	}
	return "", false
}

func later(text string, literal bool, e ast.Expr) string {
	if literal {
		return text
	}
	return "{" + types.ExprString(e) + "}"
}

// destination returns where a text goes, by the nodes around it.
func destination(stack []ast.Node, e ast.Expr, imported map[string]bool) string {
	var inner ast.Node = e
	for _, outer := range slices.Backward(stack) {
		switch outer := outer.(type) {
		case *ast.CallExpr:
			return callee(outer.Fun, imported)
		case *ast.KeyValueExpr:
			if key, is := outer.Key.(*ast.Ident); is && outer.Value == inner {
				return key.Name
			}
		case *ast.ValueSpec:
			return outer.Names[max(0, slices.IndexFunc(outer.Values, func(v ast.Expr) bool { return v == inner }))].Name
		case *ast.ReturnStmt:
			return "return"
		case ast.Stmt:
			return "text"
		}
		inner = outer
	}
	return "text"
}

// callee names a function with its package, and a method without what it is called on.
func callee(function ast.Expr, imported map[string]bool) string {
	switch f := function.(type) {
	case *ast.Ident:
		return f.Name
	case *ast.SelectorExpr:
		if x, is := f.X.(*ast.Ident); is && imported[x.Name] {
			return x.Name + "." + f.Sel.Name
		}
		return f.Sel.Name
	case *ast.IndexExpr:
		return callee(f.X, imported)
	}
	return "text"
}
