// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

// pageFile is a file that a page shows, with its name before it.
var pageFile = regexp.MustCompile("(?m)^`([a-z/-]+\\.yaml)`:\n\n((?:(?:    .*)?\n)+)")

// gitOps returns the files that the page about repositories shows, by name, in their order.
func gitOps(t *testing.T) map[string][]string {
	t.Helper()
	return filesOf(t, "docs/gitops.md")
}

// filesOf returns those that a page shows.
func filesOf(t *testing.T, of string) map[string][]string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(root, of))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]string{}
	for _, found := range pageFile.FindAllStringSubmatch(string(page), -1) {
		files[found[1]] = append(files[found[1]], regexp.MustCompile("(?m)^    ").ReplaceAllString(found[2], ""))
	}
	return files
}

// decoded returns the objects of a file of the page.
func decoded(t *testing.T, text string) map[string]object {
	t.Helper()
	objects := map[string]object{}
	for _, o := range decode(t, "docs/gitops.md", text) {
		objects[o.key()] = o
	}
	return objects
}

// at returns what is at a path in an object; nil if there is nothing.
func at(o any, path ...string) any {
	for _, key := range path {
		switch in := o.(type) {
		case map[string]any:
			o = in[key]
		case object:
			o = in[key]
		case []any:
			n, err := strconv.Atoi(key)
			if err != nil || n >= len(in) {
				return nil
			}
			o = in[n]
		default:
			return nil
		}
	}
	return o
}

// TestArgoCD builds the repository of the page about Argo CD: with the values that it shows, Liqo's chart is the same each time, what is
// applied is Liqo with the patches and the broker, and in waves that do not wait for each other in a circle.
func TestArgoCD(t *testing.T) {
	files := gitOps(t)
	chart := decode(t, "", files["milan/liqo/kustomization.yaml"][0])[0]
	liqo := loadLiqo(t)
	if at(chart, "helmCharts", "0", "name") != liqo.Name() || at(chart, "helmCharts", "0", "version") != liqo.AppVersion() {
		t.Errorf("the page renders %v, want %s %s", at(chart, "helmCharts", "0"), liqo.Name(), liqo.AppVersion())
	}
	values, _ := at(chart, "helmCharts", "0", "valuesInline").(map[string]any)
	rendered, _ := release{namespace: "liqo", values: values}.render(t, liqo)
	again, _ := release{namespace: "liqo", values: values}.render(t, liqo)
	if diff := cmp.Diff(rendered, again); diff != "" {
		t.Errorf("Liqo's chart is another one each time:\n%s", diff)
	}
	for key := range rendered {
		if strings.HasPrefix(key, "CronJob/") {
			t.Errorf("%s is of the minute in which it is rendered", key)
		}
	}
	for _, crd := range liqo.CRDObjects() {
		for _, o := range decode(t, crd.Name, string(crd.File.Data)) {
			rendered[o.key()] = o
		}
	}

	// As kustomize would find it, but for the rendering, which needs helm.
	repository := t.TempDir()
	var manifest []byte
	for _, key := range slices.Sorted(maps.Keys(rendered)) {
		text, err := yaml.Marshal(rendered[key])
		if err != nil {
			t.Fatal(err)
		}
		manifest = append(append(manifest, "---\n"...), text...)
	}
	delete(chart, "helmCharts")
	chart["resources"] = []string{"rendered.yaml"}
	kustomization, err := yaml.Marshal(chart)
	if err != nil {
		t.Fatal(err)
	}
	writeFiles(t, repository, map[string]string{
		"milan/liqo/kustomization.yaml": string(kustomization), "milan/liqo/rendered.yaml": string(manifest),
		"milan/kustomization.yaml": files["milan/kustomization.yaml"][0],
	})
	exportAs(t, filepath.Join(repository, "milan/export"))
	built := kustomized(t, filepath.Join(repository, "milan"))
	if !strings.Contains(text(t, built[manager]), "--kubelet-image=capacitorset/liqo-broker-vk:") ||
		built["Deployment/liqo-broker/liqo-broker"] == nil || built["NamespaceOffloading/liqo/offloading"] == nil {
		t.Errorf("%d objects are built, without the broker or the patches", len(built))
	}
	for key, o := range built {
		want := any(nil)
		switch o["kind"] {
		case "CustomResourceDefinition", "Namespace":
			want = "-1"
		case "NamespaceOffloading":
			want = "1"
		}
		if wave := at(o, "metadata", "annotations", "argocd.argoproj.io/sync-wave"); wave != want {
			t.Errorf("%s is in wave %v, want %v", key, wave, want)
		}
	}
	if source := at(decode(t, "", files["application.yaml"][0])[0], "spec", "source", "path"); source != "milan" {
		t.Errorf("the Application is of %v", source)
	}
}

