// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Command chart generates what the Helm charts have in common with the manifests that kubectl applies: the templates of the CRDs
// and of all objects without values of their own, the alert rules, the dashboards, and the reference of the values in each chart's README,
// which comes from the comments in values.yaml, and what hubs show of it; and the kustomize components that patch Liqo, from the
// patches that kubectl applies.
//
// It runs in the root folder of the repository, and writes below the folders of the charts. What people write there it leaves alone.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

func main() {
	if err := run("."); err != nil {
		fmt.Fprintln(os.Stderr, "chart:", err)
		os.Exit(1)
	}
}

// run writes what is generated below a root folder of the repository.
func run(root string) error {
	for _, c := range charts {
		if err := c.write(root); err != nil {
			return err
		}
	}
	files, err := componentsOf(root)
	if err != nil {
		return err
	}
	return writeFiles(root, files)
}

// write writes what is generated of a chart, and removes what is not generated any more.
func (c chart) write(root string) error {
	files, err := c.generate(root)
	if err != nil {
		return err
	}
	stale, err := filepath.Glob(filepath.Join(root, c.generated(), "*"))
	if err != nil {
		return err
	}
	for _, name := range stale {
		if err := os.Remove(name); err != nil {
			return err
		}
	}
	return writeFiles(root, files)
}

// writeFiles writes files by their paths in the repository.
func writeFiles(root string, files map[string]string) error {
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

// generate returns all generated files of a chart, by their paths in the repository.
func (c chart) generate(root string) (map[string]string, error) {
	files := map[string]string{}
	for _, s := range c.sources {
		found, err := read(root, s.files)
		if err != nil {
			return nil, err
		}
		for from, text := range found {
			if file := filepath.Base(from); file != "kustomization.yaml" && !slices.Contains(s.except, file) {
				files[filepath.Join(c.generated(), s.prefix+file)] = c.template(s, from, text)
			}
		}
	}
	const monitoring = "deploy/monitoring"
	for _, pattern := range c.monitoring {
		found, err := read(root, filepath.Join(monitoring, pattern))
		if err != nil {
			return nil, err
		}
		for from, text := range found {
			below, err := filepath.Rel(monitoring, from)
			if err != nil {
				return nil, err
			}
			files[filepath.Join(c.folder, "files", below)] = text
		}
	}
	readme, err := reference(filepath.Join(root, c.folder))
	if err != nil {
		return nil, err
	}
	files[filepath.Join(c.folder, "README.md")] = readme
	if files[filepath.Join(c.folder, "Chart.yaml")], err = c.metadata(root); err != nil {
		return nil, err
	}
	return files, nil
}

// read returns the files that match a pattern, by their paths in the repository. It is an error if there is none.
func read(root, pattern string) (map[string]string, error) {
	names, err := filepath.Glob(filepath.Join(root, pattern))
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("there is no %s", pattern)
	}
	texts := map[string]string{}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		from, err := filepath.Rel(root, name)
		if err != nil {
			return nil, err
		}
		texts[from] = string(text)
	}
	return texts, nil
}
