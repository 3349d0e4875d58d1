// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the picture of the floors into ARCHITECTURE.md")

// A floor is packages that import only what is below them, and each other.
type floor struct {
	name, what string
	folders    []string
}

// tradeTree is what lets clusters buy and sell, with floors of its own: nothing else but commands imports it.
const tradeTree = "pkg/trade"

// floors are all folders of packages, from the top to the bottom.
var floors = []floor{
	{"commands", "put the parts together", []string{"cmd"}},
	{"doors", "what Kubernetes, Liqo and people ask, and what watches", []string{
		"pkg/install", "pkg/agent",
		"pkg/controller", "pkg/webhook", "pkg/resourceplugin", "pkg/httpapi", "pkg/remoteipam/broker", "pkg/remoteipam/client",
		virtualKubelet + "/internal", "pkg/ipamguard", "pkg/trial", "pkg/transit", "pkg/ui", "pkg/uiserver",
		"pkg/trade/connector", "pkg/trade/desk", "pkg/trade/negotiation", "pkg/trade/registry",
	}},
	{"reader", "reads the cluster as values", []string{
		"pkg/snapshot", "pkg/peernet", "pkg/overview", "pkg/shown", "pkg/trade/account", "pkg/trade/show",
	}},
	{"edges", "know one outside thing each", []string{
		"pkg/cached", "pkg/conditions", "pkg/daemon", "pkg/liqo", "pkg/liqo/line", "pkg/liqo/lines", "pkg/liqo/v09", "pkg/liqo/v1", "pkg/probe",
		"pkg/promquery", "pkg/remoteipam", "pkg/roundtrips", "pkg/serving", "pkg/lenient", "pkg/trade/objects", "pkg/trade/party",
		"pkg/trade/registry/store",
	}},
	{
		"shared", "the API, the manifests, and what every part may use", []string{
			"deploy", "patches", "pkg/api", "pkg/await", "pkg/excerpt", "pkg/logging", "pkg/netflag", "pkg/program", "pkg/sheet", "pkg/version",
			"pkg/wake",
		},
	},
	{"core", "decides on values", []string{"pkg/core", "pkg/trade/core"}},
}

// allowed are imports between folders of one floor.
var allowed = map[[2]string]string{
	{virtualKubelet + "/internal", "pkg/remoteipam/client"}: "The virtual kubelet is the program on the consumer's side of the remote IPAM.",
	{"pkg/trade/desk", "pkg/trade/connector"}:               "What is for sale is what the connector remembers of registries.",
	{"pkg/uiserver", "pkg/trade/desk"}:                      "The page does at a cluster that trades what the commands of the plugin do.",
	{"pkg/cached", "pkg/liqo"}:                              "What is kept of objects of Liqo is read by what it calls them.",
	{"pkg/cached", "pkg/liqo/line"}:                         "What it keeps of Liqo's kinds a line of its versions says.",
	{"pkg/overview", "pkg/snapshot"}:                        "It reads to whom policies apply as the daemon does.",
	{"pkg/shown", "pkg/overview"}:                           "What it shows is made there for people.",
	{"pkg/shown", "pkg/snapshot"}:                           "It shows of providers the labels by which the daemon chooses.",
	{"pkg/trade/connector", "pkg/trade/registry"}:           "A connector calls registries, and knows parties as their client shows them.",
	{"pkg/trade/connector", "pkg/trade/negotiation"}:        "A connector is both ends of negotiations.",
	{"pkg/trade/core", "pkg/core"}:                          "Quantities, clusters and expressions are the same for the trade.",
	{"pkg/sheet", "pkg/excerpt"}:                            "What does not fit into a cell is cut there as everywhere.",
	{"pkg/daemon", "pkg/lenient"}:                           "Who reads Liqo's objects reads them leniently.",
	{"pkg/daemon", "pkg/serving"}:                           "A replica answers probes, and leads by a lease.",
	{"pkg/liqo/v09", "pkg/lenient"}:                         "Liqo's objects are read leniently.",
	{"pkg/liqo/line", "pkg/liqo"}:                           "What is asked of Liqo is answered in values that all lines share.",
	{"pkg/liqo/lines", "pkg/liqo/line"}:                     "What it finds is a line.",
	{"pkg/liqo/lines", "pkg/liqo/v09"}:                      "It knows all lines.",
	{"pkg/liqo/lines", "pkg/liqo/v1"}:                       "It knows all lines.",
	{"pkg/liqo/v09", "pkg/liqo/line"}:                       "It answers for Liqo 0.9.",
	{"pkg/liqo/v09", "pkg/liqo"}:                            "What a line of Liqo's versions says is said in values that all lines share.",
	{"pkg/liqo/v1", "pkg/liqo/line"}:                        "It answers for Liqo 1.x.",
	{"pkg/liqo/v1", "pkg/lenient"}:                          "Liqo's objects are read leniently.",
	{"pkg/liqo/v1", "pkg/liqo"}:                             "What a line of Liqo's versions says is said in values that all lines share.",
}

