// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const (
	root   = "../.."
	module = "github.com/capacitorset/liqo-broker"
	liqo   = "github.com/liqotech/liqo"
	// virtualKubelet is the folder of the program that is a module of its own, since it is made of a patched Liqo.
	virtualKubelet = "cmd/virtual-kubelet"
	header         = "// Copyright The liqo-broker Authors.\n// SPDX-License-Identifier: Apache-2.0\n\n"
)

// edges are modules that do input or output, or that know what the world looks like.
var edges = []string{
	"k8s.io/client-go", "sigs.k8s.io/controller-runtime", "google.golang.org/grpc", "github.com/vishvananda/netlink",
	liqo,
}

// liqoImporters are the folders whose packages may import Liqo's: one that translates its objects into ours, the virtual
// kubelet, which is composed of Liqo's own, and what looks at a real federation or at a patched Liqo.
var liqoImporters = []string{"pkg/liqo/v09", "cmd/virtual-kubelet", "test"}

// TestCoreImportsNoEdge checks that what decides takes values and returns values: the folder is the rule.
func TestCoreImportsNoEdge(t *testing.T) {
	for core, below := range map[string][]string{"pkg/core": {"pkg/core"}, "pkg/trade/core": {"pkg/core", "pkg/trade/core"}} {
		for _, dependency := range listed(t, core+"/...") {
			if slices.ContainsFunc(edges, func(edge string) bool { return within(edge, dependency) }) {
				t.Errorf("%s depends on %s: the core does no input or output", core, dependency)
			}
			isBelow := slices.ContainsFunc(below, func(folder string) bool { return within(module+"/"+folder, dependency) })
			if within(module, dependency) && !isBelow {
				t.Errorf("%s depends on %s, which is above it", core, dependency)
			}
		}
	}
}

func TestLiqoEntersInOnePlace(t *testing.T) {
	for file, source := range goFiles(t) {
		folder := path.Dir(file)
		if slices.ContainsFunc(liqoImporters, func(allowed string) bool { return within(allowed, folder) }) {
			continue
		}
		for _, spec := range source.syntax.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			if within(liqo, imported) {
				t.Errorf("%s imports %s: take what it needs from pkg/liqo/v09, so that only that package changes with Liqo", file, imported)
			}
		}
	}
}

func TestNothingImportsCommands(t *testing.T) {
	for file, source := range goFiles(t) {
		for _, spec := range source.syntax.Imports {
			imported := strings.Trim(spec.Path.Value, `"`)
			if within(virtualKubelet, file) && within(module+"/"+virtualKubelet+"/internal", imported) {
				continue // A module of its own, with packages that Go lets nobody else import.
			}
			if strings.HasPrefix(imported, module+"/cmd/") {
				t.Errorf("%s imports %s: what two programs share belongs to pkg", file, spec.Path.Value)
			}
		}
	}
}

func TestPackagesAreDocumented(t *testing.T) {
	documented := map[string]bool{}
	for file, source := range goFiles(t) {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		folder := path.Dir(file)
		documented[folder] = documented[folder] || source.syntax.Doc != nil
	}
	for folder, ok := range documented {
		if !ok {
			t.Errorf("%s has no comment that says what the package is for and what it does not know", folder)
		}
	}
}

// TestControllersAreSetUpAlike checks that who has seen one controller being added to a manager has seen all. Those of the connector also
// return what other parts ask.
func TestControllersAreSetUpAlike(t *testing.T) {
	shapes := map[string]*regexp.Regexp{
		"pkg/controller":      regexp.MustCompile(`^func Setup\(mgr ctrl\.Manager, cfg Config\) error {\n`),
		"pkg/trade/connector": regexp.MustCompile(`^func Setup\w*\(mgr ctrl\.Manager, cfg \w*Config\) (error|\(\*\w+, error\)) {\n`),
	}
	methods, seen := regexp.MustCompile(`\nfunc \([^)]*\) Setup`), map[string]int{}
	for file, source := range goFiles(t) {
		for below, shape := range shapes {
			if !within(below, file) || strings.HasSuffix(file, "_test.go") {
				continue
			}
			if methods.MatchString(source.text) {
				t.Errorf("%s has a method that sets a controller up, not a function", file)
			}
			if _, after, found := strings.Cut(source.text, "\nfunc Setup"); found {
				seen[below]++
				if !shape.MatchString("func Setup" + after) {
					t.Errorf("%s has another Setup than %s", file, shape)
				}
			}
		}
	}
	if seen["pkg/controller"] < 9 || seen["pkg/trade/connector"] < 8 {
		t.Errorf("only %v controllers are found", seen)
	}
}

func TestFilesHaveLicence(t *testing.T) {
	for file, source := range goFiles(t) {
		if !source.generated && !strings.HasPrefix(source.text, header) {
			t.Errorf("%s does not start with the copyright and licence lines", file)
		}
	}
}

func TestNoMiscellany(t *testing.T) {
	for file := range goFiles(t) {
		switch name := path.Base(path.Dir(file)); name {
		case "util", "utils", "common", "helpers", "misc":
			t.Errorf("%s: a package named %s has no job of its own", file, name)
		}
	}
}

// file is a Go file of this repository.
type file struct {
	text      string
	syntax    *ast.File
	generated bool
}

// goFiles returns all Go files of this repository, also those of other modules and build tags, by their path below the root.
func goFiles(t *testing.T) map[string]file {
	t.Helper()
	files := map[string]file{}
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && name != root && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "bin") {
			return filepath.SkipDir
		}
		if filepath.Ext(name) != ".go" {
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		syntax, err := parser.ParseFile(token.NewFileSet(), name, text, parser.ParseComments|parser.ImportsOnly)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		files[filepath.ToSlash(relative)] = file{text: string(text), syntax: syntax, generated: ast.IsGenerated(syntax)}
		return nil
	})
	if err != nil {
		t.Fatalf("read the Go files: %v", err)
	}
	return files
}

// within says whether a slash-separated path is a folder or below it.
func within(folder, name string) bool {
	return name == folder || strings.HasPrefix(name, folder+"/")
}
