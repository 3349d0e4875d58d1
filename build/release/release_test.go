// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	spdxjson "github.com/spdx/tools-golang/json"
	"sigs.k8s.io/yaml"
)

const root = "../.."

var (
	imagePlatforms  = []platform{{"linux", "amd64"}, {"linux", "arm64"}}
	pluginPlatforms = []platform{{"linux", "amd64"}, {"windows", "amd64"}}
)

// testPacker returns one whose binaries are small programs in a new folder.
func testPacker(t *testing.T) packer {
	t.Helper()
	s := source{Root: root, Revision: "5d5c6d2e8b3d5f0a4d2bd5f3b9b4a0a3c1d2e3f4", Time: time.Date(2026, 11, 20, 10, 30, 0, 0, time.UTC)}
	var err error
	if s.Version, err = s.manifestVersion(); err != nil {
		t.Fatal(err)
	}
	licences, err := sources(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p := packer{Source: s, Binaries: t.TempDir(), Images: imagePlatforms, Plugins: pluginPlatforms, Licences: licences, Progress: io.Discard}
	for _, on := range imagePlatforms {
		for _, of := range programs() {
			build(t, on, filepath.Join(p.Binaries, on.String(), of.Binary), of.Patched)
		}
	}
	for _, on := range pluginPlatforms {
		build(t, on, filepath.Join(p.Binaries, on.String(), plugin+on.exe()), false)
	}
	return p
}

// build builds the program of testdata, with a copy of a module named as Liqo's if it is to be patched.
func build(t *testing.T, on platform, output string, patched bool) {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-buildvcs=false", "-o", output, ".")
	command.Dir = "testdata/hello"
	if patched {
		command.Dir = patchedHello(t)
	}
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+on.OS, "GOARCH="+on.Architecture)
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", command, err, output)
	}
}

// patchedHello writes a module that has a changed copy of Liqo linked in, and returns its folder.
func patchedHello(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	for file, text := range map[string]string{
		"go.mod": "module example.com/hello\n\ngo 1.26\n\nrequire " + liqoModule + " " + liqoVersion + "\n\nreplace " + liqoModule +
			" => ./changed\n",
		"main.go":         "package main\n\nimport liqo \"" + liqoModule + "\"\n\nfunc main() { println(liqo.Name) }\n",
		"changed/go.mod":  "module " + liqoModule + "\n\ngo 1.26\n",
		"changed/liqo.go": "package liqo\n\nconst Name = \"liqo\"\n",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(folder, file)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, file), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// TestRelease makes a release of small programs twice, from two folders, and looks at it as its users do.
func TestRelease(t *testing.T) {
	p := testPacker(t)
	out := filepath.Join(t.TempDir(), "dist")
	if err := p.pack(out); err != nil {
		t.Fatal(err)
	}
	if err := p.pack(out); err == nil {
		t.Error("a release is written over another one")
	}
	t.Run("Reproducible", func(t *testing.T) { same(t, out, p) })
	t.Run("Files", func(t *testing.T) { hasFiles(t, out, p.Source.Version) })
	t.Run("Checksums", func(t *testing.T) {
		check := exec.CommandContext(t.Context(), "sha256sum", "--check", "--strict", checksumsFile)
		check.Dir = out
		output, err := check.CombinedOutput()
		if lines := strings.Count(string(output), "\n"); err != nil || lines < 15 {
			t.Errorf("%v, %d files are checked:\n%s", err, lines, output)
		}
	})
	t.Run("Images", func(t *testing.T) { imagesRun(t, out, p) })
	t.Run("Signed", func(t *testing.T) { signaturesHold(t, out, p) })
	t.Run("Plugin", func(t *testing.T) { pluginsInstall(t, out, p) })
	t.Run("Bills", func(t *testing.T) { billsAreComplete(t, out) })
	t.Run("Provenance", func(t *testing.T) { provenanceIsComplete(t, out, p) })
}

// same makes the release again of copies of the binaries in another folder, and compares.
func same(t *testing.T, out string, p packer) {
	t.Helper()
	moved := filepath.Join(t.TempDir(), "deeper", "down")
	if err := os.CopyFS(moved, os.DirFS(p.Binaries)); err != nil {
		t.Fatal(err)
	}
	p.Binaries = moved
	again := filepath.Join(t.TempDir(), "again")
	if err := p.pack(again); err != nil {
		t.Fatal(err)
	}
	first, second := read(t, out), read(t, again)
	for file, data := range first {
		if !bytes.Equal(data, second[file]) {
			t.Errorf("%s is another one the second time", file)
		}
	}
	if len(first) != len(second) {
		t.Errorf("%d files, and %d the second time", len(first), len(second))
	}
}

func read(t *testing.T, folder string) map[string][]byte {
	t.Helper()
	files, err := filesBelow(folder, func(string) bool { return true })
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string][]byte{}
	for _, file := range files {
		byName[file.Path] = file.Data
	}
	return byName
}

