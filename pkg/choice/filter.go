// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package choice

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/checker"
	"github.com/google/cel-go/interpreter"
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
	for i, expression := range expressions {
		ast, issues := env.Compile(expression)
		if err := issues.Err(); err != nil {
			return nil, fmt.Errorf("filter %q does not compile: %w", expression, err)
		}
		if ast.OutputType() != cel.BoolType {
			return nil, fmt.Errorf("filter %q is a %s, not a bool", expression, ast.OutputType())
		}
		options := []cel.ProgramOption{cel.EvalOptions(cel.OptOptimize)}
		estimate, err := env.EstimateCost(ast, sizes{})
		if err != nil {
			return nil, fmt.Errorf("estimate the cost of filter %q: %w", expression, err)
		}
		if estimate.Max > maxCost { // To count the cost takes ten times as long as a usual filter.
			options = append(options, cel.CostLimit(maxCost))
		}
		program, err := env.Program(ast, options...)
		if err != nil {
			return nil, fmt.Errorf("filter %q cannot be used: %w", expression, err)
		}
		filters[i] = filter{expression: expression, program: program}
	}
	return filters, nil
}

// excludes returns which filter excludes a provider, and why; nothing if none
// does. With errCostly a filter takes too long. What a filter takes can depend on
// the labels, which are the provider's own: it is the filter's fault only if it
// takes too long for all providers.
func (c *Chooser) excludes(now time.Time, p Provider) (string, error) {
	if len(c.filters) == 0 {
		return "", nil
	}
	known := make(map[string]float64, len(p.Figures))
	for name, f := range p.Figures {
		if f.Known(now) {
			known[name] = f.Value
		}
	}
	labels := p.Labels
	if len(labels) > maxLabels {
		return fmt.Sprintf("more than %d labels", maxLabels), nil
	}
	variables := map[string]any{varID: string(p.ID), varName: p.Name, varLabels: labels, varKPI: known}
	for _, f := range c.filters {
		value, _, err := f.program.Eval(variables)
		var cancelled interpreter.EvalCancelledError
		switch {
		case errors.As(err, &cancelled):
			return "its labels cost too much: filter " + strconv.Quote(f.expression), fmt.Errorf("%w: %q takes too long", errCostly, f.expression)
		case err != nil:
			return fmt.Sprintf("filter %q: %v", f.expression, err), nil
		case value.Value() != true:
			return fmt.Sprintf("filter %q", f.expression), nil
		}
	}
	return "", nil
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
