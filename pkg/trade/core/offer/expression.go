// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package offer

import (
	"fmt"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/checker"
	"github.com/google/cel-go/interpreter"

	"github.com/capacitorset/liqo-broker/pkg/core/expression"
)

// MaxExpression is how many characters an expression has at most.
const MaxExpression = 1024

// maxCost bounds the evaluation of an expression for one plan, in CEL's unit of cost. A comparison costs about
// two, and the bound is about a tenth of a millisecond: a registry evaluates it for thousands of plans.
const maxCost = 2_000

// maxUncounted is up to which cost an expression of a compiler that counts is not counted, but taken to cost as much as it can.
const maxUncounted = 200

// maxNesting bounds how deep an expression is nested: one that people write is below ten.
const maxNesting = 32

// Expression is a compiled expression in CEL, for [Filter.CompileWith]. It can be used concurrently, and by any number of filters.
type Expression struct {
	program cel.Program
	// most is what an evaluation costs at most, in CEL's unit; 0 if each is counted.
	most int
	// spare has variables that nobody uses: a registry evaluates an expression for thousands of plans, and would do little else than make
	// them.
	spare sync.Pool
}

// Compiler compiles expressions. It can be used concurrently.
type Compiler struct {
	env *cel.Env
	// uncounted is up to which cost an expression is taken to cost as much as it can.
	uncounted uint64
}

// NewCompiler returns a compiler. What it compiles shares what all expressions know, and is taken to cost as much as it can wherever that
// is within the bound: to count the cost takes ten times as long as a usual expression.
func NewCompiler() (*Compiler, error) {
	env, err := environment()
	if err != nil {
		return nil, fmt.Errorf("make the environment of expressions: %w", err)
	}
	return &Compiler{env: env, uncounted: maxCost}, nil
}

// Counting returns a compiler whose expressions count what they have cost unless that is little in any case. It is for who evaluates the
// expressions of others, and bounds what all of them cost together.
func (c *Compiler) Counting() *Compiler { return &Compiler{env: c.env, uncounted: maxUncounted} }

// Variables of an expression. Each is declared by its whole name, so that a wrong name does not compile.
const (
	offerParty         = "offer.party"
	offerID            = "offer.id"
	offerKind          = "offer.kind"
	offerName          = "offer.name"
	offerType          = "offer.type"
	offerRegion        = "offer.region"
	offerZone          = "offer.zone"
	offerRevision      = "offer.revision"
	offerArchitectures = "offer.architectures"
	offerLabels        = "offer.labels"
	offerProperties    = "offer.properties"
	offerKPIs          = "offer.kpis"
	planID             = "plan.id"
	planName           = "plan.name"
	planCurrency       = "plan.currency"
	planResources      = "plan.resources"
	planPricePerHour   = "plan.pricePerHour"
	planAvailable      = "plan.available"
	planMinDuration    = "plan.minDuration"
	planMaxDuration    = "plan.maxDuration"
	planNotice         = "plan.notice"
)

func environment() (*cel.Env, error) {
	options := []cel.EnvOption{
		cel.ParserRecursionLimit(maxNesting),
		cel.CrossTypeNumericComparisons(true), // Write `< 10`, not `< 10.0`.
		cel.Variable(offerRevision, cel.IntType),
		cel.Variable(offerArchitectures, cel.ListType(cel.StringType)),
		cel.Variable(offerLabels, cel.MapType(cel.StringType, cel.StringType)),
		cel.Variable(offerProperties, cel.MapType(cel.StringType, cel.StringType)),
		cel.Variable(offerKPIs, cel.ListType(cel.MapType(cel.StringType, cel.DynType))),
		cel.Variable(planResources, cel.MapType(cel.StringType, cel.DoubleType)),
		cel.Variable(planPricePerHour, cel.DoubleType),
		cel.Variable(planAvailable, cel.IntType),
		cel.Variable(planMinDuration, cel.DurationType),
		cel.Variable(planMaxDuration, cel.DurationType),
		cel.Variable(planNotice, cel.DurationType),
	}
	for _, name := range []string{
		offerParty, offerID, offerKind, offerName, offerType, offerRegion, offerZone, planID, planName, planCurrency,
	} {
		options = append(options, cel.Variable(name, cel.StringType))
	}
	return cel.NewEnv(options...)
}

// Compile compiles an expression: see Filter.Expression. The error says what is wrong with it: one that is longer than MaxExpression,
// nested too deep, that builds lists or maps of what it goes through (expression.ErrBuilds), or that costs more than is evaluated for one
// plan in any case, does not compile.
func (c *Compiler) Compile(text string) (*Expression, error) {
	if !utf8.ValidString(text) || utf8.RuneCountInString(text) > MaxExpression {
		return nil, fmt.Errorf("it has more than %d characters, or is not text", MaxExpression)
	}
	ast, err := expression.Compile(c.env, text)
	if err != nil {
		return nil, fmt.Errorf("%q does not compile: %w", text, err)
	}
	estimate, err := c.env.EstimateCost(ast, sizes{})
	if err != nil {
		return nil, fmt.Errorf("estimate the cost of %q: %w", text, err)
	}
	options := []cel.ProgramOption{cel.EvalOptions(cel.OptOptimize)}
	if estimate.Min > maxCost {
		return nil, fmt.Errorf("%q costs too much: at least %d of %d", text, estimate.Min, maxCost)
	}
	most := 0
	if estimate.Max <= c.uncounted {
		most = max(1, int(estimate.Max)) //nolint:gosec // It is not more than a bound that is small.
	} else {
		options = append(options, cel.CostLimit(maxCost))
	}
	program, err := c.env.Program(ast, options...)
	if err != nil {
		return nil, fmt.Errorf("%q cannot be used: %w", text, err)
	}
	return &Expression{program: program, most: most}, nil
}

