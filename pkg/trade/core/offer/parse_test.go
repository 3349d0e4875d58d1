// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package offer

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Parties of the tests.
var (
	partyA = strings.Repeat("a", partyLength)
	partyB = strings.Repeat("b", partyLength-1) + "q"
)

// valid is an offer with everything that an offer can have.
const valid = `{
	"party": "PARTY",
	"id": "north",
	"revision": 7,
	"issuedAt": "2024-05-01T12:00:00Z",
	"validUntil": "2024-05-02T12:00:00Z",
	"kind": "Cluster",
	"name": "Cores in the north",
	"description": "Two racks.\nOne of them is cold.",
	"type": "computational",
	"region": "eu-north",
	"zone": "eu-north-1",
	"architectures": ["amd64", "arm64"],
	"properties": {"certificate": "ISO 27001"},
	"labels": {"topology.kubernetes.io/region": "eu-north"},
	"plans": [
		{
			"id": "small", "name": "Small",
			"resources": {"cpu": "4", "memory": "8Gi", "pods": "50"},
			"price": {"amount": "0.05", "currency": "EUR", "period": "PT1H"},
			"stock": 10, "available": 4,
			"minDuration": "PT1H", "maxDuration": "P30D", "notice": "PT30M"
		},
		{
			"id": "flexible",
			"range": {
				"min": {"cpu": "2", "memory": "4Gi", "pods": "10"},
				"max": {"cpu": "64", "memory": "256Gi", "pods": "110", "nvidia.com/gpu": "4"},
				"step": {"cpu": "500m", "memory": "2Gi", "pods": "10", "nvidia.com/gpu": "1"}
			},
			"price": {"amount": "1", "currency": "EUR", "period": "P1D"},
			"unitPrices": {
				"cpu": {"amount": "0.24", "per": "1"},
				"memory": {"amount": "0.1", "per": "1Gi"},
				"nvidia.com/gpu": {"amount": "12", "per": "1"}
			},
			"available": 3
		}
	],
	"kpis": [
		{"name": "availability30d", "value": 0.999, "unit": "ratio", "measuredAt": "2024-05-01T11:00:00+02:00", "measuredBy": "PARTY", "samples": 2880}
	]
}`

// changed returns the valid offer with one text in the place of another.
func changed(tb testing.TB, from, to string) []byte {
	tb.Helper()
	if from != "" && strings.Count(valid, from) != 1 {
		tb.Fatalf("%q is there %d times", from, strings.Count(valid, from))
	}
	return []byte(strings.ReplaceAll(strings.Replace(valid, from, to, 1), "PARTY", partyA))
}

func parse(tb testing.TB, from, to string) Offer {
	tb.Helper()
	o, err := Parse(changed(tb, from, to))
	if err != nil {
		tb.Fatalf("Parse(): %v", err)
	}
	return o
}

func TestParse(t *testing.T) {
	at := func(hour int) time.Time { return time.Date(2024, 5, 1, hour, 0, 0, 0, time.UTC) }
	stock := int64(10)
	want := Offer{
		Party: partyA, ID: "north", Revision: 7, IssuedAt: at(12), ValidUntil: at(36), Kind: Cluster,
		Name: "Cores in the north", Description: "Two racks.\nOne of them is cold.", Type: "computational", Region: "eu-north",
		Zone: "eu-north-1", Architectures: []string{"amd64", "arm64"},
		Properties: map[string]string{"certificate": "ISO 27001"}, Labels: map[string]string{"topology.kubernetes.io/region": "eu-north"},
		Plans: []Plan{
			{
				ID: "small", Name: "Small", Resources: list(t, "cpu", "4", "memory", "8Gi", "pods", "50"),
				Price: Price{Amount: money(t, "0.05"), Currency: "EUR", Period: Hour}, Stock: &stock, Available: 4,
				MinDuration: Duration(time.Hour), MaxDuration: Duration(720 * time.Hour), Notice: Duration(30 * time.Minute),
			},
			{
				ID: "flexible",
				Range: &Range{
					Min:  list(t, "cpu", "2", "memory", "4Gi", "pods", "10"),
					Max:  list(t, "cpu", "64", "memory", "256Gi", "pods", "110", "nvidia.com/gpu", "4"),
					Step: list(t, "cpu", "500m", "memory", "2Gi", "pods", "10", "nvidia.com/gpu", "1"),
				},
				Price: Price{Amount: money(t, "1"), Currency: "EUR", Period: Day},
				UnitPrices: map[string]UnitPrice{
					"cpu": {Amount: money(t, "0.24"), Per: quantity(t, "1")}, "memory": {Amount: money(t, "0.1"), Per: quantity(t, "1Gi")},
					"nvidia.com/gpu": {Amount: money(t, "12"), Per: quantity(t, "1")},
				},
				Available: 3,
			},
		},
		KPIs: []KPI{{Name: "availability30d", Value: 0.999, Unit: "ratio", MeasuredAt: at(9), MeasuredBy: partyA, Samples: 2880}},
	}
	got := parse(t, "", "")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Parse(): -want +got\n%s", diff)
	}
	data, err := Encode(got)
	if err != nil {
		t.Fatalf("Encode(): %v", err)
	}
	again, err := Parse(data)
	if diff := cmp.Diff(want, again); err != nil || diff != "" {
		t.Errorf("Parse() of what Encode() wrote: %v, -want +got\n%s", err, diff)
	}
}

