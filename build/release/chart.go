// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// packageChart returns the Helm chart as `helm package` would write it, but for the times, which helm takes from the clock.
func packageChart(s source) ([]byte, error) {
	folder := filepath.Join(s.Root, "deploy/chart")
	files, err := filesBelow(folder, func(string) bool { return true })
	if err != nil {
		return nil, fmt.Errorf("read the chart: %w", err)
	}
	for i, file := range files {
		if file.Path != "Chart.yaml" {
			files[i].Path = project + "/" + file.Path
			continue
		}
		var chart struct{ Name, Version, AppVersion string }
		if err := yaml.Unmarshal(file.Data, &chart); err != nil {
			return nil, fmt.Errorf("read Chart.yaml: %w", err)
		}
		if chart.Name != project || chart.Version != s.number() || chart.AppVersion != s.Version {
			return nil, fmt.Errorf("the chart is %s %s of %s, and must be %s %s of %s", chart.Name, chart.Version, chart.AppVersion, project, s.number(), s.Version)
		}
		files[i].Path = project + "/Chart.yaml"
	}
	return tarGz(s.Time, files)
}

// manifests returns what `kubectl apply -k` would apply of a folder, in one file.
func manifests(s source, folder string) ([]byte, error) {
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), filepath.Join(s.Root, folder))
	if err != nil {
		return nil, fmt.Errorf("build %s: %w", folder, err)
	}
	text, err := built.AsYaml()
	if err != nil {
		return nil, fmt.Errorf("build %s: %w", folder, err)
	}
	head := fmt.Sprintf("# Built from %s of %s %s.\n", folder, project, s.Version)
	return append([]byte(head), text...), nil
}

// liqoSettings returns what is applied to Liqo itself, by hand: patches, values of its chart, and the offer of its namespace.
func liqoSettings(s source) ([]byte, error) {
	var all []entry
	for from, to := range map[string]string{"patches/liqo-install": "patches/", "deploy/liqo": "values/", "deploy/examples": "examples/"} {
		files, err := filesBelow(filepath.Join(s.Root, from), func(path string) bool { return filepath.Ext(path) != ".go" })
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", from, err)
		}
		for _, file := range files {
			file.Path = settingsFolder(s) + "/" + to + file.Path
			all = append(all, file)
		}
	}
	for _, name := range []string{"LICENSE", "NOTICE"} {
		data, err := os.ReadFile(filepath.Join(s.Root, name))
		if err != nil {
			return nil, err
		}
		all = append(all, entry{Path: settingsFolder(s) + "/" + name, Mode: 0o644, Data: data})
	}
	return tarGz(s.Time, all)
}

func settingsFolder(s source) string { return strings.Join([]string{project, "liqo", s.Version}, "-") }
