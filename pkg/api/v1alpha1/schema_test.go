// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/install"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
)

// definition is a custom resource definition, and what the API server of Kubernetes 1.28 makes of it.
type definition struct {
	v1         apiextensionsv1.CustomResourceDefinition
	internal   apiextensions.CustomResourceDefinition
	structural *structuralschema.Structural
	schema     validation.SchemaValidator
	rules      *cel.Validator
}

// definitions returns those of brokers and connectors, by kind.
func definitions(tb testing.TB) map[string]*definition {
	tb.Helper()
	scheme := runtime.NewScheme()
	install.Install(scheme)
	var files []string
	for _, folder := range []string{"crds", "connector/crds"} {
		found, err := filepath.Glob(filepath.Join("../../../deploy", folder, "brokering*.yaml"))
		if err != nil || len(found) == 0 {
			tb.Fatalf("%d definitions in %s: %v", len(found), folder, err)
		}
		files = append(files, found...)
	}
	found := map[string]*definition{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			tb.Fatal(err)
		}
		d := &definition{}
		if err := yaml.UnmarshalStrict(text, &d.v1); err != nil {
			tb.Fatalf("%s: %v", file, err)
		}
		scheme.Default(&d.v1)
		if err := scheme.Convert(&d.v1, &d.internal, nil); err != nil {
			tb.Fatalf("%s: %v", file, err)
		}
		schema := d.internal.Spec.Validation
		if d.structural, err = structuralschema.NewStructural(schema.OpenAPIV3Schema); err != nil {
			tb.Fatalf("%s: %v", file, err)
		}
		if d.schema, _, err = validation.NewSchemaValidator(schema.OpenAPIV3Schema); err != nil {
			tb.Fatalf("%s: %v", file, err)
		}
		d.rules = cel.NewValidator(d.structural, true, celconfig.PerCallLimit)
		found[d.v1.Spec.Names.Kind] = d
	}
	return found
}

// refuses returns why the API server refuses an object; nil if it takes it. What it leaves out, it does not look at.
func (d *definition) refuses(ctx context.Context, object map[string]any) error {
	return d.refusesChange(ctx, object, nil)
}

// refusesChange is refuses for what an object is changed to; old is nil for one that is not there yet.
func (d *definition) refusesChange(ctx context.Context, object, old map[string]any) error {
	defaulting.Default(object, d.structural)
	errs := validation.ValidateCustomResource(nil, object, d.schema)
	if len(errs) == 0 { // As the API server does, which runs no rule on what has the wrong type.
		var before any
		if old != nil {
			defaulting.Default(old, d.structural)
			before = old
		}
		errs, _ = d.rules.Validate(ctx, field.NewPath(""), d.structural, object, before, celconfig.RuntimeCELCostBudget)
	}
	return errs.ToAggregate()
}

// TestAllFieldsAreBounded holds that nothing in an object can grow without end.
func TestAllFieldsAreBounded(t *testing.T) {
	for kind, d := range definitions(t) {
		for name, property := range d.v1.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties {
			if name != "apiVersion" && name != "kind" && name != "metadata" { // Which are as Kubernetes bounds them.
				bounded(t, kind+"."+name, &property)
			}
		}
	}
}

func bounded(t *testing.T, path string, s *apiextensionsv1.JSONSchemaProps) {
	t.Helper()
	switch {
	case s.XIntOrString || s.Type == "string" && len(s.Enum) == 0:
		if s.MaxLength == nil {
			t.Errorf("%s has no maxLength", path)
		}
	case s.Type == "array":
		if s.MaxItems == nil {
			t.Errorf("%s has no maxItems", path)
		}
		bounded(t, path+"[]", s.Items.Schema)
	case s.Type == "object" && s.AdditionalProperties != nil:
		if s.MaxProperties == nil {
			t.Errorf("%s has no maxProperties", path)
		}
		bounded(t, path+"{}", s.AdditionalProperties.Schema)
	case s.XPreserveUnknownFields != nil:
		t.Errorf("%s takes anything", path)
	}
	for name, property := range s.Properties {
		bounded(t, path+"."+name, &property)
	}
}

