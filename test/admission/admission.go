// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package admission evaluates what admission policies and webhooks ask of a request, for tests without an API server. It does not know
// which requests a policy is about.
package admission

import (
	"testing"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/ext"
	"k8s.io/apiserver/pkg/cel/library"
)

// variables are what expressions of policies may name.
func variables() []string {
	return []string{"object", "oldObject", "request", "namespaceObject", "params", "variables"}
}

// Evaluate evaluates an expression as far as the API server does: without types, and with those of its libraries that policies of this
// repository use. Variables that are not given are empty; nil is null.
func Evaluate(tb testing.TB, expression string, given map[string]any) ref.Val {
	tb.Helper()
	return evaluate(tb, environment(tb), expression, given)
}

// environment is what expressions may use.
func environment(tb testing.TB) *cel.Env {
	tb.Helper()
	options := []cel.EnvOption{cel.OptionalTypes(), ext.Strings(), library.Quantity()}
	for _, name := range variables() {
		options = append(options, cel.Variable(name, cel.DynType))
	}
	env, err := cel.NewEnv(options...)
	if err != nil {
		tb.Fatal(err)
	}
	return env
}

func evaluate(tb testing.TB, env *cel.Env, expression string, given map[string]any) ref.Val {
	tb.Helper()
	input := map[string]any{}
	for _, name := range variables() {
		value, is := given[name]
		switch {
		case !is:
			value = map[string]any{}
		case value == nil:
			value = types.NullValue
		}
		input[name] = value
	}
	ast, issues := env.Compile(expression)
	if issues.Err() != nil {
		tb.Fatalf("compile %s: %v", expression, issues.Err())
	}
	program, err := env.Program(ast)
	if err != nil {
		tb.Fatalf("make a program of %s: %v", expression, err)
	}
	got, _, err := program.Eval(input)
	if err != nil {
		tb.Fatalf("evaluate %s: %v", expression, err)
	}
	return got
}

// Holds reports whether an expression is true, as Evaluate evaluates it.
func Holds(tb testing.TB, expression string, given map[string]any) bool {
	tb.Helper()
	return Evaluate(tb, expression, given) == types.True
}
