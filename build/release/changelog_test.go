// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestChanges reads what charts say of a version out of a changelog.
func TestChanges(t *testing.T) {
	const text = `# Changelog

## [Unreleased]

### Added

* What comes, with [a link](https://example.com). And more.

## [0.2.0] - 2026-12-01

What it is about.

### Changed

* Version v0.9.4 is
  needed. It was v0.9.3.
* A last one

### Security

* A hole is closed.

## [0.1.0]

### Added

* All.

[Unreleased]: https://example.com
`
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "CHANGELOG.md"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for version, want := range map[string][]chartChange{
		"v0.2.0": {{"changed", "Version v0.9.4 is needed"}, {"changed", "A last one"}, {"security", "A hole is closed"}},
		"v0.3.0": {{"added", "What comes, with a link"}}, "v0.1.0": {{"added", "All"}},
	} {
		got, err := changesOf(source{Root: root, Version: version})
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v -want +got\n%s", version, err, diff)
		}
	}
	for version, want := range map[string]string{"v1.0.0-rc.1": `"true"`, "v0.2.0": `"false"`} {
		chart, err := withChanges(source{Root: root, Version: version}, []byte("annotations:\n"))
		if err != nil || !strings.Contains(string(chart), "\n  artifacthub.io/prerelease: "+want+"\n") {
			t.Errorf("%s: %v\n%s", version, err, chart)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "CHANGELOG.md"), []byte("\n## [0.1.0]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, version := range []string{"v0.1.0", "v0.2.0"} {
		if _, err := changesOf(source{Root: root, Version: version}); err == nil {
			t.Errorf("nothing is said of %s, and that is released", version)
		}
	}
}
