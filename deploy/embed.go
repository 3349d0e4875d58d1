// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package deploy holds the manifests of the broker, for programs that install it. It knows nothing of what is in them.
package deploy

import "embed"

// Files are the kustomizations "crds", "broker" and "guard", which . combines, "admission", which has those of "guard/policies", what
// offers the remote IPAM to consumers, and for Liqo 1.x "transit" and "agent".
//
//go:embed kustomization.yaml crds broker guard admission liqo transit agent
var Files embed.FS
