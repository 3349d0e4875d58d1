// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Command crds generates the custom resource definitions as controller-gen does, and says of the types of Kubernetes in them
// what controller-gen leaves open: which texts are quantities, durations and times, and how long they may be.
//
// An object with a text that the Go type cannot be read from is refused by the API server then, and needs nobody's care. It
// runs in the root folder of the repository.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"

	apiext "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/controller-tools/pkg/crd"
	"sigs.k8s.io/controller-tools/pkg/genall"
	"sigs.k8s.io/controller-tools/pkg/loader"
	"sigs.k8s.io/yaml"
)

const (
	metav1   = "k8s.io/apimachinery/pkg/apis/meta/v1"
	core     = "k8s.io/api/core/v1"
	resource = "k8s.io/apimachinery/pkg/api/resource"
)

// The texts, as Go reads them. They are checked against Go by a test of pkg/api/v1alpha1.
const (
	// A quantity is not negative, and its exponent is one that can be computed with: Kubernetes takes 1e-999999999 too.
	quantity = `^\+?([0-9]{1,30}(\.[0-9]{0,9})?|\.[0-9]{1,9})([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]{1,2})?$`
	// A duration that is too long for Go is left to the rules of the fields.
	duration = `^\+?([0-9]{1,9}(\.[0-9]{1,9})?(ns|us|µs|ms|s|m|h)){1,6}$|^0$`
	// Times have no format: date-time lets through what has no time zone, and lists. That a month has so many days is left to
	// the rules of the fields.
	time = `^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,9})?` +
		`(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`

	maxQuantity, maxDuration, maxTime = 48, 64, 40
	// The sum of what many providers offer has the resources of all.
	maxResources = 4096
)

// The syntax of labels (https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/).
const (
	labelValue    = `^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$`
	labelKey      = `^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$`
	maxLabelValue = 63
	maxLabelKey   = 317
	maxLabels     = 32
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "crds:", err)
		os.Exit(1)
	}
}

func run() error {
	generated := crd.KnownPackages[metav1]
	crd.KnownPackages[metav1] = func(p *crd.Parser, pkg *loader.Package) {
		p.Schemata[crd.TypeIdent{Name: "LabelSelector", Package: pkg}] = selector()
		generated(p, pkg)
		p.Schemata[crd.TypeIdent{Name: "Duration", Package: pkg}] = text(duration, maxDuration)
		p.Schemata[crd.TypeIdent{Name: "Time", Package: pkg}] = text(time, maxTime)
	}
	number := apiext.JSONSchemaProps{
		XIntOrString: true,
		AnyOf:        []apiext.JSONSchemaProps{{Type: "integer"}, {Type: "string"}},
		Pattern:      quantity, MaxLength: new(int64(maxQuantity)), Minimum: new(0.0),
	}
	crd.KnownPackages[resource] = func(p *crd.Parser, pkg *loader.Package) {
		p.Schemata[crd.TypeIdent{Name: "Quantity", Package: pkg}] = number
	}
	crd.KnownPackages[core] = func(p *crd.Parser, pkg *loader.Package) {
		p.Schemata[crd.TypeIdent{Name: "ResourceList", Package: pkg}] = apiext.JSONSchemaProps{
			Type: "object", MaxProperties: new(int64(maxResources)),
			AdditionalProperties: &apiext.JSONSchemaPropsOrBool{Schema: &number, Allows: true},
		}
		p.AddPackage(pkg)
	}
	for folder, packages := range map[string]string{
		"deploy/crds": "./pkg/api/v1alpha1", "deploy/connector/crds": "./pkg/api/connectorv1alpha1",
	} {
		var generator genall.Generator = crd.Generator{}
		runtime, err := genall.Generators{&generator}.ForRoots(packages)
		if err != nil {
			return fmt.Errorf("read the API types of %s: %w", packages, err)
		}
		runtime.OutputRules.Default = genall.OutputToDirectory(folder)
		if runtime.Run() {
			return fmt.Errorf("the API types of %s have errors", packages)
		}
		if err := joinLines(folder); err != nil {
			return err
		}
	}
	return nil
}

// joinLines makes one line of each paragraph of what the CRDs in a folder say: kubectl explain breaks lines itself, and where the comments
// in Go do besides.
func joinLines(folder string) error {
	files, err := filepath.Glob(filepath.Join(folder, "brokering.liqo.io_*.yaml"))
	if err != nil {
		return fmt.Errorf("find the CRDs in %s: %w", folder, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		var crd map[string]any
		if err := yaml.Unmarshal(text, &crd); err != nil {
			return fmt.Errorf("read %s: %w", file, err)
		}
		join(crd)
		if text, err = yaml.Marshal(crd); err != nil {
			return fmt.Errorf("write %s: %w", file, err)
		}
		if err := os.WriteFile(file, append([]byte("---\n"), text...), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// join joins the lines of all descriptions in a value.
func join(value any) {
	switch value := value.(type) {
	case map[string]any:
		for key, inner := range value {
			if text, is := inner.(string); is && key == "description" {
				value[key] = lineEnd.ReplaceAllString(text, "$1 $2")
				continue
			}
			join(inner)
		}
	case []any:
		for _, inner := range value {
			join(inner)
		}
	}
}

// lineEnd matches the end of a line that no empty line and no item of a list follows.
var lineEnd = regexp.MustCompile(`([^\n])\n([^\n*-])`)

func text(pattern string, most int64) apiext.JSONSchemaProps {
	return apiext.JSONSchemaProps{Type: "string", Pattern: pattern, MaxLength: &most}
}

// selector returns the schema of a label selector.
func selector() apiext.JSONSchemaProps {
	value, key := text(labelValue, maxLabelValue), text(labelKey, maxLabelKey)
	operator := apiext.JSONSchemaProps{Type: "string", Enum: []apiext.JSON{
		{Raw: []byte(`"In"`)}, {Raw: []byte(`"NotIn"`)}, {Raw: []byte(`"Exists"`)}, {Raw: []byte(`"DoesNotExist"`)},
	}}
	list := func(of apiext.JSONSchemaProps) apiext.JSONSchemaProps {
		return apiext.JSONSchemaProps{
			Type: "array", MaxItems: new(int64(maxLabels)), XListType: new("atomic"), Items: &apiext.JSONSchemaPropsOrArray{Schema: &of},
		}
	}
	requirement := apiext.JSONSchemaProps{
		Type: "object", Required: []string{"key", "operator"},
		Properties: map[string]apiext.JSONSchemaProps{"key": key, "operator": operator, "values": list(value)},
		XValidations: apiext.ValidationRules{{
			Rule:    "(self.operator in ['In', 'NotIn']) == (has(self.values) && self.values.size() > 0)",
			Message: "In and NotIn need values, and the other operators have none",
		}},
	}
	return apiext.JSONSchemaProps{
		Description: "A label selector: all that is in it must hold.",
		Type:        "object", XMapType: new("atomic"),
		Properties: map[string]apiext.JSONSchemaProps{
			"matchExpressions": list(requirement),
			"matchLabels": {
				Type: "object", MaxProperties: new(int64(maxLabels)),
				AdditionalProperties: &apiext.JSONSchemaPropsOrBool{Schema: &value, Allows: true},
				XValidations: apiext.ValidationRules{{
					Rule: "self.all(key, key.size() <= 317 && key.matches('" + labelKey + "'))", Message: "must be label keys",
				}},
			},
		},
	}
}