// TestNoStepForOneAmount checks that a resource of which there is one amount only needs no step, even if the
// minimum and the maximum are written in two ways.
func TestNoStepForOneAmount(t *testing.T) {
	o := parse(t, `"256Gi", "pods": "110", "nvidia.com/gpu": "4"},
				"step": {"cpu": "500m", "memory": "2Gi", `, `"4294967296", "pods": "110", "nvidia.com/gpu": "4"},
				"step": {"cpu": "500m", `)
	granted, err := o.Plans[1].Grant(list(t, "memory", "4Gi"))
	if err != nil || !granted["memory"].Equal(quantity(t, "4Gi")) {
		t.Errorf("Grant() = %s, %v, want memory 4Gi", granted, err)
	}
	if granted, err = o.Plans[1].Grant(list(t, "memory", "4097Mi")); !errors.Is(err, ErrTooMuch) {
		t.Errorf("Grant() of more = %s, %v, want %v", granted, err, ErrTooMuch)
	}
}

func TestParseRefuses(t *testing.T) {
	long := strings.Repeat("x", maxString+1)
	cases := map[string]struct {
		reason   string
		from, to string
		err      string
	}{
		"NotJSON":  {reason: "It must be JSON.", from: `"party": `, to: `"party": :`, err: "invalid character"},
		"Trailing": {reason: "Nothing follows.", from: "\n\t]\n}", to: "\n\t]\n}{}", err: "after top-level value"},
		"UnknownField": {
			reason: "Fields are closed, so that no credential gets in.", from: `"id": "small"`, to: `"id": "small", "token": "t"`,
			err: `unknown field "plans[0].token"`,
		},
		"UnknownAtTop": {
			reason: "Fields are closed.", from: `"id": "north"`, to: `"id": "north", "endpoint": "https://x"`, err: `unknown field "endpoint"`,
		},
		"OtherLetters": {reason: "Case counts.", from: `"id": "north"`, to: `"ID": "north"`, err: `unknown field "ID"`},
		"Twice": {
			reason: "Two readers could see two offers.", from: `"revision": 7`, to: `"revision": 7, "revision": 8`,
			err: `duplicate field "revision"`,
		},
		"KeyTwice": {reason: "So could they with two keys.", from: `{"cpu": "4",`, to: `{"cpu": "4", "cpu": "5",`, err: `duplicate field`},
		"WrongType": {
			reason: "The field is named.", from: `"amount": "0.05"`, to: `"amount": 0.05`, err: "plans.price.amount: it cannot be a number",
		},
		"NumberAsQuantity": {reason: "Quantities are text.", from: `"cpu": "4"`, to: `"cpu": 4`, err: "plans.resources"},
		"Null": {
			reason: "Nothing is not a quantity.", from: `"cpu": "4"`, to: `"cpu": null`, err: `plans[0].resources["cpu"]: "" is not`,
		},
		"Party": {
			reason: "A party is named by its key.", from: `"party": "PARTY"`, to: `"party": "rome"`, err: `party: "rome" is not the ID`,
		},
		"PartyUpper": {
			reason: "A party has one name.", from: `"party": "PARTY"`, to: `"party": "` + strings.Repeat("A", 52) + `"`, err: "party: ",
		},
		"PartyBits": {
			reason: "A party has one name.", from: `"party": "PARTY"`, to: `"party": "` + strings.Repeat("b", 52) + `"`, err: "party: ",
		},
		"ID":       {reason: "It names objects.", from: `"id": "north"`, to: `"id": "North Pole"`, err: "id: "},
		"Revision": {reason: "It is positive.", from: `"revision": 7`, to: `"revision": 0`, err: "revision: 0"},
		"RevisionTooLarge": {
			reason: "Every reader has it exactly.", from: `"revision": 7`, to: `"revision": 9007199254740992`, err: "revision: ",
		},
		"RevisionOverflow": {
			reason: "Nothing wraps around.", from: `"revision": 7`, to: `"revision": 99999999999999999999`, err: "revision: it cannot be",
		},
		"IssuedAt": {
			reason: "It is a time.", from: `"issuedAt": "2024-05-01T12:00:00Z"`, to: `"issuedAt": "yesterday"`, err: `issuedAt: "yesterday"`,
		},
		"NoTime": {reason: "It is there.", from: `"issuedAt": "2024-05-01T12:00:00Z",`, to: ``, err: `issuedAt: ""`},
		"Backwards": {
			reason: "The end is after the beginning.", from: `2024-05-02T12:00:00Z`, to: `2024-05-01T12:00:00Z`, err: "validUntil: it is not after",
		},
		"ForEver": {
			reason: "What is signed can be replayed for as long.", from: `2024-05-02T12:00:00Z`, to: `2034-05-02T12:00:00Z`,
			err: "validUntil: it is more than 366 days",
		},
		"Kind":             {reason: "There are two.", from: `"Cluster"`, to: `"Cloud"`, err: `kind: "Cloud"`},
		"NoName":           {reason: "People need one.", from: `"name": "Cores in the north",`, to: ``, err: "name: it is missing"},
		"ControlCharacter": {reason: "A terminal obeys it.", from: `Cores in the north`, to: `Cores\u001b[2J`, err: "name: it has characters"},
		"Bidirectional": {
			reason: "It reads as something else.", from: `Cores in the north`, to: `Cores \u202e`, err: "name: it has characters",
		},
		"Surrogate": {reason: "It is no character.", from: `Cores in the north`, to: `Cores \ud800`, err: "name: it has characters"},
		"LongText":  {reason: "Texts are bounded.", from: `Two racks.`, to: long, err: "description: it has"},
		"UserInURL": {
			reason: "Everybody sees it.", from: `Two racks.`, to: `See https://admin:hunter2@rome.example/`, err: "description: it has a credential",
		},
		"UserInProperty": {
			reason: "Everybody sees it.", from: `ISO 27001`, to: `HTTPS://admin@rome.example`, err: `properties["certificate"]: it has a credential`,
		},
		"PrivateKey": {
			reason: "Everybody sees it.", from: `ISO 27001`, to: `-----BEGIN EC PRIVATE KEY-----`,
			err: `properties["certificate"]: it has a credential`,
		},
		"Region":            {reason: "It is a word.", from: `"region": "eu-north"`, to: `"region": "eu north"`, err: "region: "},
		"ArchitectureTwice": {reason: "It is there once.", from: `"arm64"`, to: `"amd64"`, err: `architectures[1]: "amd64" is there twice`},
		"PropertyKey":       {reason: "It is a word.", from: `"certificate":`, to: `"the certificate":`, err: `properties["the certificate"]: `},
		"Label": {
			reason: "A node has it.", from: `"topology.kubernetes.io/region": "eu-north"`, to: `"region": "eu north"`, err: `labels["region"]: `,
		},
		"NoPlans": {
			reason: "Something can be bought.", from: valid[strings.Index(valid, `"plans"`):strings.Index(valid, `"kpis"`)], to: ``,
			err: "plans: there are 0",
		},
		"PlanTwice": {
			reason: "A plan has one name.", from: `"id": "flexible"`, to: `"id": "small"`, err: `plans[1].id: "small" is there twice`,
		},
		"PlanID": {reason: "It is a label.", from: `"id": "flexible"`, to: `"id": ""`, err: `plans[1].id: `},
		"GB": {
			reason: "It is no quantity.", from: `"memory": "8Gi"`, to: `"memory": "8GB"`, err: `plans[0].resources["memory"]: "8GB"`,
		},
		"Negative": {reason: "It is no quantity.", from: `"cpu": "4"`, to: `"cpu": "-1"`, err: `plans[0].resources["cpu"]: "-1"`},
		"Exponent": {reason: "It is no quantity.", from: `"cpu": "4"`, to: `"cpu": "1e1.5"`, err: `plans[0].resources["cpu"]: "1e1.5"`},
		"HalfAByte": {
			reason: "It is a typing error.", from: `"memory": "8Gi"`, to: `"memory": "500m"`,
			err: `plans[0].resources["memory"]: 500m is not a whole number`,
		},
		"NoPods": {reason: "Nothing runs without.", from: `, "pods": "50"`, to: ``, err: `plans[0].resources["pods"]: it is missing`},
		"UnknownResource": {
			reason: "No node has it.", from: `"pods": "50"`, to: `"pods": "50", "gpu": "1"`, err: `plans[0].resources["gpu"]: it is not the name`,
		},
		"BadResourceName": {
			reason: "It is not valid in Kubernetes.", from: `"pods": "50"`, to: `"pods": "50", "a/b/c": "1"`,
			err: `plans[0].resources["a/b/c"]: it is not the name`,
		},
		"Neither": {
			reason: "A plan gives something.", from: `"resources": {"cpu": "4", "memory": "8Gi", "pods": "50"},`, to: ``,
			err: `plans[0].resources["cpu"]: it is missing`,
		},
		"Both": {
			reason: "A plan is one or the other.", from: `"id": "flexible",`, to: `"id": "flexible", "resources": {"cpu": "1"},`,
			err: "plans[1].range: a plan has",
		},
		"MaxBelowMin": {
			reason: "A range goes up.", from: `"max": {"cpu": "64"`, to: `"max": {"cpu": "1"`, err: `plans[1].range.max["cpu"]: 1 is less`,
		},
		"OffTheGrid": {
			reason: "The maximum can be had.", from: `"max": {"cpu": "64"`, to: `"max": {"cpu": "64.1"`,
			err: `plans[1].range.max["cpu"]: 64100m is not the minimum`,
		},
		"NoStep": {
			reason: "Nothing else can be had without.", from: `"step": {"cpu": "500m", `, to: `"step": {`,
			err: `plans[1].range.step["cpu"]: it is missing`,
		},
		"NoMax": {
			reason: "A range ends.", from: `, "nvidia.com/gpu": "4"}`, to: `}`,
			err: `plans[1].range.max["nvidia.com/gpu"]: it is missing, while range.step has it`,
		},
		"Amount": {
			reason: "Money is decimal.", from: `"amount": "0.05"`, to: `"amount": "5e-2"`, err: `plans[0].price.amount: "5e-2"`,
		},
		"NoAmount": {reason: "What is free says so.", from: `"amount": "0.05", `, to: ``, err: `plans[0].price.amount: ""`},
		"Currency": {
			reason: "It has a code.", from: `"0.05", "currency": "EUR"`, to: `"0.05", "currency": "euro"`, err: `plans[0].price.currency: "euro"`,
		},
		"Period": {reason: "A price is for some time.", from: `"PT1H"}`, to: `"PT2H"}`, err: `plans[0].price.period: "PT2H"`},
		"UnitPrice": {
			reason: "Money is decimal.", from: `"amount": "0.24"`, to: `"amount": "x"`, err: `plans[1].unitPrices["cpu"].amount: "x"`,
		},
		"UnitPricePer": {
			reason: "It is for something.", from: `"per": "1Gi"`, to: `"per": "0"`, err: `plans[1].unitPrices["memory"].per: "0" is not positive`,
		},
		"UnitPriceOther": {
			reason: "It is for what can be had.", from: `"memory": {"amount"`, to: `"example.com/fpga": {"amount"`,
			err: `plans[1].unitPrices["example.com/fpga"]: the range does not have`,
		},
		"UnitPriceThird": {
			reason: "Every amount has an exact price.", from: `"per": "1Gi"`, to: `"per": "3Gi"`,
			err: `plans[1].unitPrices["memory"]: the price of 4Gi has too many decimal places`,
		},
		"UnitPriceHuge": {
			reason: "Every amount has a price that fits.", from: `"amount": "0.24"`, to: `"amount": "999999999"`,
			err: `plans[1].unitPrices["cpu"]: the price of 2 is too large`,
		},
		"UnitPricesInSum": {
			reason: "So has everything together.", from: `{"amount": "1", "currency": "EUR"`, to: `{"amount": "999999999", "currency": "EUR"`,
			err: `plans[1].unitPrices: the price of the maximum is too large`,
		},
		"UnitPriceFixed": {
			reason: "Fixed resources have one price.", from: `"stock": 10`, to: `"unitPrices": {"cpu": {"amount": "1", "per": "1"}}, "stock": 10`,
			err: "plans[0].unitPrices: only a range",
		},
		"Stock": {reason: "It is bounded.", from: `"stock": 10`, to: `"stock": -1`, err: "plans[0].stock: -1"},
		"Available": {
			reason: "It is in stock.", from: `"available": 4`, to: `"available": 11`, err: "plans[0].available: 11 is more than the stock",
		},
		"NegativeAvailable": {reason: "It is not negative.", from: `"available": 3`, to: `"available": -3`, err: "plans[1].available: -3"},
		"Duration": {
			reason: "It is of ISO 8601.", from: `"maxDuration": "P30D"`, to: `"maxDuration": "30d"`, err: `plans[0].maxDuration: "30d"`,
		},
		"DurationsCrossed": {
			reason: "There is something between them.", from: `"maxDuration": "P30D"`, to: `"maxDuration": "PT30M"`,
			err: "plans[0].maxDuration: PT30M is less",
		},
		"KPIName": {reason: "It is a word.", from: `"name": "availability30d"`, to: `"name": ""`, err: "kpis[0].name: it is missing"},
		"KPIBy": {
			reason: "It is never believed without.", from: `"measuredBy": "PARTY"`, to: `"measuredBy": ""`, err: "kpis[0].measuredBy: ",
		},
		"KPIByAnother": {
			reason: "Nobody speaks for another party.", from: `"measuredBy": "PARTY"`, to: `"measuredBy": "` + strings.Repeat("b", 51) + "a" + `"`,
			err: "kpis[0].measuredBy: ",
		},
		"KPIAt":      {reason: "It has a time.", from: `"2024-05-01T11:00:00+02:00"`, to: `"noon"`, err: `kpis[0].measuredAt: "noon"`},
		"KPIValue":   {reason: "It is a number.", from: `0.999`, to: `1e999`, err: `kpis.value: it cannot be a number`},
		"KPISamples": {reason: "They are counted.", from: `2880`, to: `-1`, err: `kpis[0].samples: -1`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o, err := Parse(changed(t, tc.from, tc.to))
			if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), tc.err) {
				t.Errorf("%s\nParse() error = %v, want one with %q", tc.reason, err, tc.err)
			}
			if path, _, is := strings.Cut(tc.err, ": "); is {
				if field := (*FieldError)(nil); !errors.As(err, &field) || field.Field != path {
					t.Errorf("%s\nParse() error is about field %+v, want %q", tc.reason, field, path)
				}
			}
			if o.ID != "" {
				t.Errorf("%s\nParse() returns an offer with the error", tc.reason)
			}
		})
	}
}

