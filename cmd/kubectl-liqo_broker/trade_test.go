// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/program"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/pages"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/contract"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/offer"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/offer/offertest"
	"github.com/capacitorset/liqo-broker/pkg/trade/party"
	"github.com/capacitorset/liqo-broker/pkg/trade/registry/registrytest"
	"github.com/capacitorset/liqo-broker/pkg/trade/registry/registryv1"
	"github.com/capacitorset/liqo-broker/test/golden"
)

// somebody returns a party whose key is always the same, so that what is printed is.
func somebody(t *testing.T, name string) *registrytest.Party {
	t.Helper()
	key, err := party.GenerateKey(bytes.NewReader(bytes.Repeat([]byte(name), 32)[:32]))
	if err != nil {
		t.Fatal(err)
	}
	keys, err := party.ParseKeys([]string{key.Announce()})
	if err != nil {
		t.Fatal(err)
	}
	return &registrytest.Party{ID: string(keys.ID()), Name: name, Key: key, Keys: keys}
}

// announced returns a party as a registry shows it.
func announced(t *testing.T, p *registrytest.Party, name string) registryv1.Party {
	t.Helper()
	said := registryv1.Announcement{Party: p.ID, Revision: 1, Name: name, Endpoint: "https://" + p.Name + ".example:30446", IssuedAt: now}
	return registryv1.Party{
		ID: p.ID, State: registryv1.Approved, Alive: p.Name != "oslo", Keys: p.Keys.Chain(),
		Announcement: p.Sign(t, registryv1.TypeAnnouncement, said),
	}
}

// sells returns a signed offer of a party, at a price.
func sells(t *testing.T, p *registrytest.Party, price string, change ...func(*offer.Offer)) registryv1.Offer {
	t.Helper()
	o := p.Document(t, "compute", 1)
	o.IssuedAt, o.ValidUntil = now.Add(-time.Minute), now.Add(time.Hour)
	amount, err := offer.ParseAmount(price)
	if err != nil {
		t.Fatal(err)
	}
	o.Plans[0].Price.Amount = amount
	for _, c := range change {
		c(&o)
	}
	return registryv1.Offer{Party: p.ID, ID: o.ID, Revision: 1, JWS: p.Sign(t, offer.Type, o)}
}

