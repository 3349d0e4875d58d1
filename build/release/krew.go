// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"sigs.k8s.io/yaml"
)

// plugin is the name of the program that kubectl finds as `kubectl liqo-broker`.
const plugin = "kubectl-liqo_broker"

// A krewPlugin is the manifest of a plugin for krew.
// https://krew.sigs.k8s.io/docs/developer-guide/plugin-manifest/
type krewPlugin struct {
	APIVersion string            `json:"apiVersion"`
	Kind       string            `json:"kind"`
	Metadata   map[string]string `json:"metadata"`
	Spec       krewSpec          `json:"spec"`
}

type krewSpec struct {
	Version          string         `json:"version"`
	Homepage         string         `json:"homepage"`
	ShortDescription string         `json:"shortDescription"`
	Description      string         `json:"description"`
	Caveats          string         `json:"caveats"`
	Platforms        []krewPlatform `json:"platforms"`
}

type krewPlatform struct {
	Selector struct {
		MatchLabels map[string]string `json:"matchLabels"`
	} `json:"selector"`
	URI    string `json:"uri"`
	SHA256 string `json:"sha256"`
	Bin    string `json:"bin"`
}

// krewManifest returns the manifest of the plugin, whose archives are the subjects by platform.
func krewManifest(s source, archives map[platform]artifact) ([]byte, error) {
	manifest := krewPlugin{
		APIVersion: "krew.googlecontainertools.github.com/v1alpha2", Kind: "Plugin", Metadata: map[string]string{"name": project},
		Spec: krewSpec{
			Version: s.Version, Homepage: repository, ShortDescription: "Install and watch a resource broker for Liqo",
			Description: "Makes a cluster with Liqo 0.9 a broker, prepares consumers for it, says where pods run\nand why, and puts Liqo back " +
				"as it was.\n",
			// Krew puts nothing into the path but the one program of a plugin.
			Caveats: "Needs Liqo v0.9.4 on the cluster.\n\nTo have kubectl complete its names, where your shell completes kubectl:\n\n" +
				"  krew=\"${KREW_ROOT:-$HOME/.krew}\"\n  ln -s \"$krew/store/" + project + "/" + s.Version + "/" + completer + "\" \"$krew/bin/\"\n",
		},
	}
	for _, p := range sortedPlatforms(archives) {
		built := krewPlatform{URI: s.download(archives[p].Name), SHA256: archives[p].digest(), Bin: plugin + p.exe()}
		built.Selector.MatchLabels = map[string]string{"os": p.OS, "arch": p.Architecture}
		manifest.Spec.Platforms = append(manifest.Spec.Platforms, built)
	}
	data, err := yaml.Marshal(manifest)
	if err != nil {
		return nil, fmt.Errorf("write the manifest of krew: %w", err)
	}
	return data, nil
}
