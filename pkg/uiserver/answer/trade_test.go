// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package answer

import (
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/shown/tradev1"
	"github.com/capacitorset/liqo-broker/pkg/trade/desk"
)

// trader is a cluster that has bought, sold, needs and offers something.
func trader(t *testing.T) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := connectorv1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	bought := &connectorv1alpha1.Purchase{ObjectMeta: metav1.ObjectMeta{Name: "nightly", Generation: 3}}
	sold := &connectorv1alpha1.Sale{ObjectMeta: metav1.ObjectMeta{Name: "s-one", Generation: 3}}
	sold.Status.PendingRevision, sold.Status.State = 2, "Resizing"
	needed := &connectorv1alpha1.CapacityRequest{ObjectMeta: metav1.ObjectMeta{Name: "need"}}
	own := &connectorv1alpha1.Offer{ObjectMeta: metav1.ObjectMeta{Name: "compute"}}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(bought, sold, needed, own).Build()
}

// TestDeeds decides about contracts and offers, and looks what became of the objects.
func TestDeeds(t *testing.T) {
	sold := func(t *testing.T, c client.Client) *connectorv1alpha1.Sale {
		t.Helper()
		var s connectorv1alpha1.Sale
		if err := c.Get(t.Context(), client.ObjectKey{Name: "s-one"}, &s); err != nil {
			t.Fatal(err)
		}
		return &s
	}
	bought := func(t *testing.T, c client.Client) *connectorv1alpha1.Purchase {
		t.Helper()
		var p connectorv1alpha1.Purchase
		if err := c.Get(t.Context(), client.ObjectKey{Name: "nightly"}, &p); err != nil {
			t.Fatal(err)
		}
		return &p
	}
	const sale, purchase = "/api/v1/contracts/sells/s-one/", "/api/v1/contracts/buys/nightly/"
	for name, tc := range map[string]struct {
		reason, method, path, body string
		readOnly                   bool
		status                     int
		says                       string
		done                       func(t *testing.T, c client.Client) bool // Nil if nothing may be done.
	}{
		"Suspend": {
			"A seller suspends.", "POST", sale + "suspend", `{"version":"3","reason":"racks"}`, false, 200, "is suspended",
			func(t *testing.T, c client.Client) bool { t.Helper(); return sold(t, c).Spec.Reason == "racks" },
		},
		"Approve": {
			"Terms are approved by their number.", "POST", sale + "approve", `{"version":"3","terms":2}`, false, 200, "is approved",
			func(t *testing.T, c client.Client) bool { t.Helper(); return sold(t, c).Spec.DecisionRevision == 2 },
		},
		"End": {
			"A buyer ends.", "POST", purchase + "end", `{"version":"3","reason":"dear"}`, false, 200, "is being ended",
			func(t *testing.T, c client.Client) bool { t.Helper(); return bought(t, c).Spec.End.Reason == "dear" },
		},
		"Resize": {
			"A buyer asks for more.", "POST", purchase + "resize", `{"version":"3","resources":{"cpu":"4"}}`, false, 200, "other terms",
			func(t *testing.T, c client.Client) bool {
				t.Helper()
				cpu := bought(t, c).Spec.Resources["cpu"]
				return cpu.String() == "4"
			},
		},
		"Close": {
			"A sale is closed.", "PUT", "/api/v1/ownoffers/compute/sale", `{"sale":"Closed"}`, false, 200, "Closed",
			func(t *testing.T, c client.Client) bool {
				t.Helper()
				var o connectorv1alpha1.Offer
				return c.Get(t.Context(), client.ObjectKey{Name: "compute"}, &o) == nil && o.Spec.Sale == connectorv1alpha1.SaleClosed
			},
		},
		"Withdraw": {
			"What is not needed goes.", "DELETE", "/api/v1/requests/need", "", false, 200, "not needed",
			func(t *testing.T, c client.Client) bool {
				t.Helper()
				return c.Get(t.Context(), client.ObjectKey{Name: "need"}, &connectorv1alpha1.CapacityRequest{}) != nil
			},
		},
		"Dry":       {"A dry run changes nothing.", "POST", sale + "suspend?dryRun=All", `{"version":"3"}`, false, 200, "is suspended", nil},
		"DryDelete": {"Nor does it delete.", "DELETE", "/api/v1/requests/need?dryRun=All", "", false, 200, "not needed", nil},
		"Old":       {"Who has seen something else decides nothing.", "POST", sale + "suspend", `{"version":"2"}`, false, 409, "meanwhile", nil},
		"OtherTerms": {
			"Terms that do not wait are not approved.", "POST", sale + "approve", `{"version":"3","terms":1}`, false, 503, "do not wait", nil,
		},
		"NoTerms":  {"Who approves says what.", "POST", sale + "approve", `{"version":"3"}`, false, 422, "terms", nil},
		"OfSeller": {"A seller asks for no other size.", "POST", sale + "resize", `{"version":"3","plan":"a"}`, false, 422, "buyer", nil},
		"OfBuyer":  {"A buyer suspends nothing.", "POST", purchase + "suspend", `{"version":"3"}`, false, 422, "seller", nil},
		"Quantity": {
			"The field is named.", "POST", purchase + "resize", `{"version":"3","resources":{"cpu":"x"}}`, false, 422, "cpu: ", nil,
		},
		"Size":     {"Something must be asked for.", "POST", purchase + "resize", `{"version":"3"}`, false, 422, "resources", nil},
		"Until":    {"A later end is named.", "POST", purchase + "renew", `{"version":"3"}`, false, 422, "until", nil},
		"NoDeed":   {"There is no other deed.", "POST", purchase + "sell", `{"version":"3"}`, false, 422, "no deed", nil},
		"NoSide":   {"A contract has two sides.", "POST", "/api/v1/contracts/owns/a/end", `{"version":"3"}`, false, 422, "buys or sells", nil},
		"None":     {"There must be such a contract.", "POST", "/api/v1/contracts/buys/none/end", `{"version":"3"}`, false, 404, "none", nil},
		"Field":    {"Nothing else is asked for.", "POST", sale + "end", `{"version":"3","spec":{}}`, false, 400, "unknown field", nil},
		"Long":     {"Long ones are not read.", "POST", sale + "end", `{"reason":"` + strings.Repeat("a", maxOrder), false, 400, "large", nil},
		"OtherDry": {"There is one kind of dry run.", "POST", sale + "end?dryRun=Most", `{"version":"3"}`, false, 422, "dryRun", nil},
		"ReadOnly": {"Nothing is changed if people say so.", "POST", sale + "end", `{"version":"3"}`, true, 403, "--read-only", nil},
		"Ordered":  {"Nor is anything bought.", "POST", "/api/v1/orders", `{"name":"a"}`, true, 403, "--read-only", nil},
		"Deleted":  {"Nor deleted.", "DELETE", "/api/v1/requests/need", "", true, 403, "--read-only", nil},
		"Sale":     {"A sale is open or closed.", "PUT", "/api/v1/ownoffers/compute/sale", `{"sale":"open"}`, false, 422, "Open or Closed", nil},
		"Need":     {"What is looked for is read strictly.", "POST", "/api/v1/market/find", `{"maxPrice":"much"}`, false, 422, "maxPrice: ", nil},
	} {
		t.Run(name, func(t *testing.T) {
			c := trader(t)
			before := sold(t, c).ResourceVersion + bought(t, c).ResourceVersion
			w := asked(t, answersOf(Config{Trades: true, ReadOnly: tc.readOnly}, c), tc.method, tc.path, tc.body)
			if w.Code != tc.status || !strings.Contains(w.Body.String(), tc.says) {
				t.Errorf("%s\nit answers %d: %s", tc.reason, w.Code, w.Body)
			}
			switch {
			case tc.done != nil && !tc.done(t, c):
				t.Errorf("%s\nit was not done", tc.reason)
			case tc.done == nil && before != sold(t, c).ResourceVersion+bought(t, c).ResourceVersion:
				t.Errorf("%s\nsomething was changed", tc.reason)
			}
			if tc.done == nil {
				if err := c.Get(t.Context(), client.ObjectKey{Name: "need"}, &connectorv1alpha1.CapacityRequest{}); err != nil {
					t.Errorf("%s\nwhat is needed: %v", tc.reason, err)
				}
			}
		})
	}

	// A broker that does not trade answers none of it.
	w := asked(t, answersOf(Config{Broker: true}, trader(t)), http.MethodPost, "/api/v1/orders", `{}`)
	if w.Code != http.StatusNotFound {
		t.Errorf("a broker answers %d: %s", w.Code, w.Body)
	}
}

