// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package relay

import (
	"context"
	"fmt"
	"net/netip"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
)

// NatMappings are the mappings as Liqo writes them down.
type NatMappings struct {
	// Reader reads NatMappings, from a cache.
	Reader client.Reader
}

var _ Mappings = NatMappings{}

// Behind implements Mappings.
func (m NatMappings) Behind(ctx context.Context, target cluster.ID, relay netip.Addr) ([]netip.Addr, error) {
	var list liqo.NatMappingList
	if err := m.Reader.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list NatMappings: %w", err)
	}
	text := relay.String()
	var behind []netip.Addr
	for i := range list.Items {
		spec := &list.Items[i].Spec
		if spec.ClusterID != string(target) {
			continue
		}
		for from, to := range spec.ClusterMappings {
			if to != text {
				continue
			}
			if address, err := netip.ParseAddr(from); err == nil {
				behind = append(behind, address)
			}
		}
	}
	return behind, nil
}
