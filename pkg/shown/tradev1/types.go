// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tradev1 is what people and programs are shown of a cluster that trades, and what they order there. Times are as in RFC 3339,
// quantities as Kubernetes writes them, and money is exact. Texts of others are plain, and short.
//
// It does not know where it is read, nor to whom it is shown.
package tradev1

import "time"

// Quantities are amounts of resources, by name, as Kubernetes writes them.
type Quantities map[string]string

// Money is an amount of a currency.
type Money struct {
	Amount   string `json:"amount" doc:"A decimal number, exact."`
	Currency string `json:"currency" doc:"ISO 4217."`
}

// Price is money for a period.
type Price struct {
	Money

	Period string `json:"period" doc:"As ISO 8601 writes it."`
	Text   string `json:"text" doc:"For people, as 0.1 EUR/h."`
}

// Party is who buys or sells.
type Party struct {
	ID    string `json:"id"`
	Short string `json:"short" doc:"The beginning of the ID."`
	Name  string `json:"name" doc:"What it calls itself. It is not distinct."`
}

// Seller is a party that has offers.
type Seller struct {
	Party

	Alive   bool     `json:"alive" doc:"Whether a registry has heard of it recently."`
	Offers  int      `json:"offers"`
	Regions []string `json:"regions,omitempty" nullable:"false"`
}

// Document is a text that a contract is under.
type Document struct {
	URL    string `json:"url"`
	SHA256 string `json:"sha256,omitempty"`
}

// Promise is what a seller promises of its service. Nobody has measured it.
type Promise struct {
	Availability string    `json:"availability,omitempty" doc:"Percent of a month."`
	Credit       string    `json:"credit,omitempty" doc:"Percent of the price that is not owed if it is broken."`
	Document     *Document `json:"document,omitempty"`
}

// Measured is what a seller says to have measured, and has signed.
type Measured struct {
	Name    string    `json:"name"`
	Value   float64   `json:"value"`
	Unit    string    `json:"unit,omitempty"`
	At      time.Time `json:"at"`
	By      Party     `json:"by"`
	Samples int64     `json:"samples"`
}

// UnitPrice is what some of a resource costs.
type UnitPrice struct {
	Amount string `json:"amount"`
	Per    string `json:"per"`
}

// Range is what a buyer may choose.
type Range struct {
	Min        Quantities           `json:"min"`
	Max        Quantities           `json:"max"`
	Step       Quantities           `json:"step"`
	UnitPrices map[string]UnitPrice `json:"unitPrices,omitempty" doc:"For the period of the price, in its currency."`
}

// PlanForSale is a plan that can be bought, for what somebody needs.
type PlanForSale struct {
	Reference     string            `json:"reference" doc:"PARTY/OFFER/PLAN."`
	Seller        Party             `json:"seller"`
	Alive         bool              `json:"alive" doc:"Whether a registry has heard of the seller recently."`
	Offer         string            `json:"offer"`
	Title         string            `json:"title"`
	Description   string            `json:"description,omitempty"`
	Plan          string            `json:"plan"`
	PlanTitle     string            `json:"planTitle,omitempty"`
	Granted       Quantities        `json:"granted" doc:"What a buyer gets for what it needs."`
	Price         Price             `json:"price" doc:"What that costs."`
	Total         *Money            `json:"total,omitempty" doc:"What that costs for as long as it is needed."`
	Base          Price             `json:"base" doc:"Of a plan with a range, the part of the price that does not depend on the amount."`
	Kind          string            `json:"kind" enum:"Cluster,Broker"`
	Type          string            `json:"type,omitempty"`
	Region        string            `json:"region,omitempty"`
	Zone          string            `json:"zone,omitempty"`
	Architectures []string          `json:"architectures,omitempty" nullable:"false"`
	Labels        map[string]string `json:"labels,omitempty"`
	Left          int64             `json:"left" doc:"How many more contracts there could be when the offer was signed."`
	Issued        time.Time         `json:"issued"`
	ValidUntil    time.Time         `json:"validUntil"`
	Registries    []string          `json:"registries" nullable:"false"`
	MinDuration   string            `json:"minDuration,omitempty"`
	MaxDuration   string            `json:"maxDuration,omitempty"`
	Notice        string            `json:"notice,omitempty" doc:"For how long a seller that ends it early goes on giving, and a buyer goes on paying."`
	Range         *Range            `json:"range,omitempty"`
	Terms         *Document         `json:"terms,omitempty"`
	Promise       *Promise          `json:"promise,omitempty"`
	Measured      []Measured        `json:"measured,omitempty" nullable:"false"`
}

