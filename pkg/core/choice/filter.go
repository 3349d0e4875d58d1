// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package choice

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/checker"
	"github.com/google/cel-go/interpreter"

	"github.com/capacitorset/liqo-broker/pkg/core/expression"
)

// errCostly: a filter cannot be evaluated for a provider within its bound.
var errCostly = errors.New("a filter")

// maxCost bounds the evaluation of one filter for one provider, in CEL's unit of
// cost. A comparison costs about two, and the bound is far below a millisecond.
const maxCost = 10_000

// Variables of a filter.
const (
	varID     = "id"
	varName   = "name"
	varLabels = "labels"
	varKPI    = "kpi"
)

// filter is a compiled CEL expression.
type filter struct {
	expression string
	program    cel.Program
}

// compile compiles filters. The error names the first that is wrong.
func compile(expressions []string) ([]filter, error) {
	env, err := cel.NewEnv(
		cel.CrossTypeNumericComparisons(true), // Write `< 10`, not `< 10.0`.
		cel.Variable(varID, cel.StringType),
		cel.Variable(varName, cel.StringType),
		cel.Variable(varLabels, cel.MapType(cel.StringType, cel.StringType)),
		cel.Variable(varKPI, cel.MapType(cel.StringType, cel.DoubleType)),
	)
	if err != nil {
		return nil, fmt.Errorf("make the environment of the filters: %w", err)
	}
	filters := make([]filter, len(expressions))
	for i, text := range expressions {
		ast, err := expression.Compile(env, text)
		if err != nil {
			return nil, fmt.Errorf("filter %q does not compile: %w", text, err)
		}
		options := []cel.ProgramOption{cel.EvalOptions(cel.OptOptimize)}
		estimate, err := env.EstimateCost(ast, sizes{})
		if err != nil {
			return nil, fmt.Errorf("estimate the cost of filter %q: %w", text, err)
		}
		if estimate.Max > maxCost { // To count the cost takes ten times as long as a usual filter.
			options = append(options, cel.CostLimit(maxCost))
		}
		program, err := env.Program(ast, options...)
		if err != nil {
			return nil, fmt.Errorf("filter %q cannot be used: %w", text, err)
		}
		filters[i] = filter{expression: text, program: program}
	}
	return filters, nil
}

// exclude returns, for each provider, which filter excludes it, and why; nothing if
// none does. With errCostly a filter takes too long for one of them. What a filter takes
// can depend on the labels, which are the provider's own: it is the filter's fault only if
// it takes too long for all providers.
//
// A filter compares values with a number, so that all of them must be in one unit: that of
// most of the providers that pass the filters before it. The others are unknown.
func (c *Chooser) exclude(now time.Time, providers []Provider) (reasons []string, costly error) {
	reasons = make([]string, len(providers))
	if len(c.filters) == 0 {
		return reasons, nil
	}
	// Which KPIs come in several units: for these, one unit has to be found before each filter.
	seen, mixed := make([]variables, len(providers)), map[string]bool{}
	units := map[string]string{}
	for i, p := range providers {
		if len(p.Labels) > maxLabels {
			reasons[i] = fmt.Sprintf("more than %d labels", maxLabels)
			continue
		}
		seen[i] = variablesOf(now, p)
		for name := range seen[i].known {
			unit := p.KPIs[name].Unit
			if other, ok := units[name]; ok && other != unit {
				mixed[name] = true
			}
			units[name] = unit
		}
	}
	// Filter after filter, since the units depend on who is left.
	for _, f := range c.filters {
		for name := range mixed {
			compare(now, name, providers, reasons, seen)
		}
		for i := range providers {
			if reasons[i] != "" {
				continue
			}
			var err error
			if reasons[i], err = f.excludes(seen[i]); err != nil {
				costly = err
			}
		}
	}
	return reasons, costly
}

// variables are what a filter sees of a provider.
type variables struct {
	all   map[string]any
	known map[string]float64
	// otherwise is why known values are left out, by KPI.
	otherwise map[string]string
}

func variablesOf(now time.Time, p Provider) variables {
	known := make(map[string]float64, len(p.KPIs))
	for name, f := range p.KPIs {
		if f.Known(now) {
			known[name] = f.Value
		}
	}
	all := map[string]any{varID: string(p.ID), varName: p.Name, varLabels: p.Labels, varKPI: known}
	return variables{all: all, known: known}
}

// compare leaves one unit of a KPI, for those that no filter excludes yet.
func compare(now time.Time, name string, providers []Provider, reasons []string, seen []variables) {
	votes := map[string]int{}
	for i, p := range providers {
		if f := p.KPIs[name]; reasons[i] == "" && f.Known(now) {
			votes[f.Unit]++
		}
	}
	unit := usual(votes)
	for i, p := range providers {
		f := p.KPIs[name]
		switch {
		case reasons[i] != "" || !f.Known(now):
		case f.Unit == unit:
			seen[i].known[name] = f.Value
			delete(seen[i].otherwise, name)
		default:
			delete(seen[i].known, name)
			if seen[i].otherwise == nil {
				seen[i].otherwise = map[string]string{}
			}
			seen[i].otherwise[name] = fmt.Sprintf("%s is %s", name, inUnit(f.Unit, unit))
		}
	}
}

// usual returns the unit that the most providers use, and of several the first.
func usual(votes map[string]int) string {
	unit := ""
	for other, n := range votes {
		if most := votes[unit]; n > most || n == most && other < unit {
			unit = other
		}
	}
	return unit
}

// inUnit says why a value is not compared with others.
func inUnit(unit, others string) string {
	return fmt.Sprintf("in %s, while others are in %s", unit, others)
}

// excludes returns whether the filter excludes a provider, and why.
func (f *filter) excludes(v variables) (string, error) {
	value, _, err := f.program.Eval(v.all)
	var cancelled interpreter.EvalCancelledError
	switch {
	case errors.As(err, &cancelled):
		return "its labels cost too much: filter " + strconv.Quote(f.expression), fmt.Errorf("%w: %q takes too long", errCostly, f.expression)
	case err != nil:
		reasons := []string{fmt.Sprintf("filter %q: %v", f.expression, err)}
		for _, name := range slices.Sorted(maps.Keys(v.otherwise)) {
			if strings.Contains(f.expression, name) {
				reasons = append(reasons, v.otherwise[name])
			}
		}
		return strings.Join(reasons, ": "), nil
	case value.Value() != true:
		return fmt.Sprintf("filter %q", f.expression), nil
	default:
		return "", nil
	}
}

// maxLabels and maxLength bound the labels of a provider that filters look at, and
// the length of a key, which Kubernetes bounds, or a value.
const maxLabels, maxLength = 64, 317

// sizes bounds the variables of a filter for the estimation of its cost.
type sizes struct{}

// EstimateSize implements checker.CostEstimator.
func (sizes) EstimateSize(element checker.AstNode) *checker.SizeEstimate {
	switch path := element.Path(); {
	case len(path) == 0:
		return nil
	case len(path) == 1 && (path[0] == varLabels || path[0] == varKPI):
		return &checker.SizeEstimate{Max: maxLabels}
	default:
		return &checker.SizeEstimate{Max: maxLength}
	}
}

// EstimateCallCost implements checker.CostEstimator.
func (sizes) EstimateCallCost(string, string, *checker.AstNode, []checker.AstNode) *checker.CallEstimate {
	return nil
}