// exportAs writes a folder as the plugin exports it of a broker, from what the repository has.
func exportAs(t *testing.T, folder string) {
	t.Helper()
	for to, from := range map[string]string{"liqo": "deploy/liqo/component/broker", "flux": "deploy/liqo/component/flux/broker"} {
		if err := os.CopyFS(filepath.Join(folder, to), os.DirFS(filepath.Join(root, from))); err != nil {
			t.Fatal(err)
		}
	}
	offering, err := os.ReadFile(filepath.Join(root, "deploy/liqo/namespaceoffloading.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var broker strings.Builder
	for _, o := range kustomized(t, filepath.Join(root, "deploy"), filepath.Join(root, "deploy/admission")) {
		broker.WriteString("---\n" + text(t, o) + "\n")
	}
	writeFiles(t, folder, map[string]string{
		"offering/namespaceoffloading.yaml": string(offering), "offering/kustomization.yaml": "resources: [namespaceoffloading.yaml]\n",
		"broker/broker.yaml": broker.String(), "broker/kustomization.yaml": "resources: [broker.yaml]\n",
	})
}

// writeFiles writes files below a folder.
func writeFiles(t *testing.T, folder string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(folder, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// TestIgnoredDifferences holds that Argo CD leaves alone what the patches change of Liqo, wholly, and no more: each place that the page
// names differs.
func TestIgnoredDifferences(t *testing.T) {
	ignored := decode(t, "", gitOps(t)["ignore.yaml"][0])[0]
	stock := readStock(t)
	patched := composed(t, filepath.Join(root, "deploy/liqo/component/broker"), stock)
	before := composed(t, "", stock)
	list, _ := ignored["ignoreDifferences"].([]any)
	for _, one := range list {
		key := at(one, "kind").(string) + "/" + at(one, "name").(string)
		pointers, _ := at(one, "jsonPointers").([]any)
		for _, pointer := range pointers {
			path := strings.Split(strings.TrimPrefix(pointer.(string), "/"), "/")
			if cmp.Equal(at(before[key], path...), at(patched[key], path...)) {
				t.Errorf("%s of %s does not change", pointer, key)
			}
			before[key], patched[key] = without(t, before[key], pointer.(string)), without(t, patched[key], pointer.(string))
		}
	}
	if diff := cmp.Diff(before, patched); diff != "" || len(before) != len(patchedOfLiqo()) {
		t.Errorf("what is left: -stock +patched\n%s", diff)
	}
}

// readStock returns the objects of Liqo's chart that the installer changes.
func readStock(t *testing.T) string {
	t.Helper()
	stock, err := os.ReadFile(stockFile)
	if err != nil {
		t.Fatal(err)
	}
	return string(stock)
}

// without returns an object without what a JSON pointer names, which need not be there.
func without(t *testing.T, o object, pointer string) (left object) {
	t.Helper()
	patch, err := jsonpatch.DecodePatch([]byte(`[{"op": "remove", "path": "` + pointer + `"}]`))
	if err != nil {
		t.Fatal(err)
	}
	options := jsonpatch.NewApplyOptions()
	options.AllowMissingPathOnRemove = true
	changed, err := patch.ApplyWithOptions([]byte(text(t, o)), options)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(changed, &left); err != nil {
		t.Fatal(err)
	}
	return left
}

// TestFlux builds what the page has Flux apply: the release gets the patches, and the offer waits for Liqo and for the broker.
func TestFlux(t *testing.T) {
	files := gitOps(t)
	repository := t.TempDir()
	writeFiles(t, repository, map[string]string{
		"milan/liqo/kustomization.yaml": files["milan/liqo/kustomization.yaml"][1],
		"milan/liqo/release.yaml":       files["milan/liqo/release.yaml"][0],
	})
	exportAs(t, filepath.Join(repository, "milan/export"))
	built := kustomized(t, filepath.Join(repository, "milan/liqo"))
	helm := built["HelmRelease/flux-system/liqo"]
	if patches, _ := at(helm, "spec", "postRenderers", "0", "kustomize", "patches").([]any); len(patches) != 7 {
		t.Errorf("the release has %d patches: %v", len(patches), helm)
	}
	liqo := loadLiqo(t)
	if version := at(helm, "spec", "chart", "spec", "version"); version != liqo.AppVersion() {
		t.Errorf("the release is of %v, want %s", version, liqo.AppVersion())
	}
	values, _ := at(helm, "spec", "values").(map[string]any)
	release{namespace: "liqo", values: values}.render(t, liqo)

	for _, file := range []string{"flux-system/milan.yaml", "flux-system/shop.yaml"} {
		all := decoded(t, files[file][0])
		for key, o := range all {
			list, _ := at(o, "spec", "dependsOn").([]any)
			for _, on := range list {
				before := all["Kustomization/flux-system/"+at(on, "name").(string)]
				if at(before, "spec", "wait") != true {
					t.Errorf("%s of %s depends on %v, which does not wait", key, file, on)
				}
			}
			folder, _ := at(o, "spec", "path").(string)
			if _, err := os.Stat(filepath.Join(repository, folder)); err != nil && strings.HasPrefix(folder, "./milan") {
				t.Errorf("%s: %v", key, err)
			}
		}
	}
	if on := at(decoded(t, files["flux-system/milan.yaml"][0])["Kustomization/flux-system/offering"], "spec", "dependsOn"); !cmp.Equal(on,
		[]any{map[string]any{"name": "liqo"}, map[string]any{"name": "broker"}}) {
		t.Errorf("the offering depends on %v", on)
	}
}

// TestOffloadedInOrder holds that the page asks NamespaceOffloadings for what Liqo writes there, that their fields are Liqo's, and that
// what it says of pods is what Liqo's webhook is registered for.
func TestOffloadedInOrder(t *testing.T) {
	files := gitOps(t)
	liqo := loadLiqo(t)
	types, err := os.ReadFile(filepath.Join(liqoModule(t, root), "apis/offloading/v1alpha1/namespaceoffloading_types.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`OffloadingPhaseType = "Ready"`, `json:"offloadingPhase,omitempty"`} {
		if !strings.Contains(string(types), want) {
			t.Errorf("Liqo has no %s", want)
		}
	}
	health := at(decode(t, "", files["argocd-cm.yaml"][0])[0], "data",
		"resource.customizations.health.offloading.liqo.io_NamespaceOffloading").(string)
	if !strings.Contains(health, `obj.status.offloadingPhase == "Ready"`) {
		t.Errorf("the health of Argo CD is %s", health)
	}
	shop := decoded(t, files["shop.yaml"][0])
	wave := func(key string) string {
		wave, _ := at(shop[key], "metadata", "annotations", "argocd.argoproj.io/sync-wave").(string)
		return wave
	}
	if first, second := wave("Namespace/shop"), wave("NamespaceOffloading/shop/offloading"); first != "-2" || second != "-1" {
		t.Errorf("the waves are %s, %s, and 0 for the rest", first, second)
	}
	for _, crd := range liqo.CRDObjects() {
		if !strings.HasSuffix(crd.Name, "namespaceoffloadings.yaml") {
			continue
		}
		fields, _ := at(decode(t, "", string(crd.File.Data))[0], "spec", "versions", "0", "schema", "openAPIV3Schema", "properties", "spec",
			"properties").(map[string]any)
		spec, _ := at(shop["NamespaceOffloading/shop/offloading"], "spec").(map[string]any)
		for field := range spec {
			if fields[field] == nil {
				t.Errorf("Liqo's NamespaceOffloadings have no field %s", field)
			}
		}
		if len(spec) == 0 || len(fields) == 0 {
			t.Errorf("%d fields of %d", len(spec), len(fields))
		}
	}
	hooks := text(t, renderLiqo(t, liqo, nil, ""))
	if !strings.Contains(hooks, `"namespaceSelector":{"matchLabels":{"liqo.io/scheduling-enabled":"true"}}`) {
		t.Error("Liqo's webhook of pods is about other namespaces")
	}
}
