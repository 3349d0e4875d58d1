// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package show puts what a cluster trades into what people read at a glance: registries, sellers, plans, offers and contracts as tables,
// one contract in lines, and prices, which it also reads. It works on values, with the time as an argument.
//
// It does not know where the objects come from, nor how a terminal or a script is written to.
package show

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/sheet"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/contract"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/offer"
	"github.com/capacitorset/liqo-broker/pkg/trade/objects"
)

// Seller is a party of the catalog.
type Seller struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	// Endpoint is where its connector negotiates; empty if it sells nothing.
	Endpoint string `json:"endpoint,omitempty"`
	// Alive is whether a registry has heard of it recently.
	Alive bool `json:"alive"`
	// Offers is how many offers it has, and Regions where those are.
	Offers  int      `json:"offers"`
	Regions []string `json:"regions,omitempty"`
}

// ForSale is a plan of an offer of the catalog.
type ForSale struct {
	Seller Seller `json:"seller"`
	// Registries are those that list the offer.
	Registries []string `json:"registries"`
	// Granted is what a buyer gets for what it asks for, and Price what that costs.
	Granted offer.Resources `json:"granted"`
	Price   offer.Price     `json:"price"`
	Plan    offer.Plan      `json:"plan"`
	Offer   offer.Offer     `json:"offer"`
}

// Contract is one that this cluster has bought or sold by.
type Contract struct {
	// Sold is which side this cluster is on.
	Sold bool `json:"sold"`
	// Name is that of the Purchase or Sale.
	Name string `json:"name"`
	// Party is who is at the other side, and PartyName what it calls itself.
	Party     string `json:"party"`
	PartyName string `json:"partyName,omitempty"`
	Offer     string `json:"offer,omitempty"`
	Plan      string `json:"plan,omitempty"`
	// Status is as the object has it, without the record.
	Status connectorv1alpha1.ContractStatus `json:"status"`
	Nodes  []string                         `json:"nodes,omitempty"`
	// Asked is what a buyer asks for in the place of the terms in force, and somebody has to decide about; nil if there is nothing, or it
	// cannot be read.
	Asked   *Asked      `json:"asked,omitempty"`
	Created metav1.Time `json:"created"`
}

// Asked is new terms of a contract.
type Asked struct {
	// Revision tells them from others that are asked for later.
	Revision int64 `json:"revision"`
	// Plan is another plan of the offer than that of the terms in force; empty if it is that.
	Plan      string                  `json:"plan,omitempty"`
	Resources corev1.ResourceList     `json:"resources,omitempty"`
	Price     connectorv1alpha1.Price `json:"price"`
	EndTime   metav1.Time             `json:"endTime"`
}

// String returns the terms for people.
func (a *Asked) String() string {
	of := ""
	if a.Plan != "" {
		of = " of plan " + a.Plan
	}
	return sheet.Sentence(fmt.Sprintf("terms %d%s, until %s, for %s: %s", a.Revision, of, a.EndTime.UTC().Format(time.RFC3339),
		statusPrice(&a.Price), sizes(a.Resources)))
}

// asked returns what waits for a decision.
func asked(status *connectorv1alpha1.SaleStatus) *Asked {
	var record contract.Record
	if err := json.Unmarshal([]byte(status.Record), &record); err != nil || record.Change == nil ||
		record.Change.Terms.Revision != status.PendingRevision {
		return nil
	}
	terms := record.Change.Terms
	asked := &Asked{
		Revision: terms.Revision, Resources: terms.Resources, EndTime: metav1.NewTime(terms.EndsAt),
		Price: objects.Price(terms.Price),
	}
	if terms.Plan != record.Terms.Plan {
		asked.Plan = terms.Plan
	}
	return asked
}

// PurchaseOf returns a Purchase as a contract.
func PurchaseOf(p *connectorv1alpha1.Purchase) Contract {
	c := Contract{
		Name: p.Name, Party: string(p.Spec.Seller), PartyName: p.Status.Seller.Name, Offer: string(p.Spec.Offer),
		Plan:   cmp.Or(p.Status.Plan, string(p.Spec.Plan)),
		Status: p.Status.ContractStatus, Nodes: p.Status.Nodes, Created: p.CreationTimestamp,
	}
	c.Status.Record = ""
	return c
}

// SaleOf returns a Sale as a contract.
func SaleOf(s *connectorv1alpha1.Sale) Contract {
	c := Contract{
		Sold: true, Name: s.Name, Party: string(s.Spec.Buyer), PartyName: s.Status.Buyer.Name, Offer: s.Status.Offer, Plan: s.Status.Plan,
		Status: s.Status.ContractStatus, Created: s.CreationTimestamp, Asked: asked(&s.Status),
	}
	c.Status.Record = ""
	return c
}

