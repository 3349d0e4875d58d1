// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package bill_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/capacitorset/liqo-broker/pkg/trade/core/bill"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/contract"
)

// TestWhoPays plays each row of the table of docs/trade/contract.md, of a contract for 20 hours at 1 EUR each, with 4 hours of notice and
// one of drain.
func TestWhoPays(t *testing.T) {
	text, err := os.ReadFile("../../../../docs/trade/contract.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(text), "| what happens | until when the buyer pays |")
	if !found {
		t.Fatal("there is no table")
	}
	rows := map[string]bool{}
	for line := range strings.SplitSeq(table, "\n") {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "|") {
			break
		} else if !strings.HasPrefix(line, "|--") && line != "" {
			rows[strings.Trim(line, "| ")] = true
		}
	}
	type event struct {
		after time.Duration
		of    contract.Event
	}
	active := []event{{0, contract.Grant}, {0, contract.Peered}}
	for row, cases := range map[string][]struct {
		events []event
		owed   string
	}{
		"the terms end | their end": {{append(active, event{20 * hour, contract.Tick}), "20 EUR"}},
		"the seller gives notice | the end of the notice, or of a drain if that is longer; " +
			"until it has left, if it ends the contract itself before": {
			{append(active, event{5 * hour, contract.Notice}, event{9 * hour, contract.Tick}), "9 EUR"},
			{append(active, event{5 * hour, contract.Notice}, event{6 * hour, contract.Terminate}, event{7 * hour, contract.Drained}), "7 EUR"},
		},
		"the buyer ends it | the end of the notice, and until it has left; not later than the end of the terms": {
			{append(active, event{5 * hour, contract.Terminate}, event{6 * hour, contract.Drained}), "9 EUR"},
			{append(active, event{18 * hour, contract.Terminate}, event{18 * hour, contract.Drained}), "20 EUR"},
		},
		"the buyer ends it before it is granted | until it has left; nothing if the seller has not granted it within 10 minutes": {
			{[]event{{3 * time.Minute, contract.Terminate}, {6 * time.Minute, contract.Drained}}, "0.1 EUR"},
			{[]event{{2 * hour, contract.Terminate}, {3 * hour, contract.Drained}}, ""},
		},
		"the buyer ends it 10 minutes or more after it was signed, and it was never in use | until it has left": {
			{[]event{{0, contract.Grant}, {10 * time.Minute, contract.Terminate}, {30 * time.Minute, contract.Drained}}, "0.5 EUR"},
			{[]event{{0, contract.Grant}, {9 * time.Minute, contract.Terminate}, {30 * time.Minute, contract.Drained}}, "4.15 EUR"},
		},
		"it was not in use a day after it was signed, and its seller ends it | until it has left; nothing if the seller has not granted it": {
			{[]event{{0, contract.Grant}, {30 * hour, contract.Tick}}, "25 EUR"},
			{[]event{{30 * hour, contract.Tick}}, ""},
		},
		"the seller suspends it | nothing while it is suspended; nothing more if it ends before it is resumed": {
			{append(active, event{5 * hour, contract.Suspend}, event{8 * hour, contract.Resume}, event{20 * hour, contract.Tick}), "17 EUR"},
			{append(active, event{5 * hour, contract.Suspend}, event{20 * hour, contract.Tick}), "5 EUR"},
			{append(active, event{5 * hour, contract.Suspend}, event{6 * hour, contract.Notice}, event{10 * hour, contract.Tick}), "5 EUR"},
			{append(active, event{5 * hour, contract.Suspend}, event{6 * hour, contract.Terminate}, event{7 * hour, contract.Drained}), "5 EUR"},
		},
		"the seller fails to grant it | nothing": {{[]event{{2 * hour, contract.Fail}}, ""}},
	} {
		if !rows[row] {
			t.Errorf("the table does not say: %s", row)
		}
		delete(rows, row)
		for _, tc := range cases {
			h := newHistory(t, 0)
			begin := h.now
			terms := h.purchase.Terms
			terms.Price, terms.EndsAt = price(t, "1", "EUR", "PT1H"), begin.Add(20*hour)
			if tc.events[len(tc.events)-1].after > 20*hour {
				terms.EndsAt = begin.Add(40 * hour)
			}
			terms.Notice, terms.Drain = 4*hour, hour
			h.apply(contract.Request{Event: contract.Reserve, Terms: terms, Verdict: contract.Accept})
			h.apply(contract.Request{Event: contract.Sign, Terms: terms, Signature: "s", Countersignature: "c"})
			for _, e := range tc.events {
				// Whatever the time brings comes when it is due.
				for h.now = h.now.Add(step); h.now.Before(begin.Add(e.after)); h.now = h.now.Add(step) {
					h.apply(contract.Request{Event: contract.Tick})
				}
				h.now = begin.Add(e.after)
				h.apply(contract.Request{Event: e.of})
			}
			if got := bill.OfSeller(*h.record).Cost(begin, begin.Add(100*hour)).String(); got != tc.owed {
				t.Errorf("%s: %v owes %q, not %q", row, tc.events, got, tc.owed)
			}
		}
	}
	for row := range rows {
		t.Errorf("nothing holds the row: %s", row)
	}
}
