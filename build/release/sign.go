// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// How cosign keeps signatures beside images (https://github.com/sigstore/cosign/blob/v2.4.1/specs/SIGNATURE_SPEC.md).
const (
	signatureContent    types.MediaType = "application/vnd.dev.cosign.simplesigning.v1+json"
	signatureAnnotation string          = "dev.cosignproject.cosign/signature"
	signatureType       string          = "cosign container image signature"
)

// signedPayload is what is signed of an image: its name and its digest.
type signedPayload struct {
	Critical struct {
		Identity struct {
			Reference string `json:"docker-reference"`
		} `json:"identity"`
		Image struct {
			Digest string `json:"docker-manifest-digest"`
		} `json:"image"`
		Type string `json:"type"`
	} `json:"critical"`
	Optional map[string]string `json:"optional"`
}

// readKey returns the private key in a PEM file without a password: of ECDSA, in PKCS #8, as openssl genpkey writes it.
func readKey(file string) (*ecdsa.PrivateKey, error) {
	block, err := readPEM(file, "PRIVATE KEY")
	if err != nil {
		return nil, err
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block)
	if err != nil {
		return nil, fmt.Errorf("read key %s: %w", file, err)
	}
	key, is := parsed.(*ecdsa.PrivateKey)
	if !is {
		return nil, fmt.Errorf("read key %s: it is none of ECDSA, which cosign signs with", file)
	}
	return key, nil
}

// readPublicKey returns the public key in a PEM file.
func readPublicKey(file string) (*ecdsa.PublicKey, error) {
	block, err := readPEM(file, "PUBLIC KEY")
	if err != nil {
		return nil, err
	}
	parsed, err := x509.ParsePKIXPublicKey(block)
	if err != nil {
		return nil, fmt.Errorf("read key %s: %w", file, err)
	}
	key, is := parsed.(*ecdsa.PublicKey)
	if !is {
		return nil, fmt.Errorf("read key %s: it is none of ECDSA", file)
	}
	return key, nil
}

func readPEM(file, kind string) ([]byte, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(text)
	if block == nil || block.Type != kind {
		return nil, fmt.Errorf("read key %s: it is no PEM file with a %s", file, strings.ToLower(kind))
	}
	return block.Bytes, nil
}

// signBytes returns the signature of a text as base64, as cosign writes it.
func signBytes(key *ecdsa.PrivateKey, text []byte) (string, error) {
	digest := sha256.Sum256(text)
	signature, err := key.Sign(rand.Reader, digest[:], crypto.SHA256)
	if err != nil {
		return "", fmt.Errorf("sign: %w", err)
	}
	return base64.StdEncoding.EncodeToString(signature), nil
}

// isSigned reports whether a signature in base64 is that of a text, by a key.
func isSigned(key *ecdsa.PublicKey, text []byte, signature string) bool {
	raw, err := base64.StdEncoding.DecodeString(strings.TrimSpace(signature))
	digest := sha256.Sum256(text)
	return err == nil && ecdsa.VerifyASN1(key, digest[:], raw)
}

// signatureFile is beside the file with the digests of all others, and has its signature.
const signatureFile = checksumsFile + ".sig"

// sign signs a release: the list of its files, and, beside them in a registry, its images and charts. It signs the digests of what is
// in the folder, whatever the registry has.
func sign(ctx context.Context, folder, to string, key *ecdsa.PrivateKey, progress io.Writer) error {
	list, err := os.ReadFile(filepath.Join(folder, checksumsFile))
	if err != nil {
		return err
	}
	signature, err := signBytes(key, list)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(folder, signatureFile), []byte(signature+"\n"), 0o644); err != nil {
		return err
	}
	digests, err := publishedDigests(folder, to)
	if err != nil {
		return err
	}
	for _, named := range sortedKeys(digests) {
		tag, err := name.NewTag(named)
		if err != nil {
			return err
		}
		if err := signOne(ctx, tag, digests[named], key); err != nil {
			return fmt.Errorf("sign %s: %w", named, err)
		}
		fmt.Fprintf(progress, "release: signed %s@%s\n", tag, digests[named])
	}
	return nil
}

