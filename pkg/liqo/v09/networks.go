// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package v09

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"

	netv1alpha1 "github.com/liqotech/liqo/apis/net/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/liqo/line"
)

// IpamStorage is what Liqo's IPAM remembers, the networks of this cluster among it.
type IpamStorage = netv1alpha1.IpamStorage

// DropAllocations removes from what Liqo's IPAM remembers all but the networks of this cluster: there is a record for each address that it
// relays.
func DropAllocations(s *IpamStorage) {
	s.Spec = netv1alpha1.IpamSpec{PodCIDR: s.Spec.PodCIDR, ServiceCIDR: s.Spec.ServiceCIDR, ExternalCIDR: s.Spec.ExternalCIDR}
}

// OwnNetworks returns the networks of this cluster as Liqo knows them: those of its pods, of its Services, and that in which it relays;
// none while Liqo's IPAM has not written them down.
func OwnNetworks(ctx context.Context, reader client.Reader) ([]netip.Prefix, error) {
	var all netv1alpha1.IpamStorageList
	if err := reader.List(ctx, &all); err != nil {
		return nil, fmt.Errorf("list what Liqo's IPAM remembers: %w", err)
	}
	var own []netip.Prefix
	for i := range all.Items {
		spec := &all.Items[i].Spec
		for _, text := range []string{spec.PodCIDR, spec.ServiceCIDR, spec.ExternalCIDR} {
			if prefix, err := netip.ParsePrefix(text); err == nil {
				own = append(own, prefix.Masked())
			}
		}
	}
	return own, nil
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

// CheckNetwork implements line.NetworkRules. Liqo itself writes TunnelEndpoints, of NetworkConfigs that the rules for peers have passed,
// and gives no prefix to two of them (getOrRemapNetwork in liqo/pkg/liqonet/ipam/ipam.go@v0.9.4).
func (networkRules) CheckNetwork(_, _ []byte, _ []netip.Prefix, _ []liqo.Link) error { return nil }

// NetworkAdvice implements line.NetworkRules.
func (networkRules) NetworkAdvice() string {
	return "end the peering, set networkManager.config.reservedSubnets of Liqo's chart to the networks of the nodes, and peer again"
}
