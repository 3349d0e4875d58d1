// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package image

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// sample returns an archive with two images that share a layer.
func sample(t *testing.T) []byte {
	t.Helper()
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "tree", "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, mode := range map[string]fs.FileMode{"tree/sub/file": 0o640, "program": 0o755} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(name), mode); err != nil {
			t.Fatal(err)
		}
	}
	base := Layer{
		{Path: "tmp", Mode: 0o777 | fs.ModeSticky}, {Path: "opt/tree", Source: filepath.Join(dir, "tree")}, {Path: "bin", Link: "usr/bin"},
	}
	var out bytes.Buffer
	err := WriteArchive(&out, "amd64",
		Image{Tag: "lab.local/a:1", Layers: []Layer{base}, Entrypoint: []string{"/a"}},
		Image{Tag: "team/b", Layers: []Layer{base, {{Path: "usr/bin/b", Source: filepath.Join(dir, "program")}}}, User: "1000"})
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestLayer(t *testing.T) {
	archive := tar.NewReader(bytes.NewReader(sample(t)))
	if _, err := archive.Next(); err != nil {
		t.Fatal(err)
	}
	var got []string
	for layer := tar.NewReader(archive); ; {
		header, err := layer.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if header.Uid != 0 || !header.ModTime.IsZero() && header.ModTime.Unix() != 0 {
			t.Errorf("%s has owner %d and time %s: equal files would make different layers", header.Name, header.Uid, header.ModTime)
		}
		got = append(got, header.FileInfo().Mode().String()+" "+header.Name+" "+header.Linkname)
	}
	want := []string{
		"dtrwxrwxrwx tmp/ ", "drwxr-xr-x opt/ ", "drwxr-xr-x opt/tree/ ", "drwxr-xr-x opt/tree/sub/ ",
		"-rw-r----- opt/tree/sub/file ", "Lrwxrwxrwx bin usr/bin",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("entries (-want +got):\n%s", diff)
	}
}

func TestArchiveSharesLayers(t *testing.T) {
	archive := sample(t)
	if !bytes.Equal(archive, sample(t)) {
		t.Error("the same images make different archives")
	}
	layers := 0
	for in := tar.NewReader(bytes.NewReader(archive)); ; {
		header, err := in.Next()
		if err != nil {
			break
		}
		if strings.HasSuffix(header.Name, "/layer.tar") {
			layers++
		}
	}
	if layers != 2 {
		t.Errorf("%d layers are stored, want 2 for two images that share one", layers)
	}
}

// TestLoadCompressed loads an image as the build of this project packs it: runtimes unpack what the media type says.
func TestLoadCompressed(t *testing.T) {
	var archive bytes.Buffer
	out := tar.NewWriter(&archive)
	packed := []manifest{{Config: "config", RepoTags: []string{"team/app:v1"}, Layers: []string{"a.tar.gz", "b/layer.tar"}}}
	index, err := json.Marshal(packed)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"config", "a.tar.gz", "b/layer.tar"} {
		if err := writeFile(out, name, []byte(name), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(writeFile(out, "manifest.json", index, 0o644), out.Close()); err != nil {
		t.Fatal(err)
	}
	store := NewStore(t.TempDir())
	names, err := store.Load(&archive, "")
	if err != nil {
		t.Fatal(err)
	}
	digest, err := store.Resolve(names[0])
	if err != nil {
		t.Fatal(err)
	}
	file, err := store.Open(digest)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var loaded ociManifest
	if err := json.NewDecoder(file).Decode(&loaded); err != nil {
		t.Fatal(err)
	}
	var types []string
	for _, layer := range loaded.Layers {
		types = append(types, layer.MediaType)
	}
	if want := []string{gzipType, layerType}; !slices.Equal(types, want) {
		t.Errorf("layers have the types %v, want %v", types, want)
	}
}

func TestLoadRefusesOtherArchives(t *testing.T) {
	var archive bytes.Buffer
	out := tar.NewWriter(&archive)
	if err := errors.Join(writeFile(out, "index.json", []byte("{}"), 0o644), out.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := NewStore(t.TempDir()).Load(&archive, ""); err == nil || !strings.Contains(err.Error(), "not a docker-archive") {
		t.Errorf("error %v, want one that tells what the archive is not", err)
	}
}

func TestRegistry(t *testing.T) {
	store := NewStore(t.TempDir())
	names, err := store.Load(bytes.NewReader(sample(t)), "")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"lab.local/a:1", "docker.io/team/b:latest"}, names); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	server := httptest.NewServer(NewRegistry(NewStore(t.TempDir()), store))
	defer server.Close()
	for name, tc := range map[string]struct {
		reason string
		path   string
		status int
		media  string
	}{
		"Version":  {"clients ask for it first", "/v2/", http.StatusOK, ""},
		"Manifest": {"found in the second store", "/v2/a/manifests/1?ns=lab.local", http.StatusOK, manifestType},
		"DefaultNames": {
			"Docker Hub and latest may be left out of a name", "/v2/team/b/manifests/latest?ns=docker.io", http.StatusOK, manifestType,
		},
		"OtherTag":  {"there is no such tag", "/v2/a/manifests/2?ns=lab.local", http.StatusNotFound, ""},
		"OtherHost": {"a name belongs to its registry", "/v2/a/manifests/1?ns=docker.io", http.StatusNotFound, ""},
		"NoDigest":  {"a path must not lead out of the store", "/v2/a/blobs/sha256:..%2ftags", http.StatusNotFound, ""},
	} {
		t.Run(name, func(t *testing.T) {
			response, err := http.Get(server.URL + tc.path)
			if err != nil {
				t.Fatal(err)
			}
			response.Body.Close()
			if response.StatusCode != tc.status {
				t.Errorf("status %d, want %d: %s", response.StatusCode, tc.status, tc.reason)
			}
			if media := response.Header.Get("Content-Type"); tc.media != "" && media != tc.media {
				t.Errorf("content type %s, want %s: %s", media, tc.media, tc.reason)
			}
		})
	}
}

