// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"text/template"

	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/util/jsonpath"
)

// Formats that an expression follows, after an equals sign, as kubectl has them. Their printers in kubectl bring more than half of kubectl.
const (
	formatJSONPath = "jsonpath"
	formatTemplate = "go-template"
	formatColumns  = "custom-columns"
)

// expressions are these formats, as a command line begins them.
var expressions = []string{formatJSONPath + "=", formatTemplate + "=", formatColumns + "="}

// expression prints a value as JSON has it.
type expression func(w io.Writer, value any) error

// parseExpression returns the expression of a format; nil if the format has none.
func parseExpression(format string, headers bool) (expression, error) {
	kind, text, is := strings.Cut(format, "=")
	switch {
	case is && kind == formatJSONPath:
		path := jsonpath.New("output").AllowMissingKeys(true)
		return path.Execute, path.Parse(text)
	case is && kind == formatTemplate:
		parsed, err := template.New("output").Parse(text)
		return parsed.Execute, err
	case is && kind == formatColumns:
		return parseColumns(text, headers)
	default:
		return nil, nil //nolint:nilnil // Most formats have none.
	}
}

// parseColumns returns the expression of columns, such as NAME:.metadata.name,MODE:.status.mode.
func parseColumns(text string, headers bool) (expression, error) {
	var titles []string
	var paths []*jsonpath.JSONPath
	for column := range strings.SplitSeq(text, ",") {
		title, path, is := strings.Cut(column, ":")
		if !is || title == "" {
			return nil, fmt.Errorf("%q is not HEADER:.path", column)
		}
		parsed, err := relaxedPath(title, path)
		if err != nil {
			return nil, err
		}
		titles, paths = append(titles, title), append(paths, parsed)
	}
	return func(w io.Writer, value any) error {
		table := tabwriter.NewWriter(w, 0, 8, 3, ' ', 0)
		if headers {
			fmt.Fprintln(table, strings.Join(titles, "\t"))
		}
		for _, item := range itemsOf(value) {
			cells := make([]string, len(paths))
			for i, path := range paths {
				var cell strings.Builder
				if err := path.Execute(&cell, item); err != nil {
					return err
				}
				if cells[i] = cell.String(); cells[i] == "" {
					cells[i] = "<none>"
				}
			}
			fmt.Fprintln(table, strings.Join(cells, "\t"))
		}
		return table.Flush()
	}, nil
}

// relaxedPath returns a JSONPath, whose braces and first dot may be left out; what it does not find is nothing.
func relaxedPath(name, text string) (*jsonpath.JSONPath, error) {
	path := jsonpath.New(name).AllowMissingKeys(true)
	return path, path.Parse("{." + strings.Trim(text, "{.}") + "}")
}

// itemsOf returns the items of a list; the value itself if it is none.
func itemsOf(value any) []any {
	if list, is := value.([]any); is {
		return list
	}
	if object, is := value.(map[string]any); is {
		if items, is := object["items"].([]any); is {
			return items
		}
	}
	return []any{value}
}

// printValue prints a value, or an object, as JSON has it.
func (e expression) printValue(w io.Writer, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	var generic any
	if err := utiljson.Unmarshal(text, &generic); err != nil { // Whole numbers stay whole.
		return err
	}
	return e(w, generic)
}
