// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package expression compiles conditions in CEL that somebody else writes, so that what they cost is bounded from the first step on.
//
// CEL's checker and its operators can be led to work that doubles with each few characters, and neither can be stopped: a type or a value
// may have itself in it twice, again and again, as `[1].map(a, {a: a}).map(a, {a: a})` has. That takes a name for what was built before.
// The only names in an expression that are not given from outside are the variables of comprehensions, so what is refused is to build lists
// and maps of them. Then all types and values are no larger than the text and what it is asked about.
//
// It does not know what expressions are about, which variables they have, nor how much their evaluation may cost.
package expression

import (
	"errors"
	"fmt"
	"maps"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/parser"
	expr "google.golang.org/genproto/googleapis/api/expr/v1alpha1"
)

// ErrBuilds is about an expression whose types or values can be much larger than itself.
var ErrBuilds = errors.New("an expression must not build lists or maps of what it goes through")

// Compile parses and checks an expression that is true or false. The text must be bounded, and so must the depth of what the environment
// parses (cel.ParserRecursionLimit, which is 250 by default). errors.Is finds ErrBuilds if the macro map is used, if a list or a map is
// written that has the variable of all, exists, exists_one or filter in it, or if an empty one is written where these go through it or ask.
func Compile(env *cel.Env, text string) (*cel.Ast, error) {
	parsed, issues := env.Parse(text)
	if err := issues.Err(); err != nil {
		return nil, err
	}
	tree, err := cel.AstToParsedExpr(parsed)
	if err != nil {
		return nil, err
	}
	if err := walk(tree.GetExpr(), scope{}); err != nil {
		return nil, err
	}
	checked, issues := env.Check(parsed)
	if err := issues.Err(); err != nil {
		return nil, err
	}
	if checked.OutputType() != cel.BoolType {
		return nil, fmt.Errorf("it is a %s, not a bool", checked.OutputType())
	}
	return checked, nil
}

// scope is where in an expression something is.
type scope struct {
	// within a comprehension: in what it goes through, or in what it asks of each.
	within bool
	// variables are those of the comprehensions around it.
	variables map[string]bool
}

// asks returns the scope of what a comprehension asks of each.
func (s scope) asks(variable string) scope {
	inner := scope{within: true, variables: maps.Clone(s.variables)}
	if inner.variables == nil {
		inner.variables = map[string]bool{}
	}
	inner.variables[variable] = true
	return inner
}

// walk returns why an expression is refused.
func walk(e *expr.Expr, at scope) error {
	switch of := e.GetExprKind().(type) {
	case *expr.Expr_ComprehensionExpr:
		asked, err := asks(of.ComprehensionExpr)
		if err != nil {
			return err
		}
		if err := walk(of.ComprehensionExpr.GetIterRange(), scope{within: true, variables: at.variables}); err != nil {
			return err
		}
		return walk(asked, at.asks(of.ComprehensionExpr.GetIterVar()))
	case *expr.Expr_ListExpr, *expr.Expr_StructExpr:
		return literal(e, at)
	case *expr.Expr_IdentExpr:
		if of.IdentExpr.GetName() == parser.AccumulatorName {
			return fmt.Errorf("%w: %s is not a variable", ErrBuilds, parser.AccumulatorName)
		}
	}
	for _, part := range parts(e) {
		if err := walk(part, at); err != nil {
			return err
		}
	}
	return nil
}

// literal returns why a list or a map as it is written is refused.
func literal(e *expr.Expr, at scope) error {
	elements := parts(e)
	if at.within && len(elements) == 0 {
		return fmt.Errorf("%w: an empty one is written within all, exists, exists_one or filter", ErrBuilds) // Its type could become any.
	}
	for _, element := range elements {
		if name := mentions(element, at.variables); name != "" {
			return fmt.Errorf("%w: one that is written has the variable %s in it", ErrBuilds, name)
		}
		if err := walk(element, at); err != nil {
			return err
		}
	}
	return nil
}

// mentions returns one of the names that an expression has; empty if it has none.
func mentions(e *expr.Expr, names map[string]bool) string {
	if name := e.GetIdentExpr().GetName(); names[name] {
		return name
	}
	for _, part := range parts(e) {
		if name := mentions(part, names); name != "" {
			return name
		}
	}
	return ""
}

// parts returns the parts of an expression; of a comprehension all that may have names.
func parts(e *expr.Expr) []*expr.Expr {
	switch of := e.GetExprKind().(type) {
	case *expr.Expr_SelectExpr:
		return []*expr.Expr{of.SelectExpr.GetOperand()}
	case *expr.Expr_CallExpr:
		if of.CallExpr.GetTarget() == nil {
			return of.CallExpr.GetArgs()
		}
		return append([]*expr.Expr{of.CallExpr.GetTarget()}, of.CallExpr.GetArgs()...)
	case *expr.Expr_ListExpr:
		return of.ListExpr.GetElements()
	case *expr.Expr_StructExpr:
		var all []*expr.Expr
		for _, entry := range of.StructExpr.GetEntries() {
			if key := entry.GetMapKey(); key != nil {
				all = append(all, key)
			}
			all = append(all, entry.GetValue())
		}
		return all
	case *expr.Expr_ComprehensionExpr:
		return []*expr.Expr{of.ComprehensionExpr.GetIterRange(), of.ComprehensionExpr.GetLoopStep()}
	default:
		return nil
	}
}

// asks returns what a comprehension asks of each element, as the macros of cel-go@v0.16.1 expand (parser/macro.go).
func asks(c *expr.Expr_Comprehension) (*expr.Expr, error) {
	step := c.GetLoopStep().GetCallExpr()
	switch args := step.GetArgs(); {
	case len(args) == 2 && (step.GetFunction() == operators.LogicalAnd || step.GetFunction() == operators.LogicalOr): // all, exists
		return args[1], nil
	case len(args) == 3 && step.GetFunction() == operators.Conditional: // exists_one, filter, and map with a condition
		added := args[1].GetCallExpr().GetArgs()
		if len(added) != 2 {
			break
		}
		if list := added[1].GetListExpr(); list != nil &&
			(len(list.GetElements()) != 1 || list.GetElements()[0].GetIdentExpr().GetName() != c.GetIterVar()) {
			break
		}
		return args[0], nil
	}
	return nil, fmt.Errorf("%w: the macro map does", ErrBuilds)
}
