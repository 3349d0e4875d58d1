// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package trade

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/capacitorset/liqo-broker/pkg/trade/core/contract"
	"github.com/capacitorset/liqo-broker/pkg/trade/negotiation/negotiationv1"
)

// vanish has a seller know none of its contracts, as one whose objects are gone, or know them again, as when they are back. What it has
// granted stays meanwhile. Half of the time it passes until buyers leave.
func (s *seller) vanish() {
	w := s.w
	s.vanished, s.hid = !s.vanished, true
	w.notef("%s knows no contract: %t", s.name, s.vanished)
	if !s.vanished || w.r.IntN(2) == 0 {
		return
	}
	for range 60 {
		w.now = w.now.Add(time.Minute)
		for _, b := range w.buyers {
			b.act()
		}
	}
}

// knowsNothing answers for a seller that knows no contract, and reports whether it has.
func (s *seller) knowsNothing(out http.ResponseWriter, r *http.Request) bool {
	if !s.vanished || !strings.Contains(r.URL.Path, "/contracts/") {
		return false
	}
	out.Header().Set("Content-Type", "application/problem+json")
	out.Header().Set("Date", s.clock().UTC().Format(http.TimeFormat))
	out.WriteHeader(http.StatusNotFound)
	_ = json.NewEncoder(out).Encode(map[string]any{"type": negotiationv1.ProblemUnknown, "status": http.StatusNotFound}) //nolint:errchkjson // It is a string and a number.
	return true
}

// notAlone: a buyer does without a seller that does not answer as it should, and comes back to one that does while the contract lasts. It
// does not come back to one that was restored to a time before the contract was over, as both knew then.
func (b *buyer) notAlone() error {
	for _, p := range b.all() {
		s, known := b.w.sellerOf(p), b.stored(p)
		record := s.soldTo(contract.Key{Buyer: string(b.id), ID: p.Status.ContractID})
		if s.restored && known.Purchase.Standing == contract.Closed && !b.clock().Before(known.Purchase.Last()) {
			continue
		}
		if parts := known.Purchase.Standing.Parts(); parts && record != nil && record.Key.ID != "" && record.State.InUse() &&
			b.clock().Before(record.Ends) {
			return fmt.Errorf("purchase %s stands %q, and its seller's contract is %s: %s", p.Name, known.Purchase.Standing, record.State,
				reasonOf(p.Status.Conditions))
		}
	}
	return nil
}
