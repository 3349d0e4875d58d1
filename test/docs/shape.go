// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

var (
	tableHead = regexp.MustCompile(`^[A-Z][A-Z ]*(?: {2,}[A-Z][A-Z ]*)+$`)
	cellBreak = regexp.MustCompile(` {2,}`)
	anyWord   = regexp.MustCompile(`[\d-]`)
)

// Shape returns an error unless what a command has printed looks like a sample of it: the lines of the sample are there in their order,
// perhaps with others between them. Lines are the same if their words are, but for those that have a digit or a hyphen in the sample. The
// head of a table is the same, and a row has as many cells as one of those that were printed; how many rows there are does not count. The
// line "..." stands for anything.
func Shape(sample, printed string) error {
	lines := nonEmpty(printed)
	at, rows := 0, []string(nil) // Where to look from, and the rows of the table that it is about.
	for _, line := range nonEmpty(sample) {
		isHead, wanted := tableHead.MatchString(line), len(cells(line))
		switch {
		case line == "...":
			rows = nil
			continue
		case !isHead && rows != nil && wanted > 1:
			if !slices.ContainsFunc(rows, func(row string) bool { return len(cells(row)) == wanted }) {
				return fmt.Errorf("no row of the table has the %d cells of %q:\n%s", wanted, line, printed)
			}
			continue
		}
		found := slices.IndexFunc(lines[at:], func(other string) bool {
			if isHead {
				return slices.Equal(cells(other), cells(line))
			}
			return alike(line, other)
		})
		if found < 0 {
			return fmt.Errorf("no line is as %q, at its turn:\n%s", line, printed)
		}
		at += found + 1
		if rows = nil; isHead {
			rows = lines[at:]
		}
	}
	return nil
}

// alike reports whether two lines have the same words, but for those of the first one that are of one day.
func alike(sample, line string) bool {
	want, got := strings.Fields(sample), strings.Fields(line)
	return slices.EqualFunc(want, got, func(want, got string) bool { return want == got || anyWord.MatchString(want) })
}

func cells(line string) []string { return cellBreak.Split(line, -1) }

func nonEmpty(text string) []string {
	var lines []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return lines
}
