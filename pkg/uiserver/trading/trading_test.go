// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package trading_test

import (
	"context"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/shown/apiv1"
	"github.com/capacitorset/liqo-broker/pkg/shown/feed"
	"github.com/capacitorset/liqo-broker/pkg/shown/tradev1"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/pages"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/contract"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/offer"
	"github.com/capacitorset/liqo-broker/pkg/trade/registry/registrytest"
	"github.com/capacitorset/liqo-broker/pkg/trade/registry/registryv1"
	"github.com/capacitorset/liqo-broker/pkg/uiserver/trading"
)

const hostile = "<img src=x onerror=alert(1)>\u202egnp"

// cluster is a cluster that has objects.
func cluster(t *testing.T, hooks interceptor.Funcs, objects ...client.Object) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := connectorv1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(hooks).WithObjects(objects...).
		WithStatusSubresource(&connectorv1alpha1.Sale{}).Build()
}

// page is a page of a catalog on which parties have one offer each, of which those of forged are not what they have signed.
func page(t *testing.T, name string, forged bool, parties ...*registrytest.Party) *connectorv1alpha1.CatalogPage {
	t.Helper()
	var content pages.Page
	for _, p := range parties {
		said := registryv1.Announcement{Party: p.ID, Revision: 1, Name: p.Name, Endpoint: "https://connector.example.com"}
		content.Parties = append(content.Parties, registryv1.Party{
			ID: p.ID, State: registryv1.Approved, Revision: 1, Keys: p.Keys.Chain(), Alive: true,
			Announcement: p.Sign(t, registryv1.TypeAnnouncement, said),
		})
		signed := p.Offer(t, "compute", 1)
		if forged {
			signed = signed[:len(signed)-8] + "AAAAAAAA"
		}
		content.Offers = append(content.Offers, registryv1.Offer{Party: p.ID, ID: "compute", Revision: 1, JWS: signed})
	}
	data, err := pages.Encode(content)
	if err != nil {
		t.Fatal(err)
	}
	return &connectorv1alpha1.CatalogPage{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Registry: name, Offers: int32(len(parties)), Data: data,
	}
}

// only returns the one item of a kind.
func only[T any](t *testing.T, o *trading.Objects, kind feed.Kind) T {
	t.Helper()
	items, err := o.Items(t.Context(), kind)
	if err != nil {
		t.Fatal(err)
	}
	if len(items) != 1 {
		t.Fatalf("there are %d of %s, want one", len(items), kind)
	}
	value, ok := items[0].Value.(T)
	if !ok {
		t.Fatalf("one of %s is %T", kind, items[0].Value)
	}
	return value
}

// TestMarket reads what is for sale: what its owner has not signed is counted, and what has not changed is not verified again.
func TestMarket(t *testing.T) {
	read := 0
	hooks := interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
		if _, is := list.(*connectorv1alpha1.CatalogPageList); is {
			read++
		}
		err := c.List(ctx, list, opts...)
		list.SetContinue("continue-not-supported") // As the reader of a cache does.
		return err
	}}
	alice, mallory := registrytest.NewParty(t, "<img src=x>"), registrytest.NewParty(t, "mallory")
	c := cluster(t, hooks, page(t, "eu", false, alice), page(t, "far", true, mallory))
	o := trading.New(c)
	m := only[tradev1.Market](t, o, trading.Market)
	if len(m.Sellers) != 1 || m.Sellers[0].ID != alice.ID || m.Offers != 1 || m.LeftOut == 0 ||
		!reflect.DeepEqual(m.Regions, []string{"eu-north"}) {
		t.Fatalf("for sale is %+v", m)
	}

	// Nothing has changed, and then something has.
	before := read
	if again := only[tradev1.Market](t, o, trading.Market); again.Revision != m.Revision || read != before+1 {
		t.Errorf("what has not changed was read %d times, as %s after %s", read-before, again.Revision, m.Revision)
	}
	bob := registrytest.NewParty(t, "bob")
	if err := c.Create(t.Context(), page(t, "south", false, bob)); err != nil {
		t.Fatal(err)
	}
	if now := only[tradev1.Market](t, o, trading.Market); now.Revision == m.Revision || now.Offers != 2 {
		t.Errorf("for sale is %+v after bob came", now)
	}

	// What it costs for some time is exact.
	catalog, _, err := o.Catalog(t.Context(), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	matcher, err := offer.Filter{}.Compile()
	if err != nil {
		t.Fatal(err)
	}
	plans, more := trading.PlansOf(catalog.Find(matcher, time.Now()), 1, 25*time.Hour)
	if len(plans) != 1 || more != 1 || plans[0].Total == nil || *plans[0].Total != (tradev1.Money{Amount: "6.25", Currency: "EUR"}) {
		t.Errorf("the first of two plans is %+v, and %d more", plans, more)
	}
}

