// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"
)

// A vendoredPackage is a package of npm of which some files are in ui/vendor, as published.
type vendoredPackage struct {
	Name, Version string
	// Folder is below ui/vendor.
	Folder string
	// Integrity is npm's hash of the package.
	Integrity string
	// Licence is the name of the file with its licence, among Files.
	Licence string
	Files   []vendoredFile

	licence []byte
}

type vendoredFile struct {
	Name string
	// Published is the path in the package.
	Published string
	// Import is what the sources of the page call it; empty for what is no source.
	Import string
	SHA256 string
}

// readVendored reads what versions.yaml says of a folder, and refuses a folder that has other files, or other bytes in them, and packages
// whose types and tests are of another version by npm's lock.
func readVendored(folder, lock string) ([]vendoredPackage, error) {
	data, err := os.ReadFile(filepath.Join(folder, "versions.yaml"))
	if err != nil {
		return nil, err
	}
	var said struct{ Packages []vendoredPackage }
	if err := yaml.UnmarshalStrict(data, &said); err != nil {
		return nil, fmt.Errorf("read versions.yaml of %s: %w", folder, err)
	}
	if err := checkLock(lock, said.Packages); err != nil {
		return nil, err
	}
	known := map[string]bool{filepath.Join(folder, "versions.yaml"): true}
	for i := range said.Packages {
		p := &said.Packages[i]
		if p.Name == "" || p.Version == "" || !strings.HasPrefix(p.Integrity, "sha512-") {
			return nil, fmt.Errorf("package %q %q of %s lacks a name, a version or npm's hash", p.Name, p.Version, folder)
		}
		for _, f := range p.Files {
			path := filepath.Join(folder, p.Folder, f.Name)
			data, err := os.ReadFile(path)
			if err != nil {
				return nil, err
			}
			if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != f.SHA256 {
				return nil, fmt.Errorf("%s is not %s of %s %s: its SHA-256 is %x", path, f.Published, p.Name, p.Version, sum)
			}
			if f.Name == p.Licence {
				p.licence = data
			}
			known[path] = true
		}
		if len(p.licence) == 0 {
			return nil, fmt.Errorf("%s of %s has no licence", p.Name, folder)
		}
	}
	return said.Packages, filepath.WalkDir(folder, func(path string, entry os.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && !known[path] {
			return fmt.Errorf("%s is not in versions.yaml", path)
		}
		return err
	})
}

func checkLock(lock string, packages []vendoredPackage) error {
	data, err := os.ReadFile(lock)
	if err != nil {
		return err
	}
	var said struct {
		Packages map[string]struct{ Version, Integrity string }
	}
	if err := json.Unmarshal(data, &said); err != nil {
		return fmt.Errorf("read %s: %w", lock, err)
	}
	for _, p := range packages {
		if of := said.Packages["node_modules/"+p.Name]; of.Version != p.Version || of.Integrity != p.Integrity {
			return fmt.Errorf("%s has %s %q with the hash %q, and not %s with %s", lock, p.Name, of.Version, of.Integrity, p.Version, p.Integrity)
		}
	}
	return nil
}

// licencesOf returns the licences of packages, for the page to carry them wherever it goes.
func licencesOf(packages []vendoredPackage) []byte {
	var out bytes.Buffer
	fmt.Fprint(&out, "This page is part of liqo-broker, Copyright The liqo-broker Authors, Apache-2.0. It has code of others:\n")
	for _, p := range packages {
		fmt.Fprintf(&out, "\n%s\n%s %s\n\n%s\n", strings.Repeat("=", 80), p.Name, p.Version, bytes.TrimSpace(p.licence))
	}
	return out.Bytes()
}
