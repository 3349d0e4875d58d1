// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	modulepath "golang.org/x/mod/module"
)

// thirdParty is the name of the file with the licences of all that is linked in.
const thirdParty = "THIRD_PARTY_LICENSES"

// A moduleLicence is the texts under which a module is given.
type moduleLicence struct {
	Module linkedModule
	// ID is the expression of SPDX.
	ID string
	// Texts are the files, by their names: licences, and notices that must go with them.
	Texts []entry
}

// kinds are the licences that we link, and how their texts are told apart, by ID. Another licence than these is refused until somebody
// has read it and added it here.
func kinds() []licenceKind {
	bsd, names := phrase(`Redistribution and use in source and binary forms`),
		phrase(`Neither the names? |The names? of .{1,80} may not be used`)
	return []licenceKind{
		{id: "Apache-2.0", says: phrase(`Apache License,? Version 2\.0`)},
		{id: "BSD-2-Clause", says: bsd, also: names, not: true},
		{id: "BSD-3-Clause", says: bsd, also: names},
		{id: "ISC", says: phrase(`Permission to use, copy, modify, and(/or)? distribute this software for any purpose`)},
		{id: "MIT", says: phrase(`Permission is hereby granted, free of charge, to any person obtaining a copy`)},
		{id: "blessing", says: phrase(`SQLite Is Public Domain`)}, // SPDX knows what is public domain by the blessing in SQLite's sources.
		{id: "MPL-2.0", says: phrase(`Mozilla Public License,? (Version|v\.) 2\.0`)},
	}
}

type licenceKind struct {
	id string
	// says must be in the text. also, if it is set, must be there too or, if not is set, must not.
	says, also *regexp.Regexp
	not        bool
}

func (k licenceKind) fits(text string) bool {
	return k.says.MatchString(text) && (k.also == nil || k.also.MatchString(text) != k.not)
}

func phrase(words string) *regexp.Regexp { return regexp.MustCompile("(?i)" + words) }

// refused are licences that may quote one of the others.
var refused = phrase(`GNU (Affero |Lesser |Library )?General Public License|Server Side Public License|Business Source License|Commons Clause`)

var space = regexp.MustCompile(`[\s*#>]+`)

// identify returns the licences that a text has, and an error for one that is not among kinds.
func identify(text string) (string, error) {
	text = space.ReplaceAllString(text, " ")
	if found := refused.FindString(text); found != "" && !strings.Contains(text, "Secondary License") {
		return "", fmt.Errorf("it names the %s", found)
	}
	var ids []string
	for _, kind := range kinds() {
		if kind.fits(text) {
			ids = append(ids, kind.id)
		}
	}
	if len(ids) == 0 {
		return "", errors.New("its licence is none of those that are known: read it, and add it to kinds if it is acceptable")
	}
	return strings.Join(ids, " AND "), nil
}

// Names of files with licences and with notices. Some modules have Go files of such names.
var (
	licenceFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|unlicense)([.-].*)?$`)
	noticeFile  = regexp.MustCompile(`(?i)^notice([.-].*)?$`)
)

// others are files that are not about the code of their module: where a picture in its README comes from (modernc.org/memory), and what
// else is in its module graph, its tests included (modernc.org/sqlite). What of that is linked is a module of its own here.
var others = map[string]bool{"LICENSE-LOGO": true, "LICENSE-3RD-PARTY.md": true}

// licenceOf reads the licence of a folder with the sources of a module.
func licenceOf(m linkedModule, folder string) (moduleLicence, error) {
	files, err := os.ReadDir(folder)
	if err != nil {
		return moduleLicence{}, fmt.Errorf("read the licence of %s: %w", m.Path, err)
	}
	found := moduleLicence{Module: m}
	ids := map[string]bool{}
	for _, file := range files {
		name := file.Name()
		isLicence := licenceFile.MatchString(name) && !others[name]
		if file.IsDir() || filepath.Ext(name) == ".go" || !isLicence && !noticeFile.MatchString(name) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			return moduleLicence{}, fmt.Errorf("read the licence of %s: %w", m.Path, err)
		}
		found.Texts = append(found.Texts, entry{Path: name, Mode: 0o644, Data: text})
		if !isLicence {
			continue
		}
		id, err := identify(string(text))
		if err != nil {
			return moduleLicence{}, fmt.Errorf("%s of %s %s: %w", name, m.Path, m.Version, err)
		}
		for one := range strings.SplitSeq(id, " AND ") {
			ids[one] = true
		}
	}
	if len(ids) == 0 {
		return moduleLicence{}, fmt.Errorf("%s %s has no file with its licence", m.Path, m.Version)
	}
	found.ID = strings.Join(sortedKeys(ids), " AND ")
	return found, nil
}

// A licenceReader finds licences where Go has the sources: those of modules below Cache (GOMODCACHE), that of the standard library
// below Root (GOROOT).
type licenceReader struct{ Cache, Root string }

// read returns the licences of modules and, first, that of the standard library.
func (r licenceReader) read(goVersion string, modules []linkedModule) ([]moduleLicence, error) {
	standard, err := licenceOf(linkedModule{Path: standardLibrary, Version: goVersion}, r.Root)
	if err != nil {
		return nil, err
	}
	all := []moduleLicence{standard}
	for _, m := range modules {
		path, err := modulepath.EscapePath(m.Path)
		if err != nil {
			return nil, err
		}
		version, err := modulepath.EscapeVersion(m.Version)
		if err != nil {
			return nil, err
		}
		found, err := licenceOf(m, filepath.Join(r.Cache, filepath.FromSlash(path)+"@"+version))
		if err != nil {
			return nil, err
		}
		all = append(all, found)
	}
	return all, nil
}

// standardLibrary is the name of Go's own library among modules.
const standardLibrary = "std"

// thirdPartyText returns all texts in one, each once, below the modules that it is for.
func thirdPartyText(licences []moduleLicence) []byte {
	users := map[string][]string{}
	var order []string
	var out bytes.Buffer
	fmt.Fprintf(&out, "What is linked into the programs of liqo-broker, and under which licences. Their texts follow.\n\n")
	for _, l := range licences {
		fmt.Fprintf(&out, "%s %s: %s\n", l.Module.Path, l.Module.Version, l.ID)
		for _, text := range l.Texts {
			key := string(text.Data)
			if users[key] == nil {
				order = append(order, key)
			}
			users[key] = append(users[key], fmt.Sprintf("%s of %s %s", text.Path, l.Module.Path, l.Module.Version))
		}
	}
	for _, text := range order {
		fmt.Fprintf(&out, "\n%s\n%s\n\n%s\n", strings.Repeat("=", 80), strings.Join(users[text], "\n"), strings.TrimSpace(text))
	}
	return out.Bytes()
}
