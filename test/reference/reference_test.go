// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/conditions"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/readiness"
	"github.com/capacitorset/liqo-broker/test/golden"
	"github.com/capacitorset/liqo-broker/test/metrictable"
)

const root = "../.."

// page is where golden.Check finds a page of docs/reference.
func page(name string) string { return "../../../docs/reference/" + name }

const written = "<!-- Written by make text. -->\n\n"

// table reads the rows of a table, which have so many columns.
func table(t *testing.T, name string, columns int) (rows [][]string) {
	t.Helper()
	for i, line := range lines(t, filepath.Join("tables", name)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		row := strings.Split(line, " | ")
		if len(row) != columns || slices.Contains(row, "") {
			t.Fatalf("tables/%s:%d: %d columns, want %d, none of them empty", name, i+1, len(row), columns)
		}
		rows = append(rows, row)
	}
	return rows
}

func lines(t *testing.T, name string) []string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
}

// metric is a row of the tables that the programs' own tests write.
type metric struct {
	kind     string
	labels   []string
	unit     string
	help     string
	programs []string
}

// programs have metrics, and this is where their tests write them.
var programs = []struct{ name, folder string }{
	{"broker", "cmd/broker"}, {"network-manager", "cmd/network-manager"}, {"virtual-kubelet", "cmd/virtual-kubelet/internal/serve"},
	{"connector", "cmd/connector"}, {"registry", "pkg/trade/registry/server"},
}

func metrics(t *testing.T) map[string]metric {
	t.Helper()
	all := map[string]metric{}
	for _, program := range programs {
		for _, line := range lines(t, filepath.Join(root, program.folder, "testdata", metrictable.File)) {
			columns := strings.Split(line, "\t")
			if len(columns) != 5 {
				t.Fatalf("the metrics of %s: %q", program.name, line)
			}
			m := metric{kind: columns[1], unit: columns[3], help: columns[4], programs: append(all[columns[0]].programs, program.name)}
			if columns[2] != "" {
				m.labels = strings.Split(columns[2], ", ")
			}
			all[columns[0]] = m
		}
	}
	return all
}

func TestMetrics(t *testing.T) {
	all, todo := metrics(t), map[string]string{}
	for _, row := range table(t, "metrics.txt", 2) {
		todo[row[0]] = row[1]
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(all)), slices.Sorted(maps.Keys(todo))); diff != "" {
		t.Errorf("-metrics of the programs +tables/metrics.txt\n%s", diff)
	}
	var out strings.Builder
	out.WriteString("# Metrics\n\n" + written +
		"What the programs measure, beside what their libraries do (`go_`, `process_`, `controller_runtime_`, `workqueue_`, `rest_client_`,\n" +
		"`leader_election_`, `liqo_virtual_kubelet_`). A label `provider`, `consumer` or `cluster` has the ID of a cluster.\n" +
		"[Who may read them](../security.md#who-reaches-which-port), [what to do when an alert fires](../runbooks.md).\n\n" +
		"| name | type | labels | unit | what it is | programs | what to do |\n|---|---|---|---|---|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(all)) {
		m := all[name]
		fmt.Fprintf(&out, "| `%s` | %s | %s | %s | %s | %s | %s |\n", name, m.kind, code(m.labels), m.unit, m.help,
			strings.Join(m.programs, ", "), todo[name])
	}
	golden.Check(t, page("metrics.md"), out.String())
}

func code(names []string) string {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = "`" + name + "`"
	}
	return strings.Join(quoted, ", ")
}

// reasons are the constants of the sources that name a reason or a type of a condition: their values, by name and package.
func reasons(t *testing.T, below, pattern string) map[string]string {
	t.Helper()
	named, found := regexp.MustCompile(pattern), map[string]string{}
	each(t, below, func(folder string, file *ast.File) {
		for _, declaration := range file.Decls {
			group, is := declaration.(*ast.GenDecl)
			if !is || group.Tok != token.CONST {
				continue
			}
			for _, spec := range group.Specs {
				spec := spec.(*ast.ValueSpec)
				for i, value := range spec.Values {
					if literal, is := value.(*ast.BasicLit); is && literal.Kind == token.STRING && named.MatchString(spec.Names[i].Name) {
						text, err := strconv.Unquote(literal.Value)
						if err != nil {
							t.Fatal(err)
						}
						found[folder+"."+spec.Names[i].Name] = text
					}
				}
			}
		}
	})
	return found
}

// each parses the sources below a folder, without tests.
func each(t *testing.T, below string, look func(folder string, file *ast.File)) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(root, below), func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		folder, err := filepath.Rel(root, filepath.Dir(name))
		look(filepath.ToSlash(folder), file)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// elsewhere are reasons that stand neither in an event nor in a condition of ours.
var elsewhere = map[string]string{
	"pkg/liqo.ReasonOffloadingAborted":                               "Liqo's, of the status of a pod",
	"pkg/core/podstate.ReasonRelocating":                             "of a container that waits",
	"cmd/virtual-kubelet/internal/remotepods.reasonPodFailed":        "of the conditions of a pod, as a kubelet's",
	"cmd/virtual-kubelet/internal/remotepods.reasonContainerUnknown": "of a container that ended, as a kubelet's",
}

