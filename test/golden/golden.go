// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package golden compares what a test prints with a committed file, so that a change of it is seen in a review. It knows nothing
// of what is printed.
package golden

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write golden files instead of comparing with them")

// Check fails the test if the file below testdata of the test's package has another content than got. With -update it writes
// the file instead.
func Check(t testing.TB, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v: write it with -update", err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("%s is not what is printed now (-file +now): run make text, and review the difference as a user will read it\n%s", file, diff)
	}
}