func TestParseBounds(t *testing.T) {
	many := func(n int, format string) string {
		var parts []string
		for i := range n {
			parts = append(parts, fmt.Sprintf(format, i))
		}
		return strings.Join(parts, ",")
	}
	const plan = `{"id": "p%d", "resources": {"cpu": "1", "memory": "1Gi", "pods": "1"}, "price": {"amount": "0", "currency": "EUR", "period": "PT1H"}, "available": 1}`
	kpi := `{"name": "k%d", "value": 1, "measuredAt": "2024-05-01T12:00:00Z", "measuredBy": "PARTY", "samples": 1}`
	plans := valid[strings.Index(valid, `"plans": [`):strings.Index(valid, "\n\t],\n\t\"kpis\"")]
	cases := map[string]struct {
		reason   string
		from, to string
		most     int
		each     string
		err      string
	}{
		"Plans": {reason: "A seller has few.", from: plans, to: `"plans": [%s`, most: 32, each: plan, err: "plans: there are 33"},
		"Resources": {
			reason: "A node has few.", from: `"pods": "50"}`, to: `"pods": "50", %s}`, most: 29, each: `"example.com/r%d": "1"`,
			err: "plans[0].resources: there are 33",
		},
		"Properties": {
			reason: "They are few.", from: `"certificate": "ISO 27001"`, to: `%s`, most: 64, each: `"p%d": "x"`, err: "properties: there are 65",
		},
		"Labels": {
			reason: "They are few.", from: `"topology.kubernetes.io/region": "eu-north"`, to: `%s`, most: 64, each: `"l%d": "x"`,
			err: "labels: there are 65",
		},
		"Architectures": {
			reason: "They are few.", from: `"amd64", "arm64"`, to: `%s`, most: 16, each: `"a%d"`, err: "architectures: there are 17",
		},
		"KPIs": {
			reason: "They are few.", from: valid[strings.Index(valid, `{"name": "availability30d"`):strings.Index(valid, "\n\t]\n}")], to: `%s`,
			most: 32, each: kpi, err: "kpis: there are 33",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if _, err := Parse(changed(t, tc.from, fmt.Sprintf(tc.to, many(tc.most, tc.each)))); err != nil {
				t.Errorf("%s\nParse() of %d: %v", tc.reason, tc.most, err)
			}
			_, err := Parse(changed(t, tc.from, fmt.Sprintf(tc.to, many(tc.most+1, tc.each))))
			if err == nil || !strings.Contains(err.Error(), tc.err) {
				t.Errorf("%s\nParse() of %d: error = %v, want one with %q", tc.reason, tc.most+1, err, tc.err)
			}
		})
	}
}