// holds reports whether the expression is true, and about what that has cost. It is not if it has no value, or costs too much for the offer
// in question, whose texts are its seller's.
func (e *Expression) holds(o *Offer, p *Plan, m Match) (holds bool, cost int) {
	v, _ := e.spare.Get().(*variables)
	if v == nil {
		v = &variables{amounts: map[string]float64{}}
	}
	v.offer, v.plan, v.match = o, p, m
	value, details, err := e.program.Eval(v)
	holds = err == nil && value.Value() == true
	v.offer, v.plan, v.match = nil, nil, Match{}
	e.spare.Put(v)
	if e.most > 0 {
		return holds, e.most
	}
	if details != nil {
		if spent := details.ActualCost(); spent != nil {
			return holds, 1 + int(min(*spent, maxCost)) //nolint:gosec // It is small.
		}
	}
	return holds, maxCost
}

// variables are what an expression sees. Each is made when it is asked for.
type variables struct {
	offer *Offer
	plan  *Plan
	match Match
	// amounts are the resources, once they were asked for. Their map is used again for the next plan.
	amounts map[string]float64
}

var _ interpreter.Activation = (*variables)(nil)

// Parent implements interpreter.Activation.
func (*variables) Parent() interpreter.Activation { return nil }

// ResolveName implements interpreter.Activation.
func (v *variables) ResolveName(name string) (any, bool) {
	switch name {
	// What the offer says.
	case offerParty:
		return v.offer.Party, true
	case offerID:
		return v.offer.ID, true
	case offerKind:
		return string(v.offer.Kind), true
	case offerName:
		return v.offer.Name, true
	case offerType:
		return v.offer.Type, true
	case offerRegion:
		return v.offer.Region, true
	case offerZone:
		return v.offer.Zone, true
	case offerRevision:
		return v.offer.Revision, true
	// Lists and tables of the offer, to which its owner adds what it likes.
	case offerArchitectures:
		return v.offer.Architectures, true
	case offerLabels:
		return v.offer.Labels, true
	case offerProperties:
		return v.offer.Properties, true
	case offerKPIs:
		return v.kpis(), true
	// What the plan says, for what was asked for.
	case planID:
		return v.plan.ID, true
	case planName:
		return v.plan.Name, true
	case planCurrency:
		return v.plan.Price.Currency, true
	case planResources:
		return v.resources(), true
	case planPricePerHour:
		return v.match.Price.perHour(), true
	case planAvailable:
		return v.plan.Available, true
	case planMinDuration:
		return time.Duration(v.plan.MinDuration), true
	case planMaxDuration:
		return time.Duration(v.plan.MaxDuration), true
	case planNotice:
		return time.Duration(v.plan.Notice), true
	default:
		return nil, false
	}
}

func (v *variables) kpis() []map[string]any {
	list := make([]map[string]any, len(v.offer.KPIs))
	for i, k := range v.offer.KPIs {
		list[i] = map[string]any{"name": k.Name, "value": k.Value, "unit": k.Unit, "measuredBy": k.MeasuredBy, "samples": k.Samples}
	}
	return list
}

func (v *variables) resources() map[string]float64 {
	clear(v.amounts)
	for name, quantity := range v.match.Granted {
		v.amounts[name] = float64(quantity.milli) / milli
	}
	return v.amounts
}

// sizes bounds the variables of an expression for the estimation of its cost.
type sizes struct{}

// EstimateSize implements checker.CostEstimator.
func (sizes) EstimateSize(element checker.AstNode) *checker.SizeEstimate {
	path := element.Path()
	if len(path) == 0 {
		return nil
	}
	if len(path) > 1 {
		return &checker.SizeEstimate{Max: maxString}
	}
	switch path[0] {
	case offerLabels, offerProperties:
		return &checker.SizeEstimate{Max: maxProperties}
	case offerArchitectures:
		return &checker.SizeEstimate{Max: maxArchitectures}
	case offerKPIs:
		return &checker.SizeEstimate{Max: maxKPIs}
	case planResources:
		return &checker.SizeEstimate{Max: maxResources}
	default:
		return &checker.SizeEstimate{Max: maxString}
	}
}

// EstimateCallCost implements checker.CostEstimator.
func (sizes) EstimateCallCost(string, string, *checker.AstNode, []checker.AstNode) *checker.CallEstimate {
	return nil
}