// TestPull walks from a name to the last layer, as a container runtime does.
func TestPull(t *testing.T) {
	store := NewStore(t.TempDir())
	if _, err := store.Load(bytes.NewReader(sample(t)), ""); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(NewRegistry(store))
	defer server.Close()
	get := func(path string) []byte {
		t.Helper()
		response, err := http.Get(server.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		data, err := io.ReadAll(response.Body)
		if err != nil || response.StatusCode != http.StatusOK {
			t.Fatalf("GET %s: %s, %v", path, response.Status, err)
		}
		return data
	}
	var m ociManifest
	if err := json.Unmarshal(get("/v2/team/b/manifests/latest?ns=docker.io"), &m); err != nil {
		t.Fatal(err)
	}
	var config imageConfig
	if err := json.Unmarshal(get("/v2/team/b/blobs/"+m.Config.Digest), &config); err != nil {
		t.Fatal(err)
	}
	if config.Config.User != "1000" || len(m.Layers) != 2 {
		t.Fatalf("user %q and %d layers, want 1000 and 2", config.Config.User, len(m.Layers))
	}
	for i, layer := range m.Layers {
		data := get("/v2/team/b/blobs/" + layer.Digest)
		if digest := "sha256:" + sum(data); digest != layer.Digest || digest != config.RootFS.DiffIDs[i] || int64(len(data)) != layer.Size {
			t.Errorf("layer %d is %s with %d bytes, want %s, %s with %d", i, digest, len(data), layer.Digest, config.RootFS.DiffIDs[i], layer.Size)
		}
	}
}

func TestFullName(t *testing.T) {
	for name, want := range map[string]string{
		"busybox":               "docker.io/library/busybox:latest",
		"team/app":              "docker.io/team/app:latest",
		"team/app:2":            "docker.io/team/app:2",
		"lab.local/tools:1":     "lab.local/tools:1",
		"localhost/app":         "localhost/app:latest",
		"example.com:5000/a/b":  "example.com:5000/a/b:latest",
		"ghcr.io/liqotech/x:v1": "ghcr.io/liqotech/x:v1",
	} {
		if got := FullName(name); got != want {
			t.Errorf("FullName(%q) = %q, want %q", name, got, want)
		}
	}
}

// TestLoadUnderAnotherTag loads images of which several names are one then.
func TestLoadUnderAnotherTag(t *testing.T) {
	names, err := NewStore(t.TempDir()).Load(bytes.NewReader(sample(t)), "new")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"lab.local/a:new", "docker.io/team/b:new"}, names); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
}

// TestLibraries compares the libraries that programs of this machine get with those that the loader of this machine finds.
func TestLibraries(t *testing.T) {
	found := regexp.MustCompile(`/\S+\.so\S*`)
	for _, name := range []string{"curl", "bash", "ip", "xtables-nft-multi"} {
		path, err := lookPath(name)
		if err != nil {
			t.Fatal(err)
		}
		output, err := exec.Command("ldd", path).Output()
		if err != nil {
			t.Fatal(err)
		}
		want := []string{inRootfs(path)}
		for _, library := range found.FindAllString(string(output), -1) {
			want = append(want, strings.TrimPrefix("/usr"+library, "/"))
		}
		layer, err := Programs(name)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, e := range layer {
			got = append(got, e.Path)
		}
		slices.Sort(want)
		slices.Sort(got)
		if diff := cmp.Diff(slices.Compact(want), got); diff != "" {
			t.Errorf("%s: -ldd +got\n%s", name, diff)
		}
	}
}
