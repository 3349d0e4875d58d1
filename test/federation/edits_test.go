// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package federation

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"github.com/capacitorset/liqo-broker/test/docs"
)

// labTag is the tag of images in these tests.
const labTag = "lab-1"

// allowedValues are the values that the release of the lab's readers may have otherwise than that of people, by file and field. Nothing may
// be there more, or less.
var allowedValues = []struct {
	file, field string
	same        func(from, to string) bool
	reason      string
}{
	{`deploy/(connector|registry)/kustomization\.yaml`, `images\.0\.newTag`, isTag, "The images are those that were built last."},
	{`deploy/chart-connector/Chart\.yaml`, `appVersion`, isTag, "The same, by Helm."},
	{
		`deploy/connector/deployment\.yaml`, `ConfigMap/liqo-broker-connector data\.share`, is("30", "90"),
		"The nodes of the lab are small: they sell nearly all that they have.",
	},
	{`deploy/chart-connector/values\.yaml`, `share`, is("30", "90"), "The same, by Helm."},
	{
		`deploy/connector/deployment\.yaml`, `ConfigMap/liqo-broker-connector data\.drain`, is("5m", "20s"),
		"Journeys do not wait for workloads that have left.",
	},
	{`deploy/chart-connector/values\.yaml`, `drain`, is("5m", "20s"), "The same, by Helm."},
	{
		`deploy/examples/trade/(offer|capacityrequest|purchase)\.yaml`, `(Offer|CapacityRequest|Purchase)/\w+ spec\.(plans\.\d\.)?(resources|range\.\w+|unitPrices)\.(cpu|memory)(\.per)?`,
		isPart(8), "The small nodes of the lab sell eighths.",
	},
	{
		`deploy/examples/trade/(offer|capacityrequest|purchase)\.yaml`,
		`(Offer|CapacityRequest|Purchase)/\w+ spec\.(plans\.\d\.)?(resources|range\.\w+)\.pods`, isPart(5), "They have room for few pods.",
	},
	{
		exampleRegistry, `Registry/my-registry spec\.url`, is("https://registry.example:30443", registryURL),
		"Where the registry is, which people are told.",
	},
	{exampleRegistry, `Registry/my-registry spec\.fingerprint`, is(exampleParty, registryKey), "By what it is known, which people are told."},
}

// allowedTexts are the texts of commands that may be others, and nothing else of the commands.
var allowedTexts = []struct{ from, to, reason string }{
	{"kubectl liqo-broker guard", "kubectl liqo-broker guard --tag=" + labTag, "The images are those that were built last."},
	{"kubectl liqo-broker prepare", "kubectl liqo-broker prepare --tag=" + labTag, "The same."},
	{"helm install", "helm upgrade --install", "Helm upgrades what an earlier run on the lab has left."},
	{"https://203.0.113.7:30446", sellerURL, "Where the cluster is."},
	{"--cpu 2 --memory 4Gi", "--cpu 250m --memory 512Mi", "The small nodes of the lab sell eighths."},
	{"--pods 20", "--pods 4", "They have room for few pods."},
	{"--image=nginx", "--image=lab.local/web:1", "The lab reaches nobody who has images."},
}

const (
	registryURL, sellerURL = "https://172.30.0.100:8443", "https://172.30.0.3:30446"
	registryKey            = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
)

func is(a, b string) func(from, to string) bool {
	return func(from, to string) bool { return from == a && to == b }
}

func isTag(from, to string) bool { return strings.HasPrefix(from, "v") && to == labTag }

// isPart reports whether a quantity is a part of another one.
func isPart(of int64) func(from, to string) bool {
	return func(from, to string) bool {
		whole, err1 := resource.ParseQuantity(from)
		part, err2 := resource.ParseQuantity(to)
		if err1 != nil || err2 != nil {
			return false
		}
		return part.MilliValue()*of == whole.MilliValue()
	}
}

// released gives a reader the release that the lab's have, as one has it that is to join a registry.
func released(t *testing.T) *Reader {
	t.Helper()
	r := &Reader{f: &Federation{root: "../.."}}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := errors.Join(r.unpack(labTag), r.Edit(exampleRegistry, joined(registryURL, registryKey)...)); err != nil {
		t.Fatal(err)
	}
	return r
}

