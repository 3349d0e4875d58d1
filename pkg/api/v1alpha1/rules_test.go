// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	kjson "sigs.k8s.io/json"
)

// traded are specs of the kinds with which people trade, as they are without what a test changes.
var traded = map[string]string{
	"Purchase":        `{"seller":"PARTY","offer":"small","plan":"one","duration":"1h","maxPrice":PRICE}`,
	"CapacityRequest": `{"resources":{"cpu":"2"},"duration":"1h"}`,
	"Sale":            `{"buyer":"PARTY","contractID":"x"}`,
	"Offer":           `{"title":"Small","plans":[{"id":"one","resources":{"cpu":"2","memory":"4Gi","pods":"20"},"price":PRICE}]}`,
}

// TestTradeRules says what the rules of these kinds refuse, of what people write and of what they change. A field that is null is left out.
func TestTradeRules(t *testing.T) {
	const (
		listed   = `{"listed":{"digest":"sha256:0","price":PRICE}}`
		ended    = `{"end":{"reason":"enough"}}`
		noChange = "-"
	)
	all := definitions(t)
	for name, c := range map[string]struct {
		kind string
		// before is what the spec has that is changed; noChange is that there was none.
		before, spec string
		// refused is a part of the message; empty if it is taken.
		refused string
	}{
		"a purchase":                   {"Purchase", noChange, `{}`, ""},
		"until a time":                 {"Purchase", noChange, `{"duration":null,"endTime":"2030-01-01T00:00:00Z"}`, ""},
		"for no time":                  {"Purchase", noChange, `{"duration":null}`, "a duration or an endTime"},
		"for seconds":                  {"Purchase", noChange, `{"duration":"59s"}`, "at least 1m"},
		"at any price":                 {"Purchase", noChange, `{"maxPrice":null}`, "says maxPrice"},
		"at the price that was listed": {"Purchase", noChange, `{"maxPrice":null,"listed":{"digest":"sha256:0","price":PRICE}}`, ""},
		"another size, and longer":     {"Purchase", `{}`, `{"resources":{"cpu":"4"},"duration":"2h"}`, ""},
		"another price":                {"Purchase", `{}`, `{"maxPrice":{"amount":"2","currency":"EUR","period":"PT1H"}}`, ""},
		"a price as Go says it":        {"Purchase", `{}`, `{"maxPrice":{"amount":"2","currency":"EUR","period":"24h"}}`, ""},
		"a price for half a day":       {"Purchase", `{}`, `{"maxPrice":{"amount":"2","currency":"EUR","period":"12h"}}`, "supported values"},
		"any price, later":             {"Purchase", `{}`, `{"maxPrice":null}`, "says maxPrice"},
		"of another seller":            {"Purchase", `{}`, `{"seller":"OTHER"}`, "the seller cannot be changed"},
		"of another offer":             {"Purchase", `{}`, `{"offer":"large"}`, "the offer cannot be changed"},
		"of another plan":              {"Purchase", `{}`, `{"plan":"two"}`, ""},
		"of no plan":                   {"Purchase", `{}`, `{"plan":null}`, "plan"},
		"as it was listed":             {"Purchase", listed, listed, ""},
		"otherwise than it was listed": {
			"Purchase", listed, `{"listed":{"digest":"sha256:1","price":PRICE}}`, "what was listed cannot be changed",
		},
		"whatever was listed":            {"Purchase", listed, `{}`, "what was listed cannot be changed"},
		"a purchase is ended":            {"Purchase", `{}`, ended, ""},
		"a purchase is ended otherwise":  {"Purchase", ended, `{"end":{}}`, "cannot be taken back"},
		"a purchase is ended no more":    {"Purchase", ended, `{}`, "cannot be taken back"},
		"a request":                      {"CapacityRequest", noChange, `{}`, ""},
		"a request for seconds":          {"CapacityRequest", noChange, `{"duration":"59s"}`, "at least 1m"},
		"a request in a currency":        {"CapacityRequest", noChange, `{"currency":"EUR"}`, ""},
		"a request in that of its price": {"CapacityRequest", noChange, `{"currency":"EUR","maxPrice":PRICE}`, ""},
		"a request in another than its price": {
			"CapacityRequest", noChange, `{"currency":"USD","maxPrice":PRICE}`, "currency is that of maxPrice",
		},
		"a request in no currency":    {"CapacityRequest", noChange, `{"currency":"euro"}`, "currency"},
		"another request":             {"CapacityRequest", `{}`, `{"duration":"2h"}`, "make another one"},
		"a sale is decided":           {"Sale", `{}`, `{"decision":"Approve","decisionRevision":2}`, ""},
		"a decision about no terms":   {"Sale", `{}`, `{"decision":"Approve","decisionRevision":0}`, "decisionRevision"},
		"a sale to another buyer":     {"Sale", `{}`, `{"buyer":"OTHER"}`, "the buyer cannot be changed"},
		"another contract":            {"Sale", `{}`, `{"contractID":"y"}`, "the contract cannot be changed"},
		"a sale is ended":             {"Sale", `{}`, ended, ""},
		"a sale is ended otherwise":   {"Sale", ended, `{"end":{}}`, "cannot be taken back"},
		"a sale is ended no more":     {"Sale", ended, `{}`, "cannot be taken back"},
		"an offer":                    {"Offer", noChange, `{"validity":"720h"}`, ""},
		"an offer for long":           {"Offer", noChange, `{"validity":"721h"}`, "validity must be"},
		"an offer for seconds":        {"Offer", noChange, `{"validity":"59s"}`, "validity must be"},
		"a plan of nothing":           {"Offer", noChange, `{"plans":[{"id":"one","price":PRICE}]}`, "either resources or a range"},
		"a plan with prices of units": {"Offer", noChange, `{"plans":[{"id":"one","resources":{"cpu":"2"},"price":PRICE,"unitPrices":{"cpu":{"amount":"1","per":"1"}}}]}`, "unitPrices are for a range"},
	} {
		t.Run(name, func(t *testing.T) {
			d := all[c.kind]
			object, old := tradeObject(t, c.kind, c.spec), map[string]any(nil)
			if c.before != noChange {
				old = tradeObject(t, c.kind, c.before)
				if err := d.refuses(t.Context(), old); err != nil {
					t.Fatalf("before: %v", err)
				}
			}
			err := d.refusesChange(t.Context(), object, old)
			if (err == nil) != (c.refused == "") || err != nil && !strings.Contains(err.Error(), c.refused) {
				t.Errorf("got %v, want %q", err, c.refused)
			}
		})
	}
}

// tradeObject returns an object of a kind with some fields of its spec changed.
func tradeObject(t *testing.T, kind, change string) map[string]any {
	t.Helper()
	words := strings.NewReplacer(
		"PARTY", strings.Repeat("a", 52), "OTHER", strings.Repeat("b", 52), "PRICE", `{"amount":"1","currency":"EUR","period":"PT1H"}`,
	)
	specs := [2]map[string]any{}
	for i, text := range []string{traded[kind], change} {
		if err := kjson.UnmarshalCaseSensitivePreserveInts([]byte(words.Replace(text)), &specs[i]); err != nil {
			t.Fatal(fmt.Errorf("%s: %w", text, err))
		}
	}
	maps.Copy(specs[0], specs[1])
	maps.DeleteFunc(specs[0], func(_ string, value any) bool { return value == nil })
	return map[string]any{"apiVersion": "brokering.liqo.io/v1alpha1", "kind": kind, "metadata": map[string]any{"name": "x"}, "spec": specs[0]}
}
