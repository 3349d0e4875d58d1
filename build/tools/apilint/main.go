// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Command apilint checks the types of the API against the conventions of Kubernetes
// (https://sigs.k8s.io/kube-api-linter). It runs in the root folder of the repository.
package main

import (
	"fmt"
	"os"

	"golang.org/x/tools/go/analysis/multichecker"
	"sigs.k8s.io/kube-api-linter/pkg/analysis/registry"
	"sigs.k8s.io/kube-api-linter/pkg/config"
	_ "sigs.k8s.io/kube-api-linter/pkg/registration"
	"sigs.k8s.io/yaml"
)

func main() {
	text, err := os.ReadFile("build/tools/apilint/config.yaml")
	if err != nil {
		fmt.Fprintln(os.Stderr, "apilint:", err)
		os.Exit(1)
	}
	var settings config.GolangCIConfig
	if err := yaml.UnmarshalStrict(text, &settings); err != nil {
		fmt.Fprintln(os.Stderr, "apilint: read config.yaml:", err)
		os.Exit(1)
	}
	analyzers, err := registry.DefaultRegistry().InitializeLinters(settings.Linters, settings.LintersConfig)
	if err != nil {
		fmt.Fprintln(os.Stderr, "apilint:", err)
		os.Exit(1)
	}
	multichecker.Main(analyzers...)
}
