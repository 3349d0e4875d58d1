// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"
)

// roots are the schemas that the page asks for and sends; wanted are those that it uses once the document has them. What they are made
// of comes along.
func roots() (needed, wanted []string) {
	return []string{"ErrorModel", "Event", "Scheduling", "SchedulingOfConsumer"}, []string{"DrainPreview", "Me", "PolicyTrial"}
}

// tradeRoots are those of trade.
func tradeRoots() []string {
	return []string{"Contract", "Deed", "Found", "Market", "Need", "Order", "Ordered", "OwnOffer", "Registry", "Request"}
}

// A schema is what is read of a schema of OpenAPI 3.1.
type schema struct {
	Ref         string `json:"$ref"`
	Description string
	// Type is one word, or several of which one is null.
	Type                 any
	Enum                 []any
	Items                *schema
	Properties           map[string]*schema
	Required             []string
	AdditionalProperties any
}

// typesOf returns the types of TypeScript for what the page knows of the API, in order of name.
func typesOf(name string, spec []byte, needed, wanted []string) ([]byte, error) {
	var document struct {
		Components struct{ Schemas map[string]*schema }
	}
	if err := yaml.Unmarshal(spec, &document); err != nil {
		return nil, err
	}
	schemas := document.Components.Schemas
	for _, name := range wanted {
		if schemas[name] != nil {
			needed = append(needed, name)
		}
	}
	used := map[string]bool{}
	for _, name := range needed {
		if err := reach(schemas, name, used); err != nil {
			return nil, err
		}
	}
	var out bytes.Buffer
	out.WriteString("// Copyright The liqo-broker Authors.\n// SPDX-License-Identifier: Apache-2.0\n\n" +
		"// Made of " + name + " by build/tools/ui. DO NOT EDIT.\n")
	for _, name := range slices.Sorted(maps.Keys(used)) {
		s := schemas[name]
		text, err := s.typescript("")
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if s.Properties != nil {
			fmt.Fprintf(&out, "\n%sexport interface %s %s\n", s.comment(""), name, text)
		} else {
			fmt.Fprintf(&out, "\n%sexport type %s = %s;\n", s.comment(""), name, text)
		}
	}
	return out.Bytes(), nil
}

// reach notes a schema and all that it is made of.
func reach(schemas map[string]*schema, name string, used map[string]bool) error {
	if used[name] {
		return nil
	}
	s := schemas[name]
	if s == nil {
		return fmt.Errorf("there is no schema %s", name)
	}
	used[name] = true
	var all func(*schema) error
	all = func(s *schema) error {
		if s == nil {
			return nil
		}
		if s.Ref != "" {
			return reach(schemas, s.name(), used)
		}
		for _, property := range s.Properties {
			if err := all(property); err != nil {
				return err
			}
		}
		of, err := s.values()
		if err != nil {
			return err
		}
		if err := all(of); err != nil {
			return err
		}
		return all(s.Items)
	}
	return all(s)
}

func (s *schema) name() string { return strings.TrimPrefix(s.Ref, "#/components/schemas/") }

// values returns what the values of a map are; nil for what is no map.
func (s *schema) values() (*schema, error) {
	of, is := s.AdditionalProperties.(map[string]any)
	if !is {
		return nil, nil
	}
	data, err := yaml.Marshal(of)
	if err != nil {
		return nil, err
	}
	found := &schema{}
	return found, yaml.Unmarshal(data, found)
}

func (s *schema) comment(indent string) string {
	if s.Description == "" {
		return ""
	}
	return indent + "/** " + strings.ReplaceAll(strings.Join(strings.Fields(s.Description), " "), "*/", "*\\/") + " */\n"
}

// typescript returns the type that a schema is.
func (s *schema) typescript(indent string) (string, error) {
	if s.Ref != "" {
		return s.name(), nil
	}
	if len(s.Enum) > 0 {
		words := make([]string, 0, len(s.Enum))
		for _, value := range s.Enum {
			words = append(words, strconv.Quote(fmt.Sprint(value)))
		}
		return strings.Join(words, " | "), nil
	}
	var kinds []string
	switch of := s.Type.(type) {
	case nil:
		return "unknown", nil
	case string:
		kinds = []string{of}
	case []any:
		for _, kind := range of {
			kinds = append(kinds, fmt.Sprint(kind))
		}
	}
	var types []string
	for _, kind := range kinds {
		text, err := s.kind(kind, indent)
		if err != nil {
			return "", err
		}
		types = append(types, text)
	}
	return strings.Join(types, " | "), nil
}

func (s *schema) kind(kind, indent string) (string, error) {
	switch kind {
	case "string", "boolean", "null":
		return kind, nil
	case "integer", "number":
		return "number", nil
	case "array":
		if s.Items == nil {
			return "unknown[]", nil
		}
		of, err := s.Items.typescript(indent)
		if strings.Contains(of, "|") {
			of = "(" + of + ")"
		}
		return of + "[]", err
	case "object":
		return s.object(indent)
	}
	return "", fmt.Errorf("type %q is not known", kind)
}

func (s *schema) object(indent string) (string, error) {
	of, err := s.values()
	if err != nil {
		return "", err
	}
	if of != nil {
		text, err := of.typescript(indent)
		return "Record<string, " + text + ">", err
	}
	if s.Properties == nil {
		return "Record<string, unknown>", nil
	}
	var out strings.Builder
	out.WriteString("{\n")
	inside := indent + "  "
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		property := s.Properties[name]
		text, err := property.typescript(inside)
		if err != nil {
			return "", fmt.Errorf("%s: %w", name, err)
		}
		optional := "?"
		if slices.Contains(s.Required, name) {
			optional = ""
		}
		fmt.Fprintf(&out, "%s%s%s%s: %s;\n", property.comment(inside), inside, name, optional, text)
	}
	out.WriteString(indent + "}")
	return out.String(), nil
}
