// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"sigs.k8s.io/yaml"
)

// pageLicences returns the licences of the packages of npm that are in the page of the broker, if one of the binaries has the page in it;
// Go does not say so of a binary. root is the folder of the repository.
func pageLicences(root string, binaries ...binary) ([]moduleLicence, error) {
	script, err := os.ReadFile(filepath.Join(root, "pkg/ui/dist/app.js.gz"))
	if err != nil {
		return nil, fmt.Errorf("read the page: %w", err)
	}
	if !slices.ContainsFunc(binaries, func(b binary) bool { return bytes.Contains(b.Data, script) }) {
		return nil, nil
	}
	folder := filepath.Join(root, "ui/vendor")
	data, err := os.ReadFile(filepath.Join(folder, "versions.yaml"))
	if err != nil {
		return nil, fmt.Errorf("read what the page is made of: %w", err)
	}
	var said struct {
		Packages []struct{ Name, Version, Folder string }
	}
	if err := yaml.Unmarshal(data, &said); err != nil {
		return nil, fmt.Errorf("read what the page is made of: %w", err)
	}
	var all []moduleLicence
	for _, p := range said.Packages {
		found, err := licenceOf(linkedModule{Path: p.Name, Version: p.Version, NPM: true}, filepath.Join(folder, p.Folder))
		if err != nil {
			return nil, err
		}
		all = append(all, found)
	}
	return all, nil
}
