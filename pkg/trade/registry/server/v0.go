// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"net/url"

	"github.com/capacitorset/liqo-broker/pkg/serving/rest"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/offer"
	"github.com/capacitorset/liqo-broker/pkg/trade/registry/journal"
	"github.com/capacitorset/liqo-broker/pkg/trade/registry/registryv1"
)

// OffersV0 is what a cluster offers, in the form that older programs read. It has no token: what lets a buyer peer is given to it when both
// have signed.
type OffersV0 struct {
	ClusterID        string    `doc:"The party's ID."                                        json:"clusterID"`
	ClusterName      string    `json:"clusterName"`
	Endpoint         string    `doc:"Where the party's connector negotiates."                json:"endpoint"`
	ContractEndpoint string    `doc:"As endpoint."                                           json:"clusterContractEndpoint"`
	Created          int64     `doc:"When its newest offer was made, in seconds since 1970." json:"created"`
	Offers           []OfferV0 `json:"offers"                                                nullable:"false"`
}

// OfferV0 is an offer in that form.
type OfferV0 struct {
	OfferID     string   `json:"offerID"`
	OfferName   string   `json:"offerName"`
	OfferType   string   `json:"offerType"`
	Description string   `json:"description"`
	ClusterID   string   `json:"clusterID"`
	PrettyName  string   `json:"clusterPrettyName"`
	Created     int64    `doc:"In milliseconds since 1970."                              json:"created"`
	Status      bool     `doc:"Whether the party is alive."                              json:"status"`
	Plans       []PlanV0 `doc:"The plans with fixed resources: this form has no ranges." json:"plans"   nullable:"false"`
}

// PlanV0 is a plan in that form.
type PlanV0 struct {
	PlanID       string            `json:"planID"`
	PlanName     string            `json:"planName"`
	PlanCost     float64           `doc:"Rounded to what a number can hold." json:"planCost"`
	CostCurrency string            `json:"planCostCurrency"`
	CostPeriod   string            `enum:"minute,hour,day,week,month,year"   json:"planCostPeriod"`
	PlanQuantity int64             `doc:"How many more can be bought."       json:"planQuantity"`
	Resources    map[string]string `json:"resources"`
}

// offersV0Input is which part is asked for.
type offersV0Input struct{ rest.Paging }

// offersV0Listed is the answer with it.
type offersV0Listed struct {
	ETag string `header:"ETag"`
	Link string `doc:"Where the next offers are, as the relation next (RFC 8288); missing if there are none." header:"Link"`
	Body []OffersV0
}

// soldV0 is an offer with its seller.
type soldV0 struct {
	owner *registryv1.Party
	made  int64
	offer OfferV0
}

// older registers what is offered in the older form.
func (s *Server) older() {
	op := s.listing("getOffersV0", registryv1.PathV0, "Get what is offered in the form of version 0")
	op.Description += " A page is of as many offers as the parameter limit says; a party whose offers are in two of them is in both."
	op.Deprecated = true
	rest.Register(s.api, op, s.offersV0)
}

// offersV0 answers with a page in the older form. Parties without offers are left out.
func (s *Server) offersV0(ctx context.Context, in *offersV0Input) (*offersV0Listed, error) {
	view := s.journal.View()
	owner := func(e *journal.Entry) *registryv1.Party {
		if found := view.Get(offer.Key{Party: e.Key.Party}); found != nil {
			return found.Party
		}
		return nil // Its party is on its way.
	}
	page, err := pageOf(ctx, s, in.Paging, request[soldV0]{
		view: view, filters: "v0",
		keep: func(e *journal.Entry) (bool, int) { return e.Offer != nil && owner(e) != nil, 0 },
		show: func(e *journal.Entry) (soldV0, int, error) {
			by := owner(e)
			sold := soldV0{owner: by, made: e.Offer.IssuedAt.Unix(), offer: offerV0(by, &e.Offer.Offer)}
			const names = 1 << 9 // Of fields, and numbers; what else there is has the offer.
			return sold, 2*(names+len(by.Name)+len(by.Endpoint)) + e.Size() + (names+len(by.ID)+len(sold.offer.OfferID))*len(sold.offer.Plans), nil
		},
	})
	if err != nil {
		return nil, err
	}
	return &offersV0Listed{
		ETag: page.ETag, Body: v0(page.Body.Items), Link: nextPage(registryv1.PathV0, url.Values{}, in.Paging, page.Body.Continue),
	}, nil
}

// v0 gathers offers by their sellers.
func v0(sold []soldV0) []OffersV0 {
	all := []OffersV0{}
	for _, one := range sold {
		if n := len(all); n == 0 || all[n-1].ClusterID != one.owner.ID {
			all = append(all, OffersV0{
				ClusterID: one.owner.ID, ClusterName: one.owner.Name, Endpoint: one.owner.Endpoint, ContractEndpoint: one.owner.Endpoint,
			})
		}
		of := &all[len(all)-1]
		of.Created = max(of.Created, one.made)
		of.Offers = append(of.Offers, one.offer)
	}
	return all
}

// offerV0 returns an offer in the older form.
func offerV0(owner *registryv1.Party, o *offer.Offer) OfferV0 {
	older := OfferV0{
		OfferID: owner.ID + "_" + o.ID, OfferName: o.Name, OfferType: o.Type, Description: o.Description, ClusterID: owner.ID,
		PrettyName: owner.Name, Created: o.IssuedAt.UnixMilli(), Status: owner.Alive, Plans: []PlanV0{},
	}
	for _, plan := range o.Plans {
		if plan.Range != nil {
			continue
		}
		cost, _ := plan.Price.Amount.Rat().Float64()
		older.Plans = append(older.Plans, PlanV0{
			PlanID: older.OfferID + "_" + plan.ID, PlanName: plan.Name, PlanCost: cost, CostCurrency: plan.Price.Currency,
			CostPeriod: periodV0(plan.Price.Period), PlanQuantity: plan.Available, Resources: plan.Resources.Texts(),
		})
	}
	return older
}

// periodV0 returns the word for a period.
func periodV0(p offer.Period) string {
	return map[offer.Period]string{
		offer.Minute: "minute", offer.Hour: "hour", offer.Day: "day", offer.Week: "week", offer.Month: "month", offer.Year: "year",
	}[p]
}
