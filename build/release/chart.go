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

// charts returns the folders of the Helm charts by the names of the charts.
func charts() map[string]string {
	return map[string]string{
		project: "deploy/chart", project + "-connector": "deploy/chart-connector", project + "-registry": "deploy/chart-registry",
		project + "-agent": "deploy/chart-agent",
	}
}

// chartEnd is what names of files with Helm charts end with.
const chartEnd = ".tgz"

// packageCharts returns the Helm charts as `helm package` would write them, but for the times, which helm takes from the clock.
func packageCharts(s source) ([]artifact, error) {
	var packed []artifact
	for _, named := range sortedKeys(charts()) {
		data, err := packageChart(s, named, charts()[named])
		if err != nil {
			return nil, err
		}
		packed = append(packed, artifact{named + "-" + s.number() + chartEnd, data})
	}
	return packed, nil
}

// packageChart returns one Helm chart.
func packageChart(s source, named, folder string) ([]byte, error) {
	files, err := filesBelow(filepath.Join(s.Root, folder), func(string) bool { return true })
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", folder, err)
	}
	for i, file := range files {
		files[i].Path = named + "/" + file.Path
		if file.Path != "Chart.yaml" {
			continue
		}
		var chart struct{ Name, Version, AppVersion string }
		if err := yaml.Unmarshal(file.Data, &chart); err != nil {
			return nil, fmt.Errorf("read %s/Chart.yaml: %w", folder, err)
		}
		if chart.Name != named || chart.Version != s.number() || chart.AppVersion != s.Version {
			return nil, fmt.Errorf("%s is %s %s of %s, and must be %s %s of %s", folder, chart.Name, chart.Version, chart.AppVersion, named,
				s.number(), s.Version)
		}
		if files[i].Data, err = withChanges(s, file.Data); err != nil {
			return nil, err
		}
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