// fields returns the values of a file by what they are of: of objects by kind and name. What is no YAML is one value.
func fields(file string, text []byte) map[string]string {
	all := map[string]string{}
	if filepath.Ext(file) != ".yaml" {
		return map[string]string{"": string(text)}
	}
	decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	for n := 0; ; n++ {
		var document any
		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) {
			return all
		}
		object, is := document.(map[string]any)
		if err != nil || document != nil && !is {
			return map[string]string{"": string(text)}
		}
		of := ""
		metadata, _ := object["metadata"].(map[string]any)
		if name, named := metadata["name"].(string); named {
			of = fmt.Sprintf("%v/%s ", object["kind"], name)
		}
		if _, twice := all[of]; twice {
			of += fmt.Sprint(n, " ")
		}
		all[of] = "there"
		flatten(of, document, all)
	}
}

func flatten(at string, value any, into map[string]string) {
	below := func(key any) string {
		if at == "" || strings.HasSuffix(at, " ") {
			return fmt.Sprint(at, key)
		}
		return fmt.Sprint(at, ".", key)
	}
	switch value := value.(type) {
	case map[string]any:
		for key, inner := range value {
			flatten(below(key), inner, into)
		}
	case []any:
		for n, inner := range value {
			flatten(below(n), inner, into)
		}
	default:
		into[at] = fmt.Sprint(value)
	}
}

// edited returns what of a reader's release is otherwise than in the repository and is not allowed, and which rows of the table allow
// something.
func edited(t *testing.T, r *Reader) (wrong []string, used map[int]bool) {
	t.Helper()
	read := func(root string) map[string][]byte {
		files := map[string][]byte{}
		err := filepath.WalkDir(filepath.Join(root, "deploy"), func(path string, entry os.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			text, err := os.ReadFile(path)
			name, err2 := filepath.Rel(root, path)
			files[name] = text
			return errors.Join(err, err2)
		})
		if err != nil {
			t.Fatal(err)
		}
		return files
	}
	people, lab := read(r.f.root), read(r.folder)
	used = map[int]bool{}
	for file := range union(people, lab) {
		if bytes.Equal(people[file], lab[file]) {
			continue
		}
		were, are := fields(file, people[file]), fields(file, lab[file])
		for field := range union(were, are) {
			from, has1 := were[field]
			to, has2 := are[field]
			if has1 == has2 && from == to {
				continue
			}
			row := slices.IndexFunc(allowedValues, func(row struct {
				file, field string
				same        func(from, to string) bool
				reason      string
			},
			) bool {
				whole := func(pattern, text string) bool { return regexp.MustCompile("^(" + pattern + ")$").MatchString(text) }
				return has1 && has2 && whole(row.file, file) && whole(row.field, field) && row.same(from, to)
			})
			if row < 0 {
				wrong = append(wrong, fmt.Sprintf("%s: %s: %.80q becomes %.80q", file, field, from, to))
			}
			used[row] = true
		}
	}
	return wrong, used
}

func union[V any](a, b map[string]V) map[string]bool {
	all := map[string]bool{}
	for _, m := range []map[string]V{a, b} {
		for key := range m {
			all[key] = true
		}
	}
	return all
}

// TestReleaseIsThatOfPeople holds that the release which readers have in the lab differs from that of people in values that the table
// names: nothing is added to it.
func TestReleaseIsThatOfPeople(t *testing.T) {
	wrong, used := edited(t, released(t))
	for _, what := range wrong {
		t.Errorf("the federation changes what no reason is given for: %s", what)
	}
	for n, row := range allowedValues {
		if !used[n] {
			t.Errorf("nothing of %s is otherwise in %s: %s", row.field, row.file, row.reason)
		}
	}
}

