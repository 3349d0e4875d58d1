// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	yaml "sigs.k8s.io/yaml/goyaml.v3"
)

// metadataMark ends what people write in a Chart.yaml: within its annotations.
const metadataMark = "  # Generated from the CRDs and the names of the images by make generate.\n"

// kindOfChart is a CRD as Artifact Hub shows it (https://artifacthub.io/docs/topics/annotations/helm/).
type kindOfChart struct {
	Kind        string `yaml:"kind"`
	Version     string `yaml:"version"`
	Name        string `yaml:"name"`
	DisplayName string `yaml:"displayName"`
	Description string `yaml:"description"`
}

// imageOfChart is an image as Artifact Hub shows it.
type imageOfChart struct {
	Name      string   `yaml:"name"`
	Image     string   `yaml:"image"`
	Platforms []string `yaml:"platforms,flow"`
}

// metadata returns the Chart.yaml of a chart with what hubs show of it: its kinds and its images.
func (c chart) metadata(root string) (string, error) {
	text, err := os.ReadFile(filepath.Join(root, c.folder, "Chart.yaml"))
	if err != nil {
		return "", err
	}
	head, _, found := strings.Cut(string(text), metadataMark)
	if !found {
		return "", fmt.Errorf("%s/Chart.yaml has no place for what is generated", c.folder)
	}
	var written struct {
		AppVersion string `yaml:"appVersion"`
	}
	if err := yaml.Unmarshal(text, &written); err != nil {
		return "", fmt.Errorf("read %s/Chart.yaml: %w", c.folder, err)
	}
	var images []imageOfChart
	for _, name := range c.images {
		images = append(images, imageOfChart{name, "capacitorset/" + name + ":" + written.AppVersion, []string{"linux/amd64", "linux/arm64"}})
	}
	annotations := map[string]any{"artifacthub.io/images": images}
	if c.crds != "" {
		if annotations["artifacthub.io/crds"], err = kinds(root, c.crds); err != nil {
			return "", err
		}
	}
	texts := map[string]string{"artifacthub.io/license": "Apache-2.0"}
	for name, value := range annotations {
		if texts[name], err = encoded(value); err != nil {
			return "", err
		}
	}
	block, err := encoded(texts)
	if err != nil {
		return "", err
	}
	var indented strings.Builder
	for line := range strings.Lines(block) {
		indented.WriteString("  " + line)
	}
	return head + metadataMark + indented.String(), nil
}

// kinds returns the kinds of the CRDs that match a pattern.
func kinds(root, pattern string) ([]kindOfChart, error) {
	files, err := filepath.Glob(filepath.Join(root, pattern))
	if err != nil {
		return nil, err
	}
	var all []kindOfChart
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		var crd struct {
			Metadata struct {
				Name string `yaml:"name"`
			} `yaml:"metadata"`
			Spec struct {
				Names struct {
					Kind string `yaml:"kind"`
				} `yaml:"names"`
				Versions []struct {
					Name   string `yaml:"name"`
					Schema struct {
						OpenAPI struct {
							Description string `yaml:"description"`
						} `yaml:"openAPIV3Schema"`
					} `yaml:"schema"`
				} `yaml:"versions"`
			} `yaml:"spec"`
		}
		if err := yaml.Unmarshal(text, &crd); err != nil || len(crd.Spec.Versions) != 1 {
			return nil, fmt.Errorf("read %s, with %d versions: %w", file, len(crd.Spec.Versions), err)
		}
		version, kind := crd.Spec.Versions[0], crd.Spec.Names.Kind
		sentence, _, _ := strings.Cut(strings.Join(strings.Fields(version.Schema.OpenAPI.Description), " "), ". ")
		all = append(all, kindOfChart{kind, version.Name, crd.Metadata.Name, kind, strings.TrimSuffix(sentence, ".") + "."})
	}
	return all, nil
}