func TestParseBytes(t *testing.T) {
	document := changed(t, "", "")
	cases := map[string]struct {
		reason string
		data   []byte
		err    string
	}{
		"Largest":  {reason: "This is the most.", data: append(document, strings.Repeat(" ", MaxSize-len(document))...)},
		"TooLarge": {reason: "This is more.", data: append(document, strings.Repeat(" ", MaxSize-len(document)+1)...), err: "16385 bytes"},
		"Huge":     {reason: "It is not looked at.", data: make([]byte, 10<<20), err: "10485760 bytes"},
		"Deep":     {reason: "It ends.", data: []byte(strings.Repeat("[", MaxSize)), err: "invalid offer"},
		"NotUTF8":  {reason: "JSON is UTF-8.", data: append([]byte{'"', 0xff, '"'}, document...), err: "UTF-8"},
		"Nothing":  {reason: "It is no offer.", err: "unexpected end"},
		"Null":     {reason: "It is no offer.", data: []byte("null"), err: `issuedAt: ""`},
		"Array":    {reason: "It is no offer.", data: []byte("[]"), err: "invalid offer: document: it cannot be"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if _, err := Parse(tc.data); !matches(err, tc.err) {
				t.Errorf("%s\nParse() error = %v, want one with %q", tc.reason, err, tc.err)
			}
		})
	}
}

