// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// Annotations by which tools find an image in a layout: by tag for skopeo, by its whole name for containerd.
const (
	refName        = "org.opencontainers.image.ref.name"
	containerdName = "io.containerd.image.name"
)

// ociArchive returns a tar archive of an OCI layout with one image, for all its platforms and under all its tags.
func ociArchive(at time.Time, index v1.ImageIndex, image string, tags []string) ([]byte, error) {
	folder, err := os.MkdirTemp("", "oci-layout-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	written, err := layout.Write(folder, empty.Index)
	if err != nil {
		return nil, fmt.Errorf("write layout of %s: %w", image, err)
	}
	for _, tag := range tags {
		named, err := name.NewTag(imageRegistry + "/" + image + ":" + tag)
		if err != nil {
			return nil, err
		}
		// Docker's tools call the registry docker.io, which this library calls by the name of its host.
		full := strings.Replace(named.Name(), name.DefaultRegistry, "docker.io", 1)
		err = written.AppendIndex(index, layout.WithAnnotations(map[string]string{refName: tag, containerdName: full}))
		if err != nil {
			return nil, fmt.Errorf("write layout of %s: %w", image, err)
		}
	}
	files, err := filesBelow(folder, func(string) bool { return true })
	if err != nil {
		return nil, fmt.Errorf("read layout of %s: %w", image, err)
	}
	return tarred(at, files)
}

// unpackLayout writes an OCI archive of a release as a folder, and opens that. Nothing is written outside of the folder.
func unpackLayout(archive, folder string) (layout.Path, error) {
	in, err := os.Open(archive)
	if err != nil {
		return "", err
	}
	defer in.Close()
	within, err := os.OpenRoot(folder)
	if err != nil {
		return "", err
	}
	defer within.Close()
	err = untarred(in, func(header *tar.Header, content io.Reader) error {
		if err := within.MkdirAll(filepath.Dir(header.Name), 0o755); err != nil {
			return err
		}
		out, err := within.Create(header.Name)
		if err != nil {
			return err
		}
		defer out.Close()
		if _, err := io.Copy(out, content); err != nil {
			return err
		}
		return out.Close()
	})
	if err != nil {
		return "", fmt.Errorf("unpack %s: %w", archive, err)
	}
	return layout.FromPath(folder)
}

// dockerArchive writes the image of one platform as docker load, ctr image import and the lab read it.
func dockerArchive(w io.Writer, image v1.Image, named string) error {
	tag, err := name.NewTag(named)
	if err != nil {
		return err
	}
	unnamed, err := name.NewTag(strings.TrimSuffix(named, tag.TagStr()) + latest)
	if err != nil {
		return err
	}
	return tarball.MultiWrite(map[name.Tag]v1.Image{tag: image, unnamed: image}, w)
}

// filesBelow returns the files of a folder for which keep says so of their path in it.
func filesBelow(folder string, keep func(path string) bool) ([]entry, error) {
	var files []entry
	err := filepath.WalkDir(folder, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		relative, err := filepath.Rel(folder, file)
		if err != nil {
			return err
		}
		relative = filepath.ToSlash(relative)
		if !keep(relative) {
			return nil
		}
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		files = append(files, entry{Path: relative, Mode: 0o644, Data: data})
		return nil
	})
	return files, err
}