// market is a cluster that has seen three sellers, of which one has no offer that is true, and has bought and sold.
func market(t *testing.T) []client.Object {
	t.Helper()
	milan, oslo, liar := somebody(t, "milan"), somebody(t, "oslo"), somebody(t, "liar")
	self := somebody(t, "self")
	forged := sells(t, liar, "0.01")
	forged.Party = milan.ID
	forged.ID = "cheap"
	odd := sells(t, oslo, "0.1", func(o *offer.Offer) { o.Region = "eu-south" })
	data, err := pages.Encode(pages.Page{
		Parties: []registryv1.Party{announced(t, milan, "milan"), announced(t, oslo, "oslo\u202eanalim\x1b[31m"), announced(t, self, "self")},
		Offers:  []registryv1.Offer{sells(t, milan, "0.25"), odd, forged, sells(t, self, "0.001")},
	})
	if err != nil {
		t.Fatal(err)
	}
	registry := &connectorv1alpha1.Registry{ObjectMeta: metav1.ObjectMeta{Name: "eu", CreationTimestamp: ago(48 * time.Hour)}}
	registry.Spec.URL = "https://registry.example:8443"
	registry.Status.Parties, registry.Status.Offers, registry.Status.Position = 3, 3, "epoch-42"
	registry.Status.Conditions = []metav1.Condition{
		condition(connectorv1alpha1.ConditionEnrolled, metav1.ConditionTrue, connectorv1alpha1.ReasonEnrolled,
			"The registry has approved this cluster."),
		condition(connectorv1alpha1.ConditionFollowing, metav1.ConditionFalse, connectorv1alpha1.ReasonMisbehaving,
			"It shows\x1b[2J what nobody has signed."),
	}
	own := &connectorv1alpha1.Offer{ObjectMeta: metav1.ObjectMeta{Name: "compute", CreationTimestamp: ago(time.Hour)}}
	own.Spec.Title, own.Spec.Sale = "Compute", connectorv1alpha1.SaleOpen
	own.Status.Signed, own.Status.Sold, own.Status.Revision = sells(t, self, "0.001").JWS, 1, 7
	own.Status.Plans = []connectorv1alpha1.OfferPlanStatus{{ID: "small", Sold: 1, Available: 2}}
	own.Status.Conditions = []metav1.Condition{
		condition(connectorv1alpha1.ConditionPublished, metav1.ConditionTrue, connectorv1alpha1.ReasonPublished,
			"All registries list the offer."),
	}

	end := metav1.NewTime(now.Add(70 * time.Hour))
	trail := []contract.Transition{
		{At: now.Add(-2 * time.Hour), Event: contract.Reserve, To: contract.Reserved, Revision: 1},
		{At: now.Add(-time.Hour), Event: contract.Sign, From: contract.Reserved, To: contract.Signed, Revision: 1, Reason: "signed\rby both"},
	}
	status := connectorv1alpha1.ContractStatus{
		State: string(contract.Active), ContractID: "c-1", Resources: resources("8", "32Gi"),
		StartTime: &metav1.Time{Time: now.Add(-2 * time.Hour)}, EndTime: &end,
		Price:   &connectorv1alpha1.Price{Amount: "0.5", Currency: "EUR", Period: "PT1H"},
		Cluster: connectorv1alpha1.ClusterStatus{ID: "11111111-aaaa", Name: "milan"},
		Conditions: []metav1.Condition{
			condition(connectorv1alpha1.ConditionReady, metav1.ConditionTrue, connectorv1alpha1.ReasonActive, "The contract is in use."),
		},
	}
	bought := &connectorv1alpha1.Purchase{ObjectMeta: metav1.ObjectMeta{Name: "nightly", CreationTimestamp: ago(2 * time.Hour)}}
	bought.Spec.Seller, bought.Spec.Offer, bought.Spec.Plan = connectorv1alpha1.PartyID(milan.ID), "compute", "small"
	bought.Status.ContractStatus, bought.Status.Nodes, bought.Status.Seller.Name = status, []string{"liqo-milan"}, "milan"
	bought.Status.Documents = map[string]connectorv1alpha1.PropertyValue{
		offer.TermsURL: "https://milan.example/terms", offer.TermsSHA256: connectorv1alpha1.PropertyValue(strings.Repeat("0123456789abcdef", 4)),
		offer.SLAURL: "https://milan.example/sla", offer.SLASHA256: connectorv1alpha1.PropertyValue(strings.Repeat("fedcba9876543210", 4)),
		offer.SLAAvailability: "99.9",
	}
	terms := contract.Terms{
		ID: "c-1", Buyer: self.ID, Seller: milan.ID, Revision: 1, Cluster: cluster.Identity{ID: "33333333-cccc", Name: "rome"},
		Offer: "compute", OfferRevision: 1, OfferDigest: "sha256:" + strings.Repeat("0", 64), Plan: "small", Resources: resources("8", "32Gi"),
		Price:    offer.Price{Amount: offertest.Price("0.5").Amount, Currency: "EUR", Period: offer.Hour},
		StartsAt: now.Add(-2 * time.Hour), EndsAt: end.Time,
	}
	record, err := json.Marshal(map[string]any{"purchase": contract.Purchase{
		Terms: terms, History: trail,
		Seen: contract.View{State: contract.Active, Terms: terms, Countersignature: "both", PaidUntil: end.Time},
	}})
	if err != nil {
		t.Fatal(err)
	}
	bought.Status.Record = string(record)
	sold := &connectorv1alpha1.Sale{ObjectMeta: metav1.ObjectMeta{Name: "s-1", CreationTimestamp: ago(time.Hour)}}
	sold.Spec.Buyer, sold.Spec.ContractID = connectorv1alpha1.PartyID(oslo.ID), "x"
	sold.Status.State, sold.Status.Offer, sold.Status.Plan, sold.Status.PendingRevision = string(contract.Proposed), "compute", "small", 3
	sold.Status.Buyer.Name = "oslo\n\x07"
	sold.Status.Conditions = []metav1.Condition{
		condition(connectorv1alpha1.ConditionReady, metav1.ConditionFalse, connectorv1alpha1.ReasonAwaitsApproval, "Somebody has to approve it."),
	}
	record, err = json.Marshal(contract.Record{History: trail[:1]})
	if err != nil {
		t.Fatal(err)
	}
	sold.Status.Record = string(record)
	return []client.Object{
		registry, own, bought, sold,
		&connectorv1alpha1.CatalogPage{ObjectMeta: metav1.ObjectMeta{Name: "eu-00"}, Registry: "eu", Offers: 4, Data: data},
		&connectorv1alpha1.CatalogPage{ObjectMeta: metav1.ObjectMeta{Name: "eu-01"}, Registry: "eu", Offers: 5, Data: []byte("spoilt")},
	}
}

