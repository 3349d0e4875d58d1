// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/capacitorset/liqo-broker/pkg/serving/rest"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/offer"
	"github.com/capacitorset/liqo-broker/pkg/trade/registry/journal"
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
	cost    int    // What it has cost to compile the expression.
}

// compile reads the filters. The error names the one that is wrong. An expression is read at last, within a turn.
func (f *Filters) compile(known *expressions) (*filter, error) {
	of := offer.Filter{
		Resources: offer.Resources{}, Currency: f.Currency, Regions: f.Regions, Architectures: f.Architectures, Parties: f.Parties,
	}
	for _, text := range f.Resources {
		name, amount, found := strings.Cut(text, "=")
		if !found || name == "" {
			return nil, rest.Wrong(http.StatusUnprocessableEntity, "query.resource", fmt.Errorf("%.64q is not NAME=QUANTITY", text))
		}
		quantity, err := offer.ParseQuantity(amount)
		if err != nil {
			return nil, rest.Wrong(http.StatusUnprocessableEntity, "query.resource", fmt.Errorf("%.64s: %w", name, err))
		}
		if _, twice := of.Resources[name]; twice {
			return nil, rest.Wrong(http.StatusUnprocessableEntity, "query.resource", fmt.Errorf("%.64s is given twice", name))
		}
		of.Resources[name] = quantity
	}
	for _, kind := range f.Kinds {
		of.Kinds = append(of.Kinds, offer.Kind(kind))
	}
	// Prices are compared in one currency, and for an hour.
	if (f.MaxPrice == "") != (f.Currency == "") {
		return nil, rest.Wrong(http.StatusUnprocessableEntity, "query.maxPrice",
			errors.New("needs the parameter currency, and the other way round"))
	}
	if f.MaxPrice != "" {
		amount, err := offer.ParseAmount(f.MaxPrice)
		if err != nil {
			return nil, rest.Wrong(http.StatusUnprocessableEntity, "query.maxPrice", err)
		}
		of.MaxPrice = &offer.Price{Amount: amount, Currency: f.Currency, Period: offer.Hour}
	}
	// All else is checked before an expression costs anything.
	matcher, err := of.CompileWith(nil)
	if err != nil {
		return nil, rest.Wrong(http.StatusUnprocessableEntity, "query."+parameterOf(err), err)
	}
	cost := 0
	if f.Expression != "" {
		expression, fresh, err := known.get(f.Expression)
		if fresh {
			cost = effortOfText * len(f.Expression)
		}
		if err != nil {
			return &filter{cost: cost}, rest.Wrong(http.StatusUnprocessableEntity, "query.expression", err)
		}
		if matcher, err = of.CompileWith(expression); err != nil {
			return nil, err
		}
	}
	// The text is what makes two questions the same: a page goes on only for the question that it is of.
	text := fmt.Sprintf("%q", []any{
		f.Resources, f.MaxPrice, f.Currency, f.Regions, f.Architectures, f.Kinds, f.Parties, f.Expression, f.Alive,
	})
	return &filter{matcher: matcher, alive: f.Alive, none: f.empty(), text: text, cost: cost}, nil
}

// parameterOf returns the parameter that an error of a filter is about: all have a field, whose path begins with it.
func parameterOf(err error) string {
	field := &offer.FieldError{}
	_ = errors.As(err, &field)
	if name, _, _ := strings.Cut(strings.ReplaceAll(field.Field, "[", "."), "."); name != "resources" {
		return name
	}
	return "resource"
}

// empty reports whether all offers pass but for whether their parties are alive.
func (f *Filters) empty() bool {
	return len(f.Resources)+len(f.Regions)+len(f.Architectures)+len(f.Kinds)+len(f.Parties) == 0 && f.MaxPrice+f.Expression == ""
}

// admits reports whether an offer passes, and what its expression has cost.
func (f *filter) admits(view *journal.View, e *journal.Entry) (passes bool, cost int) {
	if f.alive != "" && (f.alive == "true") != aliveIn(view, e) {
		return false, 0
	}
	return f.passes(e)
}

// passes is admits, whether the party is alive or not.
func (f *filter) passes(e *journal.Entry) (passes bool, cost int) {
	if f.none {
		return true, 0
	}
	return f.matcher.Matches(&e.Offer.Offer)
}

// filtering compiles the filters of a caller. Who gets a filter must call end; if it has an expression, the turn to evaluate it lasts until
// then.
func (s *Server) filtering(ctx context.Context, f *Filters) (compiled *filter, end func(), err error) {
	who, end := callerFrom(ctx), func() {}
	if f.Expression != "" {
		if end, err = s.effort.begin(ctx, who); err != nil {
			return nil, nil, err
		}
	}
	compiled, err = f.compile(s.expressions)
	if compiled != nil && compiled.cost > 0 {
		s.effort.spend(who, compiled.cost)
	}
	if err != nil {
		end()
		return nil, nil, err
	}
	return compiled, end, nil
}

// wants returns the filter of a watch; nil if all offers pass. A watcher whose filter costs more than its share waits.
func (s *Server) wants(ctx context.Context, who caller, f *filter) journal.Filter {
	if f.none {
		return nil
	}
	return func(e *journal.Entry) bool {
		passes, cost := f.passes(e)
		if cost > 0 {
			_ = s.effort.wait(ctx, who, cost) // A watch that ends is noticed where it is sent.
		}
		return passes
	}
}
