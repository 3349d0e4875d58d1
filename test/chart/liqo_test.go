// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"encoding/json"
	"flag"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
	"sigs.k8s.io/yaml"
)

const (
	manager = "Deployment/liqo-controller-manager"
	gateway = "Deployment/liqo-gateway"
)

// TestLiqoValues holds that Liqo's chart with our values gives its controller manager and its gateway the flags that our patches give them,
// and the gateway what it requests, and changes nothing else. The chart has no value for the gateway's priority.
func TestLiqoValues(t *testing.T) {
	liqo := loadLiqo(t)
	stock := renderLiqo(t, liqo, nil, "")
	const noPlugin = "controllerManager.config.resourcePluginAddress="
	const address = "virtualKubelet.extra.args={--remote-ipam=server=REMOTE_IPAM}"
	cases := map[string]struct {
		reason, values, set, patch string
		without                    string // A flag that the patch has and the values alone do not.
	}{
		"Broker": {
			reason: "The broker needs no patch of the controller manager.", values: "values-broker.yaml", patch: "controller-manager-broker.json",
		},
		"Consumer": {
			reason: "Nor does a consumer that knows the address.", values: "values-consumer.yaml", set: address,
			patch: "controller-manager-consumer.json",
		},
		"Before": {reason: "A consumer has the values before it knows the address.", values: "values-consumer.yaml",
			patch: "controller-manager-consumer.json", without: "--kubelet-extra-args=--remote-ipam=server=REMOTE_IPAM"},
		"Leaving": {reason: "A broker that is about to leave takes the plugin away, and nothing else.", values: "values-broker.yaml",
			set:   noPlugin,
			patch: "controller-manager-broker.json", without: "--resource-plugin-address=liqo-broker-resource-plugin.liqo-broker:7000"},
		"Trader": {reason: "Nor does a cluster that trades.", values: "values-trader.yaml", patch: "controller-manager-trader.json"},
		"Traded": {reason: "A cluster that has traded takes the plugin away, and nothing else.", values: "values-trader.yaml", set: noPlugin,
			patch: "controller-manager-trader.json", without: "--resource-plugin-address=liqo-broker-connector-plugin.liqo-broker-connector:7000"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			values, err := chartutil.ReadValuesFile(filepath.Join(root, "deploy/liqo", tc.values))
			if err != nil {
				t.Fatal(err)
			}
			got := renderLiqo(t, liqo, values, tc.set)
			want := arguments(patched(t, stock[manager], tc.patch))
			want = slices.DeleteFunc(want, func(flag string) bool { return flag == tc.without })
			if diff := cmp.Diff(effective(t, want), effective(t, arguments(got[manager]))); diff != "" {
				t.Errorf("%s -patched +values\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(share(patched(t, stock[gateway], "gateway-resources.json")), share(got[gateway])); diff != "" {
				t.Errorf("the gateway: -patched +values\n%s", diff)
			}
			setArguments(got[manager], arguments(stock[manager]))
			setArguments(got[gateway], arguments(stock[gateway]))
			container(got[gateway])["resources"] = container(stock[gateway])["resources"]
			if diff := cmp.Diff(stock, got); diff != "" {
				t.Errorf("the values change more than the flags: -stock +values\n%s", diff)
			}
		})
	}
}

// stockFile is as much of Liqo's chart as the installer changes: its own tests install on that.
const stockFile = root + "/pkg/install/testdata/liqo.yaml"

// patchedOfLiqo are the objects of Liqo's chart that the installer changes.
func patchedOfLiqo() []string {
	return []string{
		"ClusterRole/liqo-virtual-kubelet-local", manager, gateway, "Deployment/liqo-network-manager",
		"Service/liqo-network-manager",
	}
}

// update has TestStock write what it would compare.
var update = flag.Bool("update", false, "write "+stockFile)

