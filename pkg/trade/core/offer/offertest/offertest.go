// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package offertest has what tests need that are about offers and contracts.
package offertest

import "github.com/capacitorset/liqo-broker/pkg/trade/core/offer"

// Price returns so many EUR for an hour. It panics if that is no amount.
func Price(amount string) offer.Price {
	price, err := offer.ParsePrice(amount, "EUR", string(offer.Hour))
	if err != nil {
		panic(err)
	}
	return price
}
