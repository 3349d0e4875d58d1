// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"encoding/json"
	"fmt"
	"net/netip"

	"github.com/capacitorset/liqo-broker/pkg/core/addressing"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/liqo/line"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v1/api"
)

// networkRules are those of Liqo 1.x.
type networkRules struct{}

// NetworkRules implements line.Line.
func (Line) NetworkRules() line.NetworkRules { return networkRules{} }

// Routed implements line.NetworkRules: Liqo routes what the status of a Configuration has.
func (networkRules) Routed(network []byte) ([]netip.Prefix, error) {
	c, err := configurationOf(network)
	if err != nil {
		return nil, err
	}
	return seenPrefixes(c), nil
}

// ComparesNetworks implements line.NetworkRules.
func (networkRules) ComparesNetworks() bool { return true }

// CheckNetwork implements line.NetworkRules. Liqo's IPAM gives each network a prefix of its own, of private ranges; what says otherwise was
// not written by it. A peer may announce what is behind it too, and so name any number of networks.
func (networkRules) CheckNetwork(before, network []byte, added []netip.Prefix, others []liqo.Link) error {
	was, err := configurationOf(before)
	if err != nil {
		return err
	}
	is, err := configurationOf(network)
	if err != nil {
		return err
	}
	for _, of := range []struct {
		field   string
		was, is []string
	}{
		{"spec.remote.cidr.pod", was.Spec.Remote.CIDR.Pod, is.Spec.Remote.CIDR.Pod},
		{"spec.remote.cidr.external", was.Spec.Remote.CIDR.External, is.Spec.Remote.CIDR.External},
	} {
		if len(of.is) <= len(of.was) {
			continue // What is there goes on.
		}
		if err := checkNumber(of.field, of.is); err != nil {
			return err
		}
	}
	for _, prefix := range added {
		if err := addressing.CheckReport(prefix); err != nil {
			return fmt.Errorf("status.remote.cidr: %w", err)
		}
		for i := range others {
			for _, taken := range others[i].Seen {
				if prefix.Overlaps(taken) {
					return fmt.Errorf("status.remote.cidr: prefix %s overlaps %s, which leads to cluster %s", prefix, taken, others[i].Peer)
				}
			}
		}
	}
	return nil
}

// NetworkAdvice implements line.NetworkRules.
func (networkRules) NetworkAdvice() string {
	return "end the peering, set ipam.reservedSubnets of Liqo's chart to the networks of the nodes, and peer again"
}

// configurationOf reads a Configuration, an empty one if there is none.
func configurationOf(network []byte) (*api.Configuration, error) {
	var c api.Configuration
	if len(network) == 0 {
		return &c, nil
	}
	if err := json.Unmarshal(network, &c); err != nil {
		return nil, fmt.Errorf("read a Configuration: %w", err)
	}
	return &c, nil
}
