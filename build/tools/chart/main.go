// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Command chart generates what the Helm chart has in common with the manifests that kubectl applies: the templates of the CRDs
// and of all objects without values of their own, the alert rules, the dashboards, and the reference of the values in the chart's README, which
// comes from the comments in values.yaml.
//
// It runs in the root folder of the repository, and writes below deploy/chart. What people write there it leaves alone.
package main

import (
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	if err := run("."); err != nil {
		fmt.Fprintln(os.Stderr, "chart:", err)
		os.Exit(1)
	}
}

// run writes what is generated below a root folder of the repository.
func run(root string) error {
	files, err := generate(root)
	if err != nil {
		return err
	}
	stale, err := filepath.Glob(filepath.Join(root, generated, "*"))
	if err != nil {
		return err
	}
	for _, name := range stale {
		if err := os.Remove(name); err != nil {
			return err
		}
	}
	for name, text := range files {
		name = filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// generate returns all generated files, by their paths in the repository.
func generate(root string) (map[string]string, error) {
	files := map[string]string{}
	for _, s := range sources {
		names, err := filepath.Glob(filepath.Join(root, s.files))
		if err != nil {
			return nil, err
		}
		if len(names) == 0 {
			return nil, fmt.Errorf("there is no %s", s.files)
		}
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil {
				return nil, err
			}
			from, err := filepath.Rel(root, name)
			if err != nil {
				return nil, err
			}
			if file := filepath.Base(name); file != "kustomization.yaml" {
				files[filepath.Join(generated, s.prefix+file)] = s.template(from, string(text))
			}
		}
	}
	copied, err := filepath.Glob(filepath.Join(root, "deploy/monitoring/dashboards/*.json"))
	if err != nil {
		return nil, err
	}
	for _, name := range append(copied, filepath.Join(root, "deploy/monitoring/rules.yaml")) {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		from, err := filepath.Rel(filepath.Join(root, "deploy/monitoring"), name)
		if err != nil {
			return nil, err
		}
		files[filepath.Join("deploy/chart/files", from)] = string(text)
	}
	readme, err := reference(filepath.Join(root, "deploy/chart"))
	if err != nil {
		return nil, err
	}
	files["deploy/chart/README.md"] = readme
	return files, nil
}
