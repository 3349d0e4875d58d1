// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	yaml "sigs.k8s.io/yaml/goyaml.v3"
)

const (
	// patchFolder has what kubectl patch takes, and componentFolder the kustomize components that are made of it: plain ones
	// for objects of Liqo's chart, and those in flux for a HelmRelease that makes them.
	patchFolder     = "patches/liqo-install"
	componentFolder = "deploy/liqo/component"
)

// patched is an object of Liqo's chart, and the patch of it.
type patched struct{ file, apiVersion, kind, name string }

// roles returns what is patched of Liqo on a cluster, by what the cluster is.
func roles() map[string][]patched {
	rights := patched{"virtual-kubelet-role.json", "rbac.authorization.k8s.io/v1", "ClusterRole", "liqo-virtual-kubelet-local"}
	deployment := func(file, name string) patched { return patched{file, "apps/v1", "Deployment", name} }
	manager := func(file string) patched { return deployment(file, "liqo-controller-manager") }
	const network, gateway = "liqo-network-manager", "liqo-gateway"
	share := deployment("gateway-resources.json", gateway)
	return map[string][]patched{
		"broker": {
			rights, manager("controller-manager-broker.json"), deployment("gateway.yaml", gateway), share,
			deployment("ipam-guard.yaml", network), deployment("network-manager.yaml", network),
			{"network-manager-service.yaml", "v1", "Service", network},
		},
		"consumer": {rights, manager("controller-manager-consumer.json"), share},
		"trader":   {rights, manager("controller-manager-trader.json"), share, deployment("ipam-guard.yaml", network)},
	}
}

// kustomizePatch is a patch of a kustomization, and of a HelmRelease of Flux, which has taken the form from there.
type kustomizePatch struct {
	Target struct {
		Kind string `yaml:"kind"`
		Name string `yaml:"name"`
	} `yaml:"target"`
	Patch string `yaml:"patch"`
}

// component is a kustomization that others take in.
type component struct {
	APIVersion string           `yaml:"apiVersion"`
	Kind       string           `yaml:"kind"`
	Patches    []kustomizePatch `yaml:"patches"`
}

// componentsOf returns the files of all components, by their paths in the repository.
func componentsOf(root string) (map[string]string, error) {
	files := map[string]string{}
	for role, objects := range roles() {
		var all []kustomizePatch
		for _, object := range objects {
			patch, err := object.patch(root)
			if err != nil {
				return nil, err
			}
			all = append(all, patch)
		}
		release, err := releasePatch(all)
		if err != nil {
			return nil, err
		}
		for folder, list := range map[string][]kustomizePatch{role: all, filepath.Join("flux", role): {release}} {
			text, err := encoded(component{"kustomize.config.k8s.io/v1alpha1", "Component", list})
			if err != nil {
				return nil, err
			}
			head := fmt.Sprintf("# Generated from %s by make generate. It makes Liqo that of a %s.\n", patchFolder, role)
			files[filepath.Join(componentFolder, folder, "kustomization.yaml")] = head + text
		}
	}
	return files, nil
}

// patch returns the patch as kustomize has it, which wants to be told of what object a strategic merge patch is.
func (p patched) patch(root string) (k kustomizePatch, err error) {
	text, err := os.ReadFile(filepath.Join(root, patchFolder, p.file))
	if err != nil {
		return k, err
	}
	k.Target.Kind, k.Target.Name, k.Patch = p.kind, p.name, string(text)
	if filepath.Ext(p.file) != ".json" {
		var lines []string // Comments say how kubectl applies it.
		for line := range strings.Lines(k.Patch) {
			if !strings.HasPrefix(line, "#") {
				lines = append(lines, line)
			}
		}
		k.Patch = fmt.Sprintf("apiVersion: %s\nkind: %s\nmetadata:\n  name: %s\n", p.apiVersion, p.kind, p.name) + strings.Join(lines, "") +
			"# Of " + p.file + "\n" // Kustomize drops the last line break, which may be one of a text.
	}
	return k, nil
}

// releasePatch returns the patch that gives the HelmRelease of Liqo patches of what its chart makes.
func releasePatch(patches []kustomizePatch) (k kustomizePatch, err error) {
	type kustomize struct {
		Patches []kustomizePatch `yaml:"patches"`
	}
	type renderer struct {
		Kustomize kustomize `yaml:"kustomize"`
	}
	var release struct {
		APIVersion string            `yaml:"apiVersion"`
		Kind       string            `yaml:"kind"`
		Metadata   map[string]string `yaml:"metadata"`
		Spec       struct {
			PostRenderers []renderer `yaml:"postRenderers"`
		} `yaml:"spec"`
	}
	release.APIVersion, release.Kind, release.Metadata = "helm.toolkit.fluxcd.io/v2", "HelmRelease", map[string]string{"name": "liqo"}
	release.Spec.PostRenderers = []renderer{{kustomize{patches}}}
	k.Target.Kind, k.Target.Name = release.Kind, "liqo"
	k.Patch, err = encoded(release)
	return k, err
}

// encoded returns a value as YAML.
func encoded(value any) (string, error) {
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := encoder.Encode(value); err != nil {
		return "", fmt.Errorf("write YAML: %w", err)
	}
	return out.String(), encoder.Close()
}
