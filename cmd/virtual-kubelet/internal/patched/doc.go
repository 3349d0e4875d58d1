// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package patched tests the behaviour that the source patches bring, one test per patch. It knows what a caller of the patched modules
// sees, and nothing of how a patch is written. Against the modules as published its tests fail.
package patched
