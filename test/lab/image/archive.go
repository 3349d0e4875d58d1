// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package image makes container images out of files of this machine, keeps them,
// and serves them to container runtimes as a read-only registry. It needs no
// container engine, and does not know what the images are for.
package image

import (
	"archive/tar"
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// defaultPath is the search path of containers, as container engines set it.
const defaultPath = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// Image is an image to be made.
type Image struct {
	// Tag is the full name, with a tag.
	Tag        string   `json:"tag"`
	Layers     []Layer  `json:"layers"`
	Entrypoint []string `json:"entrypoint"`
	Command    []string `json:"command"`
	Env        []string `json:"env"`
	// User is the numeric user, or empty for root.
	User string `json:"user"`
}

// Layer is a list of entries, applied in order. The same slice may be a layer of
// several images; it is then stored once.
type Layer []Entry

// Entry puts one thing into a layer.
type Entry struct {
	// Path is where it goes, without a leading slash.
	Path string `json:"path"`
	// Source is a file or a folder of this machine, copied with all its contents.
	Source string `json:"source"`
	// Content, if set, is what is in the file instead.
	Content string `json:"content"`
	// Link, if set, makes Path a symbolic link with this target instead.
	Link string `json:"link"`
	// Mode, if set and nothing else but Path is, makes Path an empty folder of this mode. A file of Source or Content
	// has this mode if it is set, or else its own or one that all may read.
	Mode fs.FileMode `json:"mode"`
}

// manifest is an element of manifest.json of a docker-archive.
// https://github.com/moby/docker-image-spec/blob/v1.3.1/spec.md#combined-image-json--filesystem-changeset-format
type manifest struct {
	Config   string   `json:"Config"`
	RepoTags []string `json:"RepoTags"`
	Layers   []string `json:"Layers"`
}

// imageConfig is the part of an image's configuration that runtimes need.
// https://github.com/opencontainers/image-spec/blob/v1.1.0/config.md
type imageConfig struct {
	Created      string `json:"created"`
	Architecture string `json:"architecture"`
	OS           string `json:"os"`
	Config       struct {
		Entrypoint []string `json:"Entrypoint,omitempty"`
		Cmd        []string `json:"Cmd,omitempty"`
		Env        []string `json:"Env,omitempty"`
		User       string   `json:"User,omitempty"`
	} `json:"config"`
	RootFS struct {
		Type    string   `json:"type"`
		DiffIDs []string `json:"diff_ids"`
	} `json:"rootfs"`
}

// WriteArchive writes images as one docker-archive, which `ctr image import`,
// `docker load` and Store.Load read. The same input gives the same bytes.
func WriteArchive(w io.Writer, architecture string, images ...Image) error {
	out := tar.NewWriter(w)
	digests, written := map[*Entry]string{}, map[string]bool{}
	var manifests []manifest
	for _, img := range images {
		var layers, diffIDs []string
		for _, layer := range img.Layers {
			if len(layer) == 0 {
				continue
			}
			digest, ok := digests[&layer[0]]
			if !ok {
				data, err := layer.tar()
				if err != nil {
					return fmt.Errorf("make layer of image %s: %w", img.Tag, err)
				}
				digest = sum(data)
				digests[&layer[0]] = digest
				if !written[digest] {
					written[digest] = true
					if err := writeFile(out, digest+"/layer.tar", data, 0o644); err != nil {
						return fmt.Errorf("write layer of image %s: %w", img.Tag, err)
					}
				}
			}
			layers = append(layers, digest+"/layer.tar")
			diffIDs = append(diffIDs, "sha256:"+digest)
		}
		config, err := img.config(architecture, diffIDs)
		if err != nil {
			return err
		}
		name := sum(config) + ".json"
		if err := writeFile(out, name, config, 0o644); err != nil {
			return fmt.Errorf("write configuration of image %s: %w", img.Tag, err)
		}
		manifests = append(manifests, manifest{Config: name, RepoTags: []string{img.Tag}, Layers: layers})
	}
	data, err := json.Marshal(manifests)
	if err != nil {
		return fmt.Errorf("encode manifest: %w", err)
	}
	if err := writeFile(out, "manifest.json", data, 0o644); err != nil {
		return fmt.Errorf("write manifest: %w", err)
	}
	return out.Close()
}

func (i Image) config(architecture string, diffIDs []string) ([]byte, error) {
	c := imageConfig{Created: "1970-01-01T00:00:00Z", Architecture: architecture, OS: "linux"}
	c.Config.Entrypoint, c.Config.Cmd, c.Config.User = i.Entrypoint, i.Command, i.User
	c.Config.Env = append([]string{defaultPath}, i.Env...)
	c.RootFS.Type, c.RootFS.DiffIDs = "layers", diffIDs
	data, err := json.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("encode configuration of image %s: %w", i.Tag, err)
	}
	return data, nil
}

