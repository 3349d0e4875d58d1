// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package arch

import (
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	// trade is what buys and sells.
	trade = []string{"pkg/api/connectorv1alpha1", tradeTree}
	// brokering is what stands between consumers and providers.
	brokering = []string{"pkg/controller", "pkg/httpapi", "pkg/overview", "pkg/snapshot", "pkg/webhook"}
	// clients are what reaches Kubernetes, and Liqo in it.
	clients = []string{"k8s.io/client-go", "sigs.k8s.io/controller-runtime", liqo}
)

// programs say what each of them must not link, directly or not.
var programs = map[string]struct {
	reason  string
	without []string
}{
	"broker": {
		"the daemon and the guard do the same whether their cluster trades or not", slices.Concat(trade, []string{virtualKubelet + "/internal"}),
	},
	"connector": {
		"it sells by the objects of a broker, and is none",
		slices.Concat(brokering, []string{"pkg/trade/registry/server", "pkg/trade/registry/store"}),
	},
	"kubectl-liqo_broker": {
		"whoever uses the plugin may see and change both, and it serves nobody",
		[]string{"pkg/trade/registry/server", "pkg/trade/registry/store", "pkg/serving/ports"},
	},
	"network-manager": {
		"it runs in a pod of Liqo, and is about addresses alone", slices.Concat(trade, brokering, []string{virtualKubelet + "/internal"}),
	},
	"registry": {
		"it needs no Kubernetes, and knows nothing of contracts", slices.Concat(clients, brokering,
			[]string{"pkg/api", "pkg/trade/connector", "pkg/trade/negotiation", "pkg/trade/core/contract"}),
	},
	"virtual-kubelet": {"it runs on consumers too, which have none of our objects", slices.Concat(trade, brokering, []string{"pkg/api"})},
}

// TestPrograms checks what each program links, so that a package which imports a little too much is seen before its users are.
func TestPrograms(t *testing.T) {
	folders, err := os.ReadDir(filepath.Join(root, "cmd"))
	if err != nil {
		t.Fatal(err)
	}
	linked := map[string]bool{} // Of what must not be linked, that which some program links.
	for _, folder := range folders {
		program, known := programs[folder.Name()]
		if !known {
			t.Errorf("cmd/%s is no program that links_test.go knows: say there what it must not link", folder.Name())
		}
		for _, dependency := range listed(t, "cmd/"+folder.Name()) {
			dependency = strings.TrimPrefix(dependency, module+"/")
			for _, p := range programs {
				for _, other := range p.without {
					linked[other] = linked[other] || within(other, dependency)
				}
			}
			if slices.ContainsFunc(program.without, func(other string) bool { return within(other, dependency) }) {
				t.Errorf("cmd/%s links %s: %s", folder.Name(), dependency, program.reason)
			}
		}
	}
	for name, p := range programs {
		for _, other := range p.without {
			if !linked[other] {
				t.Errorf("cmd/%s must not link %s, which no program links: is it called otherwise now?", name, other)
			}
		}
	}
	if len(folders) != len(programs) {
		t.Errorf("there are %d programs, and links_test.go knows %d", len(folders), len(programs))
	}
}

// TestWhatTheRegistryLinks compares the table of ARCHITECTURE.md with what the program links of this module.
func TestWhatTheRegistryLinks(t *testing.T) {
	_, table, found := strings.Cut(architecture(t), "| the registry links | for |")
	if !found {
		t.Fatal("ARCHITECTURE.md does not say what the registry links")
	}
	table, _, _ = strings.Cut(table, "\n\n")
	var said, linked []string
	for _, name := range regexp.MustCompile("`(pkg/[^`]+)`").FindAllStringSubmatch(table, -1) {
		said = append(said, name[1])
	}
	for _, dependency := range listed(t, "cmd/registry") {
		if name, own := strings.CutPrefix(dependency, module+"/"); own && name != "cmd/registry" {
			linked = append(linked, name)
		}
	}
	slices.Sort(said)
	slices.Sort(linked)
	if !slices.Equal(said, linked) {
		t.Errorf("ARCHITECTURE.md says that the registry links\n%q, and it links\n%q", said, linked)
	}
}

// listed returns what `go list -deps` prints of all packages that those of a folder link, themselves included: their paths, unless flags
// say otherwise.
func listed(t *testing.T, folder string, flags ...string) []string {
	t.Helper()
	flags = append([]string{"list", "-deps"}, flags...)
	dir, packages := root, "./"+folder
	if folder == virtualKubelet {
		flags = append(flags, "-modfile="+publishedLiqo(t))
		dir, packages = filepath.Join(root, virtualKubelet), "."
	}
	list := exec.CommandContext(t.Context(), "go", append(flags, packages)...)
	list.Dir = dir
	list.Env = append(os.Environ(), "CGO_ENABLED=0") // As programs are built.
	output, err := list.Output()
	if err != nil {
		t.Fatalf("list what %s links: %v", folder, err)
	}
	var found []string
	for dependency := range strings.Lines(string(output)) {
		found = append(found, strings.TrimSpace(dependency))
	}
	return found
}

// publishedLiqo writes a go.mod of the virtual kubelet with Liqo as it was published: what it links is the same, and no patched copy need
// be there.
func publishedLiqo(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	var sums strings.Builder
	for _, name := range []string{virtualKubelet + "/go.mod", "go.sum", virtualKubelet + "/go.sum"} {
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		if path.Base(name) == "go.sum" {
			sums.Write(text)
			continue
		}
		if err := os.WriteFile(filepath.Join(folder, "go.mod"), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(folder, "go.sum"), []byte(sums.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	edit := exec.CommandContext(t.Context(), "go", "mod", "edit", "-dropreplace="+liqo+"@v0.9.4", filepath.Join(folder, "go.mod"))
	if output, err := edit.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	return filepath.Join(folder, "go.mod")
}
