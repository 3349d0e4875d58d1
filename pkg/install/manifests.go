// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/capacitorset/liqo-broker/deploy"
)

// build returns what a kustomization of package deploy makes, in an order in which it can be created.
func build(folder string) ([]*unstructured.Unstructured, error) {
	files := filesys.MakeFsInMemory()
	err := fs.WalkDir(deploy.Files, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := deploy.Files.ReadFile(path)
		if err != nil {
			return err
		}
		return files.WriteFile(path, content)
	})
	if err != nil {
		return nil, fmt.Errorf("read the manifests: %w", err)
	}
	options := krusty.MakeDefaultOptions()
	options.Reorder = krusty.ReorderOptionLegacy // Namespaces and CRDs come first.
	built, err := krusty.MakeKustomizer(options).Run(files, folder)
	if err != nil {
		return nil, fmt.Errorf("build kustomization %s: %w", folder, err)
	}
	text, err := built.AsYaml()
	if err != nil {
		return nil, fmt.Errorf("write kustomization %s: %w", folder, err)
	}
	return decode(text)
}

// decode returns the objects of a YAML file.
func decode(text []byte) ([]*unstructured.Unstructured, error) {
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	var objects []*unstructured.Unstructured
	for {
		object := &unstructured.Unstructured{}
		switch err := decoder.Decode(&object.Object); {
		case errors.Is(err, io.EOF):
			return objects, nil
		case err != nil:
			return nil, fmt.Errorf("read a manifest: %w", err)
		case len(object.Object) > 0:
			objects = append(objects, object)
		}
	}
}
