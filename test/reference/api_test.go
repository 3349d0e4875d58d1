// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/capacitorset/liqo-broker/test/golden"
)

func TestAPI(t *testing.T) {
	var files []string
	for _, folder := range []string{"deploy/crds", "deploy/connector/crds"} {
		found, err := filepath.Glob(filepath.Join(root, folder, "brokering.liqo.io_*.yaml"))
		if err != nil || len(found) < 6 {
			t.Fatalf("only %d CRDs are found in %s: %v", len(found), folder, err)
		}
		files = append(files, found...)
	}
	var out strings.Builder
	out.WriteString("# API\n\n" + written +
		"All kinds are of the group `brokering.liqo.io` and belong to no namespace. `kubectl explain KIND.spec` says the same.\n\n")
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var crd apiextensionsv1.CustomResourceDefinition
		if err := yaml.UnmarshalStrict(text, &crd); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for _, version := range crd.Spec.Versions {
			schema := version.Schema.OpenAPIV3Schema
			oneLineEach(t, file, schema)
			fmt.Fprintf(&out, "## %s (%s)\n\n%s\n\n| field | type | default | what it is |\n|---|---|---|---|\n", crd.Spec.Names.Kind, version.Name,
				line(schema.Description))
			for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
				if part := schema.Properties[name]; name != "apiVersion" && name != "kind" && name != "metadata" {
					printFields(&out, name, &part, slices.Contains(schema.Required, name))
				}
			}
			out.WriteString("\n")
		}
	}
	golden.Check(t, page("api.md"), strings.TrimSuffix(out.String(), "\n"))
}

// oneLineEach holds that each paragraph of what a schema says is one line: whatever shows it breaks lines itself.
func oneLineEach(t *testing.T, file string, schema *apiextensionsv1.JSONSchemaProps) {
	t.Helper()
	if broken := regexp.MustCompile(`[^\n]\n[^\n*-]`); broken.MatchString(schema.Description) {
		t.Errorf("%s breaks a line within a sentence: %q", file, schema.Description)
	}
	for _, part := range schema.Properties {
		oneLineEach(t, file, &part)
	}
	if schema.Items != nil {
		oneLineEach(t, file, schema.Items.Schema)
	}
	if schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil {
		oneLineEach(t, file, schema.AdditionalProperties.Schema)
	}
}

// printFields prints a field and those below it.
func printFields(out *strings.Builder, path string, schema *apiextensionsv1.JSONSchemaProps, required bool) {
	about := line(schema.Description)
	if required {
		about = "Required. " + about
	}
	if len(schema.Enum) > 0 {
		var values []string
		for _, value := range schema.Enum {
			values = append(values, "`"+strings.Trim(string(value.Raw), `"`)+"`")
		}
		about += " One of " + strings.Join(values, ", ") + "."
	}
	fallback := ""
	if schema.Default != nil {
		fallback = "`" + line(string(schema.Default.Raw)) + "`"
	}
	kind := schema.Type
	if kind == "" {
		kind = "integer or string"
	}
	fmt.Fprintf(out, "| `%s` | %s | %s | %s |\n", path, kind, fallback, about)
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		field := schema.Properties[name]
		printFields(out, path+"."+name, &field, slices.Contains(schema.Required, name))
	}
	if schema.Items != nil && schema.Items.Schema != nil {
		item := schema.Items.Schema
		for _, name := range slices.Sorted(maps.Keys(item.Properties)) {
			field := item.Properties[name]
			printFields(out, path+"[]."+name, &field, slices.Contains(item.Required, name))
		}
	}
}

// line returns a text as a cell of a table.
func line(text string) string {
	return strings.NewReplacer("|", `\|`, "<", "&lt;").Replace(strings.Join(strings.Fields(text), " "))
}