// sale is a Sale in a state, of which the buyer may ask for something.
func sale(t *testing.T, state contract.State, change func(*connectorv1alpha1.Sale)) *connectorv1alpha1.Sale {
	t.Helper()
	began := time.Now().Add(-2 * time.Hour).UTC().Truncate(time.Second)
	price, err := offer.ParsePrice("0.5", "EUR", "PT1H")
	if err != nil {
		t.Fatal(err)
	}
	terms := contract.Terms{Revision: 1, Plan: "small", Price: price, StartsAt: began, EndsAt: began.Add(10 * time.Hour)}
	record := contract.Record{View: contract.View{
		Terms: terms, State: state, Countersignature: "signed", PaidUntil: terms.EndsAt,
	}, Rates: contract.Rates(nil, terms)}
	record.History = []contract.Transition{{At: began, Event: "Sign", From: "Reserved", To: state, Revision: 1, Reason: hostile}}
	s := &connectorv1alpha1.Sale{ObjectMeta: metav1.ObjectMeta{Name: "s-one", Generation: 4}}
	s.Status.State, s.Status.Buyer.Name = string(state), hostile
	if change != nil {
		change(s)
	}
	text, err := json.Marshal(record)
	if err != nil {
		t.Fatal(err)
	}
	s.Status.Record = string(text)
	return s
}

// TestContracts shows contracts with what is owed, what became of them, and what can be done with them.
func TestContracts(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		state  contract.State
		change func(*connectorv1alpha1.Sale)
		deeds  []string
	}{
		"Active": {"A seller may suspend and end.", contract.Active, nil, []string{"suspend", "end"}},
		"Suspended": {
			"What is suspended is resumed.", contract.Suspended,
			func(s *connectorv1alpha1.Sale) { s.Spec.Suspended = true }, []string{"resume", "end"},
		},
		"Waits": {
			"What waits is decided.", contract.Proposed,
			func(s *connectorv1alpha1.Sale) { s.Status.PendingRevision = 1 }, []string{"approve", "refuse", "end"},
		},
		"Ending": {
			"What is being ended is not ended twice.", contract.Active,
			func(s *connectorv1alpha1.Sale) { s.Spec.End = &connectorv1alpha1.ContractEnd{} }, []string{},
		},
		"Ended": {"What is over is over.", contract.Ended, nil, []string{}},
	} {
		t.Run(name, func(t *testing.T) {
			c := only[tradev1.Contract](t, trading.New(cluster(t, interceptor.Funcs{}, sale(t, tc.state, tc.change))), trading.Contracts)
			if !reflect.DeepEqual(c.Deeds, tc.deeds) || c.State != string(tc.state) || !c.Sold || c.Version != "4" {
				t.Errorf("%s\nit is shown as %+v", tc.reason, c)
			}
			if len(c.Steps) != 1 || strings.ContainsRune(c.Steps[0].Reason+c.Party.Name, '\u202e') {
				t.Errorf("what became of it is %+v", c.Steps)
			}
			if c.Cost == nil || !reflect.DeepEqual(c.Cost.ToTheEnd, []tradev1.Money{{Amount: "5", Currency: "EUR"}}) || len(c.Cost.SoFar) != 1 {
				t.Errorf("it costs %+v", c.Cost)
			}
		})
	}

	// A record that cannot be read hides nothing else.
	broken := sale(t, contract.Active, nil)
	broken.Status.Record = "{"
	c := only[tradev1.Contract](t, trading.New(cluster(t, interceptor.Funcs{}, broken)), trading.Contracts)
	if c.Cost != nil || c.State != "Active" {
		t.Errorf("a contract with a broken record is shown as %+v", c)
	}
}

