// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"sigs.k8s.io/yaml"
)

// Media types of a Helm chart in a registry (https://helm.sh/docs/topics/registries/).
const (
	chartConfig  types.MediaType = "application/vnd.cncf.helm.config.v1+json"
	chartContent types.MediaType = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
)

// chartsFolder stands before the names of charts in a registry: an image may have the same name as a chart.
const chartsFolder = "charts"

// publishedChart returns under which name a chart is when it has been published.
func publishedChart(to, chart, number string) string {
	return to + "/" + chartsFolder + "/" + chart + ":" + number
}

// artifactImage is what a registry keeps that is no image: a config of its own type, and one layer.
type artifactImage struct {
	config, manifest []byte
	layer            v1.Layer
}

// RawConfigFile, MediaType, RawManifest and LayerByDigest make it a partial.CompressedImageCore.
func (a artifactImage) RawConfigFile() ([]byte, error) { return a.config, nil }

// MediaType returns that of its manifest.
func (a artifactImage) MediaType() (types.MediaType, error) { return types.OCIManifestSchema1, nil }

// RawManifest returns the manifest.
func (a artifactImage) RawManifest() ([]byte, error) { return a.manifest, nil }

// LayerByDigest returns its only layer.
func (a artifactImage) LayerByDigest(digest v1.Hash) (partial.CompressedLayer, error) {
	if is, err := a.layer.Digest(); err != nil || is != digest {
		return nil, fmt.Errorf("there is no layer %s: %w", digest, err)
	}
	return a.layer, nil
}

// artifactOf returns what a registry keeps of a config and a layer.
func artifactOf(
	configType types.MediaType, config []byte, layer v1.Layer, layerAnnotations, annotations map[string]string,
) (v1.Image, error) {
	descriptor, err := partial.Descriptor(layer)
	if err != nil {
		return nil, fmt.Errorf("describe a layer: %w", err)
	}
	descriptor.Annotations = layerAnnotations
	digest, size, err := v1.SHA256(bytes.NewReader(config))
	if err != nil {
		return nil, err
	}
	manifest, err := json.Marshal(v1.Manifest{
		SchemaVersion: 2, MediaType: types.OCIManifestSchema1, Annotations: annotations, Layers: []v1.Descriptor{*descriptor},
		Config: v1.Descriptor{MediaType: configType, Size: size, Digest: digest},
	})
	if err != nil {
		return nil, fmt.Errorf("write a manifest: %w", err)
	}
	return partial.CompressedToImage(artifactImage{config, manifest, layer})
}

// chartImage returns a packed chart as a registry keeps it, with the name and the version that are in it. The same chart gives the same
// digest each time.
func chartImage(packed []byte) (image v1.Image, named, number string, err error) {
	in, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, "", "", err
	}
	var text []byte
	if err := untarred(in, func(header *tar.Header, content io.Reader) (err error) {
		if _, file, _ := strings.Cut(header.Name, "/"); file == "Chart.yaml" {
			text, err = io.ReadAll(content)
		}
		return err
	}); err != nil {
		return nil, "", "", err
	}
	config, err := yaml.YAMLToJSON(text)
	if err != nil {
		return nil, "", "", fmt.Errorf("read Chart.yaml: %w", err)
	}
	var chart struct {
		Name        string `json:"name"`
		Version     string `json:"version"`
		Description string `json:"description"`
	}
	if err := json.Unmarshal(config, &chart); err != nil || chart.Name == "" || chart.Version == "" {
		return nil, "", "", errors.Join(errors.New("it is no chart with a name and a version"), err)
	}
	const prefix = "org.opencontainers.image."
	image, err = artifactOf(chartConfig, config, static.NewLayer(packed, chartContent), nil, map[string]string{
		prefix + "title": chart.Name, prefix + "version": chart.Version, prefix + "description": chart.Description, prefix + "source": repository,
		prefix + "licenses": licence,
	})
	return image, chart.Name, chart.Version, err
}

// publishCharts pushes the Helm charts of a release beside its images.
func publishCharts(ctx context.Context, folder, to string, progress io.Writer, options []name.Option) error {
	return eachChart(folder, to, func(named string, image v1.Image, digest v1.Hash) error {
		tag, err := name.NewTag(named, options...)
		if err != nil {
			return err
		}
		if err := remote.Write(tag, image, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)); err != nil {
			return fmt.Errorf("push %s: %w", tag, err)
		}
		fmt.Fprintf(progress, "release: pushed %s@%s\n", tag, digest)
		return nil
	})
}

// eachChart calls do with each chart in a folder of a release, and the name that it has in a registry.
func eachChart(folder, to string, do func(named string, image v1.Image, digest v1.Hash) error) error {
	packed, err := filepath.Glob(filepath.Join(folder, "*"+chartEnd))
	if err != nil {
		return err
	}
	for _, file := range packed {
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		image, named, number, err := chartImage(data)
		if err != nil {
			return fmt.Errorf("read %s: %w", file, err)
		}
		digest, err := image.Digest()
		if err != nil {
			return fmt.Errorf("compute the digest of %s: %w", file, err)
		}
		if err := do(publishedChart(to, named, number), image, digest); err != nil {
			return err
		}
	}
	return nil
}
