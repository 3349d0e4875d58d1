// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// An artifact is a file of a release.
type artifact struct {
	Name string
	Data []byte
}

func (a artifact) digest() string { return sha256Hex(a.Data) }

// A packer makes a release of binaries that are built already.
type packer struct {
	Source source
	// Binaries is a folder with one for each platform, as linux-amd64, and the programs in it.
	Binaries string
	// Images and Plugins are the platforms of the images and of the plugin.
	Images, Plugins []platform
	Licences        licenceReader
	// Progress is told what is done.
	Progress io.Writer
}

// pack writes a release into a folder, which must be empty or not there. Everything is made before the first file is written.
func (p packer) pack(out string) error {
	if err := p.Source.check(); err != nil {
		return err
	}
	if left, err := os.ReadDir(out); err == nil && len(left) > 0 {
		return fmt.Errorf("%s is not empty", out)
	}
	artifacts, err := p.artifacts()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	for _, a := range artifacts {
		if err := os.WriteFile(filepath.Join(out, a.Name), a.Data, 0o644); err != nil {
			return err
		}
	}
	fmt.Fprintf(p.Progress, "release: %d files are in %s\n", len(artifacts), out)
	return nil
}

// artifacts returns all files of the release, the one with the checksums last.
func (p packer) artifacts() ([]artifact, error) {
	images, imageBinaries, digests, err := p.images()
	if err != nil {
		return nil, err
	}
	plugins, pluginBinaries, err := p.plugins()
	if err != nil {
		return nil, err
	}
	rest, err := p.manifests()
	if err != nil {
		return nil, err
	}
	binaries := slices.Concat(imageBinaries, pluginBinaries)
	if len(binaries) == 0 {
		return nil, fmt.Errorf("no platform is given")
	}
	goVersion := binaries[0].GoVersion
	if i := slices.IndexFunc(binaries, func(b binary) bool { return b.GoVersion != goVersion }); i >= 0 {
		return nil, fmt.Errorf("%s was built with %s, and %s with %s", binaries[i].Path, binaries[i].GoVersion, binaries[0].Path, goVersion)
	}
	licences, err := p.Licences.read(goVersion, union(binaries))
	if err != nil {
		return nil, err
	}
	vendored, err := pageLicences(p.Source.Root, binaries...)
	if err != nil {
		return nil, err
	}
	licences = append(licences, vendored...)
	rest = append(rest, artifact{thirdParty + "-" + p.Source.Version + ".txt", thirdPartyText(licences)})
	all := slices.SortedFunc(slices.Values(slices.Concat(images, plugins, rest)),
		func(a, b artifact) int { return cmp.Compare(a.Name, b.Name) })
	// What is said of all files comes after them.
	subjects := digests
	for _, a := range all {
		subjects = append(subjects, resource{Name: a.Name, Digest: map[string]string{"sha256": a.digest()}})
	}
	statement, err := state(p.Source, goVersion, subjects)
	if err != nil {
		return nil, err
	}
	all = append(all, artifact{project + "-" + p.Source.Version + ".provenance.json", statement})
	return append(all, artifact{checksumsFile, checksums(all)}), nil
}

// images returns the images and the bills of materials of what is in them, the binaries, and the digests by which a registry knows them.
func (p packer) images() (files []artifact, binaries []binary, digests []resource, err error) {
	for _, program := range programs() {
		byArchitecture := map[string]v1.Image{}
		for _, platform := range p.Images {
			made, bill, built, err := p.image(program, platform)
			if err != nil {
				return nil, nil, nil, err
			}
			byArchitecture[platform.Architecture] = made
			files, binaries = append(files, bill), append(binaries, built)
		}
		index, err := program.index(p.Source, byArchitecture)
		if err != nil {
			return nil, nil, nil, err
		}
		digest, err := index.Digest()
		if err != nil {
			return nil, nil, nil, fmt.Errorf("compute the digest of %s: %w", program.Image, err)
		}
		archive, err := ociArchive(p.Source.Time, index, program.Image, program.tags(p.Source.Version))
		if err != nil {
			return nil, nil, nil, err
		}
		files = append(files, artifact{program.archive(p.Source), archive})
		digests = append(digests, resource{Name: imageRegistry + "/" + program.Image, Digest: map[string]string{"sha256": digest.Hex}})
		fmt.Fprintf(p.Progress, "release: image %s@%s\n", program.Image, digest)
	}
	return files, binaries, digests, nil
}

// archive is the name of the file with the image of a program.
func (p program) archive(s source) string { return p.Image + "-" + s.Version + archiveEnd }

// archiveEnd is what names of files with images end with.
const archiveEnd = ".oci.tar"

// image returns the image of a program for one platform, with its bill of materials.
func (p packer) image(of program, on platform) (v1.Image, artifact, binary, error) {
	built, err := readBinary(filepath.Join(p.Binaries, on.String(), of.Binary), on, of.Patched, p.Source.Revision)
	if err != nil {
		return nil, artifact{}, binary{}, err
	}
	licences, documents, err := p.documents(built)
	if err != nil {
		return nil, artifact{}, binary{}, err
	}
	made, err := of.image(p.Source, on.Architecture, built.Data, documents)
	if err != nil {
		return nil, artifact{}, binary{}, err
	}
	digest, err := made.Digest()
	if err != nil {
		return nil, artifact{}, binary{}, fmt.Errorf("compute the digest of %s: %w", of.Image, err)
	}
	name := fmt.Sprintf("%s-%s-%s.spdx.json", of.Image, p.Source.Version, on)
	bill, err := inventory{
		Source: p.Source, File: name, Subject: imageRegistry + "/" + of.Image, Digest: digest.Hex, Binary: built, Licences: licences,
		Certificates: true,
		Locator:      fmt.Sprintf("pkg:oci/%s@sha256%%3A%s?arch=%s&tag=%s", of.Image, digest.Hex, on.Architecture, p.Source.Version),
	}.bill()
	return made, artifact{name, bill}, built, err
}

