// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// TestDockerArchive packs a program for docker load, the lab and containerd: it has the name that the README says, and is the image of a
// release.
func TestDockerArchive(t *testing.T) {
	s := source{Version: "v1.2.3", Revision: "abc", Time: time.Unix(1700000000, 0)}
	image, err := programs()[0].image(s, "arm64", []byte("program"), []entry{{Path: "LICENSE", Mode: 0o644, Data: []byte("text")}})
	if err != nil {
		t.Fatal(err)
	}
	want, err := image.ConfigName()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "image.tar")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := dockerArchive(file, image, "capacitorset/liqo-broker:v1.2.3"); err != nil {
		t.Fatal(err)
	}
	manifest, err := tarball.LoadManifest(func() (io.ReadCloser, error) { return os.Open(path) })
	if err != nil {
		t.Fatal(err)
	}
	if len(manifest) != 1 || manifest[0].Config != want.String() {
		t.Fatalf("the archive has %v, want the image %s", manifest, want)
	}
	slices.Sort(manifest[0].RepoTags)
	if diff := cmp.Diff([]string{"capacitorset/liqo-broker:latest", "capacitorset/liqo-broker:v1.2.3"}, manifest[0].RepoTags); diff != "" {
		t.Errorf("names: -want +got\n%s", diff)
	}
	for _, layer := range manifest[0].Layers {
		if !strings.HasSuffix(layer, ".gz") {
			t.Errorf("layer %s is not compressed: the lab tells by its name", layer)
		}
	}
}

// TestCertificatesAreOfTheModule compares what bills of materials say of the certificates with go.mod.
func TestCertificatesAreOfTheModule(t *testing.T) {
	text, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), certificatesModule+" "+certificatesVersion+"\n") {
		t.Errorf("go.mod has another version of %s than %s", certificatesModule, certificatesVersion)
	}
}
