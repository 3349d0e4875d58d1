// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	yaml "sigs.k8s.io/yaml/goyaml.v3"
)

// The reference stands between these lines of the README.
const (
	begin = "<!-- Generated from values.yaml by make generate. -->\n"
	end   = "<!-- End of what is generated. -->\n"
)

// mark begins the comment that documents a value, and all that is below it.
const mark = "# -- "

// reference returns the README of a chart with the reference of its values.
func reference(chart string) (string, error) {
	values, err := os.ReadFile(filepath.Join(chart, "values.yaml"))
	if err != nil {
		return "", err
	}
	readme, err := os.ReadFile(filepath.Join(chart, "README.md"))
	if err != nil {
		return "", err
	}
	before, rest, found := strings.Cut(string(readme), begin)
	_, after, alsoFound := strings.Cut(rest, end)
	if !found || !alsoFound {
		return "", fmt.Errorf("%s/README.md has no place for the reference", chart)
	}
	table, err := table(values)
	if err != nil {
		return "", fmt.Errorf("%s/values.yaml: %w", chart, err)
	}
	return before + begin + table + end + after, nil
}

// table returns the reference of values as a table.
func table(values []byte) (string, error) {
	var document yaml.Node
	if err := yaml.Unmarshal(values, &document); err != nil {
		return "", err
	}
	var out strings.Builder
	out.WriteString("| value | default | what it is |\n|---|---|---|\n")
	if err := rows(&out, "", document.Content[0]); err != nil {
		return "", err
	}
	return out.String(), nil
}

// rows writes one row for each documented value of a mapping. A value without a comment is an error.
func rows(out *strings.Builder, path string, mapping *yaml.Node) error {
	for i := 0; i < len(mapping.Content); i += 2 {
		key, value := mapping.Content[i], mapping.Content[i+1]
		name := path + key.Value
		text, documented := comment(key.HeadComment)
		switch {
		case documented:
			fallback, err := flow(value)
			if err != nil {
				return err
			}
			fmt.Fprintf(out, "| `%s` | `%s` | %s |\n", name, fallback, text)
		case value.Kind == yaml.MappingNode && len(value.Content) > 0:
			if err := rows(out, name+".", value); err != nil {
				return err
			}
		default:
			return fmt.Errorf("%s has no comment that begins with %q", name, mark)
		}
	}
	return nil
}

// comment returns the text that documents a value, in one line.
func comment(head string) (text string, documented bool) {
	_, text, documented = strings.Cut(head, mark)
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = strings.TrimPrefix(strings.TrimPrefix(lines[i], "#"), " ")
	}
	return strings.ReplaceAll(strings.Join(lines, " "), "|", `\|`), documented
}

// flow returns a value as one line of JSON, which is YAML too.
func flow(node *yaml.Node) (string, error) {
	var value any
	if err := node.Decode(&value); err != nil {
		return "", err
	}
	text, err := json.Marshal(value)
	return string(text), err
}