// places are fields of each type that people write, as functions that return an object with a text there.
var places = map[string]struct {
	kind, object string
	typed        func() any
}{
	"duration": {
		kind: "PlacementPolicy", typed: func() any { return &v1alpha1.PlacementPolicy{} },
		object: `{"apiVersion":"brokering.liqo.io/v1alpha1","kind":"PlacementPolicy","metadata":{"name":"x"},"spec":{"appliesTo":{"scope":"Default"},"steady":{"duration":%s}}}`,
	},
	"quantity": {
		kind: "Provider", typed: func() any { return &v1alpha1.Provider{} },
		object: `{"apiVersion":"brokering.liqo.io/v1alpha1","kind":"Provider","metadata":{"name":"x"},"spec":{"capacity":{"declared":{"cpu":%s}}}}`,
	},
	"time": {
		kind: "Provider", typed: func() any { return &v1alpha1.Provider{} },
		object: `{"apiVersion":"brokering.liqo.io/v1alpha1","kind":"Provider","metadata":{"name":"x"},` +
			`"spec":{"carbon":{"intensity":1,"unit":"gCO2e/kWh","measuredTime":%s}}}`,
	},
	"number": {
		kind: "PlacementPolicy", typed: func() any { return &v1alpha1.PlacementPolicy{} },
		object: `{"apiVersion":"brokering.liqo.io/v1alpha1","kind":"PlacementPolicy","metadata":{"name":"x"},` +
			`"spec":{"appliesTo":{"scope":"Default"},"scaling":{"query":"q","unit":"ms","unoffloadBelow":"-1000","offloadAbove":%s}}}`,
	},
}

// judge returns what the API server and what Go say of a text, in JSON, at a place.
func judge(tb testing.TB, all map[string]*definition, place, text string) (api, decode error) {
	tb.Helper()
	p := places[place]
	raw := fmt.Sprintf(p.object, text)
	var object map[string]any
	if err := kjson.UnmarshalCaseSensitivePreserveInts([]byte(raw), &object); err != nil {
		return err, err
	}
	return all[p.kind].refuses(tb.Context(), object), kjson.UnmarshalCaseSensitivePreserveInts([]byte(raw), p.typed())
}

// TestTexts says what the fields of each type take. What they take, Go can read.
func TestTexts(t *testing.T) {
	all := definitions(t)
	for place, texts := range map[string]struct{ good, bad string }{
		"duration": {
			good: `"0" "0s" "10s" "5m" "1h30m" "1.5h" "5m0s" "300ms" "1µs" null`,
			bad:  `"" "10" "-5m" "1d" "s" "1e3s" "NaN" "soon" "5 m" "\u0000" "99999999999h" "999999999h" 10 {} []`,
		},
		"quantity": {
			good: `0 7 "7" "1500m" "1.5" ".5" "1." "+3" "1e3" "1E-3" "12E" "64Gi" "100k" 9007199254740993`,
			bad: `-1 "-1" "" "1e1.5" "1e999999" "1e-999999" "1e2147483647" "1e" "NaN" "Inf" "0x10" "1K" "1 " " 1" "1\n" "Ki" "." "1Kib" 1.5 {} [] true ` +
				`"` + strings.Repeat("9", 31) + `"`,
		},
		"time": {
			good: `"2024-02-29T23:59:59Z" "2024-01-01T00:00:00.123456789+02:00"`,
			bad:  `"" "2024-01-01" "2024-01-01T00:00:00" "2024-13-01T00:00:00Z" "2023-02-29T00:00:00Z" "2024-01-01T25:00:00Z" "2024-01-01T00:00:00+99:99" "yesterday" 0 {} []`,
		},
		"number": {
			good: `"0" "200" "-1" "0.5" "123456789012345678901" "2.5e+20"`,
			bad:  `"" "1e3" "1e+999" "NaN" "Inf" "-" "1." ".5" "+1" "1234567890123456789012" "0x1" "1_0" 5 {}`,
		},
	} {
		for want, list := range map[bool]string{true: texts.good, false: texts.bad} {
			decoder := json.NewDecoder(strings.NewReader(list))
			for decoder.More() {
				var text json.RawMessage
				if err := decoder.Decode(&text); err != nil {
					t.Fatal(err)
				}
				api, decode := judge(t, all, place, string(text))
				if taken := api == nil; taken != want {
					t.Errorf("a %s of %s: taken %t, want %t (%v)", place, text, taken, want, api)
				}
				if api == nil && decode != nil {
					t.Errorf("a %s of %s is taken, and Go cannot read it: %v", place, text, decode)
				}
			}
		}
	}
}