// Market says that what is for sale may be otherwise than before.
type Market struct {
	Revision string   `json:"revision" doc:"Changes with what is for sale."`
	Sellers  []Seller `json:"sellers" nullable:"false" doc:"At most 250."`
	More     int      `json:"more,omitempty" doc:"How many further sellers there are."`
	Offers   int      `json:"offers"`
	LeftOut  int      `json:"leftOut,omitempty" doc:"Parties and offers that are not shown: they are over, or not what their owners have signed."`
	Regions  []string `json:"regions,omitempty" nullable:"false" doc:"Where something is for sale; at most 250."`
	Self     *Party   `json:"self,omitempty" doc:"This cluster, if it has signed an offer."`
}

// Need is what somebody looks for. What is left out does not count.
type Need struct {
	Resources     Quantities `json:"resources,omitempty" doc:"At least."`
	Duration      string     `json:"duration,omitempty" doc:"As 24h."`
	MaxPrice      string     `json:"maxPrice,omitempty" doc:"As 0.5 EUR/h."`
	Regions       []string   `json:"regions,omitempty" nullable:"false"`
	Architectures []string   `json:"architectures,omitempty" nullable:"false"`
	Sellers       []string   `json:"sellers,omitempty" nullable:"false" doc:"Party IDs."`
	Expression    string     `json:"expression,omitempty" doc:"In CEL, about offer and plan."`
}

// Found is what fits a need, in the order in which a connector buys it.
type Found struct {
	Plans   []PlanForSale `json:"plans" nullable:"false" doc:"At most 250."`
	More    int           `json:"more,omitempty" doc:"How many further plans there are."`
	LeftOut int           `json:"leftOut,omitempty" doc:"Parties and offers that are not shown: they are over, or not what their owners have signed."`
}

// Order is what is to be bought: the best of what fits, or one plan.
type Order struct {
	Need

	Name      string `json:"name" doc:"That of the CapacityRequest or Purchase."`
	Reference string `json:"reference,omitempty" doc:"PARTY/OFFER/PLAN; without it, whatever is the best choice."`
	MaxTotal  string `json:"maxTotal,omitempty" doc:"As 100 EUR."`
	Renew     bool   `json:"renew,omitempty"`
}

// Ordered is what was written, and what fits it now.
type Ordered struct {
	Kind  string        `json:"kind" enum:"Purchase,CapacityRequest"`
	Name  string        `json:"name"`
	Would []PlanForSale `json:"would" nullable:"false" doc:"At most 5; the first would be bought now."`
}

// Condition is one of the conditions of an object.
type Condition struct {
	Type    string    `json:"type"`
	Status  string    `json:"status"`
	Reason  string    `json:"reason"`
	Message string    `json:"message,omitempty"`
	Since   time.Time `json:"since"`
}

// Cost is what is owed for a contract.
type Cost struct {
	SoFar    []Money `json:"soFar,omitempty" nullable:"false" doc:"A sum for each currency; none if nothing is owed."`
	ToTheEnd []Money `json:"toTheEnd,omitempty" nullable:"false" doc:"If it goes on as it is."`
	MaxTotal *Money  `json:"maxTotal,omitempty" doc:"What the buyer allows."`
}

// Asked is what a buyer asks for in the place of the terms in force.
type Asked struct {
	Plan      string     `json:"plan,omitempty" doc:"Another plan; empty for the same."`
	Resources Quantities `json:"resources,omitempty"`
	Price     Price      `json:"price"`
	End       time.Time  `json:"end"`
}

// Step is what became of a contract at some time.
type Step struct {
	At     time.Time `json:"at"`
	Event  string    `json:"event"`
	From   string    `json:"from,omitempty"`
	To     string    `json:"to"`
	Terms  int64     `json:"terms"`
	Reason string    `json:"reason,omitempty"`
}

// Cluster is one of Liqo.
type Cluster struct {
	ID   string `json:"id"`
	Name string `json:"name,omitempty"`
}

// Contract is one by which a cluster buys or sells.
type Contract struct {
	Sold       bool        `json:"sold"`
	Name       string      `json:"name" doc:"That of the Purchase or Sale."`
	Party      Party       `json:"party" doc:"Who is at the other side."`
	Request    string      `json:"request,omitempty" doc:"The CapacityRequest that has bought."`
	Offer      string      `json:"offer,omitempty"`
	Plan       string      `json:"plan,omitempty"`
	ContractID string      `json:"contractID,omitempty"`
	State      string      `json:"state,omitempty" doc:"Empty if the seller has not answered yet."`
	Ready      Condition   `json:"ready"`
	Conditions []Condition `json:"conditions,omitempty" nullable:"false"`
	Resources  Quantities  `json:"resources,omitempty"`
	Price      *Price      `json:"price,omitempty"`
	Start      *time.Time  `json:"start,omitempty"`
	End        *time.Time  `json:"end,omitempty"`
	PaidUntil  *time.Time  `json:"paidUntil,omitempty"`
	Created    time.Time   `json:"created"`
	Cost       *Cost       `json:"cost,omitempty" doc:"Missing if it cannot be said."`
	Nodes      []string    `json:"nodes,omitempty" nullable:"false"`
	PodsLeft   int32       `json:"podsLeft,omitempty" doc:"Pods that still have to leave."`
	Cluster    *Cluster    `json:"cluster,omitempty"`
	Suspended  bool        `json:"suspended,omitempty" doc:"This cluster, which sells, wants to grant nothing."`
	Ending     bool        `json:"ending,omitempty" doc:"This cluster wants it to end."`
	Renew      bool        `json:"renew,omitempty"`
	Waits      int64       `json:"waits,omitempty" doc:"The number of the terms about which this cluster has to decide."`
	Asked      *Asked      `json:"asked,omitempty" doc:"What these are, of a contract that is in force."`
	Terms      *Document   `json:"terms,omitempty"`
	Promise    *Promise    `json:"promise,omitempty"`
	Steps      []Step      `json:"steps,omitempty" nullable:"false"`
	Deeds      []string    `json:"deeds" nullable:"false" doc:"What this side can do with it now: end, resize, renew, approve, refuse, suspend, resume."`
	Version    string      `json:"version" doc:"Changes with what people of this cluster want of it."`
}