// place returns the floor of a package, counted from the top, and its folder there: the longest that fits.
func place(pkg string) (at int, folder string) {
	at = -1
	for i, f := range floors {
		for _, candidate := range f.folders {
			if within(candidate, pkg) && len(candidate) > len(folder) {
				at, folder = i, candidate
			}
		}
	}
	return at, folder
}

// imports returns which packages of this repository each package imports, without those that only tests import.
func imports(t *testing.T) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	for file, source := range goFiles(t) {
		pkg := path.Dir(file)
		if strings.HasSuffix(file, "_test.go") || strings.HasSuffix(pkg, "test") || !within("pkg", pkg) && !within("cmd", pkg) {
			continue
		}
		all[pkg] = slices.Concat(all[pkg])
		for _, spec := range source.syntax.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			if own, is := strings.CutPrefix(imported, module+"/"); is {
				all[pkg] = append(all[pkg], own)
			}
		}
	}
	return all
}

// page is the tree of what serves the page of the plugin, which shows a broker and trade alike. No daemon has it.
const page = "pkg/uiserver"

// TestFloors checks that every package has its floor, and imports nothing from above it, and nothing beside it but what is said.
func TestFloors(t *testing.T) {
	used := map[[2]string]bool{}
	for pkg, imported := range imports(t) {
		at, folder := place(pkg)
		if at < 0 {
			t.Errorf("%s is on no floor: say in floors_test.go what it may import", pkg)
			continue
		}
		for _, other := range imported {
			if within("pkg", pkg) && !within(tradeTree, pkg) && !within(page, pkg) && within(tradeTree, other) {
				t.Errorf("%s imports %s: a broker does not know that clusters trade", pkg, other)
			}
			below, beside := place(other)
			pair := [2]string{folder, beside}
			switch {
			case below < at:
				t.Errorf("%s (%s) imports %s (%s), which is above it", pkg, floors[at].name, other, floors[max(below, 0)].name)
			case below == at && folder != beside && allowed[pair] == "":
				t.Errorf("%s imports %s, which is beside it: let the command pass what it needs", pkg, other)
			case below == at && folder != beside:
				used[pair] = true
			}
		}
	}
	for pair := range allowed {
		if !used[pair] {
			t.Errorf("%s does not import %s any more", pair[0], pair[1])
		}
	}
}

// TestPackagesAreImported refuses a package that only tests import, whose name does not say so: make deadcode sees what programs link.
func TestPackagesAreImported(t *testing.T) {
	all, imported := imports(t), map[string]bool{}
	for _, others := range all {
		for _, other := range others {
			imported[other] = true
		}
	}
	for pkg := range all {
		if within("pkg", pkg) && !imported[pkg] {
			t.Errorf("%s is imported by tests at most: take it out, or end its name with test", pkg)
		}
	}
}

// TestPictureOfFloors compares ARCHITECTURE.md with the imports. Run it with -update to draw the picture again.
func TestPictureOfFloors(t *testing.T) {
	const begin, end = "<!-- floors: go test ./test/arch -update -->\n", "<!-- end of floors -->\n"
	page := filepath.Join(root, "ARCHITECTURE.md")
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(text), begin)
	now, after, ended := strings.Cut(rest, end)
	if !found || !ended {
		t.Fatalf("%s has no place for the picture, between %q and %q", page, begin, end)
	}
	want := picture(imports(t))
	if *update {
		if err := os.WriteFile(page, []byte(before+begin+want+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if now != want {
		t.Errorf("the picture in %s is not that of the imports: run go test ./test/arch -update", page)
	}
}

// picture draws the folders on their floors, and which imports which, in the language of Mermaid. What the commands import is left
// out: nearly all.
func picture(imported map[string][]string) string {
	arrows := map[string]bool{}
	for pkg, others := range imported {
		at, from := place(pkg)
		if at == 0 {
			continue // The commands import nearly all.
		}
		for _, other := range others {
			if _, to := place(other); to != from && to != "" {
				arrows[fmt.Sprintf("  %s --> %s\n", id(from), id(to))] = true
			}
		}
	}
	var out strings.Builder
	out.WriteString("```mermaid\nflowchart TB\n")
	for _, f := range floors {
		fmt.Fprintf(&out, "  subgraph %s[\"%s: %s\"]\n", f.name, f.name, f.what)
		for _, folder := range f.folders {
			fmt.Fprintf(&out, "    %s[\"%s\"]\n", id(folder), folder)
		}
		out.WriteString("  end\n")
	}
	for _, arrow := range slices.Sorted(maps.Keys(arrows)) {
		out.WriteString(arrow)
	}
	out.WriteString("```\n")
	return out.String()
}

// id is the name of a folder in the picture.
func id(folder string) string { return strings.ReplaceAll(folder, "/", "_") }