// FuzzTexts holds that Go can read whatever the API server takes.
func FuzzTexts(f *testing.F) {
	for _, text := range []string{"10s", "1h1h1h", "+0", "0.000000001ns", "9223372036s", "1e1.5", "1e99", ".e1", "1.Ki",
		"2024-02-30T00:00:00Z", "2024-01-01T00:00:00+99:99", "-0.0"} {
		f.Add(text)
	}
	all := definitions(f)
	f.Fuzz(func(t *testing.T, text string) {
		quoted, err := json.Marshal(text)
		if err != nil {
			t.Skip("no text that JSON can hold")
		}
		for place := range places {
			if api, decode := judge(t, all, place, string(quoted)); api == nil && decode != nil {
				t.Errorf("a %s of %q is taken, and Go cannot read it: %v", place, text, decode)
			}
		}
	})
}

// TestNames says what the names in objects may be.
func TestNames(t *testing.T) {
	all := definitions(t)
	long := strings.Repeat("x", 318)
	for name, tc := range map[string]struct {
		kind, spec string
		good       bool
	}{
		"a consumer":                {kind: "PlacementPolicy", spec: `{"appliesTo":{"scope":"Consumers","consumers":["7f3d-a"]}}`, good: true},
		"a consumer without a name": {kind: "PlacementPolicy", spec: `{"appliesTo":{"scope":"Consumers","consumers":[""]}}`},
		"a consumer with a space":   {kind: "PlacementPolicy", spec: `{"appliesTo":{"scope":"Consumers","consumers":["a b"]}}`},
		"too long a consumer":       {kind: "PlacementPolicy", spec: `{"appliesTo":{"scope":"Consumers","consumers":["` + long + `"]}}`},
		"a namespace": {
			kind: "PlacementPolicy", spec: `{"appliesTo":{"scope":"Namespaces","namespaces":{"names":["payments"]}}}`, good: true,
		},
		"a namespace with a line feed": {
			kind: "PlacementPolicy", spec: `{"appliesTo":{"scope":"Namespaces","namespaces":{"names":["payments\n"]}}}`,
		},
		"a label": {
			kind: "PlacementPolicy", spec: `{"appliesTo":{"scope":"Default"},"spread":[{"label":"topology.kubernetes.io/zone","minValues":2}]}`,
			good: true,
		},
		"a label that is none": {
			kind: "PlacementPolicy", spec: `{"appliesTo":{"scope":"Default"},"spread":[{"label":"a/b/c","minValues":2}]}`,
		},
		"a selector": {
			kind: "PlacementPolicy", spec: `{"appliesTo":{"scope":"Namespaces","namespaces":{"selector":{"matchLabels":{"a.b/c":"d"}}}}}`,
			good: true,
		},
		"a selector by expression":  {kind: "PlacementPolicy", spec: `{"appliesTo":{"scope":"Namespaces","namespaces":{"selector":{"matchExpressions":[{"key":"a","operator":"In","values":["b",""]}]}}}}`, good: true},
		"a selector by existence":   {kind: "PlacementPolicy", spec: `{"appliesTo":{"scope":"Namespaces","namespaces":{"selector":{"matchExpressions":[{"key":"a","operator":"Exists"}]}}}}`, good: true},
		"a selector without values": {kind: "PlacementPolicy", spec: `{"appliesTo":{"scope":"Namespaces","namespaces":{"selector":{"matchExpressions":[{"key":"a","operator":"In"}]}}}}`},
		"an unknown operator":       {kind: "PlacementPolicy", spec: `{"appliesTo":{"scope":"Namespaces","namespaces":{"selector":{"matchExpressions":[{"key":"a","operator":"Gt","values":["1"]}]}}}}`},
		"a bad label value": {
			kind: "PlacementPolicy", spec: `{"appliesTo":{"scope":"Namespaces","namespaces":{"selector":{"matchLabels":{"a":"b c"}}}}}`,
		},
		"too long a label key": {
			kind: "PlacementPolicy", spec: `{"appliesTo":{"scope":"Namespaces","namespaces":{"selector":{"matchLabels":{"` + long + `":"b"}}}}}`,
		},
		"a weight": {
			kind: "PlacementPolicy", spec: `{"appliesTo":{"scope":"Default"},"weights":{"priceCPU":-10}}`, good: true,
		},
		"too long a weight":            {kind: "PlacementPolicy", spec: `{"appliesTo":{"scope":"Default"},"weights":{"` + long + `":1}}`},
		"a default":                    {kind: "PlacementPolicy", spec: `{"appliesTo":{"scope":"Default"}}`, good: true},
		"a default for some":           {kind: "PlacementPolicy", spec: `{"appliesTo":{"scope":"Default","consumers":["a"]}}`},
		"nobody":                       {kind: "PlacementPolicy", spec: `{"appliesTo":{"scope":"Consumers"}}`},
		"a scope without namespaces":   {kind: "PlacementPolicy", spec: `{"appliesTo":{"scope":"Namespaces"}}`},
		"namespaces without the scope": {kind: "PlacementPolicy", spec: `{"appliesTo":{"scope":"OnRequest","namespaces":{"names":["a"]}}}`},
		"a policy without a scope":     {kind: "PlacementPolicy", spec: `{"maxProviders":1}`},
		"a price for a day":            {kind: "Provider", spec: `{"price":{"currency":"EUR","period":"P1D"}}`, good: true},
		"a price for hours":            {kind: "Provider", spec: `{"price":{"currency":"EUR","period":"PT6H"}}`, good: true},
		"a price as Go says it":        {kind: "Provider", spec: `{"price":{"currency":"EUR","period":"24h0m0s"}}`, good: true},
		"a price for no time":          {kind: "Provider", spec: `{"price":{"currency":"EUR","period":"P0D"}}`},
		"a price for a day of hours":   {kind: "Provider", spec: `{"price":{"currency":"EUR","period":"P1H"}}`},
		"a price for long":             {kind: "Provider", spec: `{"price":{"currency":"EUR","period":"P100Y"}}`},
		"a price for a word":           {kind: "Provider", spec: `{"price":{"currency":"EUR","period":"day"}}`},
		"an extended resource":         {kind: "Consumer", spec: `{"capacity":{"limit":{"nvidia.com/gpu":2}}}`, good: true},
		"a resource without a name":    {kind: "Consumer", spec: `{"capacity":{"limit":{"":2}}}`},
		"too long a resource":          {kind: "Consumer", spec: `{"capacity":{"limit":{"` + long + `":2}}}`},
		"a query": {
			kind: "ProviderQuery", spec: `{"query":"up","unit":"1","providerLabel":"id","interval":"10s"}`, good: true,
		},
		"a query with a bad label": {kind: "ProviderQuery", spec: `{"query":"up","unit":"1","providerLabel":"a-b"}`},
		"a query too often":        {kind: "ProviderQuery", spec: `{"query":"up","unit":"1","providerLabel":"id","interval":"10ms"}`},
	} {
		var spec any
		if err := kjson.UnmarshalCaseSensitivePreserveInts([]byte(tc.spec), &spec); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		object := map[string]any{
			"apiVersion": "brokering.liqo.io/v1alpha1", "kind": tc.kind, "metadata": map[string]any{"name": "x"}, "spec": spec,
		}
		if err := all[tc.kind].refuses(t.Context(), object); (err == nil) != tc.good {
			t.Errorf("%s: taken %t, want %t (%v)", name, err == nil, tc.good, err)
		}
	}
}

