// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path"
	"regexp"
	"strings"
	"time"

	spdxjson "github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdx/v2/common"
	"github.com/spdx/tools-golang/spdx/v2/v2_3"
)

// noAssertion says in SPDX that nobody claims to know.
const noAssertion = "NOASSERTION"

// An inventory is what a bill of materials is about: one binary, in the file or image that people get.
type inventory struct {
	Source source
	// File is the name of the bill; Subject that of what people get, Digest its SHA-256, and Locator where it is, as a package URL.
	File, Subject, Digest, Locator string
	Binary                         binary
	Licences                       []moduleLicence
	// Certificates is true if the subject has those of public authorities.
	Certificates bool
}

// bill returns the bill of materials in SPDX 2.3, as JSON. What it lists is what the linker wrote into the binary. It is the same for the
// same inventory: the time is that of the commit.
func (i inventory) bill() ([]byte, error) {
	program := path.Base(strings.ReplaceAll(i.Binary.Path, "\\", "/"))
	subject := i.pkg("subject", i.Subject, i.Source.Version, licence, i.Locator)
	subject.PackageChecksums = []common.Checksum{{Algorithm: common.SHA256, Value: i.Digest}}
	subject.PackageDownloadLocation = "git+" + repository + "@" + i.Source.Revision
	main := i.pkg("program", program, i.Source.Version, licence, "pkg:golang/"+module+"@"+i.Source.Version)
	main.PackageChecksums = []common.Checksum{{Algorithm: common.SHA256, Value: sha256Hex(i.Binary.Data)}}
	main.PackageDownloadLocation = subject.PackageDownloadLocation
	document := v2_3.Document{
		SPDXVersion: v2_3.Version, DataLicense: v2_3.DataLicense, SPDXIdentifier: "DOCUMENT", DocumentName: i.Subject,
		DocumentNamespace: i.Source.download(i.File) + "/" + i.Digest,
		CreationInfo: &v2_3.CreationInfo{
			Creators: []common.Creator{{CreatorType: "Organization", Creator: authors}, {CreatorType: "Tool", Creator: "liqo-broker-build/release"}},
			Created:  i.Source.Time.UTC().Format(time.RFC3339),
		},
		Packages: []*v2_3.Package{subject, main},
		Relationships: []*v2_3.Relationship{
			relation("DOCUMENT", common.TypeRelationshipDescribe, "subject"), relation("subject", common.TypeRelationshipContains, "program"),
		},
	}
	for _, l := range i.Licences {
		locator := "pkg:golang/" + l.Module.Path + "@" + l.Module.Version
		if l.Module.NPM {
			locator = "pkg:npm/" + strings.Replace(l.Module.Path, "@", "%40", 1) + "@" + l.Module.Version
		}
		p := i.pkg(l.Module.Path, l.Module.Path, l.Module.Version, l.ID, locator)
		if l.Module.Patched {
			p.PackageComment = "Changed by the source patches in the folder patches of " + repository
		}
		document.Packages = append(document.Packages, p)
		document.Relationships = append(document.Relationships, relation("program", common.TypeRelationshipDependsOn, l.Module.Path))
	}
	if i.Certificates {
		p := i.pkg("certificates", "ca-certificates", certificatesVersion, "MPL-2.0", "pkg:golang/"+certificatesModule+"@"+certificatesVersion)
		p.PackageComment = "Certificates of Mozilla's root program, in " + baseFiles()[0].Path
		document.Packages = append(document.Packages, p)
		document.Relationships = append(document.Relationships, relation("subject", common.TypeRelationshipContains, "certificates"))
	}
	var out bytes.Buffer
	if err := spdxjson.Write(&document, &out, spdxjson.Indent("  ")); err != nil {
		return nil, fmt.Errorf("write %s: %w", i.File, err)
	}
	return out.Bytes(), nil
}

// pkg returns a package of the bill.
func (i inventory) pkg(id, name, version, declared, locator string) *v2_3.Package {
	p := &v2_3.Package{
		PackageName: name, PackageSPDXIdentifier: spdxID(id), PackageVersion: version,
		PackageDownloadLocation: noAssertion, PackageLicenseConcluded: noAssertion, PackageLicenseDeclared: declared,
		PackageCopyrightText: noAssertion,
	}
	if locator != "" {
		p.PackageExternalReferences = []*v2_3.PackageExternalReference{{
			Category: common.CategoryPackageManager, RefType: common.TypePackageManagerPURL, Locator: locator,
		}}
	}
	return p
}

func relation(from, kind, to string) *v2_3.Relationship {
	return &v2_3.Relationship{
		RefA: common.DocElementID{ElementRefID: spdxID(from)}, Relationship: kind, RefB: common.DocElementID{ElementRefID: spdxID(to)},
	}
}

// notInID is what identifiers of SPDX must not have.
var notInID = regexp.MustCompile(`[^A-Za-z0-9.-]`)

// spdxID returns an identifier. Paths of modules that differ in what it cannot have get different ones.
func spdxID(name string) common.ElementID {
	if id := notInID.ReplaceAllString(name, "-"); id != name {
		return common.ElementID(id + "-" + sha256Hex([]byte(name))[:8])
	}
	return common.ElementID(name)
}

func sha256Hex(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
