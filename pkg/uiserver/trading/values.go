// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package trading

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/sheet"
	"github.com/capacitorset/liqo-broker/pkg/shown/tradev1"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/bill"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/contract"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/offer"
	"github.com/capacitorset/liqo-broker/pkg/trade/desk"
	"github.com/capacitorset/liqo-broker/pkg/trade/objects"
	"github.com/capacitorset/liqo-broker/pkg/trade/show"
)

// shortID is how much of a party ID is shown beside its name.
const shortID = 8

func plain(text string) string { return sheet.Sentence(text) }

func partyOf(id, name string) tradev1.Party {
	id = plain(id)
	return tradev1.Party{ID: id, Short: id[:min(len(id), shortID)], Name: plain(name)}
}

func sellerOf(s *show.Seller) tradev1.Seller {
	of := tradev1.Seller{Party: partyOf(s.ID, s.Name), Alive: s.Alive, Offers: s.Offers}
	for _, region := range s.Regions {
		of.Regions = append(of.Regions, plain(region))
	}
	return of
}

func priceOf(p offer.Price) tradev1.Price {
	return tradev1.Price{
		Money: tradev1.Money{Amount: p.Amount.String(), Currency: p.Currency}, Period: string(p.Period), Text: p.String(),
	}
}

// priceIn returns a price of an object; as it is written if it cannot be read.
func priceIn(p connectorv1alpha1.Price) tradev1.Price {
	price, err := objects.ReadPrice(p)
	if err != nil {
		money := tradev1.Money{Amount: plain(string(p.Amount)), Currency: plain(p.Currency)}
		return tradev1.Price{Money: money, Period: plain(string(p.Period)), Text: money.Amount + " " + money.Currency}
	}
	return priceOf(price)
}

func moneyIn(m *connectorv1alpha1.Money) *tradev1.Money {
	if m == nil {
		return nil
	}
	return &tradev1.Money{Amount: plain(string(m.Amount)), Currency: plain(m.Currency)}
}

func sums(of bill.Sums) []tradev1.Money {
	var all []tradev1.Money
	for _, sum := range of {
		all = append(all, tradev1.Money{Amount: sum.Cost.String(), Currency: sum.Currency})
	}
	slices.SortFunc(all, func(a, b tradev1.Money) int { return strings.Compare(a.Currency, b.Currency) })
	return all
}

// totalOf returns what a price is for some time; nil for none.
func totalOf(price offer.Price, needed time.Duration) *tradev1.Money {
	if needed <= 0 {
		return nil
	}
	from := time.Unix(0, 0).UTC()
	all := sums(bill.Contract{}.With(contract.Terms{Price: price, StartsAt: from, EndsAt: from.Add(needed)}).All())
	if len(all) == 0 {
		return &tradev1.Money{Amount: "0", Currency: price.Currency}
	}
	return &all[0]
}

// durationOf returns a duration as Kubernetes writes it; empty for none.
func durationOf(d offer.Duration) string {
	if d == 0 {
		return ""
	}
	return time.Duration(d).String()
}

func rangeOf(low, high, step corev1.ResourceList, units map[string]tradev1.UnitPrice) *tradev1.Range {
	return &tradev1.Range{Min: quantities(low), Max: quantities(high), Step: quantities(step), UnitPrices: units}
}

func documentsOf(of func(key string) string) (terms *tradev1.Document, promise *tradev1.Promise) {
	document := func(url, digest string) *tradev1.Document {
		if of(url) == "" {
			return nil
		}
		return &tradev1.Document{URL: plain(of(url)), SHA256: plain(of(digest))}
	}
	p := tradev1.Promise{
		Availability: plain(of(offer.SLAAvailability)), Credit: plain(of(offer.SLACredit)), Document: document(offer.SLAURL, offer.SLASHA256),
	}
	if p != (tradev1.Promise{}) {
		promise = &p
	}
	return document(offer.TermsURL, offer.TermsSHA256), promise
}

