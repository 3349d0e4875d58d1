// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package account_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/trade/account"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/contract"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/offer/offertest"
)

var begin = time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)

const day = 24 * time.Hour

// mandatory are the columns that each row of FOCUS 1.2 has, by its specification.
var mandatory = []string{
	"BilledCost", "BillingAccountId", "BillingAccountName", "BillingCurrency", "BillingPeriodEnd", "BillingPeriodStart", "ChargeCategory",
	"ChargeClass", "ChargeDescription", "ChargePeriodEnd", "ChargePeriodStart", "ContractedCost", "EffectiveCost", "InvoiceIssuerName",
	"ListCost", "PricingQuantity", "PricingUnit", "ProviderName", "PublisherName", "ServiceCategory", "ServiceName",
}

// sale returns a contract of 2 EUR an hour that was resized to 3 EUR at noon of its second day, and suspended for its third.
func sale(t *testing.T) *connectorv1alpha1.Sale {
	t.Helper()
	old := contract.Terms{
		ID: "c", Buyer: "alice", Seller: "bob", Revision: 1, Cluster: cluster.Identity{ID: "edge-id", Name: "edge"}, Offer: "compute",
		OfferDigest: "sha256:old", Plan: "small", Price: offertest.Price("2"), StartsAt: begin, EndsAt: begin.Add(10 * day),
		Resources: corev1.ResourceList{"cpu": resource.MustParse("2"), "memory": resource.MustParse("4Gi")},
	}
	terms := old
	terms.Revision, terms.EffectiveAt, terms.Price, terms.OfferDigest = 2, begin.Add(36*time.Hour), offertest.Price("3"), "sha256:new"
	record := contract.Record{
		View: contract.View{
			State: contract.Active, Terms: terms, Countersignature: "new", PaidUntil: terms.EndsAt,
			Pauses: []contract.Pause{{From: begin.Add(2 * day), To: begin.Add(3 * day)}},
		},
		Superseded: []contract.Superseded{{Terms: old, Countersignature: "old"}},
		Rates:      contract.Rates(nil, old),
	}
	text, err := json.Marshal(record)
	if err != nil {
		t.Fatal(err)
	}
	s := &connectorv1alpha1.Sale{ObjectMeta: metav1.ObjectMeta{Name: "s-1"}}
	s.Status.Record, s.Status.Buyer.Name = string(text), "=cmd()\x07"
	return s
}

// TestFOCUS holds that rows have the columns of FOCUS, by days, in both formats, and no formula in what others call themselves.
func TestFOCUS(t *testing.T) {
	entry, err := account.OfSale(sale(t))
	if err != nil {
		t.Fatal(err)
	}
	from, to, err := account.Month("2026-11")
	if err != nil {
		t.Fatal(err)
	}
	rows, err := entry.Rows(from, to, to)
	if err != nil || len(rows) != 10 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	var comma, objects bytes.Buffer
	if err := errors.Join(account.WriteCSV(&comma, rows), account.WriteJSON(&objects, rows)); err != nil {
		t.Fatal(err)
	}
	lines, err := csv.NewReader(&comma).ReadAll()
	if err != nil || len(lines) != 11 {
		t.Fatalf("%d lines, %v", len(lines), err)
	}
	for _, name := range mandatory {
		if !slices.Contains(lines[0], name) {
			t.Errorf("there is no column %s", name)
		}
	}
	var decoded []map[string]any
	decoder := json.NewDecoder(&objects)
	decoder.UseNumber()
	if err := decoder.Decode(&decoded); err != nil || len(decoded) != 10 {
		t.Fatalf("%d objects, %v", len(decoded), err)
	}
	for i, object := range decoded {
		for at, name := range lines[0] {
			want := fmt.Sprint(object[name])
			if object[name] == nil {
				want = ""
			}
			if lines[i+1][at] != want && lines[i+1][at] != "'"+want {
				t.Errorf("row %d: %s is %q, and %q as JSON", i, name, lines[i+1][at], want)
			}
		}
	}
	// Day by day.
	get := func(row int, name string) string { return lines[row][slices.Index(lines[0], name)] }
	for row, want := range map[int][]string{
		1: {"2026-11-01T00:00:00Z", "48", "24", "1", "sha256:old"},
		2: {"2026-11-02T00:00:00Z", "60", "24", "2", "sha256:new"},
		3: {"2026-11-03T00:00:00Z", "0", "0", "2", "sha256:new"},
		4: {"2026-11-04T00:00:00Z", "72", "24", "2", "sha256:new"},
	} {
		for i, name := range []string{"ChargePeriodStart", "BilledCost", "PricingQuantity", "x_TermsRevision", "x_OfferDigest"} {
			if get(row, name) != want[i] {
				t.Errorf("row %d: %s is %q, not %q", row, name, get(row, name), want[i])
			}
		}
	}
	if get(1, "BillingAccountName") != "'=cmd()?" || get(1, "ProviderName") != "bob" ||
		get(1, "x_SignatureDigest") == get(4, "x_SignatureDigest") {
		t.Errorf("it is between %q and %q", get(1, "BillingAccountName"), get(1, "ProviderName"))
	}
}

