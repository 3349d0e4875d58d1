// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"net/http"

	"github.com/capacitorset/liqo-broker/pkg/core/offer"
	"github.com/capacitorset/liqo-broker/pkg/registry/catalog"
	"github.com/capacitorset/liqo-broker/pkg/registry/registryv1"
)

// CatalogV0 is what a cluster offers, in the form that older programs read. It has no token: what lets a buyer peer is given to it when both have signed.
type CatalogV0 struct {
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

// older registers the catalog in the older form.
func (s *Server) older() {
	op := s.operation("getCatalogV0", http.MethodGet, "", reads, "Get the whole catalog in the form of version 0")
	op.Path, op.Deprecated = registryv1.PathV0, true
	register(s, op, func(context.Context, *struct{}) (*struct{ Body []CatalogV0 }, error) {
		return &struct{ Body []CatalogV0 }{v0(s.catalog.View())}, nil
	})
}

// v0 returns a view in the older form. Parties without offers are left out.
func v0(view *catalog.View) []CatalogV0 {
	all := []CatalogV0{}
	var owner *registryv1.Party
	for _, e := range view.After(catalog.Key{}) {
		if e.Party != nil {
			owner = e.Party
			continue
		}
		if owner == nil || owner.ID != e.Key.Party {
			continue // Its party is on its way.
		}
		if n := len(all); n == 0 || all[n-1].ClusterID != owner.ID {
			all = append(all, CatalogV0{ClusterID: owner.ID, ClusterName: owner.Name, Endpoint: owner.Endpoint, ContractEndpoint: owner.Endpoint})
		}
		of := &all[len(all)-1]
		of.Created = max(of.Created, e.Offer.IssuedAt.Unix())
		of.Offers = append(of.Offers, offerV0(owner, &e.Offer.Offer))
	}
	return all
}

// offerV0 returns an offer in the older form.
func offerV0(owner *registryv1.Party, o *offer.Offer) OfferV0 {
	older := OfferV0{
		OfferID: owner.ID + "_" + o.ID, OfferName: o.Name, OfferType: o.Type, Description: o.Description, ClusterID: owner.ID, PrettyName: owner.Name,
		Created: o.IssuedAt.UnixMilli(), Status: owner.Alive, Plans: []PlanV0{},
	}
	for _, plan := range o.Plans {
		if plan.Range != nil {
			continue
		}
		cost, _ := plan.Price.Amount.Rat().Float64()
		resources := make(map[string]string, len(plan.Resources))
		for name, quantity := range plan.Resources {
			resources[name] = quantity.String()
		}
		older.Plans = append(older.Plans, PlanV0{
			PlanID: older.OfferID + "_" + plan.ID, PlanName: plan.Name, PlanCost: cost, CostCurrency: plan.Price.Currency, CostPeriod: periodV0(plan.Price.Period),
			PlanQuantity: plan.Available, Resources: resources,
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
