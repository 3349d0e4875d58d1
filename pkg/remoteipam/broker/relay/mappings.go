// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package relay

import (
	"context"
	"fmt"
	"net/netip"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
)

// NatMappings are the mappings as Liqo writes them down.
type NatMappings struct {
	// Reader reads NatMappings, from a cache or from the API server.
	Reader client.Reader
}

var _ Mappings = NatMappings{}

// Behind implements Mappings.
func (m NatMappings) Behind(ctx context.Context, target cluster.ID, relay netip.Addr) ([]netip.Addr, error) {
	text := relay.String()
	var behind []netip.Addr
	err := m.Each(ctx, func(record *v09.NatMapping) {
		if v09.MappedFor(record) != target {
			return
		}
		for from, to := range v09.Mappings(record) {
			if to != text {
				continue
			}
			if address, err := netip.ParseAddr(from); err == nil {
				behind = append(behind, address)
			}
		}
	})
	return behind, err
}

// Of implements Mappings.
func (m NatMappings) Of(ctx context.Context, address netip.Addr) (map[cluster.ID]netip.Addr, error) {
	text, of := address.String(), map[cluster.ID]netip.Addr{}
	err := m.Each(ctx, func(record *v09.NatMapping) {
		relay, err := netip.ParseAddr(v09.Mappings(record)[text])
		if err != nil {
			relay = netip.Addr{}
		}
		of[v09.MappedFor(record)] = relay
	})
	return of, err
}

// Held implements Mappings.
func (m NatMappings) Held(ctx context.Context, target cluster.ID, address netip.Addr) (count int, mapped bool, err error) {
	text := address.String()
	err = m.Each(ctx, func(record *v09.NatMapping) {
		if v09.MappedFor(record) == target {
			count += len(v09.Mappings(record))
			_, here := v09.Mappings(record)[text]
			mapped = mapped || here
		}
	})
	return count, mapped, err
}

// Each does something with the mappings of each cluster, which it must not change.
func (m NatMappings) Each(ctx context.Context, do func(*v09.NatMapping)) error {
	var list v09.NatMappingList
	if err := m.Reader.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list NatMappings: %w", err)
	}
	for i := range list.Items {
		do(&list.Items[i])
	}
	return nil
}
