// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Command constants refuses a string that one package writes three times. Its arguments are folders, and it walks them. Tests, generated
// files and arguments of calls are passed over.
//
// golangci-lint runs the same linter over a package together with its tests, reads files at once, and reports the place that was read
// first: whether a string of two places and a test is a finding then depends on the scheduler.
package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/jgautheron/goconst"
)

func main() {
	found, err := check(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "constants:", err)
		os.Exit(1)
	}
	for _, line := range found {
		fmt.Println(line)
	}
	if len(found) > 0 {
		os.Exit(2)
	}
}

// check returns a line for each string that should be a constant.
func check(roots []string) ([]string, error) {
	fset, packages := token.NewFileSet(), map[string][]*ast.File{}
	for _, root := range roots {
		err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case entry.IsDir() && entry.Name() == "testdata":
				return filepath.SkipDir
			case entry.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
				return nil
			}
			file, err := parser.ParseFile(fset, name, nil, parser.ParseComments)
			if err != nil {
				return err
			}
			if !ast.IsGenerated(file) {
				packages[filepath.Dir(name)] = append(packages[filepath.Dir(name)], file)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	var found []string
	for _, folder := range slices.Sorted(maps.Keys(packages)) {
		issues, err := goconst.Run(packages[folder], fset, nil, &goconst.Config{
			MatchWithConstants: true,
			MinStringLength:    3,
			MinOccurrences:     3,
			ExcludeTypes:       map[goconst.Type]bool{goconst.Call: true},
		})
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", folder, err)
		}
		for i := range issues {
			found = append(found, fmt.Sprintf("%s: string %q is there %d times: make it a constant",
				issues[i].Pos, issues[i].Str, issues[i].OccurrencesCount))
		}
	}
	return found, nil
}
