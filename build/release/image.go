// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/pem"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// program is what an image runs.
type program struct {
	// Image is the last part of the image's name.
	Image string
	// Binary is the name of the program, which is /usr/bin/Binary in the image.
	Binary string
	// Does says what it is for.
	Does string
	// Patched programs are built from a patched module of Liqo.
	Patched bool
	// Tags are those that the image has besides the version. Each has "latest", which no manifest names, for people who name no tag.
	Tags []string
}

// tags returns those that the image of a version has. A candidate is for who names it.
func (p program) tags(version string) []string {
	if strings.Contains(version, "-") {
		return []string{version}
	}
	return append([]string{version}, p.Tags...)
}

// liqoVersion is the version of Liqo that the virtual kubelet replaces one of. Liqo's chart appends it to its value
// virtualKubelet.imageName, so that there must be an image with this tag.
const liqoVersion = "v0.9.4"

const latest = "latest"

// programs are those that have an image.
func programs() []program {
	return []program{
		{
			Image: "liqo-broker", Binary: "broker", Tags: []string{latest},
			Does: "The daemon of liqo-broker: chooses providers, and re-offloads workloads to them",
		},
		{
			Image: "liqo-broker-network-manager", Binary: "network-manager", Tags: []string{latest},
			Does: "Beside Liqo's network-manager, closes its IPAM, and serves the remote IPAM of a broker; with Liqo 1.x the transit and the agent",
		},
		{
			Image: "liqo-broker-connector", Binary: "connector", Tags: []string{latest},
			Does: "The connector of a cluster: buys and sells capacity by contracts that Liqo obeys",
		},
		{
			Image: "liqo-broker-registry", Binary: "registry", Tags: []string{latest},
			Does: "A registry: collects signed offers of clusters, and shows them to all",
		},
		{
			Image: "liqo-broker-vk", Binary: "virtual-kubelet", Patched: true, Tags: []string{latest, liqoVersion},
			Does: "A virtual kubelet for Liqo " + liqoVersion + " that knows the way to pods behind a broker",
		},
	}
}

// published returns the name of the image in a registry, of which to is what stands before the last slash, as ghcr.io/someone.
func (p program) published(to, tag string) string { return to + "/" + p.Image + ":" + tag }

const (
	// nonRoot is whom images run as: numbers that Kubernetes can tell from root.
	nonRoot = "65532:65532"
	// searchPath is as container engines set it.
	searchPath = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
	// documents is where an image has the licences.
	documents = "usr/share/doc/liqo-broker/"
)

