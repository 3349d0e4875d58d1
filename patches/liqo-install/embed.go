// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package liqoinstall holds the patches of an installation of Liqo, for programs that apply them. It knows nothing of what is in them.
package liqoinstall

import "embed"

// Files are the patches, as kubectl patch takes them.
//
//go:embed *.yaml *.json
var Files embed.FS