func planOf(f *show.ForSale, needed time.Duration) tradev1.PlanForSale {
	o, p := &f.Offer, &f.Plan
	shown := tradev1.PlanForSale{
		Reference: o.Party + "/" + o.ID + "/" + p.ID, Seller: partyOf(f.Seller.ID, f.Seller.Name), Alive: f.Seller.Alive,
		Offer: o.ID, Title: plain(o.Name), Description: plain(o.Description), Plan: p.ID, PlanTitle: plain(p.Name),
		Granted: quantities(f.Granted.List()), Price: priceOf(f.Price), Total: totalOf(f.Price, needed), Base: priceOf(p.Price),
		Kind: string(o.Kind), Type: plain(o.Type), Region: plain(o.Region), Zone: plain(o.Zone), Left: p.Available, Issued: o.IssuedAt,
		ValidUntil: o.ValidUntil, MinDuration: durationOf(p.MinDuration), MaxDuration: durationOf(p.MaxDuration), Notice: durationOf(p.Notice),
		Registries: []string{},
	}
	for _, arch := range o.Architectures {
		shown.Architectures = append(shown.Architectures, plain(arch))
	}
	for _, registry := range f.Registries {
		shown.Registries = append(shown.Registries, plain(registry))
	}
	if len(o.Labels) > 0 {
		shown.Labels = map[string]string{}
		for key, value := range o.Labels {
			shown.Labels[plain(key)] = plain(value)
		}
	}
	if p.Range != nil {
		units := map[string]tradev1.UnitPrice{}
		for name, unit := range p.UnitPrices {
			units[plain(name)] = tradev1.UnitPrice{Amount: unit.Amount.String(), Per: unit.Per.String()}
		}
		shown.Range = rangeOf(p.Range.Min.List(), p.Range.Max.List(), p.Range.Step.List(), units)
	}
	shown.Terms, shown.Promise = documentsOf(func(key string) string { return o.Properties[key] })
	for _, kpi := range o.KPIs {
		shown.Measured = append(shown.Measured, tradev1.Measured{
			Name: plain(kpi.Name), Value: kpi.Value, Unit: plain(kpi.Unit), At: kpi.MeasuredAt, By: partyOf(kpi.MeasuredBy, ""),
			Samples: kpi.Samples,
		})
	}
	return shown
}

func conditionOf(c *metav1.Condition) tradev1.Condition {
	return tradev1.Condition{
		Type: c.Type, Status: string(c.Status), Reason: c.Reason, Message: plain(c.Message), Since: c.LastTransitionTime.UTC(),
	}
}

func conditionsOf(all []metav1.Condition) []tradev1.Condition {
	var shown []tradev1.Condition
	for i := range all {
		shown = append(shown, conditionOf(&all[i]))
	}
	return shown
}

// readyOf returns the condition Ready; of what the connector has not looked at, it is unknown since that was made.
func readyOf(all []metav1.Condition, created metav1.Time) tradev1.Condition {
	if c := apimeta.FindStatusCondition(all, connectorv1alpha1.ConditionReady); c != nil {
		return conditionOf(c)
	}
	return tradev1.Condition{
		Type: connectorv1alpha1.ConditionReady, Status: string(metav1.ConditionUnknown), Reason: connectorv1alpha1.ReasonNegotiating,
		Message: "It waits for the connector.", Since: created.UTC(),
	}
}

func timeOf(t *metav1.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return new(t.UTC())
}

// ContractOf returns a contract as it is shown at a time.
func ContractOf(c *desk.Contract, now time.Time) tradev1.Contract {
	s := &c.Status
	shown := tradev1.Contract{
		Sold: c.Sold, Name: c.Name, Party: partyOf(c.Party, c.PartyName), Request: c.Request(), Offer: plain(c.Offer), Plan: plain(c.Plan),
		ContractID: plain(s.ContractID), State: plain(s.State), Ready: readyOf(s.Conditions, c.Created), Conditions: conditionsOf(s.Conditions),
		Resources: quantities(s.Resources), Start: timeOf(s.StartTime), End: timeOf(s.EndTime), PaidUntil: timeOf(s.PaidUntilTime),
		Created: c.Created.UTC(), Nodes: c.Nodes, Ending: c.Ends(), Waits: c.Waits(), Deeds: deedsOf(c), Version: VersionOf(c.Object()),
	}
	if s.Price != nil {
		shown.Price = new(priceIn(*s.Price))
	}
	if s.Cluster != (connectorv1alpha1.ClusterStatus{}) {
		shown.Cluster = &tradev1.Cluster{ID: plain(s.Cluster.ID), Name: plain(s.Cluster.Name)}
	}
	if c.Asked != nil {
		shown.Asked = &tradev1.Asked{
			Plan: plain(c.Asked.Plan), Resources: quantities(c.Asked.Resources), Price: priceIn(c.Asked.Price), End: c.Asked.EndTime.UTC(),
		}
	}
	shown.Terms, shown.Promise = documentsOf(func(key string) string { return string(s.Documents[key]) })

	// What only one side has.
	if c.Sale != nil {
		shown.Suspended = c.Sale.Spec.Suspended
	} else {
		shown.Renew, shown.PodsLeft = c.Purchase.Spec.Renew, c.Purchase.Status.PodsLeft
	}

	// What the record says. One that cannot be read hides nothing else.
	if trail, err := c.Trail(); err == nil {
		for _, t := range trail {
			shown.Steps = append(shown.Steps, tradev1.Step{
				At: t.At.UTC(), Event: plain(string(t.Event)), From: plain(string(t.From)), To: plain(string(t.To)), Terms: t.Revision,
				Reason: plain(t.Reason),
			})
		}
	}
	if entry, err := c.Entry(); err == nil {
		shown.Cost = &tradev1.Cost{ToTheEnd: sums(entry.Bill.All())}
		if starts := entry.Bill.Starts(); !starts.IsZero() && starts.Before(now) && entry.Knows(starts) == nil {
			shown.Cost.SoFar = sums(entry.Bill.Cost(starts, now))
		}
		if c.Purchase != nil {
			shown.Cost.MaxTotal = moneyIn(c.Purchase.Spec.MaxTotal)
		}
	}
	return shown
}

