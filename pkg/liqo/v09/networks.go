// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package v09

import (
	"encoding/json"
	"fmt"
	"net/netip"

	netv1alpha1 "github.com/liqotech/liqo/apis/net/v1alpha1"

	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/liqo/line"
)

// IpamStorage is what Liqo's IPAM remembers, the networks of this cluster among it.
type IpamStorage = netv1alpha1.IpamStorage

// ipamStorageList is a list of them, of which there is one.
type ipamStorageList = netv1alpha1.IpamStorageList

// dropAllocations removes from what Liqo's IPAM remembers all but the networks of this cluster: there is a record for each address that it
// relays.
func dropAllocations(s *IpamStorage) {
	s.Spec = netv1alpha1.IpamSpec{PodCIDR: s.Spec.PodCIDR, ServiceCIDR: s.Spec.ServiceCIDR, ExternalCIDR: s.Spec.ExternalCIDR}
}

// ownNetworks returns the networks of this cluster as Liqo's IPAM knows them.
func ownNetworks(s *IpamStorage) []netip.Prefix {
	var own []netip.Prefix
	for _, text := range []string{s.Spec.PodCIDR, s.Spec.ServiceCIDR, s.Spec.ExternalCIDR} {
		if prefix, err := netip.ParsePrefix(text); err == nil {
			own = append(own, prefix.Masked())
		}
	}
	return own
}

// networkRules are those of Liqo 0.9.
type networkRules struct{}

// NetworkRules implements line.Line.
func (Line) NetworkRules() line.NetworkRules { return networkRules{} }

// Routed implements line.NetworkRules.
func (networkRules) Routed(network []byte) ([]netip.Prefix, error) {
	if len(network) == 0 {
		return nil, nil
	}
	var tunnel TunnelEndpoint
	if err := json.Unmarshal(network, &tunnel); err != nil {
		return nil, fmt.Errorf("read a TunnelEndpoint: %w", err)
	}
	return seenPrefixes(&tunnel), nil
}

// ComparesNetworks implements line.NetworkRules.
func (networkRules) ComparesNetworks() bool { return false }

// CheckNetwork implements line.NetworkRules. Liqo itself writes TunnelEndpoints, of NetworkConfigs that the rules for peers have passed,
// and gives no prefix to two of them (getOrRemapNetwork in liqo/pkg/liqonet/ipam/ipam.go@v0.9.4).
func (networkRules) CheckNetwork(_, _ []byte, _ []netip.Prefix, _ []liqo.Link) error { return nil }

// NetworkAdvice implements line.NetworkRules.
func (networkRules) NetworkAdvice() string {
	return "end the peering, set networkManager.config.reservedSubnets of Liqo's chart to the networks of the nodes, and peer again"
}
