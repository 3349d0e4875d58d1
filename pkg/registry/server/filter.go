// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/capacitorset/liqo-broker/pkg/core/offer"
	"github.com/capacitorset/liqo-broker/pkg/registry/catalog"
)

// Filters are which offers are asked for. Several values of one mean any of them, and several of them mean all.
type Filters struct {
	Resources     []string `doc:"What one plan of the offer must have at least, such as cpu=4 or memory=16Gi; once for each resource."                                maxItems:"32"     maxLength:"384"        query:"resource,explode"`
	MaxPrice      string   `doc:"What an hour of one plan may cost at most, such as 0.10, in the currency of the parameter currency."                                 maxLength:"32"    query:"maxPrice"`
	Currency      string   `doc:"The currency of the parameter maxPrice, as a code of ISO 4217. Prices in other currencies are not compared: such plans do not pass." maxLength:"3"     pattern:"^[A-Z]{3}$"   query:"currency"`
	Regions       []string `maxItems:"32"                                                                                                                             maxLength:"256"   query:"region,explode"`
	Architectures []string `doc:"Such as amd64: one of them is enough."                                                                                               maxItems:"8"      maxLength:"64"         query:"architecture,explode"`
	Kinds         []string `enum:"Cluster,Broker"                                                                                                                     maxItems:"2"      query:"kind,explode"`
	Parties       []string `doc:"IDs of parties."                                                                                                                     maxItems:"32"     maxLength:"52"         query:"party,explode"`
	Expression    string   `doc:"An expression in CEL about the offer and its plans."                                                                                 maxLength:"1024"  query:"expression"`
	Alive         string   `doc:"Only offers of parties that are alive, or that are not. A watch has no such filter: it has the parties."                             enum:"true,false" query:"alive"`
}

// filter is which offers are asked for, ready to be asked of many.
type filter struct {
	matcher offer.Matcher
	alive   string
	none    bool   // All offers pass.
	text    string // The filter as it is written.
}

// compile reads the filters. The error names the one that is wrong.
func (f *Filters) compile(known *expressions) (*filter, error) {
	of := offer.Filter{
		Resources: offer.Resources{}, Currency: f.Currency, Regions: f.Regions, Architectures: f.Architectures, Parties: f.Parties,
	}
	for _, text := range f.Resources {
		name, amount, found := strings.Cut(text, "=")
		if !found || name == "" {
			return nil, wrong(http.StatusUnprocessableEntity, "query.resource", fmt.Errorf("%.64q is not NAME=QUANTITY", text))
		}
		quantity, err := offer.ParseQuantity(amount)
		if err != nil {
			return nil, wrong(http.StatusUnprocessableEntity, "query.resource", fmt.Errorf("%.64s: %w", name, err))
		}
		if _, twice := of.Resources[name]; twice {
			return nil, wrong(http.StatusUnprocessableEntity, "query.resource", fmt.Errorf("%.64s is given twice", name))
		}
		of.Resources[name] = quantity
	}
	for _, kind := range f.Kinds {
		of.Kinds = append(of.Kinds, offer.Kind(kind))
	}
	if (f.MaxPrice == "") != (f.Currency == "") {
		return nil, wrong(http.StatusUnprocessableEntity, "query.maxPrice", errors.New("needs the parameter currency, and the other way round"))
	}
	if f.MaxPrice != "" {
		amount, err := offer.ParseAmount(f.MaxPrice)
		if err != nil {
			return nil, wrong(http.StatusUnprocessableEntity, "query.maxPrice", err)
		}
		of.MaxPrice = &offer.Price{Amount: amount, Currency: f.Currency, Period: offer.Hour}
	}
	var expression *offer.Expression
	if f.Expression != "" {
		var err error
		if expression, err = known.get(f.Expression); err != nil {
			return nil, wrong(http.StatusUnprocessableEntity, "query.expression", err)
		}
	}
	matcher, err := of.CompileWith(expression)
	if err != nil {
		return nil, wrong(http.StatusUnprocessableEntity, "query."+fieldOf(err), err)
	}
	text := fmt.Sprintf("%q", []any{f.Resources, f.MaxPrice, f.Currency, f.Regions, f.Architectures, f.Kinds, f.Parties, f.Expression, f.Alive})
	return &filter{matcher: matcher, alive: f.Alive, none: f.empty(), text: text}, nil
}

// fieldOf returns the parameter that an error of a filter is about. It begins with the field.
func fieldOf(err error) string {
	field := err.Error()[:strings.IndexAny(err.Error()+":", ":[.")]
	if field == "resources" {
		return "resource"
	}
	return field
}

// empty reports whether all offers pass but for whether their parties are alive.
func (f *Filters) empty() bool {
	return len(f.Resources)+len(f.Regions)+len(f.Architectures)+len(f.Kinds)+len(f.Parties) == 0 && f.MaxPrice+f.Expression == ""
}

// admits reports whether an offer passes.
func (f *filter) admits(view *catalog.View, e *catalog.Entry) bool {
	return (f.alive == "" || (f.alive == "true") == aliveIn(view, e)) && (f.none || f.matcher.Matches(&e.Offer.Offer))
}

// wants returns the filter of a watch; nil if all offers pass.
func (f *filter) wants() catalog.Filter {
	if f.none {
		return nil
	}
	return func(e *catalog.Entry) bool { return f.matcher.Matches(&e.Offer.Offer) }
}
