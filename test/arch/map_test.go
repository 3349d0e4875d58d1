// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"cmp"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// architecture returns ARCHITECTURE.md.
func architecture(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "ARCHITECTURE.md"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestMap checks that ARCHITECTURE.md says of each package below pkg, and of those that a program has for itself, once, what it is for.
func TestMap(t *testing.T) {
	mapped := map[string]int{}
	_, tables, _ := strings.Cut(architecture(t), "\n| folder below `pkg` |")
	tables, _, _ = strings.Cut(tables, "\n## ")
	for line := range strings.Lines(tables) {
		if !strings.HasPrefix(line, "| `") {
			continue
		}
		for _, folder := range span.FindAllString(strings.Split(line, "|")[1], -1) {
			name := strings.Trim(folder, "`")
			if !within("cmd", name) {
				name = "pkg/" + name
			}
			mapped[name]++
		}
	}
	packages := map[string]bool{}
	for file := range goFiles(t) {
		if folder := path.Dir(file); within("pkg", folder) || within("cmd", folder) && strings.Contains(folder, "/internal/") {
			packages[folder] = true
		}
	}
	for folder := range packages {
		if mapped[folder] != 1 {
			t.Errorf("the tables of folders in ARCHITECTURE.md have %s %d times, want once", folder, mapped[folder])
		}
	}
	for folder := range mapped {
		if !packages[folder] {
			t.Errorf("the tables of folders in ARCHITECTURE.md have %s, which is no package", folder)
		}
	}
	if len(packages) < 100 {
		t.Errorf("only %d packages are found", len(packages))
	}
}

// TestKindsAreInTheGlossary checks that the glossary says what each kind of our API is.
func TestKindsAreInTheGlossary(t *testing.T) {
	_, glossary, _ := strings.Cut(architecture(t), "\n## Glossary\n")
	kind := regexp.MustCompile(`(?m)^// \+kubebuilder:object:root=true\n(?:// .*\n)*type (\w+) struct`)
	found := 0
	for file, source := range goFiles(t) {
		if !within("pkg/api", file) {
			continue
		}
		for _, declared := range kind.FindAllStringSubmatch(source.text, -1) {
			if strings.HasSuffix(declared[1], "List") {
				continue
			}
			if found++; !regexp.MustCompile(`\b` + declared[1] + `s?\b`).MatchString(glossary) {
				t.Errorf("the glossary of ARCHITECTURE.md has no %s", declared[1])
			}
		}
	}
	if found < 13 {
		t.Errorf("only %d kinds are found", found)
	}
}

var (
	// inFolder is a folder in a page, and goFile a Go file: with its folder, or in the one that the paragraph has named last.
	inFolder = regexp.MustCompile(`^(?:pkg|cmd|test)/[\w/-]+$`)
	goFile   = regexp.MustCompile(`^((?:pkg|cmd|test)/[\w/-]+/)?(\w+\.go)$`)
	// qualified is a method or a field of a type, or what a package declares, and bare what a package declares.
	qualified, bare = regexp.MustCompile(`^[A-Za-z]\w*\.[A-Za-z]\w*$`), regexp.MustCompile(`^[A-Za-z]\w*$`)
	// noGo is what looks as if it were qualified: a field of an object, or another file.
	noGo = regexp.MustCompile(`^(?:spec|status|metadata)\.|\.(?:spec|status|metadata|md|txt|yaml)$`)
	// located is what stands between names and the file in which they are declared, and beside what stands between them.
	located, beside = regexp.MustCompile(`^\s+(?:\(|in\s+|of\s+)$`), regexp.MustCompile(`^(?:,| and|, and| or)\s+$`)
)

// mention is what a paragraph names: a Go file, with its folder, or the name of what is declared somewhere.
type mention struct {
	file, name string
	// between is what stands before it, since the last one.
	between string
}

// mentions returns what a paragraph names, in order.
func mentions(paragraph string) []mention {
	var all []mention
	here, after := "", 0
	for _, at := range span.FindAllStringIndex(paragraph, -1) {
		text := paragraph[at[0]+1 : at[1]-1]
		m := mention{between: paragraph[after:at[0]]}
		after = at[1]
		if inFolder.MatchString(text) {
			here = text
		} else if found := goFile.FindStringSubmatch(text); found != nil {
			here = cmp.Or(strings.TrimSuffix(found[1], "/"), here)
			m.file = path.Join(here, found[2])
		} else if (qualified.MatchString(text) || bare.MatchString(text)) && !noGo.MatchString(text) {
			m.name = text
		}
		all = append(all, m)
	}
	return all
}

// TestArchitectureNamesWhatIsDeclared checks that the Go files which ARCHITECTURE.md names are there, and that functions, methods, fields
// and types are declared in the file that it says, or in one of several, or, where it gives their type or their package and no file,
// anywhere.
func TestArchitectureNamesWhatIsDeclared(t *testing.T) {
	files, declared, checked := goFiles(t), declarations(t), 0
	for _, paragraph := range paragraphs(architecture(t)) {
		all := mentions(paragraph)
		placed := map[int]bool{} // Those of which it is said where they are declared.
		for i, m := range all {
			if m.file == "" {
				continue
			}
			if _, is := files[m.file]; !is {
				t.Errorf("ARCHITECTURE.md names %s, which is no file: %q", m.file, paragraph)
			}
			if i == 0 || all[i-1].name == "" || !located.MatchString(m.between) {
				continue
			}
			in := []string{m.file}
			for next := i + 1; next < len(all) && all[next].file != "" && beside.MatchString(all[next].between); next++ {
				in = append(in, all[next].file)
			}
			for of := i - 1; of >= 0 && all[of].name != "" && (of == i-1 || beside.MatchString(all[of+1].between)); of-- {
				placed[of] = true
				if checked++; !slices.ContainsFunc(in, func(file string) bool { return declared[file+":"+all[of].name] }) {
					t.Errorf("ARCHITECTURE.md says that %s is declared in %v: %q", all[of].name, in, paragraph)
				}
			}
		}
		for i, m := range all {
			if !placed[i] && qualified.MatchString(m.name) {
				if checked++; !declared[m.name] {
					t.Errorf("ARCHITECTURE.md names %s, which is declared nowhere: %q", m.name, paragraph)
				}
			}
		}
	}
	if checked < 150 {
		t.Errorf("only %d names are found", checked)
	}
}

// paragraphs returns what belongs together in a page: paragraphs, items of lists, and rows of tables, without what is shown as it is.
func paragraphs(page string) []string {
	return regexp.MustCompile(`\n\n|\n(?:\||\*| ?\d+\.)`).Split(fence.ReplaceAllString(page, ""), -1)
}

// declarations returns what all Go files declare: as NAME of a file, TYPE.METHOD, TYPE.FIELD and, also of methods, PACKAGE.NAME of a file
// or of any.
func declarations(t *testing.T) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	for file, source := range goFiles(t) {
		syntax, err := parser.ParseFile(token.NewFileSet(), file, source.text, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		note := func(of, name string) {
			all[file+":"+name], all[file+":"+syntax.Name.Name+"."+name], all[syntax.Name.Name+"."+name] = true, true, true
			if of != "" {
				all[file+":"+of+"."+name], all[of+"."+name] = true, true
			}
		}
		for _, declaration := range syntax.Decls {
			switch d := declaration.(type) {
			case *ast.FuncDecl:
				note(receiver(d), d.Name.Name)
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					noteSpec(spec, note)
				}
			}
		}
	}
	return all
}

// noteSpec notes what a declaration of types, constants or variables declares.
func noteSpec(spec ast.Spec, note func(of, name string)) {
	switch s := spec.(type) {
	case *ast.ValueSpec:
		for _, name := range s.Names {
			note("", name.Name)
		}
	case *ast.TypeSpec:
		note("", s.Name.Name)
		var fields *ast.FieldList
		switch of := s.Type.(type) {
		case *ast.StructType:
			fields = of.Fields
		case *ast.InterfaceType:
			fields = of.Methods
		default:
			return
		}
		for _, field := range fields.List {
			for _, name := range field.Names {
				note(s.Name.Name, name.Name)
			}
		}
	}
}

// receiver returns the type of which a function is a method; empty if it is none.
func receiver(d *ast.FuncDecl) string {
	if d.Recv == nil {
		return ""
	}
	of := d.Recv.List[0].Type
	if pointer, is := of.(*ast.StarExpr); is {
		of = pointer.X
	}
	if generic, is := of.(*ast.IndexExpr); is {
		of = generic.X
	}
	if name, is := of.(*ast.Ident); is {
		return name.Name
	}
	return ""
}