// Deed is what is decided about a contract.
type Deed struct {
	Version   string     `json:"version" doc:"That of the contract as it was seen."`
	Reason    string     `json:"reason,omitempty" doc:"What the other side is told."`
	Terms     int64      `json:"terms,omitempty" doc:"The terms that are approved or refused."`
	Plan      string     `json:"plan,omitempty"`
	Resources Quantities `json:"resources,omitempty"`
	Until     *time.Time `json:"until,omitempty"`
}

// Request is capacity that is needed: the connector buys what fits best.
type Request struct {
	Name       string     `json:"name"`
	Created    time.Time  `json:"created"`
	Ready      Condition  `json:"ready"`
	Purchase   string     `json:"purchase,omitempty" doc:"The Purchase that serves it."`
	Resources  Quantities `json:"resources"`
	Duration   string     `json:"duration"`
	Renew      bool       `json:"renew,omitempty"`
	MaxPrice   *Price     `json:"maxPrice,omitempty"`
	MaxTotal   *Money     `json:"maxTotal,omitempty"`
	Regions    []string   `json:"regions,omitempty" nullable:"false"`
	Expression string     `json:"expression,omitempty"`
}

// OwnPlan is a plan of an offer of this cluster.
type OwnPlan struct {
	ID        string     `json:"id"`
	Title     string     `json:"title,omitempty"`
	Price     Price      `json:"price"`
	Resources Quantities `json:"resources,omitempty"`
	Range     *Range     `json:"range,omitempty"`
	Stock     *int64     `json:"stock,omitempty" doc:"How many contracts there may be at a time; missing if only the capacity counts."`
	Sold      int64      `json:"sold"`
	Left      int64      `json:"left"`
}

// Rule decides about who wants to buy.
type Rule struct {
	Expression string `json:"expression" doc:"In CEL."`
	Verdict    string `json:"verdict" enum:"Accept,Ask,Deny"`
}

// OwnOffer is an offer of this cluster.
type OwnOffer struct {
	Name       string      `json:"name"`
	Title      string      `json:"title"`
	Open       bool        `json:"open" doc:"Whether it is for sale."`
	Region     string      `json:"region,omitempty"`
	Conditions []Condition `json:"conditions,omitempty" nullable:"false"`
	Sold       int32       `json:"sold" doc:"How many contracts hold something of it."`
	Revision   int64       `json:"revision,omitempty"`
	Created    time.Time   `json:"created"`
	ValidUntil *time.Time  `json:"validUntil,omitempty"`
	Plans      []OwnPlan   `json:"plans" nullable:"false"`
	Rules      []Rule      `json:"rules,omitempty" nullable:"false" doc:"The first whose expression is true decides."`
	Otherwise  string      `json:"otherwise,omitempty" doc:"What is decided where none is."`
}

// Registry is one that this cluster uses.
type Registry struct {
	Name       string      `json:"name"`
	URL        string      `json:"url"`
	Publish    bool        `json:"publish" doc:"Whether the offers of this cluster are published there."`
	Conditions []Condition `json:"conditions,omitempty" nullable:"false"`
	Parties    int32       `json:"parties"`
	Offers     int32       `json:"offers"`
	LeaseUntil *time.Time  `json:"leaseUntil,omitempty" doc:"Until when it takes this cluster for alive."`
	Created    time.Time   `json:"created"`
}

// Field returns under which name an event has the value: it is one of the kinds of trade.
func (Contract) Field() string { return "contract" }

// Field does the same.
func (Request) Field() string { return "request" }

// Field does the same.
func (OwnOffer) Field() string { return "ownOffer" }

// Field does the same.
func (Registry) Field() string { return "registry" }

// Field does the same.
func (Market) Field() string { return "market" }