func TestValidate(t *testing.T) {
	o := parse(t, "", "")
	cases := map[string]struct {
		reason string
		now    time.Time
		change func(*Offer)
		is     error
		err    string
	}{
		"Now":        {reason: "It is valid.", now: o.IssuedAt},
		"Last":       {reason: "It is valid up to the end.", now: o.ValidUntil.Add(-time.Nanosecond)},
		"Over":       {reason: "It is over at the end.", now: o.ValidUntil, is: ErrExpired, err: "validUntil: 2024-05-02T12:00:00Z has passed"},
		"OtherClock": {reason: "The seller's clock may be ahead.", now: o.IssuedAt.Add(-maxSkew)},
		"FromAfar":   {reason: "But not so far.", now: o.IssuedAt.Add(-maxSkew - 1), is: ErrInvalid, err: "issuedAt: "},
		"NotAnOffer": {
			reason: "Offers that are made in Go are checked as well.", now: o.IssuedAt, change: func(o *Offer) { o.Plans = nil }, is: ErrInvalid,
			err: "plans: there are 0",
		},
		"NotANumber": {
			reason: "JSON does not have it, but Go does.", now: o.IssuedAt, change: func(o *Offer) {
				o.KPIs = slices.Clone(o.KPIs)
				o.KPIs[0].Value = math.NaN()
			}, is: ErrInvalid, err: "kpis[0].value",
		},
		"HalfASecond": {
			reason: "Durations are of whole seconds.", now: o.IssuedAt, change: func(o *Offer) {
				o.Plans = []Plan{o.Plans[0]}
				o.Plans[0].Notice = 1
			}, is: ErrInvalid, err: "plans[0].notice",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := o
			if tc.change != nil {
				tc.change(&o)
			}
			err := o.Validate(tc.now)
			if !errors.Is(err, tc.is) || !matches(err, tc.err) {
				t.Errorf("%s\nValidate() error = %v, want one with %q", tc.reason, err, tc.err)
			}
			if _, encoding := Encode(o); (encoding != nil) != errors.Is(tc.is, ErrInvalid) && tc.change != nil {
				t.Errorf("%s\nEncode() error = %v", tc.reason, encoding)
			}
		})
	}
}

