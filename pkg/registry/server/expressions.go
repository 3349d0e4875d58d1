// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"container/list"
	"fmt"
	"sync"

	"github.com/capacitorset/liqo-broker/pkg/core/offer"
)

const (
	// maxExpressions and maxExpressionBytes bound the compiled expressions that are kept: those of some hundred watchers, which differ.
	maxExpressions     = 512
	maxExpressionBytes = 4 << 20
	// A compiled expression takes about so much, as was measured: of itself, and for each byte of its text.
	expressionBytes, expressionBytesEach = 4 << 10, 16
)

// expressions keeps compiled expressions, so that lists that are read page after page, and watchers that come back, do not compile theirs again.
// The one that was not asked for longest goes first. It is safe for concurrent use.
type expressions struct {
	count, bytes int // The bounds.
	compile      func(string) (*offer.Expression, error)

	mu     sync.Mutex
	byText map[string]*list.Element // Of recent.
	recent *list.List               // Of *compiled, the latest first.
	held   int                      // Bytes.
}

// compiled is an expression that is compiled, or about to be.
type compiled struct {
	text string
	get  func() (*offer.Expression, error)
}

// bytes is about how much memory an expression takes.
func (c *compiled) bytes() int { return expressionBytes + expressionBytesEach*len(c.text) }

func newExpressions(count, bytes int, compile func(string) (*offer.Expression, error)) *expressions {
	return &expressions{count: count, bytes: bytes, compile: compile, byText: map[string]*list.Element{}, recent: list.New()}
}

// get returns an expression, and whether it was not known. Who asks for one while it is compiled waits for that. What does not compile is not kept.
func (x *expressions) get(text string) (expression *offer.Expression, fresh bool, err error) {
	if len(text) > offer.MaxExpression*4 { // Nothing is kept meanwhile of what cannot be one.
		return nil, false, fmt.Errorf("it has more than %d characters", offer.MaxExpression)
	}
	found, fresh := x.find(text)
	expression, err = found.get()
	if err != nil {
		x.forget(found)
	}
	return expression, fresh, err
}

// find returns an expression that may be compiled yet, and makes room for it.
func (x *expressions) find(text string) (c *compiled, fresh bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if e, ok := x.byText[text]; ok {
		x.recent.MoveToFront(e)
		return compiledOf(e), false
	}
	c = &compiled{text: text, get: sync.OnceValues(func() (*offer.Expression, error) { return x.compile(text) })}
	x.byText[text] = x.recent.PushFront(c)
	for x.held += c.bytes(); x.recent.Len() > 1 && (x.recent.Len() > x.count || x.held > x.bytes); {
		x.remove(x.recent.Back())
	}
	return c, true
}

// forget forgets an expression, unless another one has come in its place.
func (x *expressions) forget(c *compiled) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if e, ok := x.byText[c.text]; ok && e.Value == c {
		x.remove(e)
	}
}

func (x *expressions) remove(e *list.Element) {
	x.recent.Remove(e)
	gone := compiledOf(e)
	delete(x.byText, gone.text)
	x.held -= gone.bytes()
}

// compiledOf returns what an element of the list has.
func compiledOf(e *list.Element) *compiled {
	c, ok := e.Value.(*compiled)
	if !ok {
		return &compiled{} // Nothing else is in the list.
	}
	return c
}
