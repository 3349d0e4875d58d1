// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"io"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// keyPair writes a new key, and the public half of it beside.
func keyPair(t *testing.T) (private, public string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	shown, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	private, public = filepath.Join(folder, "key.pem"), filepath.Join(folder, "key.pub")
	for file, block := range map[string]*pem.Block{private: {Type: "PRIVATE KEY", Bytes: secret}, public: {Type: "PUBLIC KEY", Bytes: shown}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return private, public
}

// signaturesHold publishes a release, signs it, and verifies it as docs/release.md says. Another key, another image and an image that
// nobody has signed are refused.
func signaturesHold(t *testing.T, out string, p packer) {
	t.Helper()
	server := httptest.NewServer(registryHandler())
	defer server.Close()
	to := strings.TrimPrefix(server.URL, "http://") + "/team"
	if err := publish(t.Context(), out, to, io.Discard); err != nil {
		t.Fatal(err)
	}
	private, public := keyPair(t)
	_, other := keyPair(t)
	verified := func(key string) error { return verifyAsDocumented(t, to, p.Source.Version, key) }
	if err := verified(public); err == nil || !strings.Contains(err.Error(), "there is no signature") {
		t.Errorf("what nobody has signed is verified: %v", err)
	}
	signed := filepath.Join(t.TempDir(), "signed") // The folder of the release is looked at by others.
	if err := os.CopyFS(signed, os.DirFS(out)); err != nil {
		t.Fatal(err)
	}
	if err := run(t.Context(), []string{"sign", "-folder", signed, "-registry", to, "-key", private}, io.Discard); err != nil {
		t.Fatal(err)
	}
	if err := verified(public); err != nil {
		t.Error(err)
	}
	if err := verified(other); err == nil || !strings.Contains(err.Error(), "is by this key") {
		t.Errorf("another key verifies: %v", err)
	}
	listVerified(t, signed, public)

	// Somebody pushes another image under the tag, and then the signature of the old one to where that of the new one would be.
	tag, err := name.NewTag(programs()[0].published(to, p.Source.Version))
	if err != nil {
		t.Fatal(err)
	}
	before, err := remote.Get(tag)
	if err != nil {
		t.Fatal(err)
	}
	old, err := remote.Image(signatureTag(tag, before.Digest))
	if err != nil {
		t.Fatal(err)
	}
	forged, err := random.Image(100, 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(tag, forged); err != nil {
		t.Fatal(err)
	}
	if err := verified(public); err == nil || !strings.Contains(err.Error(), "there is no signature") {
		t.Errorf("a changed image is verified: %v", err)
	}
	digest, err := forged.Digest()
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(signatureTag(tag, digest), old); err != nil {
		t.Fatal(err)
	}
	if err := verified(public); err == nil || !strings.Contains(err.Error(), "is by this key") {
		t.Errorf("a changed image is verified by the signature of another: %v", err)
	}
}

// verifyAsDocumented runs the command that docs/release.md has for who verifies, against another registry and key.
func verifyAsDocumented(t *testing.T, to, version, key string) error {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(root, "docs/release.md"))
	if err != nil {
		t.Fatal(err)
	}
	const command = "go run -C build/release . "
	line := regexp.MustCompile(`(?m)^    ` + regexp.QuoteMeta(command) + `(verify .*)$`).FindSubmatch(page)
	if line == nil {
		t.Fatalf("docs/release.md has no line %s verify", command)
	}
	given := strings.NewReplacer("docker.io/capacitorset", to, "v0.1.0", version, `"$PWD/liqo-broker.pub"`, key).Replace(string(line[1]))
	return run(t.Context(), strings.Fields(given), io.Discard)
}

// listVerified has openssl verify the list of files as docs/release.md says, and refuse another list.
func listVerified(t *testing.T, folder, key string) {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(root, "docs/release.md"))
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`(?m)^    (base64 -d SHA256SUMS.sig .*openssl dgst .*)$`).FindSubmatch(page)
	if line == nil {
		t.Fatal("docs/release.md does not verify SHA256SUMS")
	}
	script := strings.ReplaceAll(string(line[1]), "liqo-broker.pub", key)
	verified := func() error {
		check := exec.CommandContext(t.Context(), "bash", "-c", script)
		check.Dir = folder
		return check.Run()
	}
	if err := verified(); err != nil {
		t.Errorf("%s: %v", script, err)
	}
	if err := os.WriteFile(filepath.Join(folder, checksumsFile), []byte("another\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := verified(); err == nil {
		t.Errorf("%s: another list is verified", script)
	}
}

// TestKeys has people give what is no key to sign or to verify with.
func TestKeys(t *testing.T) {
	private, public := keyPair(t)
	if _, err := readKey(public); err == nil || !strings.Contains(err.Error(), "no PEM file with a private key") {
		t.Errorf("it signs with a public key: %v", err)
	}
	if _, err := readPublicKey(private); err == nil || !strings.Contains(err.Error(), "no PEM file with a public key") {
		t.Errorf("it verifies with a private key: %v", err)
	}
	for _, args := range [][]string{{"sign"}, {"verify", "-registry", "a", "-key", public, "-version", "1"}} {
		if err := run(t.Context(), args, io.Discard); err == nil || !strings.Contains(err.Error(), "is missing") {
			t.Errorf("%v: %v", args, err)
		}
	}
}
