// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A statement says of files how they were made, in the form of in-toto and SLSA. Nobody has signed it: who does, signs this.
// https://github.com/in-toto/attestation/blob/v1.1.0/spec/v1/statement.md, https://slsa.dev/spec/v1.0/provenance
type statement struct {
	Type          string     `json:"_type"`
	Subject       []resource `json:"subject"`
	PredicateType string     `json:"predicateType"`
	Predicate     provenance `json:"predicate"`
}

// A resource is something with a digest.
type resource struct {
	Name   string            `json:"name,omitempty"`
	URI    string            `json:"uri,omitempty"`
	Digest map[string]string `json:"digest,omitempty"`
}

type provenance struct {
	BuildDefinition struct {
		BuildType            string            `json:"buildType"`
		ExternalParameters   map[string]string `json:"externalParameters"`
		InternalParameters   map[string]string `json:"internalParameters"`
		ResolvedDependencies []resource        `json:"resolvedDependencies"`
	} `json:"buildDefinition"`
	RunDetails struct {
		Builder struct {
			ID string `json:"id"`
		} `json:"builder"`
	} `json:"runDetails"`
}

// state returns the statement about files and images. It has no time and no name of a machine: whoever builds the same source with the
// same Go gets the same statement, which is what makes it worth something before anybody signs it.
func state(s source, goVersion string, subjects []resource) ([]byte, error) {
	var modules []resource
	for _, file := range []string{"go.sum", "build/release/go.sum"} {
		// The authorities that an image trusts are linked into the program that makes it.
		some, err := sums(filepath.Join(s.Root, file))
		if err != nil {
			return nil, err
		}
		for _, m := range some {
			if !slices.ContainsFunc(modules, func(known resource) bool { return known.URI == m.URI }) {
				modules = append(modules, m)
			}
		}
	}
	made := statement{Type: "https://in-toto.io/Statement/v1", Subject: subjects, PredicateType: "https://slsa.dev/provenance/v1"}
	definition := &made.Predicate.BuildDefinition
	definition.BuildType = repository + "/blob/" + s.Revision + "/docs/release.md"
	definition.ExternalParameters = map[string]string{"source": "git+" + repository, "version": s.Version, "target": "release"}
	definition.InternalParameters = map[string]string{"go": goVersion, "SOURCE_DATE_EPOCH": fmt.Sprint(s.Time.Unix())}
	definition.ResolvedDependencies = append([]resource{{URI: "git+" + repository, Digest: map[string]string{"gitCommit": s.Revision}}},
		modules...)
	made.Predicate.RunDetails.Builder.ID = repository + "/blob/" + s.Revision + "/Makefile"
	data, err := json.MarshalIndent(made, "", "  ")
	if err != nil {
		return nil, err
	}
	return append(data, '\n'), nil
}

// sums returns the modules whose content a go.sum holds, with the digest as in-toto writes it.
func sums(file string) ([]resource, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var modules []resource
	for line := range strings.Lines(string(data)) {
		fields := strings.Fields(line)
		if len(fields) != 3 || strings.HasSuffix(fields[1], "/go.mod") {
			continue
		}
		encoded, found := strings.CutPrefix(fields[2], "h1:")
		digest, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil || !found {
			return nil, fmt.Errorf("%s: the digest of %s is none: %q", file, fields[0], fields[2])
		}
		modules = append(modules, resource{
			URI: "pkg:golang/" + fields[0] + "@" + fields[1], Digest: map[string]string{"dirHash1": hex.EncodeToString(digest)},
		})
	}
	return modules, nil
}
