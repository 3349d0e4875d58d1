// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/capacitorset/liqo-broker/deploy"
)

// kustomization is as much of a kustomization as those of package deploy have: all else is refused. Kustomize itself would be a tenth of
// the plugin.
type kustomization struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Resources  []string `json:"resources"`
	// Images are tags in place of those in the manifests.
	Images []struct {
		Name   string `json:"name"`
		NewTag string `json:"newTag"`
	} `json:"images,omitempty"`
}

// build returns what a kustomization of package deploy makes, in an order in which it can be created.
func build(folder string) ([]*unstructured.Unstructured, error) {
	objects, err := kustomize(folder)
	if err != nil {
		return nil, fmt.Errorf("build kustomization %s: %w", folder, err)
	}
	first := []string{"Namespace", "CustomResourceDefinition"}
	slices.SortStableFunc(objects, func(a, b *unstructured.Unstructured) int {
		rank := func(o *unstructured.Unstructured) int {
			if at := slices.Index(first, o.GetKind()); at >= 0 {
				return at
			}
			return len(first)
		}
		return rank(a) - rank(b)
	})
	return objects, nil
}

func kustomize(folder string) ([]*unstructured.Unstructured, error) {
	text, err := deploy.Files.ReadFile(path.Join(folder, kustomizationFile))
	if err != nil {
		return nil, err
	}
	var k kustomization
	if err := yaml.UnmarshalStrict(text, &k); err != nil {
		return nil, err
	}
	var all []*unstructured.Unstructured
	for _, resource := range k.Resources {
		name := path.Join(folder, resource)
		info, err := fs.Stat(deploy.Files, name)
		if err != nil {
			return nil, err
		}
		var objects []*unstructured.Unstructured
		if info.IsDir() {
			objects, err = kustomize(name)
		} else if text, err = deploy.Files.ReadFile(name); err == nil {
			objects, err = decode(text)
		}
		if err != nil {
			return nil, err
		}
		all = append(all, objects...)
	}
	for _, image := range k.Images {
		for _, object := range all {
			retag(object.Object, image.Name, image.NewTag)
		}
	}
	return all, nil
}

// retag gives the image of a name another tag, wherever a container has it.
func retag(value any, name, tag string) {
	switch value := value.(type) {
	case map[string]any:
		if image, is := value["image"].(string); is && (image == name || strings.HasPrefix(image, name+":")) {
			value["image"] = name + ":" + tag
		}
		for _, inner := range value {
			retag(inner, name, tag)
		}
	case []any:
		for _, inner := range value {
			retag(inner, name, tag)
		}
	}
}

// decode returns the objects of a YAML file.
func decode(text []byte) ([]*unstructured.Unstructured, error) {
	decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
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
