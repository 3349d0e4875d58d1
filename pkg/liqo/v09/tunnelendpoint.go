// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package v09

import (
	"fmt"
	"net/netip"
	"time"

	netv1alpha1 "github.com/liqotech/liqo/apis/net/v1alpha1"
	"github.com/liqotech/liqo/pkg/consts"

	"github.com/capacitorset/liqo-broker/pkg/core/addressing"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
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

// TunnelPeer reads out of a TunnelEndpoint which cluster is at the other end,
// how its pods and its external CIDR are seen here and ours there, and whether the
// tunnel is up.
//
// While the two clusters still negotiate, the prefixes are missing and the
// error says so.
func TunnelPeer(tunnel *TunnelEndpoint) (cluster.ID, addressing.Peer, error) {
	id := TunnelCluster(tunnel)
	if id == "" {
		return "", addressing.Peer{}, fmt.Errorf("tunnel endpoint %s/%s names no cluster", tunnel.Namespace, tunnel.Name)
	}
	pods, err := addressing.NewView(tunnel.Spec.RemotePodCIDR, tunnel.Spec.RemoteNATPodCIDR)
	if err != nil {
		return "", addressing.Peer{}, fmt.Errorf("pod CIDR of cluster %s: %w", id, err)
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
	return id, addressing.Peer{
		Pods:         pods,
		Home:         home,
		External:     external,
		HomeExternal: homeExternal,
		Connected:    Connected(tunnel),
	}, nil
}

// SeenPrefixes returns the prefixes under which the pods of a peer, and what it
// relays, are seen here. Until Liqo has decided them there are none: nothing arrives
// from there yet.
func SeenPrefixes(tunnel *TunnelEndpoint) []netip.Prefix {
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

// RememberTunnel writes the public key of the other end into the status of a tunnel that is made and does not say it, and reports whether it
// has. Liqo's gateway removes at the end of a peering only what is in the status, and loses it if its first update of the status fails
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

// RoundTrip returns the round-trip time that Liqo has measured in a tunnel, and
// when; false if the tunnel is not up, or nothing was measured.
func RoundTrip(tunnel *TunnelEndpoint) (took time.Duration, at time.Time, ok bool) {
	connection := tunnel.Status.Connection
	took, err := time.ParseDuration(connection.Latency.Value)
	ok = err == nil && took > 0 && connection.Status == netv1alpha1.Connected && !connection.Latency.Timestamp.IsZero()
	return took, connection.Latency.Timestamp.Time, ok
}
