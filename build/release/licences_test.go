// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// allowed are the licences of what may be linked. A licence that asks for more than its text and a notice needs a decision, and a line in
// NOTICE.
var allowed = map[string]bool{"Apache-2.0": true, "BSD-2-Clause": true, "BSD-3-Clause": true, "ISC": true, "MIT": true, "blessing": true}

// TestLinkedLicences reads the licences of all modules that the programs of this project link, on each platform of a release.
func TestLinkedLicences(t *testing.T) {
	licences, err := sources(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	linked := map[linkedModule]bool{}
	for on, programs := range map[platform][]string{
		{"linux", "amd64"}: {"cmd/...", "cmd/virtual-kubelet"}, {"linux", "arm64"}: {"cmd/...", "cmd/virtual-kubelet"},
		{"darwin", "arm64"}: {"cmd/" + plugin}, {"windows", "amd64"}: {"cmd/" + plugin},
	} {
		for _, folder := range programs {
			for _, m := range dependencies(t, on, folder) {
				linked[m] = true
			}
		}
	}
	if len(linked) < 50 {
		t.Fatalf("only %d modules are found", len(linked))
	}
	for m := range linked {
		found, err := licences.read("go", []linkedModule{m})
		if err != nil {
			t.Error(err)
			continue
		}
		for id := range strings.SplitSeq(found[1].ID, " AND ") {
			if !allowed[id] {
				t.Errorf("%s is under %s", m.Path, id)
			}
		}
		if text := string(thirdPartyText(found)); !strings.Contains(text, m.Path+" "+m.Version) ||
			!strings.Contains(text, strings.TrimSpace(string(found[1].Texts[0].Data))) {
			t.Errorf("a release lacks the licence of %s", m.Path)
		}
	}
}

// TestPageLicences holds that who has the page gets the licences of what is in it, and nobody else.
func TestPageLicences(t *testing.T) {
	script, err := os.ReadFile(filepath.Join(root, "pkg/ui/dist/app.js.gz"))
	if err != nil {
		t.Fatal(err)
	}
	without, with := binary{Data: []byte("no page")}, binary{Data: slices.Concat([]byte("before"), script, []byte("after"))}
	if found, err := pageLicences(root, without); err != nil || found != nil {
		t.Errorf("a program without the page has %v, %v", found, err)
	}
	found, err := pageLicences(root, without, with)
	if err != nil {
		t.Fatal(err)
	}
	text, names := string(thirdPartyText(found)), ""
	for _, l := range found {
		names += " " + l.Module.Path
		if !allowed[l.ID] {
			t.Errorf("%s is under %s", l.Module.Path, l.ID)
		}
		if !strings.Contains(text, l.Module.Path+" "+l.Module.Version+": "+l.ID) {
			t.Errorf("a release lacks the licence of %s", l.Module.Path)
		}
	}
	if want := " preact @preact/signals @preact/signals-core"; names != want {
		t.Errorf("the page has%s, want%s", names, want)
	}
	bill, err := inventory{Binary: with, Licences: found}.bill()
	if err != nil {
		t.Fatal(err)
	}
	if want := "pkg:npm/%40preact/signals@"; !strings.Contains(string(bill), want) {
		t.Errorf("the bill of materials does not name %s", want)
	}
}

// dependencies asks Go which modules the programs of a folder link on a platform, besides this repository's.
func dependencies(t *testing.T, on platform, folder string) (modules []linkedModule) {
	t.Helper()
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f",
		"{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}}{{end}}{{end}}", "./"+path.Base(folder))
	list.Dir = filepath.Join(root, path.Dir(folder))
	if folder == "cmd/virtual-kubelet" { // A module of its own.
		list.Dir, list.Args[len(list.Args)-1] = filepath.Join(root, folder), "."
	}
	list.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+on.OS, "GOARCH="+on.Architecture)
	output, err := list.Output()
	if err != nil {
		t.Fatalf("list what %s links on %s: %v", folder, on, err)
	}
	for line := range strings.Lines(string(output)) {
		var m linkedModule
		if count, _ := fmt.Sscan(line, &m.Path, &m.Version); count == 2 && m.Path != module {
			modules = append(modules, m)
		}
	}
	return modules
}

func TestIdentify(t *testing.T) {
	const bsd = "Redistribution and use in source and binary forms, with or without modification, are permitted."
	const mit = "Permission is hereby granted, free of charge, to any person\nobtaining a copy of this software"
	cases := map[string]struct{ reason, text, want, refusal string }{
		"MIT":  {reason: "Lines break anywhere.", text: mit, want: "MIT"},
		"BSD2": {reason: "Without the clause about names.", text: bsd, want: "BSD-2-Clause"},
		"BSD3": {reason: "With it.", text: bsd + " Neither the name of the owner nor", want: "BSD-3-Clause"},
		"Both": {reason: "A file may have two.", text: mit + "\nApache License\n   Version 2.0", want: "Apache-2.0 AND MIT"},
		"MPL": {
			reason: "Its text names the GPL, which it does not ask for.",
			text:   "Mozilla Public License Version 2.0 Secondary License GNU General Public License", want: "MPL-2.0",
		},
		"GPL": {reason: "Not ours to link.", text: "GNU GENERAL PUBLIC LICENSE Version 3", refusal: "it names the GNU GENERAL PUBLIC LICENSE"},
		"AGPL": {
			reason: "Nor this, also beside another one.", text: mit + " GNU Affero General Public License", refusal: "it names the GNU Affero",
		},
		"Unknown": {reason: "Somebody has to read it first.", text: "You may use this on Tuesdays.", refusal: "none of those that are known"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := identify(tc.text)
			if got != tc.want || (err == nil) != (tc.refusal == "") || err != nil && !strings.Contains(err.Error(), tc.refusal) {
				t.Errorf("%s It is %q, %v", tc.reason, got, err)
			}
		})
	}
}

func TestModuleWithoutLicence(t *testing.T) {
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "license.go"), []byte("package license"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := licenceOf(linkedModule{Path: "example.com/a", Version: "v1.0.0"}, folder); err == nil {
		t.Error("a module without a licence is accepted")
	}
}