func hasFiles(t *testing.T, out, version string) {
	t.Helper()
	want := []string{
		"SHA256SUMS", "THIRD_PARTY_LICENSES-V.txt", "kubectl-liqo_broker-V-linux-amd64.spdx.json", "kubectl-liqo_broker-V-linux-amd64.tar.gz",
		"kubectl-liqo_broker-V-windows-amd64.spdx.json", "kubectl-liqo_broker-V-windows-amd64.zip", "liqo-broker-N.tgz",
		"liqo-broker-V-linux-amd64.spdx.json", "liqo-broker-V-linux-arm64.spdx.json", "liqo-broker-V.krew.yaml", "liqo-broker-V.oci.tar",
		"liqo-broker-V.provenance.json", "liqo-broker-V.yaml", "liqo-broker-admission-V.yaml", "liqo-broker-registry-V-linux-amd64.spdx.json",
		"liqo-broker-registry-V-linux-arm64.spdx.json", "liqo-broker-registry-N.tgz", "liqo-broker-registry-V.oci.tar",
		"liqo-broker-registry-V.yaml", "liqo-broker-registry-postgres-V.yaml", "liqo-broker-connector-N.tgz",
		"liqo-broker-connector-V-linux-amd64.spdx.json", "liqo-broker-connector-V-linux-arm64.spdx.json", "liqo-broker-connector-V.oci.tar",
		"liqo-broker-agent-N.tgz", "liqo-broker-agent-V.yaml", "liqo-broker-transit-V.yaml",
		"liqo-broker-connector-V.yaml", "liqo-broker-guard-V.yaml", "liqo-broker-guard-policies-V.yaml",
		"liqo-broker-liqo-V.tar.gz", "liqo-broker-network-manager-V-linux-amd64.spdx.json",
		"liqo-broker-network-manager-V-linux-arm64.spdx.json", "liqo-broker-network-manager-V.oci.tar", "liqo-broker-vk-V-linux-amd64.spdx.json",
		"liqo-broker-vk-V-linux-arm64.spdx.json", "liqo-broker-vk-V.oci.tar",
	}
	for i := range want {
		want[i] = strings.NewReplacer("-V", "-"+version, "-N", "-"+version[1:]).Replace(want[i])
	}
	if diff := cmp.Diff(slices.Sorted(slices.Values(want)), sortedKeys(read(t, out))); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// imagesRun pushes the images to a registry, and pulls them as a node of each architecture does.
func imagesRun(t *testing.T, out string, p packer) {
	t.Helper()
	server := httptest.NewServer(registryHandler())
	defer server.Close()
	to := strings.TrimPrefix(server.URL, "http://") + "/team"
	if err := publish(t.Context(), out, to, io.Discard, name.Insecure); err != nil {
		t.Fatal(err)
	}
	for _, program := range programs() {
		digests := map[v1.Hash]bool{}
		for _, tag := range append([]string{p.Source.Version}, program.Tags...) {
			for _, on := range imagePlatforms {
				image := pull(t, program.published(to, tag), on)
				digest, err := image.Digest()
				if err != nil {
					t.Fatal(err)
				}
				digests[digest] = true
				imageIsWhole(t, image, program, on, p)
			}
		}
		if len(digests) != len(imagePlatforms) {
			t.Errorf("%s has %d images for %d platforms", program.Image, len(digests), len(imagePlatforms))
		}
	}
	for _, chart := range sortedKeys(charts()) {
		pull(t, publishedChart(to, chart, p.Source.number()), platform{})
	}
	kubelet := slices.IndexFunc(programs(), func(p program) bool { return p.Binary == "virtual-kubelet" })
	if tags := programs()[kubelet].tags("v1.0.0-rc.1"); !slices.Equal(tags, []string{"v1.0.0-rc.1"}) {
		t.Errorf("a candidate has the tags %v", tags)
	}
	if tags := programs()[kubelet].Tags; !slices.Equal(tags, []string{"latest", "v0.9.4"}) {
		t.Errorf("the virtual kubelet has the tags %v: Liqo's chart asks for v0.9.4", tags)
	}
}

// TestCharts pushes the charts to a registry, and has Helm find them there: it pulls the same bytes, and renders them.
func TestCharts(t *testing.T) {
	server := httptest.NewServer(registryHandler())
	defer server.Close()
	to := strings.TrimPrefix(server.URL, "http://") + "/team"
	s := source{Root: root, Time: time.Unix(1, 0)}
	var err error
	if s.Version, err = s.manifestVersion(); err != nil {
		t.Fatal(err)
	}
	packed, err := packageCharts(s)
	if err != nil {
		t.Fatal(err)
	}
	out := t.TempDir()
	for _, chart := range packed {
		if err := os.WriteFile(filepath.Join(out, chart.Name), chart.Data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := publishCharts(t.Context(), out, to, io.Discard, nil); err != nil {
		t.Fatal(err)
	}
	helm := buildHelm(t)
	number := s.number()
	for _, named := range sortedKeys(charts()) {
		want, err := os.ReadFile(filepath.Join(out, named+"-"+number+chartEnd))
		if err != nil {
			t.Fatal(err)
		}
		address := "oci://" + strings.TrimSuffix(publishedChart(to, named, number), ":"+number)
		folder := t.TempDir()
		runHelm(t, helm, "pull", address, "--version", number, "--plain-http", "--destination", folder)
		if got := read(t, folder)[named+"-"+number+chartEnd]; !bytes.Equal(got, want) {
			t.Errorf("helm pulls %d bytes of %s, want %d", len(got), named, len(want))
		}
		shown := runHelm(t, helm, "show", "chart", address, "--version", number, "--plain-http")
		for _, want := range []string{
			"\nhome: " + repository + "\n", "artifacthub.io/prerelease: \"false\"\n", "- description: ", "  kind: added\n",
		} {
			if !strings.Contains(shown, want) {
				t.Errorf("%s does not say %q:\n%s", named, want, shown)
			}
		}
		for kind, images := range rendersWith(named) {
			rendered := runHelm(t, helm, "template", named, address, "--version", number, "--plain-http", "--namespace", named,
				"--kube-version", "1.34.0", "--api-versions", kind)
			for _, image := range images {
				if !strings.Contains(rendered, "image: "+imageRegistry+"/"+image+":"+s.Version) {
					t.Errorf("what Helm renders of %s with %s has no image %s:\n%s", named, kind, image, rendered)
				}
			}
		}
	}
}

// rendersWith returns the images of a chart, by the kind of Liqo that the API server has.
func rendersWith(chart string) map[string][]string {
	const of09, of1, sidecar = "discovery.liqo.io/v1alpha1/ForeignCluster", "core.liqo.io/v1beta1/ForeignCluster", project + "-network-manager"
	switch chart {
	case project:
		return map[string][]string{of09: {project}, of1: {project, sidecar}}
	case project + "-agent":
		return map[string][]string{of1: {sidecar}}
	default:
		return map[string][]string{of09: {chart}}
	}
}

// buildHelm builds Helm, of the version with which the charts are tested, and returns where it is.
func buildHelm(t *testing.T) string {
	t.Helper()
	helm := filepath.Join(t.TempDir(), "helm")
	built := exec.CommandContext(t.Context(), "go", "build", "-C", filepath.Join(root, "test/chart"), "-trimpath", "-ldflags", "-s -w",
		"-o", helm,
		"helm.sh/helm/v3/cmd/helm")
	built.Env = append(os.Environ(), "CGO_ENABLED=0")
	if output, err := built.CombinedOutput(); err != nil {
		t.Fatalf("build helm: %v\n%s", err, output)
	}
	return helm
}

// runHelm runs Helm without the settings of whoever tests, and returns what it prints.
func runHelm(t *testing.T, helm string, args ...string) string {
	t.Helper()
	run := exec.CommandContext(t.Context(), helm, args...)
	run.Env = append(os.Environ(), "HOME="+t.TempDir())
	var printed, said bytes.Buffer
	run.Stdout, run.Stderr = &printed, &said
	if err := run.Run(); err != nil {
		t.Fatalf("helm %v: %v\n%s", args, err, said.String())
	}
	return printed.String()
}

func pull(t *testing.T, named string, on platform) v1.Image {
	t.Helper()
	tag, err := name.NewTag(named, name.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	image, err := remote.Image(tag, remote.WithPlatform(v1.Platform{OS: on.OS, Architecture: on.Architecture}),
		remote.WithContext(t.Context()))
	if err != nil {
		t.Fatalf("pull %s for %s: %v", named, on, err)
	}
	return image
}

func imageIsWhole(t *testing.T, image v1.Image, program program, on platform, p packer) {
	t.Helper()
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if config.OS != on.OS || config.Architecture != on.Architecture || config.Config.User != nonRoot {
		t.Errorf("%s is for %s/%s and runs as %q", program.Image, config.OS, config.Architecture, config.Config.User)
	}
	labels := config.Config.Labels
	const prefix = "org.opencontainers.image."
	want := map[string]string{
		"title": program.Image, "version": p.Source.Version, "revision": p.Source.Revision, "licenses": "Apache-2.0",
		"created": "2026-11-20T10:30:00Z", "source": "https://github.com/capacitorset/liqo-broker",
	}
	for key, value := range want {
		if labels[prefix+key] != value {
			t.Errorf("%s has the label %s=%q, want %q", program.Image, key, labels[prefix+key], value)
		}
	}
	files := map[string]string{}
	modes := map[string]fs.FileMode{}
	content := mutate.Extract(image)
	defer content.Close()
	for in := tar.NewReader(content); ; {
		header, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(in)
		if err != nil {
			t.Fatal(err)
		}
		if header.Uid != 0 || !header.ModTime.Equal(p.Source.Time) && path.Base(header.Name) != "." {
			t.Errorf("%s of %s has owner %d and time %s", header.Name, program.Image, header.Uid, header.ModTime)
		}
		key := strings.Trim(header.Name, "/")
		files[key], modes[key] = string(data), header.FileInfo().Mode()
	}
	built, err := os.ReadFile(filepath.Join(p.Binaries, on.String(), program.Binary))
	if err != nil {
		t.Fatal(err)
	}
	binary := "usr/bin/" + program.Binary
	if files[binary] != string(built) || modes[binary] != 0o755 || !slices.Equal(config.Config.Entrypoint, []string{"/" + binary}) {
		t.Errorf("%s runs %v, and has %d bytes of it with mode %s", program.Image, config.Config.Entrypoint, len(files[binary]), modes[binary])
	}
	if modes["tmp"] != fs.ModeDir|fs.ModeSticky|0o777 {
		t.Errorf("/tmp of %s has mode %s", program.Image, modes["tmp"])
	}
	if pool := x509.NewCertPool(); !pool.AppendCertsFromPEM([]byte(files["etc/ssl/certs/ca-certificates.crt"])) || len(pool.Subjects()) < 100 { //nolint:staticcheck // It is no pool of the system.
		t.Errorf("%s knows %d authorities", program.Image, len(pool.Subjects())) //nolint:staticcheck // As above.
	}
	for _, document := range []string{"LICENSE", "NOTICE", thirdParty} {
		if len(files[documents+document]) < 500 {
			t.Errorf("%s has %d bytes of %s", program.Image, len(files[documents+document]), document)
		}
	}
}

// pluginsInstall does what krew does.
func pluginsInstall(t *testing.T, out string, p packer) {
	t.Helper()
	files := read(t, out)
	var manifest krewPlugin
	if err := yaml.UnmarshalStrict(files["liqo-broker-"+p.Source.Version+".krew.yaml"], &manifest); err != nil {
		t.Fatal(err)
	}
	if manifest.Metadata["name"] != "liqo-broker" || manifest.Spec.Version != p.Source.Version ||
		len(manifest.Spec.Platforms) != len(pluginPlatforms) {
		t.Errorf("the manifest is of %v %s for %d platforms", manifest.Metadata, manifest.Spec.Version, len(manifest.Spec.Platforms))
	}
	for _, on := range manifest.Spec.Platforms {
		archive := files[path.Base(on.URI)]
		if on.SHA256 != sha256Hex(archive) || !strings.HasPrefix(on.URI, repository+"/releases/download/"+p.Source.Version+"/") {
			t.Errorf("%s has the digest %s in the manifest", on.URI, on.SHA256)
		}
		content := unpack(t, on.URI, archive)
		labels := on.Selector.MatchLabels
		built, err := os.ReadFile(filepath.Join(p.Binaries, labels["os"]+"-"+labels["arch"], on.Bin))
		if err != nil || !bytes.Equal(content[on.Bin], built) {
			t.Errorf("%s has %d bytes of %s, want %d (%v)", on.URI, len(content[on.Bin]), on.Bin, len(built), err)
		}
		completes := strings.TrimSuffix(strings.Replace(on.Bin, "kubectl-", "kubectl_complete-", 1), ".exe")
		windows := platform{OS: labels["os"]}.windows()
		if windows {
			completes += ".cmd"
		}
		want := slices.Sorted(slices.Values([]string{"LICENSE", "NOTICE", thirdParty, on.Bin, completes}))
		if names := sortedKeys(content); !slices.Equal(names, want) {
			t.Errorf("%s has %v", on.URI, names)
		}
		if labels["os"] == runtime.GOOS && labels["arch"] == runtime.GOARCH {
			completionRuns(t, content, manifest.Spec.Caveats)
		}
		said := string(content[completes])
		if windows && !strings.HasSuffix(said, "\nkubectl-liqo_broker.exe __complete %*\r\n") {
			t.Errorf("%s asks by %q", completes, said)
		}
	}
}

// completionRuns links the file by which kubectl completes into the path, as the caveat of krew says, and calls it as kubectl does: the
// plugin is asked, with all words as they are.
func completionRuns(t *testing.T, content map[string][]byte, caveat string) {
	t.Helper()
	_, command, found := strings.Cut(caveat, "\n\n  ")
	home := t.TempDir()
	bin, store := filepath.Join(home, ".krew", "bin"), ""
	if of := regexp.MustCompile(`\$krew/(store/\S+)/kubectl_complete-`).FindStringSubmatch(caveat); of != nil {
		store = filepath.Join(home, ".krew", of[1])
	}
	if !found || store == "" {
		t.Fatalf("the caveat has no command:\n%s", caveat)
	}
	if err := errors.Join(os.MkdirAll(bin, 0o755), os.MkdirAll(store, 0o755),
		os.WriteFile(filepath.Join(store, completer), content[completer], 0o755),
		os.WriteFile(filepath.Join(bin, plugin), []byte("#!/bin/sh\nprintf '[%s]' \"$@\"\n"), 0o755)); err != nil {
		t.Fatal(err)
	}
	run := exec.CommandContext(t.Context(), "sh", "-ec", command+"kubectl_complete-liqo_broker drain 'mi lan' ''")
	run.Env = []string{"HOME=" + home, "PATH=" + bin + ":" + os.Getenv("PATH")}
	if out, err := run.CombinedOutput(); err != nil || string(out) != "[__complete][drain][mi lan][]" {
		t.Errorf("completion: %v, %s", err, out)
	}
	page, err := os.ReadFile("../../docs/kubectl.md")
	if err != nil {
		t.Fatal(err)
	}
	if unindented := strings.ReplaceAll(string(page), "\n    ", "\n"); !strings.Contains(unindented, string(content[completer])) {
		t.Errorf("docs/kubectl.md does not show the file\n%s", content[completer])
	}
}

// unpack returns the files of an archive, and checks that a program can be run.
func unpack(t *testing.T, named string, archive []byte) map[string][]byte {
	t.Helper()
	content := map[string][]byte{}
	if strings.HasSuffix(named, ".zip") {
		in, err := zip.NewReader(bytes.NewReader(archive), int64(len(archive)))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range in.File {
			if content[file.Name], err = fs.ReadFile(in, file.Name); err != nil {
				t.Fatal(err)
			}
		}
		return content
	}
	in, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		t.Fatal(err)
	}
	err = untarred(in, func(header *tar.Header, r io.Reader) (err error) {
		if (header.Name == plugin || header.Name == completer) && header.FileInfo().Mode() != 0o755 {
			t.Errorf("%s has mode %s", header.Name, header.FileInfo().Mode())
		}
		content[header.Name], err = io.ReadAll(r)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// billsAreComplete reads each bill of materials with a tool of SPDX, and looks for what the programs of the test have in them.
func billsAreComplete(t *testing.T, out string) {
	t.Helper()
	seen := 0
	for file, data := range read(t, out) {
		if !strings.HasSuffix(file, ".spdx.json") {
			continue
		}
		seen++
		document, err := spdxjson.Read(bytes.NewReader(data))
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		found, ids := map[string]string{}, map[string]bool{}
		for _, part := range document.Packages {
			found[part.PackageName] = part.PackageVersion + " " + part.PackageLicenseDeclared
			ids[string(part.PackageSPDXIdentifier)] = true
		}
		library := "golang.org/x/mod"
		if strings.HasPrefix(file, "liqo-broker-vk") {
			library = liqoModule
		}
		if found[library] == "" || !strings.Contains(found[standardLibrary], "BSD-3-Clause") {
			t.Errorf("%s lacks %s or Go's own library: %v", file, library, found)
		}
		if _, has := found["ca-certificates"]; has == strings.HasPrefix(file, plugin) {
			t.Errorf("%s says %t of certificates", file, has)
		}
		if len(ids) != len(document.Packages) || len(document.Relationships) != len(document.Packages) {
			t.Errorf("%s has %d packages, %d identifiers and %d relations", file, len(document.Packages), len(ids), len(document.Relationships))
		}
		if document.CreationInfo.Created != "2026-11-20T10:30:00Z" {
			t.Errorf("%s was created at %s", file, document.CreationInfo.Created)
		}
	}
	if want := len(imagePlatforms)*len(programs()) + len(pluginPlatforms); seen != want {
		t.Errorf("there are %d bills, want %d", seen, want)
	}
}

func provenanceIsComplete(t *testing.T, out string, p packer) {
	t.Helper()
	files := read(t, out)
	paper := project + "-" + p.Source.Version + ".provenance.json"
	var said statement
	if err := json.Unmarshal(files[paper], &said); err != nil {
		t.Fatal(err)
	}
	subjects := map[string]string{}
	for _, subject := range said.Subject {
		subjects[subject.Name] = subject.Digest["sha256"]
	}
	for file, data := range files {
		if file != paper && file != checksumsFile && subjects[file] != sha256Hex(data) {
			t.Errorf("the statement has the digest %q of %s", subjects[file], file)
		}
	}
	for _, program := range programs() {
		if len(subjects[imageRegistry+"/"+program.Image]) != 64 {
			t.Errorf("the statement lacks the image %s", program.Image)
		}
	}
	materials := map[string]string{}
	for _, material := range said.Predicate.BuildDefinition.ResolvedDependencies {
		for _, digest := range material.Digest {
			materials[material.URI] = digest
		}
	}
	if materials["git+"+repository] != p.Source.Revision || len(materials["pkg:golang/github.com/liqotech/liqo@v0.9.4"]) != 64 {
		t.Errorf("the statement does not say from what the release is made: %d materials", len(materials))
	}
	sums, err := os.ReadFile(filepath.Join(p.Source.Root, "build/release/go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(sums)) {
		if module, version, _ := strings.Cut(line, " "); strings.Contains(module, "x509roots") &&
			len(materials["pkg:golang/"+module+"@"+strings.Fields(version)[0]]) != 64 &&
			!strings.Contains(version, "/go.mod") {
			t.Errorf("the statement lacks %s, which every image has", line)
		}
	}
}

// registryHandler is a registry in memory.
func registryHandler() http.Handler { return registry.New(registry.Logger(log.New(io.Discard, "", 0))) }
