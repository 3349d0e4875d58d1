// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"strings"
	"testing"
)

const (
	// longFunction is from how many lines on a function has to say what its phases are.
	longFunction = 35
	// maxPhase is on how many lines one after the other statements may begin in such a function, without a comment. Lines of a literal or
	// of arguments do not count: they are read as one.
	maxPhase = 20
)

// TestPhases checks that a long function of a program has a comment for each of its phases, so that a reader sees what it achieves step by
// step, and finds the step that matters. Whether the comment says what a phase achieves, and not what its next line does, people judge.
func TestPhases(t *testing.T) {
	long := 0
	for file, source := range goFiles(t) {
		if source.generated || !ofPrograms(file) {
			continue
		}
		set := token.NewFileSet()
		syntax, err := parser.ParseFile(set, file, source.text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, declared := range syntax.Decls {
			f, is := declared.(*ast.FuncDecl)
			if !is || f.Body == nil || set.Position(f.Body.Rbrace).Line-set.Position(f.Body.Lbrace).Line <= longFunction {
				continue
			}
			long++
			if lines, end := longestPhase(set, syntax, f.Body); lines > maxPhase {
				t.Errorf("%s:%d: %s has %d lines with statements before line %d and no comment among them: say what they achieve, or why they "+
					"are there, or cut the function", file, set.Position(f.Pos()).Line, f.Name.Name, lines, end+1)
			}
		}
	}
	if long < 50 {
		t.Errorf("only %d long functions are found", long)
	}
}

// ofPrograms reports whether a file is part of a program, and not of tests, for which packages are called so.
func ofPrograms(file string) bool {
	return (within("pkg", file) || within("cmd", file)) && !strings.HasSuffix(file, "_test.go") && !strings.HasSuffix(path.Dir(file), "test")
}

// longestPhase returns on how many lines statements of a function begin without a comment among them, at most, and the last of these lines.
func longestPhase(set *token.FileSet, file *ast.File, body *ast.BlockStmt) (longest, end int) {
	statements, comments := map[int]bool{}, map[int]bool{}
	ast.Inspect(body, func(n ast.Node) bool {
		if statement, is := n.(ast.Stmt); is {
			statements[set.Position(statement.Pos()).Line] = true
		}
		return true
	})
	for _, group := range file.Comments {
		for _, comment := range group.List {
			comments[set.Position(comment.Pos()).Line] = !strings.HasPrefix(comment.Text, "//nolint")
		}
	}
	lines := 0
	for line := set.Position(body.Lbrace).Line + 1; line < set.Position(body.Rbrace).Line; line++ {
		switch {
		case comments[line]:
			lines = 0
		case statements[line]:
			lines++
		}
		if lines > longest {
			longest, end = lines, line
		}
	}
	return longest, end
}
