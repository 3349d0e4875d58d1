// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package negotiationtest

import (
	"context"

	"github.com/capacitorset/liqo-broker/pkg/trade/negotiation/negotiationv1"
	"github.com/capacitorset/liqo-broker/pkg/trade/party"
)

// Reach is a negotiation.Reach that dials nobody.
type Reach struct {
	// At is where the seller's cluster is reached.
	At negotiationv1.Endpoints
	// Unreached returns which endpoints of a buyer are not reached; nil reaches all.
	Unreached func(buyer party.ID, at negotiationv1.Endpoints) []string
}

// Own implements negotiation.Reach.
func (r Reach) Own(context.Context) negotiationv1.Endpoints { return r.At }

// Try implements negotiation.Reach.
func (r Reach) Try(_ context.Context, buyer party.ID, at negotiationv1.Endpoints) ([]string, error) {
	if r.Unreached == nil {
		return nil, nil
	}
	return r.Unreached(buyer, at), nil
}