// image returns the image of a program for Linux: the certificates of public authorities, a folder for temporary files, and one
// static binary with its licences. The same binary, licences and source give the same digest, on any machine.
func (p program) image(s source, architecture string, binary []byte, licences []entry) (v1.Image, error) {
	base, err := layer(s.Time, baseFiles())
	if err != nil {
		return nil, fmt.Errorf("make the first layer of %s: %w", p.Image, err)
	}
	files := []entry{{Path: "usr/bin/" + p.Binary, Mode: 0o755, Data: binary}}
	for _, e := range licences {
		e.Path = documents + e.Path
		files = append(files, e)
	}
	top, err := layer(s.Time, files)
	if err != nil {
		return nil, fmt.Errorf("make the second layer of %s: %w", p.Image, err)
	}
	created := v1.Time{Time: s.Time}
	image, err := mutate.Append(
		mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON),
		mutate.Addendum{Layer: base, History: v1.History{Created: created, CreatedBy: "build/release: certificates, users, /tmp"}},
		mutate.Addendum{Layer: top, History: v1.History{Created: created, CreatedBy: "build/release: /usr/bin/" + p.Binary}},
	)
	if err != nil {
		return nil, fmt.Errorf("put %s together: %w", p.Image, err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("configure %s: %w", p.Image, err)
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created, config.Author = "linux", architecture, created, authors
	config.Config = v1.Config{
		Entrypoint: []string{"/usr/bin/" + p.Binary}, Env: []string{searchPath}, User: nonRoot, WorkingDir: "/", Labels: p.labels(s),
	}
	if image, err = mutate.ConfigFile(image, config); err != nil {
		return nil, fmt.Errorf("configure %s: %w", p.Image, err)
	}
	return image, nil
}

// labels are the annotations of the OCI that say what an image is.
// https://github.com/opencontainers/image-spec/blob/v1.1.1/annotations.md
func (p program) labels(s source) map[string]string {
	const prefix = "org.opencontainers.image."
	return map[string]string{
		prefix + "title":         p.Image,
		prefix + "description":   p.Does,
		prefix + "source":        repository,
		prefix + "url":           repository,
		prefix + "documentation": repository + "#readme",
		prefix + "version":       s.Version,
		prefix + "revision":      s.Revision,
		prefix + "licenses":      licence,
		prefix + "vendor":        authors,
		prefix + "created":       s.Time.UTC().Format(time.RFC3339),
	}
}

// index returns the image of a program for all its architectures.
func (p program) index(s source, byArchitecture map[string]v1.Image) (v1.ImageIndex, error) {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, architecture := range sortedKeys(byArchitecture) {
		image := byArchitecture[architecture]
		descriptor, err := describe(image)
		if err != nil {
			return nil, fmt.Errorf("describe %s for %s: %w", p.Image, architecture, err)
		}
		descriptor.Platform = &v1.Platform{OS: "linux", Architecture: architecture}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image, Descriptor: descriptor})
	}
	annotated, ok := mutate.Annotations(index, maps.Clone(p.labels(s))).(v1.ImageIndex)
	if !ok {
		return nil, fmt.Errorf("annotate %s: the index of an image is none any more", p.Image)
	}
	return annotated, nil
}

func describe(image v1.Image) (v1.Descriptor, error) {
	digest, err := image.Digest()
	if err != nil {
		return v1.Descriptor{}, err
	}
	size, err := image.Size()
	if err != nil {
		return v1.Descriptor{}, err
	}
	media, err := image.MediaType()
	if err != nil {
		return v1.Descriptor{}, err
	}
	return v1.Descriptor{MediaType: media, Size: size, Digest: digest}, nil
}

// baseFiles are those that all images have.
func baseFiles() []entry {
	return []entry{
		{Path: "etc/ssl/certs/ca-certificates.crt", Mode: 0o644, Data: authorities()},
		{Path: "etc/passwd", Mode: 0o644, Data: []byte("root:x:0:0:root:/:/\nnonroot:x:65532:65532:nonroot:/tmp:/\n")},
		{Path: "etc/group", Mode: 0o644, Data: []byte("root:x:0:\nnonroot:x:65532:\n")},
		{Path: "tmp", Mode: fs.ModeDir | fs.ModeSticky | 0o777},
	}
}

// authorities returns the certificates of the public authorities that Mozilla trusts, as PEM. They come from a Go module, whose
// content go.sum holds, and not from the machine, so that all machines make the same image. An authority that is trusted under
// conditions that PEM cannot express is left out: Mozilla is withdrawing its trust.
func authorities() []byte {
	var out bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			out.Write(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}))
		}
	}
	return out.Bytes()
}

// layer returns a compressed layer of an image.
func layer(at time.Time, entries []entry) (v1.Layer, error) {
	data, err := tarred(at, entries)
	if err != nil {
		return nil, err
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }
	return tarball.LayerFromOpener(open, tarball.WithMediaType(types.OCILayer), tarball.WithCompressedCaching)
}

// certificatesModule is where authorities come from, and certificatesVersion what go.mod says of it, which a test compares.
const (
	certificatesModule  = "golang.org/x/crypto/x509roots/fallback"
	certificatesVersion = "v0.0.0-20261030153154-30a33513ff6d"
)
