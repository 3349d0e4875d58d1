// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package kpi

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
)

// Price is what a unit of a resource costs for an hour. As text it is as KPIs are shown, such as "0.0125 EUR/h".
type Price struct {
	Amount float64
	// Currency is a code of ISO 4217, such as EUR.
	Currency string
}

// priced is the text of a price: a decimal number of up to 15 digits before the point, and a unit. The dearest offer, of a thousandth of a
// core, has 14.
var priced = regexp.MustCompile(`^([0-9]{1,15}(?:\.[0-9]{1,18})?) ([A-Z]{3})/h$`)

// ParsePrice reads the text of a price. The error names the text, cut to 64 bytes.
func ParsePrice(text string) (Price, error) {
	parts := priced.FindStringSubmatch(text)
	if parts == nil {
		return Price{}, fmt.Errorf("%.64q is not a price for an hour, such as \"0.0125 EUR/h\"", text)
	}
	amount, err := strconv.ParseFloat(parts[1], 64)
	if err != nil {
		return Price{}, fmt.Errorf("read the price %q: %w", text, err)
	}
	return Price{Amount: amount, Currency: parts[2]}, nil
}

// Unit returns the unit of the KPI that the price is, such as "EUR/h".
func (p Price) Unit() string { return p.Currency + "/h" }

// String returns the text that [ParsePrice] reads, rounded to billionths of the currency.
func (p Price) String() string {
	return strconv.FormatFloat(math.Round(p.Amount*1e9)/1e9, 'f', -1, 64) + " " + p.Unit()
}