// Side is what this cluster does by the contract.
func (c *Contract) Side() string {
	if c.Sold {
		return "sells"
	}
	return "buys"
}

// Registries returns a row for each registry, in their order.
func Registries(now time.Time, registries []connectorv1alpha1.Registry) *metav1.Table {
	type registry = connectorv1alpha1.Registry
	return sheet.Table(registries, []sheet.Column[registry]{
		{Name: "Name", Cell: func(r *registry) string { return r.Name }},
		{Name: "URL", Cell: func(r *registry) string { return r.Spec.URL }},
		{Name: "Enrolled", Cell: func(r *registry) string { return sheet.State(r.Status.Conditions, connectorv1alpha1.ConditionEnrolled) }},
		{Name: "Following", Cell: func(r *registry) string {
			return sheet.State(r.Status.Conditions, connectorv1alpha1.ConditionFollowing)
		}},
		{Name: "Reason", Cell: func(r *registry) string { return firstFalse(r.Status.Conditions) }},
		{Name: "Parties", Cell: func(r *registry) string { return strconv.Itoa(int(r.Status.Parties)) }},
		{Name: "Offers", Cell: func(r *registry) string { return strconv.Itoa(int(r.Status.Offers)) }},
		{Name: "Age", Cell: func(r *registry) string { return sheet.Since(now, r.CreationTimestamp) }},
		{Name: "Position", Wide: true, Cell: func(r *registry) string { return r.Status.Position }},
		{Name: "Message", Wide: true, Long: true, Cell: func(r *registry) string {
			for _, c := range r.Status.Conditions {
				if c.Status != metav1.ConditionTrue {
					return c.Message
				}
			}
			return ""
		}},
	})
}

// firstFalse returns the reason of the first condition that is not true.
func firstFalse(conditions []metav1.Condition) string {
	for _, c := range conditions {
		if c.Status != metav1.ConditionTrue {
			return c.Reason
		}
	}
	return ""
}

// Sellers returns a row for each seller, in their order.
func Sellers(sellers []Seller) *metav1.Table {
	ids := make([]string, 0, len(sellers))
	for i := range sellers {
		ids = append(ids, sellers[i].ID)
	}
	short := sheet.Shortener(ids)
	return sheet.Table(sellers, []sheet.Column[Seller]{
		{Name: "Name", Cell: func(s *Seller) string { return s.Name }},
		{Name: "Party", Cell: func(s *Seller) string { return short(s.ID) }},
		{Name: "Alive", Cell: func(s *Seller) string { return strconv.FormatBool(s.Alive) }},
		{Name: "Offers", Cell: func(s *Seller) string { return strconv.Itoa(s.Offers) }},
		{Name: "Regions", Cell: func(s *Seller) string { return strings.Join(s.Regions, ",") }},
		{Name: "Party ID", Wide: true, Cell: func(s *Seller) string { return s.ID }},
		{Name: "Endpoint", Wide: true, Cell: func(s *Seller) string { return s.Endpoint }},
	})
}

// PlansForSale returns a row for each plan, in their order.
func PlansForSale(now time.Time, plans []ForSale) *metav1.Table {
	ids := make([]string, 0, len(plans))
	for i := range plans {
		ids = append(ids, plans[i].Offer.Party)
	}
	slices.Sort(ids)
	short := sheet.Shortener(slices.Compact(ids))
	return sheet.Table(plans, []sheet.Column[ForSale]{
		{Name: "Seller", Cell: func(f *ForSale) string { return f.Seller.Name }},
		{Name: "Plan", Long: true, Cell: func(f *ForSale) string { return short(f.Offer.Party) + "/" + f.Offer.ID + "/" + f.Plan.ID }},
		{Name: "Gives", Cell: func(f *ForSale) string { return sheet.Amount(f.Granted.List()) }},
		{Name: "Price", Cell: func(f *ForSale) string { return f.Price.String() }},
		{Name: "Region", Cell: func(f *ForSale) string { return f.Offer.Region }},
		{Name: "Left", Cell: func(f *ForSale) string { return strconv.FormatInt(f.Plan.Available, 10) }},
		{Name: "Valid for", Cell: func(f *ForSale) string { return duration.HumanDuration(f.Offer.ValidUntil.Sub(now)) }},
		{Name: "Alive", Cell: func(f *ForSale) string { return strconv.FormatBool(f.Seller.Alive) }},
		{Name: "Kind", Wide: true, Cell: func(f *ForSale) string { return string(f.Offer.Kind) }},
		{Name: "Architectures", Wide: true, Cell: func(f *ForSale) string { return strings.Join(f.Offer.Architectures, ",") }},
		{Name: "Title", Wide: true, Cell: func(f *ForSale) string { return f.Offer.Name }},
		{Name: "Availability", Wide: true, Cell: func(f *ForSale) string { return f.Offer.Properties[offer.SLAAvailability] }},
		{Name: "Terms", Wide: true, Cell: func(f *ForSale) string { return f.Offer.Properties[offer.TermsURL] }},
		{Name: "Registries", Wide: true, Cell: func(f *ForSale) string { return strings.Join(f.Registries, ",") }},
		{Name: "Party ID", Wide: true, Cell: func(f *ForSale) string { return f.Offer.Party }},
	})
}

