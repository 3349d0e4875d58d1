// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// versioned are the files and folders that name the version of the images.
func versioned() []string {
	return []string{
		"Makefile", "README.md", "build/Dockerfile", "deploy", "docs", "patches", "test/chart/release_test.go", "test/federation/connector.go",
	}
}

// setVersion writes another version into all files that name it, and returns those that it has changed.
func setVersion(root, version string) ([]string, error) {
	s := source{Root: root, Version: version}
	if !semantic.MatchString(version) {
		return nil, fmt.Errorf("the version %q is not of the form v1.2.3", version)
	}
	old, err := s.manifestVersion()
	if err != nil {
		return nil, err
	}
	var changed []string
	for _, place := range versioned() {
		err := filepath.WalkDir(filepath.Join(root, place), func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			text, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			next := retag(string(text), old, version)
			if next == string(text) {
				return nil
			}
			changed = append(changed, name)
			return os.WriteFile(name, []byte(next), 0o644)
		})
		if err != nil {
			return changed, fmt.Errorf("set the version in %s: %w", place, err)
		}
	}
	return changed, nil
}

// retag replaces a version where it is ours: as the tag of our images, in a kustomization, in the Makefile, and in the chart.
func retag(text, from, to string) string {
	text = regexp.MustCompile(`(`+imageRegistry+`/`+project+`[a-z-]*:)`+regexp.QuoteMeta(from)+`\b`).ReplaceAllString(text, "${1}"+to)
	for _, key := range []string{"newTag: ", "TAG          ?= ", "appVersion: "} {
		text = strings.ReplaceAll(text, key+from+"\n", key+to+"\n")
	}
	// The version of the chart has no v.
	return strings.ReplaceAll(text, "\nversion: "+from[1:]+"\nappVersion: "+to+"\n", "\nversion: "+to[1:]+"\nappVersion: "+to+"\n")
}
