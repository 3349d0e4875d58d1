// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"fmt"
	"sync"

	"k8s.io/utils/lru"

	"github.com/capacitorset/liqo-broker/pkg/trade/core/offer"
)

const (
	// maxExpressions and maxExpressionBytes bound the compiled expressions that are kept: those of some hundred watchers, which differ.
	maxExpressions     = 512
	maxExpressionBytes = 4 << 20
	// A compiled expression takes about so much, as was measured: of itself, and for each byte of its text.
	expressionBytes, expressionBytesEach = 4 << 10, 16
)

// expressions keeps compiled expressions, so that lists that are read page after page, and watchers that come back, do not compile theirs
// again. The one that was not asked for longest goes first. It is safe for concurrent use.
type expressions struct {
	bytes   int // The bound.
	compile func(string) (*offer.Expression, error)

	mu   sync.Mutex
	kept *lru.Cache // Of *compiled, by text.
	held int        // Bytes.
}

// compiled is an expression that is compiled, or about to be.
type compiled struct {
	text string
	get  func() (*offer.Expression, error)
}

// bytes is about how much memory an expression takes.
func (c *compiled) bytes() int { return expressionBytes + expressionBytesEach*len(c.text) }

func newExpressions(count, bytes int, compile func(string) (*offer.Expression, error)) *expressions {
	x := &expressions{bytes: bytes, compile: compile}
	x.kept = lru.NewWithEvictionFunc(count, func(_ lru.Key, gone any) {
		if c, ok := gone.(*compiled); ok {
			x.held -= c.bytes()
		}
	})
	return x
}

// get returns an expression, and whether it was not known. Who asks for one while it is compiled waits for that. What does not compile is
// not kept.
func (x *expressions) get(text string) (expression *offer.Expression, fresh bool, err error) {
	if len(text) > offer.MaxExpression*4 { // Nothing is kept meanwhile of what cannot be one.
		return nil, false, fmt.Errorf("it has more than %d characters", offer.MaxExpression)
	}
	found, fresh := x.find(text)
	expression, err = found.get()
	if err != nil {
		x.forgetExpression(found)
	}
	return expression, fresh, err
}

// find returns an expression that may be compiled yet, and makes room for it.
func (x *expressions) find(text string) (c *compiled, fresh bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	known, _ := x.kept.Get(text)
	if c, ok := known.(*compiled); ok {
		return c, false
	}
	c = &compiled{text: text, get: sync.OnceValues(func() (*offer.Expression, error) { return x.compile(text) })}
	x.held += c.bytes()
	for x.kept.Add(text, c); x.held > x.bytes && x.kept.Len() > 1; {
		x.kept.RemoveOldest()
	}
	return c, true
}

// forgetExpression forgets an expression, unless another one has come in its place.
func (x *expressions) forgetExpression(c *compiled) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if known, _ := x.kept.Get(c.text); known == c {
		x.kept.Remove(c.text)
	}
}
