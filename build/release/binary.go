// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"debug/buildinfo"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"strings"
)

// liqoModule is the module that the source patches change.
const liqoModule = "github.com/liqotech/liqo"

// A platform is what a program is built for.
type platform struct{ OS, Architecture string }

// parsePlatforms reads platforms such as linux/amd64, with spaces or commas between them.
func parsePlatforms(text string) ([]platform, error) {
	var platforms []platform
	for _, word := range strings.FieldsFunc(text, func(r rune) bool { return r == ' ' || r == ',' }) {
		system, architecture, found := strings.Cut(word, "/")
		if !found || system == "" || architecture == "" || strings.Contains(architecture, "/") {
			return nil, fmt.Errorf("%q is not of the form linux/amd64", word)
		}
		platforms = append(platforms, platform{system, architecture})
	}
	return platforms, nil
}

// String returns the platform as it is part of names of files.
func (p platform) String() string { return p.OS + "-" + p.Architecture }

// windows reports whether programs and archives of the platform are as on Windows.
func (p platform) windows() bool { return p.OS == "windows" }

// exe is what names of programs end with.
func (p platform) exe() string {
	if p.windows() {
		return ".exe"
	}
	return ""
}

// A binary is a program that was built for a release.
type binary struct {
	Path string
	Data []byte
	// GoVersion is that of the compiler and of the standard library.
	GoVersion string
	// Modules are those that are linked in, without the main one, by path.
	Modules []linkedModule
}

// A linkedModule is a Go module in a binary, or a package of npm in the page that is in one.
type linkedModule struct {
	Path, Version string
	// Patched is true if it was changed before it was built.
	Patched bool
	// NPM is true for a package of npm, which is in the page of the broker.
	NPM bool
}

// readBinary reads a program, and refuses one that must not be released: for another platform, with the C library, with paths of
// the machine that built it, from another revision if it says which, or with a module that is patched, or is not, against what is wanted.
func readBinary(path string, p platform, patched bool, revision string) (binary, error) {
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return binary{}, err
	}
	if err := checkBuild(info, p, patched, revision); err != nil {
		return binary{}, fmt.Errorf("%s: %w", path, err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return binary{}, err
	}
	return binary{Path: path, Data: data, GoVersion: info.GoVersion, Modules: linkedModules(info)}, nil
}

func checkBuild(info *debug.BuildInfo, p platform, patched bool, revision string) error {
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	for key, want := range map[string]string{"GOOS": p.OS, "GOARCH": p.Architecture, "CGO_ENABLED": "0", "-trimpath": "true"} {
		if settings[key] != want {
			return fmt.Errorf("it was built with %s=%q, and must be with %q", key, settings[key], want)
		}
	}
	if of := settings["vcs.revision"]; of != "" && (of != revision || settings["vcs.modified"] == "true") {
		// The Makefile has Go leave it out.
		return fmt.Errorf("it was built from revision %s, modified=%q, and must be from %s", of, settings["vcs.modified"], revision)
	}
	isPatched := slices.ContainsFunc(linkedModules(info), func(m linkedModule) bool { return m.Path == liqoModule && m.Patched })
	if isPatched != patched {
		return fmt.Errorf("whether Liqo is patched in it is %t, and must be %t", isPatched, patched)
	}
	return nil
}

// linkedModules returns the modules of a binary by path, without this repository's. One that is replaced by another published one is that
// other one; one that is replaced by a folder, which has no sum, is patched.
func linkedModules(info *debug.BuildInfo) []linkedModule {
	modules := make([]linkedModule, 0, len(info.Deps))
	for _, dep := range info.Deps {
		if dep.Path == module {
			continue // The virtual kubelet is a module of its own, which has it from the next folder.
		}
		m := linkedModule{Path: dep.Path, Version: dep.Version}
		if dep.Replace != nil && dep.Replace.Sum == "" {
			m.Patched = true
		} else if dep.Replace != nil {
			m = linkedModule{Path: dep.Replace.Path, Version: dep.Replace.Version}
		}
		modules = append(modules, m)
	}
	slices.SortFunc(modules, compareModules)
	return modules
}

func compareModules(a, b linkedModule) int {
	return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Version, b.Version))
}

// union returns the modules of all binaries, each once.
func union(binaries []binary) []linkedModule {
	var all []linkedModule
	for _, b := range binaries {
		for _, m := range b.Modules {
			m.Patched = false // The licence is the same.
			all = append(all, m)
		}
	}
	slices.SortFunc(all, compareModules)
	return slices.Compact(all)
}
