// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package kpi_test

import (
	"strings"
	"testing"

	"github.com/capacitorset/liqo-broker/pkg/core/kpi"
)

func TestPrice(t *testing.T) {
	for text, want := range map[string]kpi.Price{
		"0.0125 EUR/h":      {Amount: 0.0125, Currency: "EUR"},
		"0 USD/h":           {Currency: "USD"},
		"0.000000001 EUR/h": {Amount: 1e-9, Currency: "EUR"},
		"999999999 EUR/h":   {Amount: 999999999, Currency: "EUR"},
	} {
		got, err := kpi.ParsePrice(text)
		if err != nil || got != want {
			t.Errorf("ParsePrice(%q) = %v, %v, want %v", text, got, err, want)
		}
		if back := got.String(); back != text {
			t.Errorf("ParsePrice(%q).String() = %q", text, back)
		}
	}
	for _, text := range []string{
		"", "1", "1 EUR", "-1 EUR/h", "1e3 EUR/h", "NaN EUR/h", "+Inf EUR/h", "1 eur/h", "1  EUR/h", " 1 EUR/h", "1 EUR/h ",
		"1. EUR/h", ".5 EUR/h", "1234567890123456 EUR/h", "1 EURO/h", "1 EUR/h\n", strings.Repeat("1", 1<<20) + " EUR/h",
	} {
		if got, err := kpi.ParsePrice(text); err == nil {
			t.Errorf("ParsePrice(%.40q) = %v, want an error", text, got)
		} else if len(err.Error()) > 256 {
			t.Errorf("ParsePrice(%.40q): the error has %d bytes", text, len(err.Error()))
		}
	}
}
