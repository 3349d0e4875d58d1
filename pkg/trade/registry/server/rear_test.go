// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"

	"github.com/capacitorset/liqo-broker/pkg/serving/rest"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/offer"
	"github.com/capacitorset/liqo-broker/pkg/trade/registry/registryv1"
	"github.com/capacitorset/liqo-broker/test/golden"
)

// rear calls what REAR makes mandatory.
func rear(t *testing.T, dsn string) {
	r := run(t, dsn, nil)
	seller, c := r.member(t, "seller")
	quantities := func(of ...string) offer.Resources {
		resources := offer.Resources{}
		for i := 0; i < len(of); i += 2 {
			var err error
			if resources[of[i]], err = offer.ParseQuantity(of[i+1]); err != nil {
				t.Fatal(err)
			}
		}
		return resources
	}
	for _, id := range []string{"a", "b"} {
		d := seller.Document(t, id, 1)
		if id == "a" {
			d.Plans[0].Available = 0
		} else {
			d.Architectures = []string{"amd64", "arm64"}
			price := d.Plans[0].Price
			d.Plans = append(d.Plans, offer.Plan{
				ID: "range", Price: price, Range: &offer.Range{
					Min: quantities("cpu", "1", "memory", "1Gi", "pods", "10"), Step: quantities("cpu", "500m", "memory", "1Gi", "pods", "10"),
					Max: quantities("cpu", "16", "memory", "64Gi", "pods", "110"),
				},
				UnitPrices: map[string]offer.UnitPrice{"cpu": {Amount: price.Amount, Per: quantities("cpu", "1")["cpu"]}},
			})
		}
		if _, err := c.Publish(t.Context(), seller.ID, id, seller.Sign(t, offer.Type, d)); err != nil {
			t.Fatal(err)
		}
	}
	list := func(query string) ([]Flavor, answer) {
		t.Helper()
		a := r.call(t, &seller.Key, http.MethodGet, "/api/v2/flavors?"+query, "")
		var flavors []Flavor
		if a.status == http.StatusOK {
			if err := json.Unmarshal([]byte(a.body), &flavors); err != nil {
				t.Fatal(err)
			}
		}
		return flavors, a
	}

	// What changes from test to test is not in the golden file.
	all, a := list("")
	if len(all) != 3 {
		t.Fatalf("answered %d: %s", a.status, a.body)
	}
	neutral := strings.NewReplacer(seller.ID, "SELLER", all[0].Timestamp.Format("2006-01-02T15:04:05Z"), "TIME",
		all[1].Timestamp.Format("2006-01-02T15:04:05Z"), "TIME")
	var indented bytes.Buffer
	if err := json.Indent(&indented, []byte(neutral.Replace(a.body)), "", "  "); err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "flavors.json", indented.String())

	for query, want := range map[string][]string{
		"architecture=arm64":            {"b_small", "b_range"},
		"architecture=riscv64":          nil,
		"cpu=4":                         {"a_small", "b_small"},
		"cpu=4000m":                     {"a_small", "b_small"},
		"cpu%5Bmin%5D=4":                {"a_small", "b_small", "b_range"},
		"cpu%5Bmin%5D=5":                {"b_range"},
		"cpu%5Bmax%5D=4":                {"a_small", "b_small"},
		"cpu%5Bmin%5D=4&memory=64Gi":    {"b_range"},
		"pods%5Bmax%5D=109":             nil,
		"storage%5Bmin%5D=1Gi":          nil,
		"memory%5Bmin%5D=1Gi&pods=110":  {"a_small", "b_small", "b_range"},
		"architecture=amd64&limit=1":    {"a_small"},
		"architecture=arm64&memory=1Gi": nil,
	} {
		flavors, a := list(query)
		var got []string
		for _, f := range flavors {
			got = append(got, strings.TrimPrefix(f.FlavorID, seller.ID+"_"))
		}
		if !slices.Equal(got, want) || a.status != http.StatusOK {
			t.Errorf("%s: answered %d with %v, want %v", query, a.status, got, want)
		}
	}

	// The next page is where the header says.
	_, a = list("limit=1&architecture=amd64")
	next, _, found := strings.Cut(strings.TrimPrefix(a.header.Get("Link"), "</api/v2/flavors?"), `>; rel="next"`)
	if flavors, _ := list(next); !found || len(flavors) != 2 || flavors[0].FlavorID != seller.ID+"_b_small" {
		t.Errorf("the page after %s: %v", a.header.Get("Link"), flavors)
	}
	if _, a := list("cpu%5Bmin%5D=4GB"); a.status != http.StatusUnprocessableEntity || a.location() != "query.cpu[min]" {
		t.Errorf("what is no quantity is answered %d at %s", a.status, a.location())
	}
	if _, a := list("cpu=" + strings.Repeat("1", 65)); a.status != http.StatusUnprocessableEntity || a.location() != "query.cpu" {
		t.Errorf("a long quantity is answered %d at %s", a.status, a.location())
	}

	// Nobody trades here.
	flavor, where := seller.ID+"_b_range", "https://seller.example:8446"
	purchase := func(of string) string { return "/api/v2/transactions/" + url.PathEscape(of) + "/purchase" }
	for name, tc := range map[string]struct {
		path, body string
		want       int
	}{
		"Reserve": {
			"/api/v2/reservations", text(t, map[string]any{"flavorID": flavor, "buyer": map[string]string{"nodeId": "x"}}), http.StatusForbidden,
		},
		"ReserveOther":    {"/api/v2/reservations", text(t, map[string]any{"FlavorID": flavor}), http.StatusForbidden},
		"Purchase":        {purchase(flavor), `{"LiqoCredentials":{"token":"secret"}}`, http.StatusForbidden},
		"PurchaseNothing": {purchase(flavor), "", http.StatusForbidden},
		"ReserveUnknown":  {"/api/v2/reservations", `{"flavorID":"x"}`, http.StatusNotFound},
		"ReservePlan":     {"/api/v2/reservations", text(t, map[string]any{"flavorID": seller.ID + "_b_none"}), http.StatusNotFound},
		"ReserveParty":    {"/api/v2/reservations", text(t, map[string]any{"flavorID": seller.ID}), http.StatusNotFound},
		"PurchaseUnknown": {purchase("b5c3"), `{"LiqoCredentials":{"token":"secret"}}`, http.StatusNotFound},
	} {
		a := r.call(t, &seller.Key, http.MethodPost, tc.path, tc.body)
		if a.status != tc.want || !strings.Contains(a.problem.Detail, "never trades") || strings.Contains(a.body, "secret") {
			t.Errorf("%s: answered %d, want %d: %s", name, a.status, tc.want, a.body)
		}
		if named := strings.Contains(a.problem.Detail, where) &&
			a.header.Get("Link") == "<"+where+`>; rel="service"`; named != (tc.want == http.StatusForbidden) {
			t.Errorf("%s: the seller's endpoint is named: %t: %s, %s", name, named, a.header.Get("Link"), a.body)
		}
		if name == "Reserve" {
			golden.Check(t, "reservation.json", neutral.Replace(a.body))
		}
	}
	if a := r.call(t, nil, http.MethodPost, "/api/v2/reservations",
		text(t, map[string]any{"flavorID": flavor})); a.status != http.StatusUnauthorized {
		t.Errorf("a stranger is answered %d", a.status)
	}
	if a := r.call(t, &seller.Key, http.MethodPut, "/api/v2/reservations", ""); a.status != http.StatusMethodNotAllowed ||
		a.header.Get("Allow") != "POST" {
		t.Errorf("another method is answered %d, %q", a.status, a.header.Get("Allow"))
	}
}

// TestHostileEndpoint announces an endpoint that a header would take for several links.
func TestHostileEndpoint(t *testing.T) {
	for endpoint, linked := range map[string]bool{
		"https://x.example:8446": true, `https://x.example/>; rel="service", <https://y.example`: false, "": false,
	} {
		err := tradesItself(&registryv1.Party{ID: "p", Endpoint: endpoint})
		var headers huma.HeadersError
		if got := errors.As(err, &headers) && headers.GetHeaders().Get("Link") != ""; got != linked ||
			rest.StatusOf(err) != http.StatusForbidden {
			t.Errorf("%q: %v has a link: %t, want %t", endpoint, err, got, linked)
		}
	}
}