// TestMovedPlan holds that the day on which a contract moves to another plan has a row for each plan, with the terms of that plan.
func TestMovedPlan(t *testing.T) {
	s := sale(t)
	var record contract.Record
	if err := json.Unmarshal([]byte(s.Status.Record), &record); err != nil {
		t.Fatal(err)
	}
	record.Terms.Plan = "large"
	text, err := json.Marshal(record)
	if err != nil {
		t.Fatal(err)
	}
	s.Status.Record = string(text)
	entry, err := account.OfSale(s)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := entry.Rows(begin.Add(day), begin.Add(2*day), begin.Add(10*day))
	if err != nil || len(rows) != 2 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	var comma bytes.Buffer
	if err := account.WriteCSV(&comma, rows); err != nil {
		t.Fatal(err)
	}
	lines, err := csv.NewReader(&comma).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for row, want := range map[int][]string{
		1: {"24", "12", "compute/small", "1", "sha256:old"}, 2: {"36", "12", "compute/large", "2", "sha256:new"},
	} {
		for i, name := range []string{"BilledCost", "PricingQuantity", "SkuId", "x_TermsRevision", "x_OfferDigest"} {
			if got := lines[row][slices.Index(lines[0], name)]; got != want[i] {
				t.Errorf("row %d: %s is %q, not %q", row, name, got, want[i])
			}
		}
	}
}

// TestUnknown holds that a bill does not leave out in silence what nobody knows.
func TestUnknown(t *testing.T) {
	s := sale(t)
	text := s.Status.Record
	s.Status.Record = text[1:]
	if _, err := account.OfSale(s); !errors.Is(err, account.ErrUnreadable) {
		t.Errorf("a spoilt record: %v", err)
	}
	p := &connectorv1alpha1.Purchase{}
	if entry, err := account.OfPurchase(p); err != nil || len(entry.Bill.Cost(begin, begin.Add(day))) != 0 {
		t.Errorf("one without a record owes %v, %v", entry, err)
	}
	p.Status.Record = "{"
	if _, err := account.OfPurchase(p); !errors.Is(err, account.ErrUnreadable) {
		t.Errorf("a spoilt record: %v", err)
	}
	// The price of the first day is forgotten.
	s.Status.Record = strings.Replace(text, `"rates":[{"from":"2026-11-01`, `"rates":[{"from":"2026-11-02`, 1)
	entry, err := account.OfSale(s)
	if err != nil || s.Status.Record == text {
		t.Fatal(err)
	}
	if _, err := entry.Rows(begin, begin.Add(30*day), begin.Add(30*day)); !errors.Is(err, account.ErrForgotten) {
		t.Errorf("forgotten prices: %v", err)
	}
	if rows, err := entry.Rows(begin.Add(day), begin.Add(30*day), begin.Add(30*day)); err != nil || len(rows) != 9 {
		t.Errorf("from then on: %d rows, %v", len(rows), err)
	}
}

func TestMonth(t *testing.T) {
	for _, text := range []string{"", "2026", "2026-13", "2026-11-01", "november"} {
		if _, _, err := account.Month(text); err == nil {
			t.Errorf("%q is a month", text)
		}
	}
	from, to := account.Now(time.Date(2026, 12, 31, 23, 30, 0, 0, time.FixedZone("west", -3600)))
	if !from.Equal(time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)) || !to.Equal(time.Date(2027, 2, 1, 0, 0, 0, 0, time.UTC)) {
		t.Errorf("the month is from %s to %s", from, to)
	}
}
