// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package arch tests the rules that hold for all packages of this repository: what may import what, and what every file and
// package has. It knows the names of packages, and nothing of what they do.
package arch
