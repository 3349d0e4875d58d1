// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package image

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Media types of what a Store holds.
// https://github.com/opencontainers/image-spec/blob/v1.1.0/media-types.md
const (
	manifestType = "application/vnd.oci.image.manifest.v1+json"
	configType   = "application/vnd.oci.image.config.v1+json"
	layerType    = "application/vnd.oci.image.layer.v1.tar"
	gzipType     = layerType + "+gzip"
)

// Store is a folder of images: blobs by digest, and tags that point to manifests.
// Several processes may use it; each change appears at once or not at all.
type Store struct{ dir string }

// NewStore returns the store in a folder, which need not exist.
func NewStore(dir string) Store { return Store{dir: dir} }

type descriptor struct {
	MediaType string `json:"mediaType"`
	Digest    string `json:"digest"`
	Size      int64  `json:"size"`
}

type ociManifest struct {
	SchemaVersion int          `json:"schemaVersion"`
	MediaType     string       `json:"mediaType"`
	Config        descriptor   `json:"config"`
	Layers        []descriptor `json:"layers"`
}

// Load adds the images of a docker-archive, under another tag than the archive says if one is given, and returns their full names.
func (s Store) Load(archive io.Reader, tag string) ([]string, error) {
	if err := os.MkdirAll(filepath.Join(s.dir, "tags"), 0o755); err != nil {
		return nil, fmt.Errorf("make image store: %w", err)
	}
	var manifests []manifest
	files := map[string]descriptor{}
	in := tar.NewReader(archive)
	for {
		header, err := in.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("read image archive: %w", err)
		}
		switch {
		case header.Name == "manifest.json":
			if err := json.NewDecoder(in).Decode(&manifests); err != nil {
				return nil, fmt.Errorf("read manifest of image archive: %w", err)
			}
		case header.Typeflag == tar.TypeReg:
			d, err := s.put(in)
			if err != nil {
				return nil, fmt.Errorf("store %s of image archive: %w", header.Name, err)
			}
			files[header.Name] = d
		}
	}
	if len(manifests) == 0 {
		return nil, fmt.Errorf("read image archive: it has no manifest.json, so it is not a docker-archive")
	}
	var names []string
	for _, m := range manifests {
		if tag != "" {
			m.RepoTags = retag(m.RepoTags, tag)
		}
		tagged, err := s.tag(m, files)
		if err != nil {
			return nil, err
		}
		names = append(names, tagged...)
	}
	return names, nil
}

// retag returns the names of an image with another tag.
func retag(names []string, tag string) []string {
	var retagged []string
	for _, name := range names {
		if colon := strings.LastIndex(name, ":"); colon > strings.LastIndex(name, "/") {
			name = name[:colon]
		}
		retagged = append(retagged, name+":"+tag)
	}
	slices.Sort(retagged)
	return slices.Compact(retagged)
}

// tag writes the manifest of one image and points its names to it.
func (s Store) tag(m manifest, files map[string]descriptor) ([]string, error) {
	out := ociManifest{SchemaVersion: 2, MediaType: manifestType, Layers: []descriptor{}}
	for _, name := range append([]string{m.Config}, m.Layers...) {
		d, ok := files[name]
		if !ok {
			return nil, fmt.Errorf("tag image %v: the archive lacks %s", m.RepoTags, name)
		}
		if name == m.Config {
			d.MediaType = configType
			out.Config = d
			continue
		}
		d.MediaType = layerType
		if strings.HasSuffix(name, ".gz") {
			d.MediaType = gzipType
		}
		out.Layers = append(out.Layers, d)
	}
	data, err := json.Marshal(out)
	if err != nil {
		return nil, fmt.Errorf("encode manifest of image %v: %w", m.RepoTags, err)
	}
	d, err := s.put(strings.NewReader(string(data)))
	if err != nil {
		return nil, fmt.Errorf("store manifest of image %v: %w", m.RepoTags, err)
	}
	var names []string
	for _, tag := range m.RepoTags {
		name := FullName(tag)
		if err := s.writeAtomically(filepath.Join("tags", url.PathEscape(name)), []byte(d.Digest)); err != nil {
			return nil, fmt.Errorf("tag image %s: %w", name, err)
		}
		names = append(names, name)
	}
	return names, nil
}

// Resolve returns the digest of the manifest that a full name points to, or fs.ErrNotExist.
func (s Store) Resolve(name string) (string, error) {
	digest, err := os.ReadFile(filepath.Join(s.dir, "tags", url.PathEscape(name)))
	if err != nil {
		return "", fmt.Errorf("resolve image %s: %w", name, err)
	}
	return string(digest), nil
}

// Open returns a blob, which the caller closes, or fs.ErrNotExist.
func (s Store) Open(digest string) (*os.File, error) {
	hash, ok := strings.CutPrefix(digest, "sha256:")
	if _, err := hex.DecodeString(hash); !ok || err != nil || len(hash) != 2*sha256.Size {
		return nil, fmt.Errorf("open blob %q: %w", digest, fs.ErrNotExist)
	}
	f, err := os.Open(filepath.Join(s.dir, hash))
	if err != nil {
		return nil, fmt.Errorf("open blob: %w", err)
	}
	return f, nil
}

// put stores a blob under the digest of its contents.
func (s Store) put(r io.Reader) (descriptor, error) {
	temp, err := os.CreateTemp(s.dir, "part-")
	if err != nil {
		return descriptor{}, err
	}
	defer os.Remove(temp.Name())
	defer temp.Close()
	h := sha256.New()
	size, err := io.Copy(io.MultiWriter(temp, h), r)
	if err != nil {
		return descriptor{}, err
	}
	hash := hex.EncodeToString(h.Sum(nil))
	if err := os.Rename(temp.Name(), filepath.Join(s.dir, hash)); err != nil {
		return descriptor{}, err
	}
	return descriptor{Digest: "sha256:" + hash, Size: size}, nil
}

func (s Store) writeAtomically(name string, data []byte) error {
	temp := filepath.Join(s.dir, name+".part")
	if err := os.WriteFile(temp, data, 0o644); err != nil {
		return err
	}
	return os.Rename(temp, filepath.Join(s.dir, name))
}

// FullName completes the name of an image the way container engines do: without
// a registry it is Docker Hub's, without a tag it is the latest.
func FullName(name string) string {
	if first, _, found := strings.Cut(name, "/"); !found {
		name = "docker.io/library/" + name
	} else if !strings.ContainsAny(first, ".:") && first != "localhost" {
		name = "docker.io/" + name
	}
	if !strings.Contains(name[strings.LastIndex(name, "/"):], ":") {
		name += ":latest"
	}
	return name
}
