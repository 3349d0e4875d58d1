// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestArchivesAreReproducible packs the same files in another order.
func TestArchivesAreReproducible(t *testing.T) {
	entries := []entry{
		{Path: "b/c", Mode: 0o755, Data: []byte("program")}, {Path: "a", Mode: 0o644, Data: []byte("text")},
		{Path: "tmp", Mode: fs.ModeDir | fs.ModeSticky | 0o777},
	}
	at := time.Unix(1700000000, 0)
	for name, pack := range map[string]func(time.Time, []entry) ([]byte, error){"tar": tarred, "tar.gz": tarGz, "zip": zipped} {
		first, err := pack(at, entries)
		if err != nil {
			t.Fatal(err)
		}
		reversed := slices.Clone(entries)
		slices.Reverse(reversed)
		second, err := pack(at.In(time.FixedZone("elsewhere", 3600)), reversed)
		if err != nil || !bytes.Equal(first, second) {
			t.Errorf("%s: the order of files or the time zone changes the archive (%v)", name, err)
		}
		if later, err := pack(at.Add(time.Hour), entries); err != nil || bytes.Equal(first, later) {
			t.Errorf("%s: the time of the commit is not in the archive (%v)", name, err)
		}
		if _, err := pack(at, append(entries, entries[0])); err == nil {
			t.Errorf("%s has a file twice", name)
		}
	}
}

func TestCheckBuild(t *testing.T) {
	good := map[string]string{
		"GOOS": "linux", "GOARCH": "arm64", "CGO_ENABLED": "0", "-trimpath": "true", "vcs.revision": "a", "vcs.modified": "false",
	}
	cases := map[string]struct {
		reason, key, value string
		patched            bool
		refusal            string
	}{
		"Good":      {reason: "It is what is asked for."},
		"Elsewhere": {reason: "It would not run there.", key: "GOARCH", value: "amd64", refusal: "GOARCH"},
		"C":         {reason: "The image has no C library.", key: "CGO_ENABLED", value: "1", refusal: "CGO_ENABLED"},
		"Paths":     {reason: "Another folder would give other bytes.", key: "-trimpath", value: "", refusal: "-trimpath"},
		"Revision":  {reason: "It is of another source.", key: "vcs.revision", value: "b", refusal: "revision b"},
		"Modified":  {reason: "It is of a source that is nowhere.", key: "vcs.modified", value: "true", refusal: "modified"},
		"Stock":     {reason: "The virtual kubelet needs the patches.", patched: true, refusal: "patched"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			info := &debug.BuildInfo{Deps: []*debug.Module{{Path: liqoModule, Version: liqoVersion, Sum: "h1:"}}}
			for key, value := range good {
				if key == tc.key {
					value = tc.value
				}
				info.Settings = append(info.Settings, debug.BuildSetting{Key: key, Value: value})
			}
			err := checkBuild(info, platform{"linux", "arm64"}, tc.patched, "a")
			if (err == nil) != (tc.refusal == "") || err != nil && !strings.Contains(err.Error(), tc.refusal) {
				t.Errorf("%s %v", tc.reason, err)
			}
		})
	}
}

// TestRefusals holds that nothing is released under a version that its manifests do not name.
func TestRefusals(t *testing.T) {
	for version, want := range map[string]string{
		"v9.9.9": "make set-version", "1.2.3": "not of the form", "v0.1.0+a": "not of the form", "": "not of the form",
	} {
		out := filepath.Join(t.TempDir(), "dist")
		err := packer{Source: source{Root: root, Version: version, Revision: "a", Time: time.Unix(1, 0)}, Progress: io.Discard}.pack(out)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", version, err, want)
		}
		if _, err := os.Stat(out); err == nil {
			t.Errorf("%q: a folder is written", version)
		}
	}
	if err := publish(t.Context(), t.TempDir(), "localhost:1/a", io.Discard); err == nil {
		t.Error("an empty folder is published")
	}
	if _, err := parsePlatforms("linux"); err == nil {
		t.Error("linux is a platform")
	}
}

// TestSetVersion gives a copy of all that names the version another one, and looks for the old.
func TestSetVersion(t *testing.T) {
	copied := t.TempDir()
	for _, place := range append(versioned(), "CHANGELOG.md") {
		target := filepath.Join(copied, place)
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(filepath.Join(root, place))
		if err != nil {
			t.Fatal(err)
		}
		if info.IsDir() {
			err = os.CopyFS(target, os.DirFS(filepath.Join(root, place)))
		} else {
			var text []byte
			if text, err = os.ReadFile(filepath.Join(root, place)); err == nil {
				err = os.WriteFile(target, text, 0o644)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	s := source{Root: copied, Version: "v3.2.1", Revision: "a", Time: time.Unix(1, 0)}
	old, err := s.manifestVersion()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.check(); err == nil {
		t.Error("the manifests of another version may be released")
	}
	changed, err := setVersion(copied, s.Version)
	if err != nil || len(changed) < 6 {
		t.Errorf("%d files are changed: %v", len(changed), err)
	}
	if err := s.check(); err != nil {
		t.Error(err)
	}
	if _, err := packageCharts(s); err != nil {
		t.Error(err)
	}
	files, err := filesBelow(copied, func(string) bool { return true })
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		for line := range strings.Lines(string(file.Data)) {
			if strings.Contains(line, imageRegistry+"/"+project) && strings.Contains(line, ":"+old) || strings.Contains(line, "newTag: "+old) {
				t.Errorf("%s still says %s", file.Path, strings.TrimSpace(line))
			}
		}
	}
}
