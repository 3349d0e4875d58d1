// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package v09

import (
	"context"
	"fmt"
	"net/netip"

	netv1alpha1 "github.com/liqotech/liqo/apis/net/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
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