// OwnOffers returns a row for each Offer of this cluster, in their order.
func OwnOffers(now time.Time, offers []connectorv1alpha1.Offer) *metav1.Table {
	type own = connectorv1alpha1.Offer
	return sheet.Table(offers, []sheet.Column[own]{
		{Name: "Name", Cell: func(o *own) string { return o.Name }},
		{Name: "Title", Cell: func(o *own) string { return o.Spec.Title }},
		{Name: "Sale", Cell: func(o *own) string { return string(o.Spec.Sale) }},
		{Name: "Published", Cell: func(o *own) string { return sheet.State(o.Status.Conditions, connectorv1alpha1.ConditionPublished) }},
		{Name: "Reason", Cell: func(o *own) string { return firstFalse(o.Status.Conditions) }},
		{Name: "Sold", Cell: func(o *own) string { return strconv.Itoa(int(o.Status.Sold)) }},
		{Name: "Left", Cell: func(o *own) string {
			var left []string
			for _, p := range o.Status.Plans {
				left = append(left, fmt.Sprintf("%s: %d", p.ID, p.Available))
			}
			return strings.Join(left, ", ")
		}},
		{Name: "Age", Cell: func(o *own) string { return sheet.Since(now, o.CreationTimestamp) }},
		{Name: "Revision", Wide: true, Cell: func(o *own) string { return strconv.FormatInt(o.Status.Revision, 10) }},
		{Name: "Message", Wide: true, Long: true, Cell: func(o *own) string {
			for _, c := range o.Status.Conditions {
				if c.Status != metav1.ConditionTrue {
					return c.Message
				}
			}
			return ""
		}},
	})
}

// Contracts returns a row for each contract, in their order.
func Contracts(now time.Time, contracts []Contract) *metav1.Table {
	return sheet.Table(contracts, []sheet.Column[Contract]{
		{Name: "Name", Long: true, Cell: func(c *Contract) string { return c.Name }},
		{Name: "Side", Cell: func(c *Contract) string { return c.Side() }},
		{Name: "With", Cell: func(c *Contract) string { return c.PartyName }},
		{Name: "Offer", Cell: func(c *Contract) string { return strings.Trim(c.Offer+"/"+c.Plan, "/") }},
		{Name: "State", Cell: func(c *Contract) string { return c.Status.State }},
		{Name: "Ready", Cell: func(c *Contract) string { return sheet.State(c.Status.Conditions, connectorv1alpha1.ConditionReady) }},
		{Name: "Reason", Cell: func(c *Contract) string { return sheet.Reason(c.Status.Conditions, connectorv1alpha1.ConditionReady) }},
		{Name: "Size", Cell: func(c *Contract) string { return sheet.Amount(c.Status.Resources) }},
		{Name: "Price", Cell: func(c *Contract) string { return statusPrice(c.Status.Price) }},
		{Name: "Ends in", Cell: func(c *Contract) string { return until(now, c.Status.EndTime) }},
		{Name: "Node", Wide: true, Cell: func(c *Contract) string { return strings.Join(c.Nodes, ",") }},
		{Name: "Cluster", Wide: true, Cell: func(c *Contract) string { return c.Status.Cluster.Name }},
		{Name: "Terms", Wide: true, Cell: func(c *Contract) string { return c.document(offer.TermsURL, offer.TermsSHA256, shortDigest) }},
		{Name: "SLA", Wide: true, Cell: func(c *Contract) string { return c.promise(shortDigest) }},
		{Name: "Party ID", Wide: true, Cell: func(c *Contract) string { return c.Party }},
		{Name: "Age", Wide: true, Cell: func(c *Contract) string { return sheet.Since(now, c.Created) }},
	})
}

// shortDigest is how many digits of a digest a table has, of the 64 that there are.
const shortDigest = 12

// document returns where a document of the contract is, and so many digits of its digest; empty if there is none.
func (c *Contract) document(url, digest string, digits int) string {
	where, is := string(c.Status.Documents[url]), string(c.Status.Documents[digest])
	return strings.TrimSpace(where + " " + is[:min(len(is), digits)])
}