// publishedDigests returns the digests of the images and the charts in a folder of a release, by the names that they have in a registry.
func publishedDigests(folder, to string) (map[string]v1.Hash, error) {
	digests := map[string]v1.Hash{}
	archives, err := filepath.Glob(filepath.Join(folder, "*"+archiveEnd))
	if err != nil {
		return nil, err
	}
	for _, archive := range archives {
		tags, err := taggedDigests(archive, to)
		if err != nil {
			return nil, err
		}
		maps.Copy(digests, tags)
	}
	if err := eachChart(folder, to, func(named string, _ v1.Image, digest v1.Hash) error {
		digests[named] = digest
		return nil
	}); err != nil {
		return nil, err
	}
	if len(digests) == 0 {
		return nil, fmt.Errorf("%s has neither images nor charts: make release first", folder)
	}
	return digests, nil
}

// signOne writes the signature of a digest to where cosign looks for it. It takes the place of one that is there.
func signOne(ctx context.Context, of name.Tag, digest v1.Hash, key *ecdsa.PrivateKey) error {
	var said signedPayload
	said.Critical.Identity.Reference, said.Critical.Image.Digest, said.Critical.Type = of.Context().Name(), digest.String(), signatureType
	payload, err := json.Marshal(said)
	if err != nil {
		return err
	}
	signature, err := signBytes(key, payload)
	if err != nil {
		return err
	}
	layer := static.NewLayer(payload, signatureContent)
	layerDigest, err := layer.Digest()
	if err != nil {
		return err
	}
	config, err := json.Marshal(v1.ConfigFile{RootFS: v1.RootFS{Type: "layers", DiffIDs: []v1.Hash{layerDigest}}})
	if err != nil {
		return err
	}
	image, err := artifactOf(types.OCIConfigJSON, config, layer, map[string]string{signatureAnnotation: signature}, nil)
	if err != nil {
		return err
	}
	return remote.Write(signatureTag(of, digest), image, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain))
}

// signatureTag is where cosign looks for the signatures of a digest.
func signatureTag(of name.Tag, digest v1.Hash) name.Tag {
	return of.Context().Tag(digest.Algorithm + "-" + digest.Hex + ".sig")
}

// verify returns an error unless all images and charts of a version that a registry has are signed by a key.
func verify(ctx context.Context, to, version string, key *ecdsa.PublicKey, progress io.Writer) error {
	var names []string
	for _, p := range programs() {
		names = append(names, p.published(to, version))
	}
	for _, chart := range sortedKeys(charts()) {
		names = append(names, publishedChart(to, chart, source{Version: version}.number()))
	}
	for _, named := range names {
		digest, err := verifyOne(ctx, named, key)
		if err != nil {
			return fmt.Errorf("verify %s: %w", named, err)
		}
		fmt.Fprintf(progress, "release: %s@%s is signed\n", named, digest)
	}
	return nil
}

// verifyOne returns the digest that a registry has under a name, if it is signed by a key.
func verifyOne(ctx context.Context, named string, key *ecdsa.PublicKey) (digest v1.Hash, err error) {
	tag, err := name.NewTag(named)
	if err != nil {
		return digest, err
	}
	options := []remote.Option{remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)}
	found, err := remote.Get(tag, options...)
	if err != nil {
		return digest, err
	}
	signatures, err := remote.Image(signatureTag(tag, found.Digest), options...)
	if err != nil {
		return digest, fmt.Errorf("there is no signature of %s: %w", found.Digest, err)
	}
	manifest, err := signatures.Manifest()
	if err != nil {
		return digest, err
	}
	for _, layer := range manifest.Layers {
		if layer.MediaType != signatureContent {
			continue
		}
		payload, err := payloadOf(signatures, layer.Digest)
		if err != nil {
			return digest, err
		}
		if !isSigned(key, payload, layer.Annotations[signatureAnnotation]) {
			continue
		}
		var said signedPayload
		if err := json.Unmarshal(payload, &said); err != nil {
			return digest, fmt.Errorf("read what is signed: %w", err)
		}
		if said.Critical.Type == signatureType && said.Critical.Image.Digest == found.Digest.String() {
			return found.Digest, nil
		}
	}
	return digest, fmt.Errorf("no signature of %s is by this key", found.Digest)
}

// payloadOf returns what a signature is of. It is small.
func payloadOf(signatures v1.Image, digest v1.Hash) ([]byte, error) {
	layer, err := signatures.LayerByDigest(digest)
	if err != nil {
		return nil, err
	}
	content, err := layer.Compressed()
	if err != nil {
		return nil, err
	}
	const most = 64 << 10
	payload, err := io.ReadAll(io.LimitReader(content, most))
	return payload, errors.Join(err, content.Close())
}