func TestTrade(t *testing.T) {
	for name, line := range map[string]string{
		"registry":         "registry",
		"registry_wide":    "registry -o wide",
		"catalog":          "catalog",
		"catalog_wide":     "catalog -o wide",
		"offers":           "offers",
		"offers_wide":      "offers -o wide",
		"offers_fit":       "offers --cpu 4 --memory 8Gi --region eu-north,eu-west --for 24h",
		"offers_none":      "offers --cpu 5",
		"offers_price":     "offers --max-price 2.5@EUR/d",
		"offers_filter":    "offers --filter offer.region=='eu-south'",
		"offers_own":       "offers --own",
		"contracts":        "contracts",
		"contracts_wide":   "contracts -o wide",
		"contracts_bought": "contracts show nightly",
		"contracts_sold":   "contracts show s-1",
		"contracts_export": "contracts export --month 2026-11",
		"contracts_json":   "contracts export --month 2026-11 --bought --format json",
		"contracts_none":   "contracts export --month 2026-11 --sold",
	} {
		t.Run(name, func(t *testing.T) {
			args := strings.Fields(line)
			for i := range args {
				args[i] = strings.ReplaceAll(args[i], "@", " ")
			}
			out, errOut, err := newCLI(t, market(t)...).runArgs(t, args)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range out + errOut {
				if r != '\n' && (r < ' ' || r == 0x7f || r == 0x202e) {
					t.Errorf("the control character %U is printed", r)
				}
			}
			golden.Check(t, "trade_"+name+".txt", "$ kubectl liqo-broker "+line+"\n"+out+errOut)
		})
	}
}

// TestTradeForPrograms holds that programs get what people see, and nothing of what is not signed.
func TestTradeForPrograms(t *testing.T) {
	for _, command := range []string{"offers", "catalog", "contracts", "registry", "offers --own"} {
		out, _, err := newCLI(t, market(t)...).run(t, command+" -o json")
		if err != nil || !json.Valid([]byte(out)) {
			t.Errorf("%s: %v: %s", command, err, out)
		}
		if strings.Contains(out, `"cheap"`) || command == "contracts" && strings.Contains(out, `"record"`) {
			t.Errorf("%s shows what is not signed, or a record: %s", command, out)
		}
	}
	out, _, err := newCLI(t).run(t, "offers -o json")
	if err != nil || out != "[]\n" {
		t.Errorf("without a catalog: %q, %v", out, err)
	}
}