// TestReleaseThatAdds gives the lab's readers more than people have: each is found.
func TestReleaseThatAdds(t *testing.T) {
	for name, tc := range map[string]struct{ file, from, to, want string }{
		"Flag": {"deploy/connector/deployment.yaml", "- --share=$(SHARE)", "- --share=$(SHARE)\n            - --decide-for=1h", "args"},
		"Right": {
			"deploy/connector/rbac.yaml", "resources: [nodes]\n    verbs: [get, ", "resources: [nodes]\n    verbs: [delete, get, ",
			"ClusterRole/liqo-broker-connector rules",
		},
		"Hook":  {"deploy/guard/webhook.yaml", "failurePolicy: Fail", "failurePolicy: Ignore", "failurePolicy"},
		"Image": {"deploy/guard/deployment.yaml", "image: capacitorset/liqo-broker ", "image: lab.local/liqo-broker ", "image"},
		"Object": {
			"deploy/connector/namespace.yaml", "apiVersion: v1", "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: more\n---\napiVersion: v1",
			"ConfigMap/more",
		},
		"Value":    {"deploy/connector/deployment.yaml", `share: "90"`, `share: "95"`, "data.share"},
		"Size":     {"deploy/examples/trade/purchase.yaml", "cpu: 375m", "cpu: 500m", "resources.cpu"},
		"Template": {"deploy/chart-connector/templates/NOTES.txt", "{{", "more {{", "becomes"},
	} {
		t.Run(name, func(t *testing.T) {
			r := released(t)
			if err := r.Edit(tc.file, tc.from, tc.to); err != nil {
				t.Fatal(err)
			}
			if wrong, _ := edited(t, r); len(wrong) == 0 || !strings.Contains(strings.Join(wrong, "\n"), tc.want) {
				t.Errorf("it is not found: %q, want %q", wrong, tc.want)
			}
		})
	}
}

// TestCommandsAreThoseOfPeople holds that readers run the commands of the pages, with others in the place of texts that the table names.
func TestCommandsAreThoseOfPeople(t *testing.T) {
	f := &Federation{root: "../.."}
	allowed, used := []string{}, map[string]bool{}
	for _, row := range allowedTexts {
		allowed = append(allowed, row.from, row.to)
	}
	seen := 0
	for _, page := range []string{"trade/buyer", "trade/provider", "trade/operator", "trade/registry", "tutorials/trade"} {
		for _, in := range []string{"InstallMarket", "TestTraders", "TestResell", "TestOperator", "RotateKey"} {
			r, err := f.Read("docs/"+page+".md", in, append(soldAt(sellerURL), replaced(labTag)...)...)
			if err != nil {
				t.Fatal(err)
			}
			for _, b := range slices.Concat(r.Blocks, r.Inline) {
				seen++
				if got, want := r.instead.Replace(b.Text), strings.NewReplacer(allowed...).Replace(b.Text); got != want {
					t.Errorf("%s: what is run is otherwise for no reason:\n%swant\n%s", b, got, want)
				}
				for _, row := range allowedTexts {
					used[row.from] = used[row.from] || strings.Contains(b.Text, row.from)
				}
			}
		}
	}
	for _, row := range allowedTexts {
		if !used[row.from] {
			t.Errorf("no command has %q: %s", row.from, row.reason)
		}
	}
	if seen < 50 {
		t.Errorf("only %d commands are seen", seen)
	}
}

// TestRegistryIsThatOfPeople holds that the registry of the market is run by the command of the page, with one flag more, which the
// manifests have.
func TestRegistryIsThatOfPeople(t *testing.T) {
	f := &Federation{root: "../.."}
	const page, metrics = "docs/trade/operator.md", "--metrics-address=:8445"
	run, err := f.serve(page)
	if err != nil {
		t.Fatal(err)
	}
	blocks, err := docs.Read(f.root, page, "InstallMarket")
	if err != nil {
		t.Fatal(err)
	}
	// Exec, so that the registry itself is what is killed.
	if want := strings.Replace(blocks[0].Text, "registry serve", "exec registry serve "+metrics, 1); run != want {
		t.Errorf("the registry is run by\n%s, want\n%s", run, want)
	}
	manifest, err := os.ReadFile(f.path("deploy", "registry", "statefulset.yaml"))
	if err != nil || !bytes.Contains(manifest, []byte("- "+metrics)) {
		t.Errorf("deploy/registry has no %s: %v", metrics, err)
	}
}
