// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/cache"

	"github.com/capacitorset/liqo-broker/pkg/serving/source"
)

// Callers keeps something of each caller, such as how often it may call, for a bounded number of them. It is safe for concurrent use.
type Callers[T any] struct {
	keep  time.Duration
	begin func(source.Source) T

	mu   sync.Mutex
	each *cache.LRUExpireCache
}

// NewCallers returns what keeps at most so many, for so long after each has called last. Whoever is not kept begins anew.
func NewCallers[T any](most int, keep time.Duration, begin func(source.Source) T) *Callers[T] {
	return &Callers[T]{keep: keep, begin: begin, each: cache.NewLRUExpireCache(most)}
}

// Of returns what is kept of a caller.
func (c *Callers[T]) Of(who source.Source) T {
	c.mu.Lock()
	defer c.mu.Unlock()
	known, _ := c.each.Get(who)
	kept, ok := known.(T)
	if !ok {
		kept = c.begin(who)
	}
	c.each.Add(who, kept, c.keep)
	return kept
}