// TestExamples holds that the API server takes the objects of deploy/examples as they are, with nothing that it would drop, and
// that each kind for people has one.
func TestExamples(t *testing.T) {
	all := definitions(t)
	missing := map[string]bool{
		"Consumer": true, "PlacementPolicy": true, "Provider": true, "ProviderQuery": true,
		"CapacityRequest": true, "Registry": true, "Offer": true, "Purchase": true,
	}
	err := filepath.WalkDir("../../../deploy/examples", func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for document := range strings.SplitSeq(string(text), "\n---\n") {
			raw, err := yaml.YAMLToJSON([]byte(document))
			if err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
			var object map[string]any
			if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &object); err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
			if object["apiVersion"] != v1alpha1.GroupVersion.String() {
				continue
			}
			kind, _ := object["kind"].(string)
			delete(missing, kind)
			if unknown := pruning.PruneWithOptions(object, all[kind].structural, true,
				structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true}); len(unknown) > 0 {
				t.Errorf("%s has fields that nobody knows: %v", path, unknown)
			}
			if err := all[kind].refuses(t.Context(), object); err != nil {
				t.Errorf("%s: %v", path, err)
			}
		}
		return nil
	})
	if err != nil || len(missing) > 0 {
		t.Errorf("no example of %v (%v)", missing, err)
	}
}
