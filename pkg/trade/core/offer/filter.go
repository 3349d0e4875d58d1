// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package offer

import (
	"fmt"
	"slices"
)

// Filter is what a buyer looks for. What is empty does not count; of a list one is enough.
type Filter struct {
	// Resources are the least that a plan must give.
	Resources Resources
	// MaxPrice is the most that the granted resources may cost. Prices in other currencies, which
	// cannot be compared, do not pass. Its currency can be in Currency instead.
	MaxPrice *Price
	Currency string
	// Duration is for how long a contract is wanted.
	Duration Duration
	// SoldOut lets plans pass of which nothing is available.
	SoldOut bool

	Regions, Architectures, Types, Parties []string
	Kinds                                  []Kind

	// Expression is in CEL, has at most MaxExpression characters, and is true for a plan that passes. One that has
	// no value, as when it asks for a label that is not there, is not true. It builds no lists or maps of what all, exists, exists_one and
	// filter go through, and the macro map is not there. It sees of the offer
	//
	//	offer.party, offer.id, offer.kind, offer.name, offer.type, offer.region, offer.zone   string
	//	offer.revision                                                                       int
	//	offer.architectures                                                                  list of string
	//	offer.labels, offer.properties                                                       map of string to string
	//	offer.kpis        list of maps with the keys name, value, unit, measuredBy and samples
	//
	// and of each plan, with what it would grant for the filter's resources,
	//
	//	plan.id, plan.name, plan.currency                string
	//	plan.resources                                   map of string to double, in cores, bytes and pieces: == 4.0, but < 4
	//	plan.pricePerHour                                double, about; MaxPrice is exact
	//	plan.available                                   int
	//	plan.minDuration, plan.maxDuration, plan.notice  duration
	Expression string
}

// Match is a plan that passes a filter.
type Match struct {
	// Plan is the place of the plan in the offer.
	Plan int
	// Granted is what a buyer gets for the resources of the filter, and Price what that costs.
	Granted Resources
	Price   Price
}

// Matcher is a filter that can be used, also concurrently. The zero Matcher lets pass every plan that is not sold out.
type Matcher struct {
	filter     Filter
	expression *Expression
}

// Compile makes the filter ready for use. The error names the field that is wrong. The matcher does not see
// later changes of the filter's values, but shares its lists and maps.
func (f Filter) Compile() (Matcher, error) {
	if matcher, err := f.CompileWith(nil); err != nil || f.Expression == "" { // The expression costs most to look at.
		return matcher, err
	}
	compiler, err := NewCompiler()
	if err != nil {
		return Matcher{}, err
	}
	compiled, err := compiler.Compile(f.Expression)
	if err != nil {
		return Matcher{}, In("expression", err)
	}
	return f.CompileWith(compiled)
}

// CompileWith is Compile with an expression that has been compiled before, in place of the filter's own; nil lets every plan pass.
func (f Filter) CompileWith(e *Expression) (Matcher, error) {
	if f.MaxPrice != nil {
		most := *f.MaxPrice
		if most.Currency == "" {
			most.Currency = f.Currency
		}
		if f.Currency == "" {
			f.Currency = most.Currency
		}
		if f.Currency != most.Currency {
			return Matcher{}, In("currency", fmt.Errorf("%.32q is not that of the price, %.32q", f.Currency, most.Currency))
		}
		if err := In("maxPrice", most.Validate()); err != nil {
			return Matcher{}, err
		}
		f.MaxPrice = &most
	}
	var err error
	if f.Currency != "" && !currency.MatchString(f.Currency) {
		err = fmt.Errorf("%.32q is not a code of ISO 4217 such as EUR", f.Currency)
	}
	err = first(In("resources", checkResources(f.Resources)), In("currency", err), In("duration", checkDuration(f.Duration)))
	if err != nil {
		return Matcher{}, err
	}
	return Matcher{filter: f, expression: e}, nil
}

// Match returns the plans of a valid offer that pass, in their order. It does not look at whether the offer is over.
func (m Matcher) Match(o Offer) []Match { return m.All(&o) }

// All is Match for who looks through many offers.
func (m *Matcher) All(o *Offer) []Match {
	if !m.sells(o) {
		return nil
	}
	var matches []Match
	for i := range o.Plans {
		if match, ok, _ := m.plan(o, i); ok {
			matches = append(matches, match)
		}
	}
	return matches
}

// Matches reports whether a plan of a valid offer passes, and what it has cost to evaluate the expression, in CEL's unit of cost: a
// comparison costs about two, and a thousand about a tenth of a millisecond. Unless the expression is of a [Compiler] that counts, that is
// what it costs at most. It is for who looks through many offers.
func (m *Matcher) Matches(o *Offer) (passes bool, cost int) {
	if !m.sells(o) {
		return false, 0
	}
	for i := range o.Plans {
		_, ok, spent := m.plan(o, i)
		if cost += spent; ok {
			return true, cost
		}
	}
	return false, cost
}

// sells reports whether an offer passes, whatever its plans are.
func (m *Matcher) sells(o *Offer) bool {
	f := &m.filter
	return among(f.Parties, o.Party) && among(f.Kinds, o.Kind) && among(f.Regions, o.Region) && among(f.Types, o.Type) &&
		(len(f.Architectures) == 0 ||
			slices.ContainsFunc(o.Architectures, func(name string) bool { return slices.Contains(f.Architectures, name) }))
}

// among reports whether a value is in a list, or there is no list.
func among[T comparable](list []T, value T) bool {
	return len(list) == 0 || slices.Contains(list, value)
}

// plan matches one plan: first what costs least to look at, and the expression at the end, with what that has cost.
func (m *Matcher) plan(o *Offer, i int) (match Match, passes bool, cost int) {
	f, p := &m.filter, &o.Plans[i]
	switch {
	case p.Available == 0 && !f.SoldOut, f.Currency != "" && f.Currency != p.Price.Currency:
		return Match{}, false, 0
	case f.MaxPrice != nil && p.Price.Compare(*f.MaxPrice) > 0:
		return Match{}, false, 0
	case f.Duration != 0 && (f.Duration < p.MinDuration || p.MaxDuration != 0 && f.Duration > p.MaxDuration):
		return Match{}, false, 0
	}
	granted, ok := p.grant(f.Resources)
	if !ok {
		return Match{}, false, 0
	}
	price, err := p.cost(granted)
	if err != nil || f.MaxPrice != nil && price.Compare(*f.MaxPrice) > 0 {
		return Match{}, false, 0
	}
	match = Match{Plan: i, Granted: granted, Price: price}
	if m.expression == nil {
		return match, true, 0
	}
	passes, cost = m.expression.holds(o, p, match)
	return match, passes, cost
}