// plugins returns the archives of the plugin, their bills of materials, and the manifest by which krew installs them.
func (p packer) plugins() (files []artifact, binaries []binary, err error) {
	archives := map[platform]artifact{}
	for _, on := range p.Plugins {
		built, err := readBinary(filepath.Join(p.Binaries, on.String(), plugin+on.exe()), on, false, p.Source.Revision)
		if err != nil {
			return nil, nil, err
		}
		licences, entries, err := p.documents(built)
		if err != nil {
			return nil, nil, err
		}
		entries = append(entries, entry{Path: plugin + on.exe(), Mode: 0o755, Data: built.Data}, completion(on))
		name, compress := fmt.Sprintf("%s-%s-%s", plugin, p.Source.Version, on), tarGz
		end := ".tar.gz"
		if on.windows() {
			compress, end = zipped, ".zip"
		}
		data, err := compress(p.Source.Time, entries)
		if err != nil {
			return nil, nil, fmt.Errorf("pack %s: %w", name, err)
		}
		archive := artifact{name + end, data}
		bill, err := inventory{
			Source: p.Source, File: name + ".spdx.json", Subject: archive.Name, Digest: archive.digest(), Binary: built, Licences: licences,
			Locator: "pkg:generic/" + plugin + "@" + p.Source.Version + "?download_url=" + p.Source.download(archive.Name),
		}.bill()
		if err != nil {
			return nil, nil, err
		}
		archives[on] = archive
		files, binaries = append(files, archive, artifact{name + ".spdx.json", bill}), append(binaries, built)
	}
	krew, err := krewManifest(p.Source, archives)
	if err != nil {
		return nil, nil, err
	}
	return append(files, artifact{project + "-" + p.Source.Version + ".krew.yaml", krew}), binaries, nil
}

// completer is the program that kubectl looks for when it is to complete a command of the plugin.
const completer = "kubectl_complete-liqo_broker"

// completion returns that program, which asks the plugin in the path.
func completion(on platform) entry {
	if on.windows() {
		return entry{Path: completer + ".cmd", Mode: 0o755, Data: []byte("@echo off\r\n" + plugin + on.exe() + " __complete %*\r\n")}
	}
	return entry{Path: completer, Mode: 0o755, Data: []byte("#!/bin/sh\nexec " + plugin + " __complete \"$@\"\n")}
}

// manifests returns the charts and the plain manifests.
func (p packer) manifests() ([]artifact, error) {
	files, err := packageCharts(p.Source)
	if err != nil {
		return nil, err
	}
	for named, folder := range map[string]string{
		project: "deploy", project + "-admission": "deploy/admission", project + "-connector": "deploy/connector",
		project + "-guard": "deploy/guard", project + "-guard-policies": "deploy/guard/policies",
		project + "-registry": "deploy/registry", project + "-registry-postgres": "deploy/registry/postgres",
		project + "-agent": "deploy/agent", project + "-transit": "deploy/transit",
	} {
		text, err := manifests(p.Source, folder)
		if err != nil {
			return nil, err
		}
		files = append(files, artifact{named + "-" + p.Source.Version + ".yaml", text})
	}
	settings, err := liqoSettings(p.Source)
	if err != nil {
		return nil, err
	}
	return append(files, artifact{settingsFolder(p.Source) + ".tar.gz", settings}), nil
}

// documents returns the licences of what is in a binary, and the files with them that go with it.
func (p packer) documents(b binary) ([]moduleLicence, []entry, error) {
	licences, err := p.Licences.read(b.GoVersion, b.Modules)
	if err != nil {
		return nil, nil, err
	}
	vendored, err := pageLicences(p.Source.Root, b)
	if err != nil {
		return nil, nil, err
	}
	licences = append(licences, vendored...)
	files := []entry{{Path: thirdParty, Mode: 0o644, Data: thirdPartyText(licences)}}
	for _, name := range []string{"LICENSE", "NOTICE"} {
		data, err := os.ReadFile(filepath.Join(p.Source.Root, name))
		if err != nil {
			return nil, nil, err
		}
		files = append(files, entry{Path: name, Mode: 0o644, Data: data})
	}
	return licences, files, nil
}

// checksumsFile is the name of the file with the digests of all others.
const checksumsFile = "SHA256SUMS"

// checksums returns the digests of files as `sha256sum --check` reads them.
func checksums(files []artifact) []byte {
	var out bytes.Buffer
	for _, name := range slices.SortedFunc(slices.Values(files), func(a, b artifact) int { return strings.Compare(a.Name, b.Name) }) {
		fmt.Fprintf(&out, "%s  %s\n", name.digest(), name.Name)
	}
	return out.Bytes()
}

func sortedPlatforms[V any](m map[platform]V) []platform {
	return slices.SortedFunc(maps.Keys(m), func(a, b platform) int { return cmp.Compare(a.String(), b.String()) })
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