// TestReasons holds that each reason that a program knows is in one of the tables.
func TestReasons(t *testing.T) {
	known := map[string]bool{}
	for _, row := range table(t, "events.txt", 6) {
		known[row[0]] = true
	}
	types := map[string]bool{}
	for _, row := range table(t, "conditions.txt", 6) {
		known[row[2]], types[row[1]] = true, true
	}
	used := map[string]bool{}
	for _, below := range []string{"pkg", "cmd"} {
		for name, reason := range reasons(t, below, `^[rR]eason[A-Z]`) {
			used[reason] = true
			if _, is := elsewhere[name]; !is && !known[reason] {
				t.Errorf("%s is %q, which no table has", name, reason)
			}
		}
		for name, kind := range reasons(t, below, `^Condition[A-Z]`) {
			if !types[kind] {
				t.Errorf("%s is %q, which tables/conditions.txt has not", name, kind)
			}
		}
	}
	for reason := range known {
		if !used[reason] {
			t.Errorf("a table has the reason %q, which no program knows", reason)
		}
	}
}

// TestReasonsHaveNames holds that no event and no condition has a reason that is written out where it is used: the tables would not see it.
func TestReasonsHaveNames(t *testing.T) {
	argument := map[string]int{"Event": 2, "Eventf": 2, "AnnotatedEventf": 3}
	written := func(folder string, e ast.Expr) {
		if literal, is := e.(*ast.BasicLit); is && literal.Kind == token.STRING {
			t.Errorf("%s: the reason %s has no name", folder, literal.Value)
		}
	}
	calls := 0
	for _, below := range []string{"pkg", "cmd"} {
		each(t, below, func(folder string, file *ast.File) {
			if strings.HasSuffix(folder, "test") {
				return
			}
			ast.Inspect(file, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.CallExpr:
					if f, is := n.Fun.(*ast.SelectorExpr); is {
						if i, is := argument[f.Sel.Name]; is && len(n.Args) > i {
							calls++
							written(folder, n.Args[i])
						}
					}
				case *ast.KeyValueExpr:
					if key, is := n.Key.(*ast.Ident); is && key.Name == "Reason" {
						written(folder, n.Value)
					}
				}
				return true
			})
		})
	}
	if calls < 15 {
		t.Errorf("only %d events are found", calls)
	}
}

func TestEvents(t *testing.T) {
	var out strings.Builder
	out.WriteString("# Events\n\n" + written +
		"What the programs write about objects: `kubectl get events -A --field-selector reason=REASON`. A PlacementPolicy or ProviderQuery\n" +
		"whose [condition](conditions.md) changes has an event with the reason of the condition, too, and so has [what is " +
		"traded](#conditions-of-what-is-traded).\nEvents of a twin namespace are shown to its consumer, and name no provider.\n\n" +
		"| reason | type | object | written by | when | what to do |\n|---|---|---|---|---|---|\n")
	printRows(&out, table(t, "events.txt", 6))
	out.WriteString("\n## Conditions of what is traded\n\n" +
		"The connector writes one event when a [condition](conditions.md) of one of these objects gets another status or another reason, with " +
		"the reason and the\nmessage of the condition. The objects are in no namespace, and their events are in namespace `default`. A Sale " +
		"has events once it is signed, or waits for\nsomebody's approval. A CapacityRequest has the reasons of its Purchase, too.\n\n" +
		"| object | normal | warning |\n|---|---|---|\n")
	traded := map[string]map[string][]string{"Registry": {}, "Offer": {}, "Purchase": {}, "Sale": {}, "CapacityRequest": {}}
	for _, row := range table(t, "conditions.txt", 6) {
		of, reason, status := row[0], row[2], metav1.ConditionStatus(row[3])
		kind := readiness.Kind(conditions.Change{Is: metav1.Condition{Reason: reason, Status: status}})
		if by := traded[of]; by != nil && !slices.Contains(by[kind], reason) && (of != "Sale" || reason != connectorv1alpha1.ReasonNegotiating) {
			by[kind] = append(by[kind], reason)
		}
	}
	for _, of := range slices.Sorted(maps.Keys(traded)) {
		fmt.Fprintf(&out, "| %s | %s | %s |\n", of, code(traded[of][corev1.EventTypeNormal]), code(traded[of][corev1.EventTypeWarning]))
	}
	golden.Check(t, page("events.md"), out.String())
}

func TestConditions(t *testing.T) {
	var out strings.Builder
	out.WriteString("# Conditions\n\n" + written +
		"What the status of an object says: `kubectl describe KIND NAME`. The message of a condition has the details.\n\n" +
		"| object | condition | reason | status | what it means | what to do |\n|---|---|---|---|---|---|\n")
	printRows(&out, table(t, "conditions.txt", 6))
	golden.Check(t, page("conditions.md"), out.String())
}

// printRows prints rows as those of a page.
func printRows(out *strings.Builder, rows [][]string) {
	for _, row := range rows {
		fmt.Fprintf(out, "| %s |\n", strings.Join(row, " | "))
	}
}

func TestFlags(t *testing.T) {
	var out strings.Builder
	out.WriteString("# Commands and flags\n\n" + written)
	helps, err := filepath.Glob(filepath.Join(root, "cmd/*/testdata/help*.txt"))
	if err != nil || len(helps) < 4 {
		t.Fatalf("only %d commands have a help: %v", len(helps), err)
	}
	files := map[string]string{}
	for _, help := range helps {
		program := filepath.Base(filepath.Dir(filepath.Dir(help)))
		part := strings.TrimPrefix(strings.TrimSuffix(filepath.Base(help), ".txt"), "help")
		files[program+strings.ReplaceAll(part, "-", " ")] = help
	}
	for _, command := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintf(&out, "## %s\n\n```text\n%s\n```\n\n", command, strings.Join(lines(t, files[command]), "\n"))
	}
	golden.Check(t, page("flags.md"), strings.TrimSuffix(out.String(), "\n"))
}