// VersionOf returns what changes with what people want of a contract, and not with what becomes of it.
func VersionOf(object client.Object) string { return strconv.FormatInt(object.GetGeneration(), 10) }

// Deeds, as commands of the plugin have them.
const (
	End     = "end"
	Resize  = "resize"
	Renew   = "renew"
	Approve = "approve"
	Refuse  = "refuse"
	Suspend = "suspend"
	Resume  = "resume"
)

// deedsOf returns what can be done with a contract.
func deedsOf(c *desk.Contract) []string {
	deeds := []string{}
	state := contract.State(c.Status.State)
	if state.Final() {
		return deeds
	}
	if c.Waits() != 0 {
		deeds = append(deeds, Approve, Refuse)
	}
	if c.Ends() {
		return deeds
	}
	if c.Purchase != nil && state.InUse() {
		deeds = append(deeds, Resize, Renew)
	}
	switch {
	case c.Sale == nil:
	case c.Sale.Spec.Suspended:
		deeds = append(deeds, Resume)
	case state.InUse():
		deeds = append(deeds, Suspend)
	}
	return append(deeds, End)
}

func requestOf(r *connectorv1alpha1.CapacityRequest) tradev1.Request {
	shown := tradev1.Request{
		Name: r.Name, Created: r.CreationTimestamp.UTC(), Ready: readyOf(r.Status.Conditions, r.CreationTimestamp),
		Purchase: plain(r.Status.Purchase), Resources: quantities(corev1.ResourceList(r.Spec.Resources)),
		Duration: r.Spec.Duration.Duration.String(), Renew: r.Spec.Renew, MaxTotal: moneyIn(r.Spec.MaxTotal),
		Expression: plain(r.Spec.Expression),
	}
	if r.Spec.MaxPrice != nil {
		shown.MaxPrice = new(priceIn(*r.Spec.MaxPrice))
	}
	for _, region := range r.Spec.Regions {
		shown.Regions = append(shown.Regions, plain(region))
	}
	return shown
}

func ownOfferOf(o *connectorv1alpha1.Offer) tradev1.OwnOffer {
	shown := tradev1.OwnOffer{
		Name: o.Name, Title: plain(o.Spec.Title), Open: o.Spec.Sale != connectorv1alpha1.SaleClosed, Region: plain(o.Spec.Region),
		Conditions: conditionsOf(o.Status.Conditions), Sold: o.Status.Sold, Revision: o.Status.Revision, Created: o.CreationTimestamp.UTC(),
		ValidUntil: timeOf(o.Status.ValidTime), Plans: []tradev1.OwnPlan{},
		Otherwise: cmp.Or(string(o.Spec.Buyers.Otherwise), string(connectorv1alpha1.VerdictAsk)),
	}
	left := map[connectorv1alpha1.Label]connectorv1alpha1.OfferPlanStatus{}
	for _, p := range o.Status.Plans {
		left[p.ID] = p
	}
	for i := range o.Spec.Plans {
		p := &o.Spec.Plans[i]
		own := tradev1.OwnPlan{
			ID: string(p.ID), Title: plain(p.Title), Price: priceIn(p.Price), Resources: quantities(list(p.Resources)), Stock: p.Stock,
			Sold: left[p.ID].Sold, Left: left[p.ID].Available,
		}
		if p.Range != nil {
			units := map[string]tradev1.UnitPrice{}
			for name, unit := range p.UnitPrices {
				units[plain(name)] = tradev1.UnitPrice{Amount: string(unit.Amount), Per: unit.Per}
			}
			own.Range = rangeOf(list(p.Range.Min), list(p.Range.Max), list(p.Range.Step), units)
		}
		shown.Plans = append(shown.Plans, own)
	}
	for _, rule := range o.Spec.Buyers.Rules {
		shown.Rules = append(shown.Rules, tradev1.Rule{Expression: plain(rule.Expression), Verdict: string(rule.Verdict)})
	}
	return shown
}

func list(of v1alpha1.Quantities) corev1.ResourceList { return corev1.ResourceList(of) }

func registryOf(r *connectorv1alpha1.Registry) tradev1.Registry {
	return tradev1.Registry{
		Name: r.Name, URL: plain(r.Spec.URL), Publish: r.Spec.Publish == nil || *r.Spec.Publish, Conditions: conditionsOf(r.Status.Conditions),
		Parties: r.Status.Parties, Offers: r.Status.Offers, LeaseUntil: timeOf(r.Status.LeaseTime), Created: r.CreationTimestamp.UTC(),
	}
}