// TestStock holds that the installer's tests have the objects of Liqo's chart as they are.
func TestStock(t *testing.T) {
	stock := renderLiqo(t, loadLiqo(t), nil, "")
	var want strings.Builder
	want.WriteString("# Of Liqo's chart, rendered by test/chart: go test -C test/chart -run TestStock -update\n")
	for _, key := range patchedOfLiqo() {
		manifest, err := yaml.Marshal(stock[key])
		if err != nil || stock[key] == nil {
			t.Fatal(key, err)
		}
		want.WriteString("---\n" + string(manifest))
	}
	if *update {
		if err := os.WriteFile(stockFile, []byte(want.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(stockFile)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want.String(), string(got)); diff != "" {
		t.Errorf("-Liqo's chart +%s\n%s", stockFile, diff)
	}
}

// TestComponents holds that each component fits Liqo's chart as a whole, and the release of Flux that makes it: what it changes is what the
// installer's tests compare, and nothing else.
func TestComponents(t *testing.T) {
	stock := renderLiqo(t, loadLiqo(t), nil, "")
	var whole []byte
	for _, key := range slices.Sorted(maps.Keys(stock)) {
		manifest, err := yaml.Marshal(stock[key])
		if err != nil {
			t.Fatal(err)
		}
		whole = append(append(whole, "---\n"...), manifest...)
	}
	stock = composed(t, "", string(whole)) // Without what kustomize drops, as empty annotations.
	const release = "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: liqo}\nspec: {chart: {spec: {chart: liqo}}}\n"
	for role, changed := range map[string][]string{
		"broker": patchedOfLiqo(), "consumer": patchedOfLiqo()[:3], "trader": patchedOfLiqo()[:4],
	} {
		t.Run(role, func(t *testing.T) {
			var built [2]map[string]object
			for n, way := range []struct{ component, manifest string }{{role, string(whole)}, {"flux/" + role, release}} {
				built[n] = composed(t, filepath.Join(root, "deploy/liqo/component", way.component), way.manifest)
			}
			var differ []string
			for key := range stock {
				if !cmp.Equal(stock[key], built[0][key]) {
					differ = append(differ, key)
				}
			}
			slices.Sort(differ)
			if !slices.Equal(differ, changed) || len(built[0]) != len(stock) {
				t.Errorf("of %d objects, with %d before, %v change; want %v", len(built[0]), len(stock), differ, changed)
			}

			// Flux applies the patches of the release by the same library.
			spec, _ := built[1]["HelmRelease/liqo"]["spec"].(map[string]any)
			renderers, _ := spec["postRenderers"].([]any)
			if len(renderers) != 1 || spec["chart"] == nil {
				t.Fatalf("the release of Flux is %v", built[1])
			}
			renderer, _ := renderers[0].(map[string]any)
			patches, err := yaml.Marshal(renderer["kustomize"])
			if err != nil {
				t.Fatal(err)
			}
			folder := t.TempDir()
			head := "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\n"
			if err := os.WriteFile(filepath.Join(folder, "kustomization.yaml"), append([]byte(head), patches...), 0o600); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(built[0], composed(t, folder, string(whole))); diff != "" {
				t.Errorf("-component +Flux\n%s", diff)
			}
		})
	}
}

// composed returns what kustomize makes of a manifest with a component; none if it is empty.
func composed(t *testing.T, component, manifest string) map[string]object {
	t.Helper()
	folder := t.TempDir()
	kustomization := "resources: [manifest.yaml]\n"
	if component != "" {
		kustomization += "components: [component]\n"
		if err := os.CopyFS(filepath.Join(folder, "component"), os.DirFS(component)); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{"kustomization.yaml": kustomization, "manifest.yaml": manifest} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return kustomized(t, folder)
}

// TestStockValues holds that a broker, a consumer or a cluster that trades has, when it leaves, the Liqo that it would have without us.
func TestStockValues(t *testing.T) {
	liqo := loadLiqo(t)
	stock := renderLiqo(t, liqo, nil, "")
	for _, file := range []string{"values-broker.yaml", "values-consumer.yaml", "values-trader.yaml"} {
		values := map[string]chartutil.Values{}
		for _, name := range []string{file, "values-stock.yaml"} {
			read, err := chartutil.ReadValuesFile(filepath.Join(root, "deploy/liqo", name))
			if err != nil {
				t.Fatal(err)
			}
			values[name] = read
		}
		// As helm upgrade --reset-then-reuse-values does.
		got := renderLiqo(t, liqo, chartutil.CoalesceTables(values["values-stock.yaml"], values[file]), "")
		if diff := cmp.Diff(stock, got); diff != "" {
			t.Errorf("who had %s: -stock +left\n%s", file, diff)
		}
	}
}

// liqoModule returns the folder of the Go module of Liqo that a module of ours is built from, which is in a folder.
func liqoModule(t *testing.T, of string) string {
	t.Helper()
	list := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/liqotech/liqo")
	list.Dir = of
	out, err := list.Output()
	if err != nil {
		t.Fatalf("look up Liqo's module: %v", err)
	}
	return strings.TrimSpace(string(out))
}

// loadLiqo reads Liqo's chart, of the version that Liqo publishes it as.
func loadLiqo(t *testing.T) *chart.Chart {
	t.Helper()
	module := liqoModule(t, root)
	_, version, _ := strings.Cut(filepath.Base(module), "@")
	liqo := load(t, filepath.Join(module, "deployments/liqo"))
	liqo.Metadata.AppVersion = version
	return liqo
}

// renderLiqo returns the objects of Liqo's chart that are the same each time it is rendered.
func renderLiqo(t *testing.T, liqo *chart.Chart, values map[string]any, set string) map[string]object {
	t.Helper()
	// Where Liqo's own values are random.
	fixed :=
		"discovery.config.clusterName=name,discovery.config.clusterIDOverride=2f6a1d3c-5b8e-4c7f-8a90-3e1d2c4b5a69," +
			"telemetry.config.schedule=0 */12 * * *"
	objects, _ := release{namespace: "liqo", set: strings.Trim(fixed+","+set, ","), values: values}.render(t, liqo)
	if len(arguments(objects[manager])) == 0 {
		t.Fatal("Liqo's chart has no controller manager with flags")
	}
	return objects
}

// container returns the first container of a Deployment.
func container(deployment object) map[string]any {
	spec, _ := deployment["spec"].(map[string]any)
	template, _ := spec["template"].(map[string]any)
	pod, _ := template["spec"].(map[string]any)
	containers, _ := pod["containers"].([]any)
	if len(containers) == 0 {
		return nil
	}
	first, _ := containers[0].(map[string]any)
	return first
}

// share returns the flags of the first container of a Deployment, and what it requests.
func share(deployment object) []any {
	resources, _ := container(deployment)["resources"].(map[string]any)
	return []any{arguments(deployment), resources["requests"]}
}

func arguments(deployment object) (flags []string) {
	list, _ := container(deployment)["args"].([]any)
	for _, flag := range list {
		flags = append(flags, flag.(string))
	}
	return flags
}

func setArguments(deployment object, flags []string) {
	list := make([]any, 0, len(flags))
	for _, flag := range flags {
		list = append(list, flag)
	}
	container(deployment)["args"] = list
}

// patched returns an object as kubectl patch --type json changes it.
func patched(t *testing.T, o object, file string) (result object) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, "patches/liqo-install", file))
	if err != nil {
		t.Fatal(err)
	}
	patch, err := jsonpatch.DecodePatch(content)
	if err != nil {
		t.Fatal(err)
	}
	changed, err := patch.Apply([]byte(text(t, o)))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(changed, &result); err != nil {
		t.Fatal(err)
	}
	return result
}

// effective returns what Liqo makes of flags: of one that is there twice the last counts, and those of the virtual kubelet add up
// (StringList in liqo/pkg/utils/args@v0.9.4), in any order.
func effective(t *testing.T, flags []string) map[string]string {
	t.Helper()
	const adds = "--kubelet-extra-args"
	result := map[string]string{}
	for _, flag := range flags {
		name, value, _ := strings.Cut(flag, "=")
		if before, again := result[name]; again && name == adds {
			value = before + "," + value
		}
		result[name] = value
	}
	list := strings.Split(result[adds], ",")
	slices.Sort(list)
	result[adds] = strings.Join(list, ",")
	return result
}
