// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package text

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/capacitorset/liqo-broker/test/golden"
)

// TestCRDs compares what kubectl shows of each kind, and with which words the API server refuses an object, with the golden file.
func TestCRDs(t *testing.T) {
	var files []string
	for _, folder := range []string{"crds", "connector/crds"} {
		found, err := filepath.Glob(filepath.Join("../../deploy", folder, "brokering.liqo.io_*.yaml"))
		if err != nil || len(found) < 4 {
			t.Fatalf("only %d CRDs are found in %s: %v", len(found), folder, err)
		}
		files = append(files, found...)
	}
	var out strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var crd apiextensionsv1.CustomResourceDefinition
		if err := yaml.UnmarshalStrict(text, &crd); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		names := crd.Spec.Names
		fmt.Fprintf(&out, "# %s: %s\n\n", names.Kind, strings.Join(slices.Concat([]string{names.Plural}, names.ShortNames), ", "))
		for _, version := range crd.Spec.Versions {
			for _, column := range version.AdditionalPrinterColumns {
				wide := ""
				if column.Priority > 0 {
					wide = " (wide)"
				}
				fmt.Fprintf(&out, "column %s%s: %s\n", strings.ToUpper(column.Name), wide, column.JSONPath)
			}
			printRules(&out, "", version.Schema.OpenAPIV3Schema)
		}
		fmt.Fprintln(&out)
	}
	golden.Check(t, "crds.txt", out.String())
}

// TestAdmissionPolicies compares with which words the API server refuses what peers, pods and the daemon itself must not do with the golden
// file.
func TestAdmissionPolicies(t *testing.T) {
	files, err := filepath.Glob("../../deploy/admission/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	ofGuard, err := filepath.Glob("../../deploy/guard/policies/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	shared, err := filepath.Glob("../../deploy/guard/policies/*/system-*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	ofGuard = append(ofGuard, shared...)
	slices.SortFunc(ofGuard, func(a, b string) int { return cmp.Compare(filepath.Base(a), filepath.Base(b)) })
	files = append(files, ofGuard...)
	var out strings.Builder
	count := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for document := range strings.SplitSeq(string(text), "\n---\n") {
			var policy struct { // The API has no Go type for it in this version.
				Metadata struct{ Name string }
				Spec     struct {
					Validations []struct{ Message, MessageExpression string }
				}
			}
			if err := yaml.Unmarshal([]byte(document), &policy); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			for _, validation := range policy.Spec.Validations {
				count++
				fmt.Fprintf(&out, "refusal %s: %s\n", policy.Metadata.Name, cmp.Or(validation.Message, validation.MessageExpression))
			}
		}
	}
	if count < 15 {
		t.Errorf("only %d refusals are found", count)
	}
	golden.Check(t, "admission.txt", out.String())
}

// printRules prints the messages of the rules of a field and of those below it.
func printRules(out *strings.Builder, path string, schema *apiextensionsv1.JSONSchemaProps) {
	for _, rule := range schema.XValidations {
		message := cmp.Or(rule.MessageExpression, rule.Message, "failed rule: "+rule.Rule)
		fmt.Fprintf(out, "refusal %s: %s\n", strings.TrimPrefix(path, "."), message)
	}
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		property := schema.Properties[name]
		printRules(out, path+"."+name, &property)
	}
	if schema.Items != nil && schema.Items.Schema != nil {
		printRules(out, path+"[]", schema.Items.Schema)
	}
	if schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil {
		printRules(out, path+"{}", schema.AdditionalProperties.Schema)
	}
}
