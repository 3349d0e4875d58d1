// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package v09

import (
	"context"
	"fmt"
	"net/netip"

	netv1alpha1 "github.com/liqotech/liqo/apis/net/v1alpha1"
	"github.com/liqotech/liqo/pkg/consts"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/core/addressing"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
)

// GatewayName is the name of the Deployment of Liqo's gateway, in whose pod the tunnels end.
const GatewayName = "liqo-gateway"

// TunnelEndpoint is Liqo's record of the network towards a peer.
type TunnelEndpoint = netv1alpha1.TunnelEndpoint

// NatMapping is Liqo's record of the addresses that a peer reaches through this
// cluster.
type NatMapping = netv1alpha1.NatMapping

// MappedFor returns the peer whose record it is.
func MappedFor(m *NatMapping) cluster.ID { return cluster.ID(m.Spec.ClusterID) }

// Mappings returns the relay addresses of a record, as text, by the address that they lead to. They must
// not be changed.
func Mappings(m *NatMapping) map[string]string { return m.Spec.ClusterMappings }

// NatMappingList is a list of NatMappings.
type NatMappingList = netv1alpha1.NatMappingList

// TunnelCluster returns the cluster to which a TunnelEndpoint says that it leads. Liqo
// makes it of what the peer writes, so that it is true only of the peer in whose tenant
// namespace it is.
func TunnelCluster(tunnel *TunnelEndpoint) cluster.ID {
	return cluster.ID(tunnel.Spec.ClusterIdentity.ClusterID)
}

// LinkOf returns the network that a TunnelEndpoint describes.
func LinkOf(tunnel *TunnelEndpoint) liqo.Link {
	connection := tunnel.Status.Connection
	link := liqo.Link{Tenant: tunnel.Namespace, Peer: TunnelCluster(tunnel), Seen: seenPrefixes(tunnel), Connected: Connected(tunnel)}
	link.Path, link.Negotiating = tunnelPath(tunnel)
	link.Measure(connection.Latency.Value, connection.Latency.Timestamp.Time)
	return link
}

// Links returns the networks towards peers, or those with records in one namespace.
func Links(ctx context.Context, reader client.Reader, in ...client.ListOption) ([]liqo.Link, error) {
	var all TunnelEndpointList
	if err := reader.List(ctx, &all, append(in, client.UnsafeDisableDeepCopy)...); err != nil {
		return nil, fmt.Errorf("list the tunnels to peers: %w", err)
	}
	links := make([]liqo.Link, len(all.Items))
	for i := range all.Items {
		links[i] = LinkOf(&all.Items[i])
	}
	return links, nil
}

// tunnelPath reads out of a TunnelEndpoint how the pods and the external CIDR of the cluster at the other end are seen here and ours
// there.
//
// While the two clusters still negotiate, the prefixes are missing and the
// error says so.
func tunnelPath(tunnel *TunnelEndpoint) (addressing.Peer, error) {
	id := TunnelCluster(tunnel)
	if id == "" {
		return addressing.Peer{}, fmt.Errorf("tunnel endpoint %s/%s names no cluster", tunnel.Namespace, tunnel.Name)
	}
	pods, err := addressing.NewView(tunnel.Spec.RemotePodCIDR, tunnel.Spec.RemoteNATPodCIDR)
	if err != nil {
		return addressing.Peer{}, fmt.Errorf("pod CIDR of cluster %s: %w", id, err)
	}
	// The peer tells the second prefix only after it has accepted ours.
	home, err := addressing.NewView(tunnel.Spec.LocalPodCIDR, tunnel.Spec.LocalNATPodCIDR)
	if err != nil || tunnel.Spec.LocalNATPodCIDR == "" {
		home = addressing.View{}
	}
	homeExternal, err := addressing.NewView(tunnel.Spec.LocalExternalCIDR, tunnel.Spec.LocalNATExternalCIDR)
	if err != nil || tunnel.Spec.LocalNATExternalCIDR == "" {
		homeExternal = addressing.View{}
	}
	external, err := addressing.NewView(tunnel.Spec.RemoteExternalCIDR, tunnel.Spec.RemoteNATExternalCIDR)
	if err != nil {
		external = addressing.View{}
	}
	return addressing.Peer{
		Pods: pods, Home: home, External: external, HomeExternal: homeExternal, Connected: Connected(tunnel),
	}, nil
}

// seenPrefixes returns the prefixes under which the pods of a peer, and what it relays, are seen here.
func seenPrefixes(tunnel *TunnelEndpoint) []netip.Prefix {
	var seen []netip.Prefix
	for _, r := range []struct{ own, remapped string }{
		{tunnel.Spec.RemotePodCIDR, tunnel.Spec.RemoteNATPodCIDR},
		{tunnel.Spec.RemoteExternalCIDR, tunnel.Spec.RemoteNATExternalCIDR},
	} {
		routed := r.remapped
		if routed == consts.DefaultCIDRValue {
			routed = r.own
		}
		if prefix, err := netip.ParsePrefix(routed); err == nil {
			seen = append(seen, prefix.Masked())
		}
	}
	return seen
}

// Connected reports whether a tunnel is up.
func Connected(tunnel *TunnelEndpoint) bool {
	return tunnel.Status.Connection.Status == netv1alpha1.Connected
}

// RememberTunnel writes the public key of the other end into the status of a tunnel that is made and does not say it, and reports whether
// it has. Liqo's gateway removes at the end of a peering only what is in the status, and loses it if its first update of the status fails
// (internal/liqonet/tunnel-operator/tunnel-operator.go and pkg/liqonet/tunnel/wireguard/driver.go@v0.9.4): what is left keeps the next
// tunnel to the same cluster from working.
func RememberTunnel(tunnel *TunnelEndpoint) bool {
	key, connection := tunnel.Spec.BackendConfig[consts.PublicKey], &tunnel.Status.Connection
	if connection.Status == "" || key == "" || connection.PeerConfiguration[consts.PublicKey] != "" {
		return false
	}
	if connection.PeerConfiguration == nil {
		connection.PeerConfiguration = map[string]string{}
	}
	connection.PeerConfiguration[consts.PublicKey] = key
	return true
}

// TunnelEndpointList is a list of them.
type TunnelEndpointList = netv1alpha1.TunnelEndpointList
