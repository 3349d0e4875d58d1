// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"fmt"
	"maps"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/releaseutil"
	"helm.sh/helm/v3/pkg/strvals"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// The charts: of the broker, of the connector of a cluster, of a registry, and of the agent of a consumer with Liqo 1.x.
const (
	root          = "../.."
	ours          = root + "/deploy/chart"
	connector     = root + "/deploy/chart-connector"
	registryChart = root + "/deploy/chart-registry"
	agentChart    = root + "/deploy/chart-agent"

	// agentName is what the agent's chart is called.
	agentName = "liqo-broker-agent"

	notes = "NOTES.txt"
)

// charts returns all charts.
func charts() []string { return []string{ours, connector, registryChart, agentChart} }

// The kinds by which charts know the lines of Liqo's versions.
const (
	of09 = "discovery.liqo.io/v1alpha1/ForeignCluster"
	of1  = "core.liqo.io/v1beta1/ForeignCluster"
)

// served returns the kinds of Liqo that an API server has unless a test says something else: those that a chart is for.
func served(c *chart.Chart) []string {
	if c.Name() == agentName {
		return []string{of1}
	}
	return []string{of09}
}

// everywhere returns the objects of a chart, on whichever line of Liqo's versions each is there.
func everywhere(t *testing.T, c *chart.Chart, set string) map[string]object {
	t.Helper()
	objects := map[string]object{}
	for _, kind := range []string{of09, of1} {
		if c.Name() == agentName && kind == of09 { // It is for the other one only.
			continue
		}
		found, _ := release{set: set, kinds: []string{kind}}.render(t, c)
		maps.Copy(objects, found)
	}
	return objects
}

// object is one of Kubernetes', as its manifest says.
type object map[string]any

// key tells objects of one cluster apart.
func (o object) key() string {
	metadata, _ := o["metadata"].(map[string]any)
	namespace, _ := metadata["namespace"].(string)
	name, _ := metadata["name"].(string)
	kind, _ := o["kind"].(string)
	return path.Join(kind, namespace, name)
}

// release is how a chart is rendered.
type release struct {
	// namespace of the release; that of the chart's name if empty.
	namespace string
	// kubernetes is the version of the API server; v1.34.0 if empty.
	kubernetes string
	// kinds are those of Liqo that the API server has, as Helm writes them; those that the chart is for if nil.
	kinds []string
	// set are values as of helm's flag --set.
	set string
	// values are read before set.
	values map[string]any
}

// load reads a chart.
func load(t *testing.T, dir string) *chart.Chart {
	t.Helper()
	loaded, err := loader.LoadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	return loaded
}

// files renders a chart, and returns what comes of each of its templates.
func (r release) files(c *chart.Chart) (map[string]string, error) {
	if r.namespace == "" {
		r.namespace = c.Name()
	}
	if r.kubernetes == "" {
		r.kubernetes = "v1.34.0"
	}
	version, err := chartutil.ParseKubeVersion(r.kubernetes)
	if err != nil {
		return nil, err
	}
	if c.Metadata.KubeVersion != "" && !chartutil.IsCompatibleRange(c.Metadata.KubeVersion, version.Version) {
		return nil, fmt.Errorf("the chart is for Kubernetes %s, and this is %s", c.Metadata.KubeVersion, version.Version)
	}
	capabilities := chartutil.DefaultCapabilities.Copy()
	capabilities.KubeVersion = *version
	if r.kinds == nil {
		r.kinds = served(c)
	}
	capabilities.APIVersions = append(capabilities.APIVersions, r.kinds...)
	given := map[string]any{}
	maps.Copy(given, r.values)
	if err := strvals.ParseInto(r.set, given); err != nil {
		return nil, err
	}
	options := chartutil.ReleaseOptions{Name: "our-release", Namespace: r.namespace, Revision: 1, IsInstall: true}
	values, err := chartutil.ToRenderValues(c, given, options, capabilities)
	if err != nil {
		return nil, err
	}
	return engine.Render(c, values)
}

// render renders a chart, and returns its objects and its notes.
func (r release) render(t *testing.T, c *chart.Chart) (objects map[string]object, text string) {
	t.Helper()
	files, err := r.files(c)
	if err != nil {
		t.Fatal(err)
	}
	objects = map[string]object{}
	for name, content := range files {
		switch {
		case path.Base(name) == notes:
			text = content
		case strings.HasSuffix(name, ".yaml"):
			for _, o := range decode(t, name, content) {
				if _, twice := objects[o.key()]; twice {
					t.Errorf("%s has a second %s", name, o.key())
				}
				objects[o.key()] = o
			}
		}
	}
	return objects, text
}

// TestImagesArePublished renders each chart for images in a registry of one's own: each is where make publish pushes it.
func TestImagesArePublished(t *testing.T) {
	const registry, version = "ghcr.io/someone", "v0.0.7"
	list := exec.CommandContext(t.Context(), "go", "run", ".", "names", "-registry", registry, "-version", version)
	list.Dir = root + "/build/release"
	names, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	published := strings.Fields(string(names))
	for _, folder := range charts() {
		c := load(t, folder)
		c.Metadata.AppVersion = version
		found := 0
		for key, o := range everywhere(t, c, "image.registry="+registry) {
			for _, image := range regexp.MustCompile(`"image":"([^"]+)"`).FindAllStringSubmatch(text(t, o), -1) {
				found++
				if !slices.Contains(published, image[1]) {
					t.Errorf("%s of %s asks for %s; published are %v", key, folder, image[1], published)
				}
			}
		}
		if found == 0 {
			t.Errorf("%s asks for no image", folder)
		}
	}
}

// decode reads the objects of a manifest, which it takes apart as Helm does. A key that is there twice is an error.
func decode(t *testing.T, name, content string) (objects []object) {
	t.Helper()
	for _, document := range releaseutil.SplitManifests(content) {
		var o object
		if err := yaml.UnmarshalStrict([]byte(document), &o); err != nil {
			t.Fatalf("%s: %v\n%s", name, err, document)
		}
		if len(o) > 0 {
			objects = append(objects, o)
		}
	}
	return objects
}

// kustomized returns the objects that kubectl apply -k applies.
func kustomized(t *testing.T, dirs ...string) map[string]object {
	t.Helper()
	objects := map[string]object{}
	for _, dir := range dirs {
		built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
		if err != nil {
			t.Fatal(err)
		}
		text, err := built.AsYaml()
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range decode(t, dir, string(text)) {
			objects[o.key()] = o
		}
	}
	return objects
}