func TestBuy(t *testing.T) {
	milan := somebody(t, "milan").ID
	cli := newCLI(t, market(t)...)
	out, errOut, err := cli.runArgs(t, []string{
		"buy", "--name", "more", "--cpu", "2", "--memory", "4Gi", "--pods", "20", "--for", "24h", "--max-price", "0.3 EUR/h", "--region",
		"eu-north", "--seller", milan, "--max-total", "7.20 EUR", "--renew",
	})
	if err != nil || !strings.Contains(out, "capacityrequest more created") ||
		!strings.Contains(errOut, "kubectl delete capacityrequest more") {
		t.Fatalf("%v: %s%s", err, out, errOut)
	}
	var request connectorv1alpha1.CapacityRequest
	if err := cli.client.Get(t.Context(), client.ObjectKey{Name: "more"}, &request); err != nil {
		t.Fatal(err)
	}
	spec := request.Spec
	if spec.Resources[corev1.ResourceCPU] != resource.MustParse("2") || spec.Duration.Duration != 24*time.Hour ||
		spec.MaxPrice.Amount != "0.3" || spec.MaxPrice.Period != "PT1H" ||
		*spec.MaxTotal != (connectorv1alpha1.Money{Amount: "7.2", Currency: "EUR"}) || len(spec.Regions) != 1 || len(spec.Sellers) != 1 ||
		!spec.Renew {
		t.Errorf("requested %+v", spec)
	}

	out, errOut, err = cli.run(t, "buy --name one --for 2h "+milan[:6]+"/compute/small")
	if err != nil || !strings.Contains(out, "purchase one created") {
		t.Fatalf("%v: %s%s", err, out, errOut)
	}
	var purchase connectorv1alpha1.Purchase
	if err := cli.client.Get(t.Context(), client.ObjectKey{Name: "one"}, &purchase); err != nil {
		t.Fatal(err)
	}
	if purchase.Spec.Seller != connectorv1alpha1.PartyID(milan) || purchase.Spec.Plan != "small" ||
		purchase.Spec.Duration.Duration != 2*time.Hour {
		t.Errorf("bought %+v", purchase.Spec)
	}

	out, errOut, err = cli.run(t, "buy --name none --dry-run --cpu 2 --memory 4Gi --pods 1 --for 24h")
	if err != nil || !strings.Contains(out, "(server dry run)") || !strings.Contains(out, "0.1 EUR/h") {
		t.Errorf("%v: %s%s", err, out, errOut)
	}
	if err := cli.client.Get(t.Context(), client.ObjectKey{Name: "none"}, &request); err == nil {
		t.Error("a dry run was kept")
	}
}

// TestBuyWaits waits for what happens, and no longer.
func TestBuyWaits(t *testing.T) {
	for reason, want := range map[string]struct {
		says string
		code int
	}{
		connectorv1alpha1.ReasonActive:   {},
		connectorv1alpha1.ReasonRejected: {"was not bought", program.ExitFailure},
		connectorv1alpha1.ReasonNoOffer:  {"not ready yet", exitUnhealthy},
	} {
		cli := newCLI(t, market(t)...)
		status := metav1.ConditionFalse
		if want.says == "" {
			status = metav1.ConditionTrue
		}
		go func() {
			for t.Context().Err() == nil {
				var request connectorv1alpha1.CapacityRequest
				if cli.client.Get(t.Context(), client.ObjectKey{Name: "x"}, &request) == nil {
					meta.SetStatusCondition(&request.Status.Conditions, condition(connectorv1alpha1.ConditionReady, status, reason, "As it is."))
					_ = cli.client.Update(t.Context(), &request)
					return
				}
				time.Sleep(10 * time.Millisecond)
			}
		}()
		_, errOut, err := cli.run(t, "buy --name x --cpu 2 --memory 4Gi --pods 1 --for 24h --wait --timeout 3s")
		if fmt.Sprint(err) == "<nil>" != (want.says == "") ||
			want.says != "" && (!strings.Contains(err.Error(), want.says) || program.ExitCode(err) != want.code) ||
			!strings.Contains(errOut, reason) ||
			!strings.Contains(errOut, "End it with: kubectl delete capacityrequest x") {
			t.Errorf("%s: %v: %s", reason, err, errOut)
		}
	}
}

func TestTradeUsage(t *testing.T) {
	for line, want := range map[string]string{
		"buy --name a --for 1h":                       "--cpu",
		"buy --for 1h a/b/c":                          "--name",
		"buy --name a a/b/c":                          "--for",
		"buy --name a --for 1h a/b":                   "PARTY/OFFER/PLAN",
		"buy --name a --for 1h z/b/c":                 "no party",
		"buy --name a --for 1h --region x " + "a/b/c": "--region",
		"offers --cpu 8GB":                            "--cpu",
		"offers --cpu -1":                             "--cpu",
		"offers --max-price 1":                        "--max-price",
		"buy --name a --for 1h --cpu 1 --memory 1Gi --pods 1 --max-total 1": "--max-total",
		"offers --filter offer.":                      "expression",
		"contracts show nobody":                       "no contract",
		"contracts export":                            "--month",
		"contracts export --month november":           "--month",
		"contracts export --month 2026-12":            "has not begun",
		"contracts export --month 2026-10 --format x": "--format",
		"buy --name a --for 1h " + somebody(t, "self").ID[:8] + "/compute/small": "this cluster itself",
		"contracts approve nightly":                            "the seller decides",
		"contracts resize s-1":                                 "the buyer decides",
		"contracts resize nightly":                             "--plan",
		"contracts renew nightly":                              "--until",
		"contracts renew nightly --until 2020-01-01T00:00:00Z": "not made shorter",
	} {
		_, _, err := newCLI(t, market(t)...).run(t, line)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", line, err, want)
		}
	}
}

