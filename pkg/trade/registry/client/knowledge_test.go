// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"fmt"
	"testing"

	"github.com/capacitorset/liqo-broker/pkg/trade/core/offer"
)

// TestGone has a registry show and withdraw one party with its offers after the other, and offers of one that stays: of what is gone, no
// more is kept than a connector has room for.
func TestGone(t *testing.T) {
	const parties, offers = 64, 8192 // A party has up to 32 KiB.
	k := newKnowledge()
	show := func(key offer.Key) {
		if key.Offer == "" {
			k.parties[key.Party] = &seen{Party: &Party{}, there: true}
			return
		}
		k.offers[key] = mark{there: true}
	}
	bounded := func(step string) {
		t.Helper()
		// Of what is there one party stays, and no offer.
		if gone := len(k.parties) - 1; gone > parties || gone != k.goneParties {
			t.Fatalf("%s: %d parties are kept that are gone, %d as they are counted, want %d at most", step, gone, k.goneParties, parties)
		}
		if gone := len(k.offers); gone > offers || gone != k.goneOffers {
			t.Fatalf("%s: %d offers are kept that are gone, %d as they are counted, want %d at most", step, gone, k.goneOffers, offers)
		}
	}
	stays := offer.Key{Party: "stays"}
	show(stays)
	for i := range 4 * parties {
		goes := offer.Key{Party: fmt.Sprint("p", i)}
		show(goes)
		show(offer.Key{Party: goes.Party, Offer: "o"})
		if gone := k.forgetKey(goes); len(gone) != 2 {
			t.Fatalf("a party goes with its offer: %v", gone)
		}
		bounded(goes.Party)
	}
	for i := range 3 * offers {
		goes := offer.Key{Party: stays.Party, Offer: fmt.Sprint("o", i)}
		show(goes)
		k.forgetKey(goes)
		if i%512 == 0 {
			bounded(goes.Offer)
		}
	}
	bounded("at the end")
	if !k.keys()[stays] {
		t.Error("who stays is gone")
	}
}
