// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package show_test

import (
	"testing"

	"github.com/capacitorset/liqo-broker/pkg/trade/show"
)

// TestParsePrice reads prices in all the forms in which people write them, and prints them in one.
func TestParsePrice(t *testing.T) {
	for text, want := range map[string]string{
		"0.1 EUR/h": "0.1 EUR/h", "0.1 EUR/PT1H": "0.1 EUR/h", "0.1 EUR/1h": "0.1 EUR/h", "0.1 EUR/60m": "0.1 EUR/h",
		" 2.40 EUR/24h ": "2.4 EUR/d", "2.4 EUR/P1D": "2.4 EUR/d", "1 EUR/min": "1 EUR/min", "1 EUR/P7D": "1 EUR/w",
		"73 EUR/mo": "73 EUR/mo", "73 EUR/P1M": "73 EUR/mo",
		"1 EUR/P1Y": "1 EUR/y",
	} {
		if got, err := show.ParsePrice(text); err != nil || got.String() != want {
			t.Errorf("%q is read as %s, %v, want %s", text, got, err, want)
		}
	}
	for _, text := range []string{"", "1", "1 EUR", "1 EUR/", "1 EUR/12h", "1 EUR/P2D", "1 EUR/hour", "1 EURO/h", "-1 EUR/h", "1 EUR/0s"} {
		if got, err := show.ParsePrice(text); err == nil {
			t.Errorf("%q is read as %s", text, got)
		}
	}
}
