// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package line

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo/peerwrite"
)

// Ruled is what Liqo lets pass, and is not to pass here.
type Ruled interface {
	PeerRules() PeerRules
}

// PeerRules say what an honest peer does not write into its tenant namespace here.
type PeerRules interface {
	// TenantOf returns the peer whose tenant namespace a namespace is, as the namespace says.
	TenantOf(namespace *corev1.Namespace) (cluster.ID, bool)
	// IsPeer reports whether who writes in the tenant namespace of a peer is that or another one, as far as names and groups say it: others
	// have their rights from people here, and not from Liqo.
	IsPeer(w *peerwrite.Write, tenant cluster.ID) bool
	// Check returns why no honest peer writes something into its tenant namespace in the cluster own; nil if one may.
	Check(w *peerwrite.Write, peer, own cluster.ID) error
	// CheckCopied returns why Liqo here must not copy from a peer what it is about to write; nil for any other write.
	CheckCopied(w *peerwrite.Write) error
	// NodeName returns the name of the virtual node here for which a peer asks by a write; empty for any other one.
	NodeName(w *peerwrite.Write, peer cluster.Identity) (string, error)
}
