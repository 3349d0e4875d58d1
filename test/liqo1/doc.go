// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package liqo1 compares our types of Liqo 1.x, and the names of its labels, with those of the version that we follow. It is a module of
// its own, which alone requires that version: Liqo 0.9 has the same module path.
//
// It compiles what Liqo declares, and nothing that does anything: what Liqo does the journeys see.
package liqo1
