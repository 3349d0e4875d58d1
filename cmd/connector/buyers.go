// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"strings"

	"github.com/go-logr/logr"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/peering"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/purchases"
	"github.com/capacitorset/liqo-broker/pkg/trade/negotiation"
	"github.com/capacitorset/liqo-broker/pkg/trade/negotiation/negotiationv1"
	"github.com/capacitorset/liqo-broker/pkg/trade/party"
)

// buyers tries to reach the clusters of buyers, for a server of negotiations.
type buyers struct {
	reach   peering.Reach
	parties purchases.Parties
	log     logr.Logger
}

var _ negotiation.Reach = buyers{}

// Own implements negotiation.Reach.
func (b buyers) Own(ctx context.Context) negotiationv1.Endpoints {
	own, err := b.reach.Own(ctx)
	if err != nil {
		b.log.Error(err, "It is not known where others reach this cluster: nobody can buy")
	}
	return negotiationv1.Endpoints(own)
}

// Try implements negotiation.Reach. Of a buyer that a registry shows, liqo-auth is at the host that it has announced, or is not reached.
func (b buyers) Try(ctx context.Context, buyer party.ID, at negotiationv1.Endpoints) (unreached []string, err error) {
	if shown, is := b.parties.Party(buyer); is && !isAt(at.Auth, shown.AuthHost(cluster.ID(at.Cluster))) {
		return []string{peering.AuthEndpoint}, nil
	}
	err = b.reach.Try(ctx, peering.Endpoints(at))
	if found := (peering.UnreachedError)(nil); errors.As(err, &found) {
		b.log.Info("A buyer's cluster is not reached", "buyer", buyer, "cluster", at.Cluster, "why", found.Error())
		return found.Endpoints(), nil
	}
	return nil, err
}

// isAt reports whether an endpoint is at a host, which is in small letters.
func isAt(endpoint, host string) bool {
	u, err := party.ParseEndpoint(endpoint)
	return err == nil && strings.ToLower(u.Hostname()) == host
}
