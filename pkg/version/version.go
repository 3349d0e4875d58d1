// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package version tells which version of the programs runs. The linker sets it;
// a program built without the Makefile calls itself "unknown".
package version

var version = "unknown"

// String returns the version, as `git describe` names it.
func String() string { return version }
