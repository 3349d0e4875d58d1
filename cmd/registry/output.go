// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/capacitorset/liqo-broker/pkg/program"
)

// environment returns a variable of the environment.
func environment(name string) string { return os.Getenv(name) }

// The formats of what is printed.
const (
	formatTable = "table"
	formatJSON  = "json"
)

// output is how a command prints.
type output struct{ format string }

// addFlags adds the flag to a command.
func (o *output) addFlags(command *cobra.Command) {
	command.Flags().StringVarP(&o.format, "output", "o", formatTable, "output format: table or json")
	command.PreRunE = func(*cobra.Command, []string) error {
		if o.format != formatTable && o.format != formatJSON {
			return program.Usage(fmt.Errorf("--output=%s: must be %s or %s", o.format, formatTable, formatJSON))
		}
		return nil
	}
}

// list prints things: for people with a column for each title, for programs as they are.
func list[T any](o *output, w io.Writer, all []T, titles []string, row func(T) []string) error {
	if o.format == formatJSON {
		if all == nil {
			all = []T{}
		}
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		if err := e.Encode(all); err != nil {
			return fmt.Errorf("print: %w", err)
		}
		return nil
	}
	table := tabwriter.NewWriter(w, 0, 8, 3, ' ', 0)
	fmt.Fprintln(table, strings.Join(titles, "\t"))
	for _, one := range all {
		cells := row(one)
		for i, cell := range cells {
			cells[i] = harmless(cell)
		}
		fmt.Fprintln(table, strings.Join(cells, "\t"))
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return nil
}

// harmless returns what others wrote, without what a terminal obeys.
func harmless(text string) string {
	if text == "" {
		return "-"
	}
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, text)
}

// ago returns how long ago something was, or in how long it will be.
func ago(t, now time.Time) string {
	switch d := now.Sub(t).Round(time.Second); {
	case t.IsZero():
		return ""
	case d < 0:
		return "in " + short(-d)
	default:
		return short(d)
	}
}

// short returns a duration with one unit.
func short(d time.Duration) string {
	for _, unit := range []struct {
		of   time.Duration
		name string
	}{{24 * time.Hour, "d"}, {time.Hour, "h"}, {time.Minute, "m"}} {
		if d >= 2*unit.of {
			return strconv.Itoa(int(d/unit.of)) + unit.name
		}
	}
	return strconv.Itoa(int(d/time.Second)) + "s"
}
