// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// remember notes in a file which tests of a group passed at once and which were flaky, and returns in how many runs in a row the latter
// were. What neither passed nor was flaky stays as it is. Without a file, or with one that says nothing, each run is the first. Of two
// processes that write at a time, one is forgotten: a lab has one at a time.
func remember(file, group string, passed, flaky []string) (map[string]int, error) {
	runs := map[string]int{}
	for _, test := range flaky {
		runs[test] = 1
	}
	if file == "" || len(passed)+len(flaky) == 0 {
		return runs, nil
	}
	// By group and test.
	all := map[string]map[string]int{}
	text, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return runs, fmt.Errorf("read what was flaky: %w", err)
	}
	if json.Unmarshal(text, &all) != nil || all == nil {
		all = map[string]map[string]int{}
	}
	if all[group] == nil {
		all[group] = map[string]int{}
	}
	for _, test := range passed {
		delete(all[group], test)
	}
	for _, test := range flaky {
		all[group][test]++
		runs[test] = all[group][test]
	}
	if text, err = json.MarshalIndent(all, "", "  "); err != nil {
		return runs, fmt.Errorf("write what was flaky: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return runs, fmt.Errorf("write what was flaky: %w", err)
	}
	part := file + ".part"
	if err := os.WriteFile(part, text, 0o644); err != nil {
		return runs, fmt.Errorf("write what was flaky: %w", err)
	}
	if err := os.Rename(part, file); err != nil {
		return runs, fmt.Errorf("write what was flaky: %w", err)
	}
	return runs, nil
}
