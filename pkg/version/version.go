// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package version tells which version of the programs runs, and where its documents are. The linker sets it; a program built without the
// Makefile calls itself "unknown".
package version

import "regexp"

var version = "unknown"

// String returns the version, as `git describe` names it.
func String() string { return version }

// released matches the versions that have a tag in the repository; `git describe` calls others by a tag, the commits since and a hash.
var released = regexp.MustCompile(`^v\d+\.\d+\.\d+(-(alpha|beta|rc)\.\d+)?$`)

// Document returns the address of a file of the repository, as it is in this version: who has only a program does not have the file. A
// version that is none of the releases has that of the newest one.
func Document(path string) string { return repository + "/blob/" + ref() + "/" + path }

// Applied returns what kubectl applies, or deletes, for the Kustomization in a folder of the repository, as it is in this version. It is
// quoted for a shell.
func Applied(folder string) string {
	return "-k '" + repository + "//" + folder + "?ref=" + ref() + "'"
}

const repository = "https://github.com/capacitorset/liqo-broker"

// ref is what the repository calls this version.
func ref() string {
	if released.MatchString(version) {
		return version
	}
	return "main"
}