// promise returns for how much of a month the seller promises its service, and by which document; empty if it promises nothing.
func (c *Contract) promise(digits int) string {
	text := c.document(offer.SLAURL, offer.SLASHA256, digits)
	if available := c.Status.Documents[offer.SLAAvailability]; available != "" {
		text = strings.TrimSpace(string(available) + " % " + text)
	}
	return text
}

// until returns in how long something is; "over" if it was.
func until(now time.Time, then *metav1.Time) string {
	switch {
	case then.IsZero():
		return ""
	case !now.Before(then.Time):
		return "over"
	}
	return duration.HumanDuration(then.Sub(now))
}

func statusPrice(p *connectorv1alpha1.Price) string {
	if p == nil {
		return ""
	}
	price, err := objects.ReadPrice(*p)
	if err != nil {
		return string(p.Amount) + " " + p.Currency + "/" + string(p.Period)
	}
	return price.String()
}

// ParsePrice reads a price as people are shown it, with a period that may also be written as objects have it. The error says how a price is
// written.
func ParsePrice(text string) (offer.Price, error) {
	wrong := fmt.Errorf("%.40q is not a price such as \"0.1 EUR/h\"; a period is min, h, d, w, mo or y, or as 24h or P1D", text)
	money, rest, _ := strings.Cut(strings.TrimSpace(text), " ")
	currency, per, found := strings.Cut(rest, "/")
	amount, err := offer.ParseAmount(money)
	if err != nil || !found || len(currency) != 3 {
		return offer.Price{}, wrong
	}
	for _, known := range offer.Periods() {
		if per == known.Short() {
			return offer.Price{Amount: amount, Currency: currency, Period: known}, nil
		}
	}
	of, err := offer.ParsePeriod(per)
	if err != nil {
		return offer.Price{}, wrong
	}
	return offer.Price{Amount: amount, Currency: currency, Period: of}, nil
}

// Describe returns all that there is to say of a contract, in lines.
func (c *Contract) Describe(now time.Time) string {
	var text strings.Builder
	line := func(name, value string) {
		if value = sheet.Sentence(value); value != "" {
			fmt.Fprintf(&text, "%-10s %s\n", name+":", value)
		}
	}
	line("Name", c.Name)
	line("Side", "this cluster "+c.Side())
	line("With", strings.TrimSpace(c.PartyName+" "+c.Party))
	line("Offer", strings.Trim(c.Offer+"/"+c.Plan, "/"))
	line("Contract", c.Status.ContractID)
	line("State", c.Status.State)
	line("Size", sizes(c.Status.Resources))
	line("Price", statusPrice(c.Status.Price))
	if !c.Status.StartTime.IsZero() {
		line("Starts", c.Status.StartTime.UTC().Format(time.RFC3339))
	}
	if !c.Status.EndTime.IsZero() {
		line("Ends", c.Status.EndTime.UTC().Format(time.RFC3339)+" ("+until(now, c.Status.EndTime)+")")
	}
	line("Terms", c.document(offer.TermsURL, offer.TermsSHA256, 64)) //nolint:mnd // All digits of a SHA-256.
	line("SLA", c.promise(64))                                       //nolint:mnd // The same.
	if c.Asked != nil {
		line("Asked for", c.Asked.String())
	}
	line("Cluster", strings.TrimSpace(c.Status.Cluster.Name+" "+c.Status.Cluster.ID))
	line("Nodes", strings.Join(c.Nodes, ", "))
	for _, condition := range c.Status.Conditions {
		line(condition.Type, fmt.Sprintf("%s for %s. %s", condition.Status, condition.Reason, condition.Message))
	}
	return text.String()
}

// sizes returns all resources, in the order of their names.
func sizes(of corev1.ResourceList) string {
	all := make([]string, 0, len(of))
	for name, quantity := range of {
		all = append(all, quantity.String()+" of "+string(name))
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

// Transitions returns a row for each step of a contract, in their order.
func Transitions(steps []contract.Transition) *metav1.Table {
	return sheet.Table(steps, []sheet.Column[contract.Transition]{
		{Name: "Time", Cell: func(t *contract.Transition) string { return t.At.UTC().Format(time.RFC3339) }},
		{Name: "Event", Cell: func(t *contract.Transition) string { return string(t.Event) }},
		{Name: "From", Cell: func(t *contract.Transition) string { return string(t.From) }},
		{Name: "To", Cell: func(t *contract.Transition) string { return string(t.To) }},
		{Name: "Terms", Cell: func(t *contract.Transition) string { return strconv.FormatInt(t.Revision, 10) }},
		{Name: "Reason", Long: true, Cell: func(t *contract.Transition) string { return t.Reason }},
	})
}
