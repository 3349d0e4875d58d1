// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package golden compares what a test prints with a committed file, so that a change of it is seen in a review. It knows nothing
// of what is printed.
package golden

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write golden files instead of comparing with them")

// Check fails the test if the file below testdata of the test's package has another content than got. With -update it writes
// the file instead.
func Check(tb testing.TB, name, got string) {
	tb.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			tb.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			tb.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		tb.Fatalf("%v: write it with -update", err)
	}
	if got == string(want) {
		return
	}
	old, now := strings.Split(string(want), "\n"), strings.Split(got, "\n")
	tb.Errorf("%s is not what is printed now: run make text, and review the difference as a user will read it\n%s%s",
		file, missing("- ", old, now), missing("+ ", now, old))
}

// missing returns the lines that are not among others, each with a mark before it. There are none if only the order differs.
func missing(mark string, lines, others []string) string {
	var out strings.Builder
	for _, line := range lines {
		if !slices.Contains(others, line) {
			out.WriteString(mark + line + "\n")
		}
	}
	return out.String()
}