func (l Layer) tar() ([]byte, error) {
	var buffer bytes.Buffer
	t := layerWriter{Writer: tar.NewWriter(&buffer), folders: map[string]bool{"": true}}
	for _, e := range l {
		if err := t.add(e); err != nil {
			return nil, err
		}
	}
	if err := t.Close(); err != nil {
		return nil, err
	}
	return buffer.Bytes(), nil
}

// layerWriter writes a layer and makes every folder before its contents.
type layerWriter struct {
	*tar.Writer
	folders map[string]bool
}

func (t *layerWriter) add(e Entry) error {
	if err := t.parents(e.Path); err != nil {
		return err
	}
	switch {
	case e.Link != "":
		return t.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: e.Path, Linkname: e.Link, Mode: 0o777})
	case e.Content != "":
		return writeFile(t.Writer, e.Path, []byte(e.Content), cmp.Or(bits(e.Mode), 0o644))
	case e.Source == "":
		return t.folder(e.Path, e.Mode)
	}
	return filepath.WalkDir(e.Source, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(e.Source, name)
		if err != nil {
			return err
		}
		return t.copy(name, path.Join(e.Path, filepath.ToSlash(relative)), e.Mode)
	})
}

// copy adds one file as root's, without its time, so that equal files make equal
// layers. A link is copied as what it points to if it leads to a file.
func (t *layerWriter) copy(source, target string, mode fs.FileMode) error {
	info, err := os.Stat(source)
	if err != nil {
		return err
	}
	if info.IsDir() {
		return t.folder(target, info.Mode().Perm())
	}
	data, err := os.ReadFile(source)
	if err != nil {
		return err
	}
	header := &tar.Header{Typeflag: tar.TypeReg, Name: target, Size: int64(len(data)), Mode: cmp.Or(bits(mode), bits(info.Mode().Perm()))}
	if err := t.WriteHeader(header); err != nil {
		return err
	}
	_, err = t.Write(data)
	return err
}

func (t *layerWriter) parents(name string) error {
	for i, char := range name {
		if char == '/' {
			if err := t.folder(name[:i], 0o755); err != nil {
				return err
			}
		}
	}
	return nil
}

func (t *layerWriter) folder(name string, mode fs.FileMode) error {
	if t.folders[name] {
		return nil
	}
	t.folders[name] = true
	return t.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: bits(mode)})
}

// bits returns a mode as tar has it: the bits beyond the permissions are where Unix has them, which Go's file modes do not.
func bits(mode fs.FileMode) int64 {
	all := int64(mode.Perm())
	for flag, bit := range map[fs.FileMode]int64{fs.ModeSticky: 0o1000, fs.ModeSetuid: 0o4000} {
		if mode&flag != 0 {
			all |= bit
		}
	}
	return all
}

func writeFile(out *tar.Writer, name string, data []byte, mode int64) error {
	if err := out.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode, Size: int64(len(data))}); err != nil {
		return err
	}
	_, err := out.Write(data)
	return err
}

func sum(data []byte) string {
	h := sha256.Sum256(data)
	return hex.EncodeToString(h[:])
}

// Single is an image with nothing but one static binary and a folder for temporary files.
func Single(tag, binary, as string) Image {
	as = strings.TrimPrefix(as, "/")
	return Image{
		Tag:        tag,
		Layers:     []Layer{{{Path: "tmp", Mode: 0o777 | fs.ModeSticky}}, {{Path: as, Source: binary}}},
		Entrypoint: []string{"/" + as},
	}
}
