// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package trade

import (
	"context"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/peering"
	"github.com/capacitorset/liqo-broker/pkg/trade/negotiation/negotiationv1"
	"github.com/capacitorset/liqo-broker/pkg/trade/party"
)

// where is where a cluster is reached.
func where(id cluster.Identity) peering.Endpoints {
	return peering.Endpoints{
		Cluster: string(id.ID), Auth: "https://" + authHost, APIServer: "https://" + authHost + ":6443", Gateway: authHost + ":5871",
	}
}

// unreached is which endpoints of a buyer a seller does not reach: now and then one.
func (w *world) unreached(party.ID, negotiationv1.Endpoints) []string {
	if w.once(12) {
		return []string{peering.AuthEndpoint}
	}
	return nil
}

// roads are those of a buyer to sellers.
type roads struct{ b *buyer }

// Own implements peering.Reach.
func (r roads) Own(context.Context) (peering.Endpoints, error) { return where(r.b.identity), nil }

// Try implements peering.Reach.
func (r roads) Try(_ context.Context, at peering.Endpoints) error {
	if r.b.w.once(12) {
		return peering.UnreachedError{{Endpoint: peering.APIServerEndpoint, At: at.APIServer, Why: "connection refused"}}
	}
	return nil
}