// TestApproveChange holds that nobody approves a change of a contract that he has not seen: a buyer may ask for another one meanwhile.
func TestApproveChange(t *testing.T) {
	objects := market(t)
	for _, o := range objects {
		if sale, is := o.(*connectorv1alpha1.Sale); is {
			asked := contract.Change{Event: contract.Resize, Approval: contract.Pending, Terms: contract.Terms{
				Revision: 3, Resources: resources("64", "32Gi"), Price: offertest.Price("9.5"), EndsAt: now.Add(time.Hour),
			}}
			record, err := json.Marshal(contract.Record{View: contract.View{Change: &asked}})
			if err != nil {
				t.Fatal(err)
			}
			sale.Status.State, sale.Status.Record = string(contract.Resizing), string(record)
		}
	}
	cli := newCLI(t, objects...)
	const asked = "terms 3, until 2026-11-01T13:00:00Z, for 9.5 EUR/h: 32Gi of memory, 64 of cpu"
	if out, _, err := cli.run(t, "contracts show s-1"); err != nil || !strings.Contains(out, asked) {
		t.Errorf("show: %v: %s", err, out)
	}
	if out, _, err := cli.run(t, "contracts -o json"); err != nil || !strings.Contains(out, `"asked"`) {
		t.Errorf("for programs: %v: %s", err, out)
	}
	for line, want := range map[string]string{
		"approve s-1":           asked + "; approve them with --terms=3",
		"approve s-1 --terms 2": "terms 2 of contract s-1 do not wait for a decision, but " + asked,
		"refuse s-1 --terms 2":  "terms 2 of contract s-1 do not wait for a decision, but " + asked,
	} {
		if _, _, err := cli.run(t, "contracts "+line); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", line, err, want)
		}
	}
	var sale connectorv1alpha1.Sale
	if err := cli.client.Get(t.Context(), client.ObjectKey{Name: "s-1"}, &sale); err != nil || sale.Spec.Decision != "" {
		t.Errorf("decided %q: %v", sale.Spec.Decision, err)
	}
	if _, _, err := cli.run(t, "contracts approve s-1 --terms 3"); err != nil {
		t.Error(err)
	}
	if err := cli.client.Get(t.Context(), client.ObjectKey{Name: "s-1"}, &sale); err != nil ||
		sale.Spec.Decision != connectorv1alpha1.DecisionApprove || sale.Spec.DecisionRevision != 3 {
		t.Errorf("decided %q for terms %d: %v", sale.Spec.Decision, sale.Spec.DecisionRevision, err)
	}
}

// TestContractOfRequest finds what a request has bought by the name of the request, which is the one that people gave.
func TestContractOfRequest(t *testing.T) {
	request := &connectorv1alpha1.CapacityRequest{ObjectMeta: metav1.ObjectMeta{Name: "weekly", UID: "1"}}
	owned := func(name string) *connectorv1alpha1.Purchase {
		p := &connectorv1alpha1.Purchase{ObjectMeta: metav1.ObjectMeta{Name: name}}
		p.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(request, connectorv1alpha1.GroupVersion.WithKind("CapacityRequest"))}
		return p
	}
	left := owned("weekly-1")
	left.Finalizers, left.DeletionTimestamp = []string{connectorv1alpha1.Finalizer}, &metav1.Time{Time: now}
	cli := newCLI(t, append(market(t), left, owned("weekly-2"))...)
	if out, _, err := cli.run(t, "contracts end weekly"); err != nil || !strings.Contains(out, "contract weekly-2 is being ended") {
		t.Errorf("%v: %s", err, out)
	}
	var purchase connectorv1alpha1.Purchase
	if err := cli.client.Get(t.Context(), client.ObjectKey{Name: "weekly-2"}, &purchase); err != nil || purchase.Spec.End == nil {
		t.Errorf("it goes on: %v", err)
	}
}

