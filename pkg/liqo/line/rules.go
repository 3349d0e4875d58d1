// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package line

import (
	"context"
	"crypto/x509"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/liqo/peerwrite"
)

// Ruled is what Liqo lets pass, and is not to pass here.
type Ruled interface {
	PeerRules() PeerRules
	IdentityRules() IdentityRules
	NetworkRules() NetworkRules
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

// IdentityRules say to whom Liqo may give a certificate for this cluster.
type IdentityRules interface {
	// Requests reports whether a user is the part of Liqo that asks the API server for certificates, wherever Liqo is installed.
	Requests(user string) bool
	// Check returns why Liqo must not have the certificate for which it asks: the refusal is nil if it may. The other error is that nobody
	// knows. The request was parsed from text, and is signed with its own key; objects must not be a cache, which may be behind, and Liqo
	// runs in a namespace.
	Check(ctx context.Context, objects client.Reader, namespace string, request *x509.CertificateRequest, text []byte) (refusal, err error)
}

// NetworkRules say what Liqo leads to no peer.
type NetworkRules interface {
	// Routed returns what an object of Kinds.Network, in JSON, leads to its peer; nothing for an empty one.
	Routed(network []byte) ([]netip.Prefix, error)
	// ComparesNetworks reports whether CheckNetwork goes by the networks of other peers.
	ComparesNetworks() bool
	// CheckNetwork returns why an object of Kinds.Network, in JSON as it is and as it is to be, must not change so, given what it would lead
	// to its peer in addition, and the networks in the namespaces of other peers. Nodes are not its business.
	CheckNetwork(before, network []byte, added []netip.Prefix, others []liqo.Link) error
	// NetworkAdvice says what people do about a prefix that is not to be led to a peer.
	NetworkAdvice() string
}
