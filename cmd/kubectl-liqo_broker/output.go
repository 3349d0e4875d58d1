// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/client-go/util/jsonpath"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/yaml"

	"github.com/capacitorset/liqo-broker/pkg/program"
)

// Formats of what is printed, besides a text for people.
const (
	formatJSON = "json"
	formatYAML = "yaml"
	formatName = "name"
	formatWide = "wide"
)

// output is how a command prints.
type output struct {
	format    string
	noHeaders bool
	// expression is nil if the format has none.
	expression expression
	// sorting is by what a list is sorted, and sortBy the same as a path; nil for the usual order.
	sorting string
	sortBy  *jsonpath.JSONPath
}

// addFlags adds the flags to a command that prints in these formats besides the usual one.
func (o *output) addFlags(command *cobra.Command, formats ...string) {
	flags := command.Flags()
	shown := slices.Concat(formats, expressions)
	flags.StringVarP(&o.format, "output", "o", "", "output format: one of "+strings.Join(shown, ", "))
	if slices.Contains(formats, formatWide) {
		flags.BoolVar(&o.noHeaders, "no-headers", false, "print a table without its headers")
		flags.StringVar(&o.sorting, sortingFlag, "", "sort by a field of what -o json prints of each, such as .metadata.creationTimestamp")
	}
	if err := command.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(shown, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err) // The flag was added above.
	}
	command.PreRunE = func(*cobra.Command, []string) error {
		var err error
		if o.expression, err = parseExpression(o.format, !o.noHeaders); err != nil {
			return program.Usage(fmt.Errorf("--output=%s: %w", o.format, err))
		}
		if o.expression == nil && o.format != "" && !slices.Contains(formats, o.format) {
			return program.Usage(fmt.Errorf("--output=%s is none of %s", o.format, strings.Join(shown, ", ")))
		}
		if o.sorting != "" {
			if o.sortBy, err = relaxedPath(sortingFlag, o.sorting); err != nil {
				return program.Usage(fmt.Errorf("--%s=%s: %w", sortingFlag, o.sorting, err))
			}
		}
		return nil
	}
}

// objects prints a list of objects, which a table shows to people.
func (o *output) objects(w io.Writer, scheme *runtime.Scheme, list client.ObjectList, table *metav1.Table) error {
	if o.isText() {
		return o.table(w, table)
	}

	// Programs want to know the kinds.
	var printer printers.ResourcePrinter
	switch o.format {
	case formatJSON:
		printer = &printers.JSONPrinter{}
	case formatYAML:
		printer = &printers.YAMLPrinter{}
	default:
		printer = &printers.NamePrinter{}
	}
	printer = printers.NewTypeSetter(scheme).ToPrinter(printer)
	items := []runtime.Object{}
	err := meta.EachListItem(list, func(item runtime.Object) error {
		kind, err := apiutil.GVKForObject(item, scheme)
		item.GetObjectKind().SetGroupVersionKind(kind)
		items = append(items, item)
		return err
	})
	if err != nil {
		return err
	}
	// Names are of one object each; everything else is of the list.
	if o.expression != nil {
		return o.expression.printValue(w, list)
	}
	if o.format != formatName {
		return printer.PrintObj(list, w)
	}
	for _, item := range items {
		if err := printer.PrintObj(item, w); err != nil {
			return err
		}
	}
	return nil
}

// table prints a table for people.
func (o *output) table(w io.Writer, table *metav1.Table) error {
	return printers.NewTablePrinter(printers.PrintOptions{Wide: o.format == formatWide, NoHeaders: o.noHeaders}).PrintObj(table, w)
}

// value prints a value for programs, and reports whether the format is one for them.
func (o *output) value(w io.Writer, value any) (done bool, err error) {
	if o.expression != nil {
		return true, o.expression.printValue(w, value)
	}
	var text []byte
	switch o.format {
	case formatJSON:
		text, err = json.MarshalIndent(value, "", "    ")
		text = append(text, '\n')
	case formatYAML:
		text, err = yaml.Marshal(value)
	default:
		return false, nil
	}
	if err != nil {
		return true, err
	}
	_, err = w.Write(text)
	return true, err
}

// isText reports whether people read what is printed.
func (o *output) isText() bool { return o.format == "" || o.format == formatWide }