// TestLongNames holds that a plan is printed as it has to be written to buy it, and a contract as it is to be named, however long the names
// are.
func TestLongNames(t *testing.T) {
	long, milan := strings.Repeat("x", 63), somebody(t, "milan")
	data, err := pages.Encode(pages.Page{
		Parties: []registryv1.Party{announced(t, milan, "milan")},
		Offers:  []registryv1.Offer{sells(t, milan, "0.25", func(o *offer.Offer) { o.ID, o.Plans[0].ID = long, long })},
	})
	if err != nil {
		t.Fatal(err)
	}
	bought := strings.Repeat("b", 100)
	cli := newCLI(t, &connectorv1alpha1.CatalogPage{ObjectMeta: metav1.ObjectMeta{Name: "eu-00"}, Registry: "eu", Offers: 1, Data: data},
		&connectorv1alpha1.Purchase{ObjectMeta: metav1.ObjectMeta{Name: bought}})
	reference := milan.ID[:8] + "/" + long + "/" + long
	if out, _, err := cli.run(t, "offers"); err != nil || !strings.Contains(out, reference) {
		t.Errorf("%v: %s", err, out)
	}
	if out, _, err := cli.run(t, "contracts"); err != nil || !strings.Contains(out, bought) {
		t.Errorf("%v: %s", err, out)
	}
	if out, errOut, err := cli.run(t, "buy --name a --for 1h "+reference); err != nil {
		t.Errorf("%v: %s%s", err, out, errOut)
	}
}

func TestDecideContracts(t *testing.T) {
	cli := newCLI(t, market(t)...)
	var sale connectorv1alpha1.Sale
	var purchase connectorv1alpha1.Purchase
	for line, check := range map[string]func() bool{
		"approve s-1 --terms 3": func() bool {
			return sale.Spec.Decision == connectorv1alpha1.DecisionApprove && sale.Spec.DecisionRevision == 3
		},
		"suspend s-1 --reason late": func() bool { return sale.Spec.Suspended && sale.Spec.Reason == "late" },
		"end nightly --reason done": func() bool { return purchase.Spec.End != nil && purchase.Spec.End.Reason == "done" },
		"resize nightly --cpu 4": func() bool {
			return purchase.Spec.Resources[corev1.ResourceCPU] == resource.MustParse("4")
		},
		"resize nightly --plan large":                func() bool { return purchase.Spec.Plan == "large" },
		"renew nightly --until 2027-01-01T00:00:00Z": func() bool { return purchase.Spec.EndTime.Year() == 2027 },
	} {
		if out, errOut, err := cli.run(t, "contracts "+line); err != nil || !strings.HasPrefix(out, "contract ") {
			t.Errorf("%s: %v: %s%s", line, err, out, errOut)
		}
		if err := cli.client.Get(t.Context(), client.ObjectKey{Name: "s-1"}, &sale); err != nil {
			t.Fatal(err)
		}
		if err := cli.client.Get(t.Context(), client.ObjectKey{Name: "nightly"}, &purchase); err != nil {
			t.Fatal(err)
		}
		if !check() {
			t.Errorf("%s: %+v, %+v", line, sale.Spec, purchase.Spec)
		}
	}
	for _, line := range []string{"refuse s-1 --reason no", "resume s-1"} {
		if _, _, err := cli.run(t, "contracts "+line); err != nil {
			t.Errorf("%s: %v", line, err)
		}
	}
	if err := cli.client.Get(t.Context(), client.ObjectKey{Name: "s-1"}, &sale); err != nil ||
		sale.Spec.Decision != connectorv1alpha1.DecisionRefuse || sale.Spec.Suspended {
		t.Errorf("%+v, %v", sale.Spec, err)
	}
}