// TestOthers shows what this cluster offers, needs and follows, and that a purchase and a sale of one name are two.
func TestOthers(t *testing.T) {
	bought := &connectorv1alpha1.Purchase{ObjectMeta: metav1.ObjectMeta{Name: "s-one"}}
	needed := &connectorv1alpha1.CapacityRequest{ObjectMeta: metav1.ObjectMeta{Name: "nightly"}}
	needed.Spec.Regions = []string{hostile}
	own := &connectorv1alpha1.Offer{ObjectMeta: metav1.ObjectMeta{Name: "compute"}}
	own.Spec.Sale, own.Spec.Plans = connectorv1alpha1.SaleClosed, []connectorv1alpha1.OfferPlan{{
		ID: "small", Price: connectorv1alpha1.Price{Amount: "0.1", Currency: "EUR", Period: "1h"},
	}}
	own.Status.Plans = []connectorv1alpha1.OfferPlanStatus{{ID: "small", Sold: 2, Available: 3}}
	followed := &connectorv1alpha1.Registry{ObjectMeta: metav1.ObjectMeta{Name: "eu"}}
	o := trading.New(cluster(t, interceptor.Funcs{}, bought, sale(t, contract.Active, nil), needed, own, followed))

	items, err := o.Items(t.Context(), trading.Contracts)
	if err != nil || len(items) != 2 || items[0].Key != "buys/s-one" || items[1].Key != "sells/s-one" {
		t.Errorf("contracts are %+v (%v)", items, err)
	}
	if c, ok := items[0].Value.(tradev1.Contract); !ok || c.Ready.Status != "Unknown" || c.State != "" {
		t.Errorf("what the connector has not looked at is %+v", items[0].Value)
	}
	if r := only[tradev1.Request](t, o, trading.Requests); strings.ContainsRune(r.Regions[0], '\u202e') {
		t.Errorf("needed is %+v", r)
	}
	if of := only[tradev1.OwnOffer](t, o, trading.OwnOffers); of.Open || of.Otherwise != "Ask" || of.Plans[0].Left != 3 ||
		of.Plans[0].Price.Text != "0.1 EUR/h" {
		t.Errorf("offered is %+v", of)
	}
	if r := only[tradev1.Registry](t, o, trading.Registries); !r.Publish {
		t.Errorf("followed is %+v", r)
	}
	if _, err := o.Items(t.Context(), "providers"); err == nil {
		t.Error("a kind of a broker has items")
	}
}

// TestActivity holds that a cluster which is no broker tells what has happened to the objects of its trade, and to no others.
func TestActivity(t *testing.T) {
	about := func(name, version, kind string) *corev1.Event {
		return &corev1.Event{
			ObjectMeta:     metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: name, UID: types.UID(name)},
			InvolvedObject: corev1.ObjectReference{APIVersion: version, Kind: kind, Name: "nightly"},
			Reason:         "Changed", Message: `"` + hostile + `" changed spec.resources.cpu: 2 → 4`, LastTimestamp: metav1.Now(),
		}
	}
	ours := connectorv1alpha1.GroupVersion.String()
	o := trading.New(cluster(t, interceptor.Funcs{}, about("bought", ours, "Purchase"), about("pod", "v1", "Pod")))
	a := only[apiv1.Activity](t, o, trading.Activity)
	if a.Kind != "Purchase" || a.Name != "nightly" || !strings.Contains(a.By, "<img") || strings.ContainsRune(a.By, '\u202e') {
		t.Errorf("it tells %+v", a)
	}
}