func TestEncodeBounds(t *testing.T) {
	o := parse(t, "", "")
	o.Properties = map[string]string{}
	for i := range 20 {
		o.Properties[fmt.Sprintf("p%d", i)] = strings.Repeat("x", maxString)
	}
	if _, err := Encode(o); !matches(err, "which is more than 16384") {
		t.Errorf("Encode() error = %v: Parse() would refuse what it wrote", err)
	}
}

func TestFingerprint(t *testing.T) {
	o := parse(t, "", "")
	digest := o.Fingerprint()
	if !strings.HasPrefix(digest, "sha256:") || len(digest) != len("sha256:")+64 {
		t.Fatalf("Fingerprint() = %q", digest)
	}
	var shuffled map[string]any
	if err := json.Unmarshal(changed(t, "", ""), &shuffled); err != nil {
		t.Fatal(err)
	}
	data, err := json.MarshalIndent(shuffled, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	if again, err := Parse(data); err != nil || again.Fingerprint() != digest {
		t.Errorf("Fingerprint() depends on the order of the fields (%v)", err)
	}
	same := map[string][2]string{
		"another zone of time":    {`"2024-05-01T12:00:00Z"`, `"2024-05-01T14:00:00+02:00"`},
		"another form":            {`"memory": "8Gi"`, `"memory": "8192Mi"`},
		"another format of money": {`"amount": "0.24"`, `"amount": "0.240"`},
	}
	for name, change := range same {
		if got := parse(t, change[0], change[1]).Fingerprint(); got != digest {
			t.Errorf("Fingerprint() depends on %s", name)
		}
	}
	for _, change := range [][2]string{
		{`"revision": 7`, `"revision": 8`}, {`"amount": "0.24"`, `"amount": "0.25"`}, {`"cpu": "500m"`, `"cpu": "1"`},
		{`"available": 3`, `"available": 2`}, {`0.999`, `0.998`}, {`"notice": "PT30M"`, `"notice": "PT31M"`},
	} {
		if parse(t, change[0], change[1]).Fingerprint() == digest {
			t.Errorf("Fingerprint() does not depend on %s", change[0])
		}
	}
	if got := (Offer{}).Fingerprint(); got != "" {
		t.Errorf("Fingerprint() of no offer = %q", got)
	}
}
