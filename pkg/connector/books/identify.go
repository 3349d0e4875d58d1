// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package books

import (
	"context"
	"crypto/ed25519"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/connector/negotiation"
	"github.com/capacitorset/liqo-broker/pkg/party"
)

// BuyerKeyLabel is the label of Sales with the fingerprint of the key that the buyer had when the contract was made.
const BuyerKeyLabel = "brokering.liqo.io/buyer-key"

// Identify returns the party whose key it was when a contract was made with it. It is a negotiation.Identify for those whom no registry shows
// any more: they can do and end what they have bought. It reads from the client, which may have a cache. The error is
// negotiation.ErrStranger, or that of the API server.
func (s *Store) Identify(ctx context.Context, key ed25519.PublicKey) (party.Keys, error) {
	var sales connectorv1alpha1.SaleList
	if err := s.cfg.Client.List(ctx, &sales, client.MatchingLabels{BuyerKeyLabel: party.Fingerprint(key)}); err != nil {
		return party.Keys{}, fmt.Errorf("list the sales to who has the key %s: %w", party.Fingerprint(key), err)
	}
	for i := range sales.Items {
		sale := &sales.Items[i]
		keys, err := party.ParseKeys(sale.Status.Buyer.Keys)
		if err == nil && keys.Current().Equal(key) && string(keys.ID()) == string(sale.Spec.Buyer) {
			return keys, nil
		}
	}
	return party.Keys{}, negotiation.ErrStranger
}