// TestOrders reads what is ordered, and says what is wrong with it.
func TestOrders(t *testing.T) {
	fits := tradev1.Need{Resources: tradev1.Quantities{"cpu": "2", "memory": "4Gi", "pods": "20"}, Duration: "24h", MaxPrice: "0.5 EUR/h"}
	for name, tc := range map[string]struct {
		change func(*tradev1.Order)
		want   string // Of an error; empty for none.
	}{
		"Fits":       {func(*tradev1.Order) {}, ""},
		"NoName":     {func(o *tradev1.Order) { o.Name = "" }, "name: "},
		"NoDuration": {func(o *tradev1.Order) { o.Duration = "" }, "duration: "},
		"Short":      {func(o *tradev1.Order) { o.Duration = "1s" }, "duration: "},
		"NoCPU":      {func(o *tradev1.Order) { o.Resources = tradev1.Quantities{"memory": "4Gi", "pods": "20"} }, "cpu: "},
		"Price":      {func(o *tradev1.Order) { o.MaxPrice = "0.5" }, "maxPrice: "},
		"Total":      {func(o *tradev1.Order) { o.MaxTotal = "100 eur" }, "maxTotal: "},
		"Expression": {func(o *tradev1.Order) { o.Expression = "wrong(" }, "wrong"},
		"Reference":  {func(o *tradev1.Order) { o.Reference = "a/b" }, "reference: "},
		"NoParty":    {func(o *tradev1.Order) { o.Reference = "a/b/c" }, "reference: no party"},
	} {
		t.Run(name, func(t *testing.T) {
			catalog, err := desk.ReadCatalog(t.Context(), trader(t), time.Now())
			if err != nil {
				t.Fatal(err)
			}
			asked := tradev1.Order{Need: fits, Name: "nightly"}
			tc.change(&asked)
			order, err := orderOf(catalog, &asked)
			if tc.want == "" {
				if err != nil || order.Kind() != "CapacityRequest" || order.Object().GetName() != "nightly" {
					t.Errorf("it is ordered as %+v (%v)", order, err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("the error is %v, want %q", err, tc.want)
			}
		})
	}
}
