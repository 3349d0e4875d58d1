// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"fmt"
	"sync"

	"github.com/capacitorset/liqo-broker/pkg/trade/core/offer"
)

// maxExpressions bounds how many expressions are kept compiled: who waits for an offer asks the same again and again.
const maxExpressions = 64

// expressions compiles the expressions of filters, each once. It can be used concurrently.
type expressions struct {
	mu       sync.Mutex
	compiler *offer.Compiler
	compiled map[string]*offer.Expression
}

// compile makes a filter ready for use. The error names the field that is wrong.
func (e *expressions) compile(f offer.Filter) (offer.Matcher, error) {
	if matcher, err := f.CompileWith(nil); err != nil || f.Expression == "" { // The expression costs most to look at.
		return matcher, err
	}
	compiled, err := e.expression(f.Expression)
	if err != nil {
		return offer.Matcher{}, fmt.Errorf("expression: %w", err)
	}
	return f.CompileWith(compiled)
}

func (e *expressions) expression(text string) (*offer.Expression, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if known := e.compiled[text]; known != nil {
		return known, nil
	}
	if e.compiler == nil {
		compiler, err := offer.NewCompiler()
		if err != nil {
			return nil, err
		}
		e.compiler = compiler
	}
	compiled, err := e.compiler.Compile(text)
	if err != nil {
		return nil, err
	}
	if e.compiled == nil || len(e.compiled) >= maxExpressions {
		e.compiled = map[string]*offer.Expression{}
	}
	e.compiled[text] = compiled
	return compiled, nil
}
