// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package account

import (
	"cmp"
	"crypto/sha256"
	"encoding/csv"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/capacitorset/liqo-broker/pkg/sheet"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/bill"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/contract"
)

// Row is what is owed for a contract, a day and a currency.
type Row struct {
	entry    *Entry
	charge   bill.Charge
	from, to time.Time // The month.
	terms    contract.Terms
	signed   string
}

// Rows returns a row for each day of a month, or another time, on which the contract is paid or suspended; what is after until is not owed
// yet. The error is ErrForgotten.
func (e *Entry) Rows(from, to, until time.Time) ([]Row, error) {
	if err := e.Knows(from); err != nil {
		return nil, err
	}
	charges := e.Bill.Days(from, to, until)
	rows := make([]Row, 0, len(charges))
	for _, charge := range charges {
		terms, signed := e.at(charge.To, charge.Rate.Plan)
		rows = append(rows, Row{entry: e, charge: charge, from: from, to: to, terms: terms, signed: signed})
	}
	return rows, nil
}

// column is one of FOCUS. What it returns is text, json.Number for a number, or nil for what is not known.
type column struct {
	name string
	of   func(*Row) any
}

// columns are those of FOCUS 1.2 that a contract fills, and some of our own, which begin with x_ as FOCUS wants.
func columns() []column {
	when := func(t time.Time) any { return t.UTC().Format(time.RFC3339) }
	always := func(value any) func(*Row) any { return func(*Row) any { return value } }
	cost := func(r *Row) any { return json.Number(r.charge.Cost.String()) }
	return []column{
		// Who pays whom, for which month.
		{"BillingAccountId", func(r *Row) any { return r.entry.Terms.Buyer }},
		{"BillingAccountName", func(r *Row) any { return r.entry.party(!r.entry.Sold, r.entry.Terms.Buyer) }},
		{"SubAccountId", func(r *Row) any { return string(r.entry.Terms.Cluster.ID) }},
		{"SubAccountName", func(r *Row) any { return r.entry.Terms.Cluster.Name }},
		{"InvoiceIssuerName", seller}, {"ProviderName", seller}, {"PublisherName", seller},
		{"BillingPeriodStart", func(r *Row) any { return when(r.from) }},
		{"BillingPeriodEnd", func(r *Row) any { return when(r.to) }},
		// How much, for which day.
		{"ChargePeriodStart", func(r *Row) any { return when(r.charge.From) }},
		{"ChargePeriodEnd", func(r *Row) any { return when(r.charge.To) }},
		{"BilledCost", cost}, {"EffectiveCost", cost}, {"ContractedCost", cost}, {"ListCost", cost},
		{"BillingCurrency", func(r *Row) any { return r.charge.Rate.Price.Currency }},
		{"PricingQuantity", func(r *Row) any { return hours(r.charge.Paid) }}, {"PricingUnit", always("Hours")},
		// For what.
		{"ChargeCategory", always("Usage")}, {"ChargeClass", always(nil)}, {"ChargeFrequency", always("Usage-Based")},
		{"ChargeDescription", func(r *Row) any {
			return orNil(strings.TrimPrefix(sheet.Amount(r.terms.Resources)+" for "+r.charge.Rate.Price.String(), " for "))
		}},
		{"ServiceCategory", always("Compute")}, {"ServiceSubcategory", always("Containers")}, {"ServiceName", always("Kubernetes capacity")},
		{"SkuId", func(r *Row) any { return r.entry.Terms.Offer + "/" + r.charge.Rate.Plan }},
		{"ResourceId", func(r *Row) any { return r.entry.Terms.ID }},
		{"ResourceName", func(r *Row) any { return r.entry.Name }},
		{"ResourceType", always("Contract")},
		// By which terms, for who disputes it.
		{"x_TermsRevision", func(r *Row) any {
			if r.terms.Revision == 0 {
				return nil
			}
			return json.Number(strconv.FormatInt(r.terms.Revision, 10))
		}},
		{"x_OfferDigest", func(r *Row) any { return orNil(r.terms.OfferDigest) }},
		{"x_SignatureDigest", func(r *Row) any {
			if r.signed == "" {
				return nil
			}
			sum := sha256.Sum256([]byte(r.signed))
			return "sha256:" + hex.EncodeToString(sum[:])
		}},
	}
}

// seller returns what the seller is called.
func seller(r *Row) any { return r.entry.party(r.entry.Sold, r.entry.Terms.Seller) }

// party returns what a party is called: its ID if it is this cluster's own, or has no name.
func (e *Entry) party(own bool, id string) string {
	if own {
		return id
	}
	return cmp.Or(sheet.Plain(e.Other), id)
}

// orNil returns a text; nil if it is empty.
func orNil(text string) any {
	if text == "" {
		return nil
	}
	return text
}

// hours returns a time in hours, as a decimal number with up to nine places.
func hours(d time.Duration) json.Number {
	text := strconv.FormatFloat(d.Hours(), 'f', 9, 64)
	return json.Number(strings.TrimSuffix(strings.TrimRight(text, "0"), "."))
}

// WriteCSV writes rows as FOCUS has them in a file of comma-separated values: with a line of names, and nothing for what is not known.
// Names that other parties have given themselves cannot be formulas of a spreadsheet.
func WriteCSV(w io.Writer, rows []Row) error {
	all := columns()
	out := csv.NewWriter(w)
	record := make([]string, len(all))
	for i, c := range all {
		record[i] = c.name
	}
	if err := out.Write(record); err != nil {
		return fmt.Errorf("write the names of columns: %w", err)
	}
	for i := range rows {
		for at, c := range all {
			switch value := c.of(&rows[i]).(type) {
			case string:
				if strings.ContainsAny(value[:min(1, len(value))], "=+-@\t\r") {
					value = "'" + value
				}
				record[at] = value
			case json.Number:
				record[at] = value.String()
			default:
				record[at] = ""
			}
		}
		if err := out.Write(record); err != nil {
			return fmt.Errorf("write row %d: %w", i+1, err)
		}
	}
	out.Flush()
	return out.Error()
}

// WriteJSON writes rows as a list of objects, whose fields are the columns of FOCUS: null is what is not known.
func WriteJSON(w io.Writer, rows []Row) error {
	all := columns()
	objects := make([]map[string]any, 0, len(rows))
	for i := range rows {
		object := make(map[string]any, len(all))
		for _, c := range all {
			object[c.name] = c.of(&rows[i])
		}
		objects = append(objects, object)
	}
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "    ")
	if err := encoder.Encode(objects); err != nil {
		return fmt.Errorf("write %d rows: %w", len(rows), err)
	}
	return nil
}
