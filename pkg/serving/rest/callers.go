// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
	"k8s.io/apimachinery/pkg/util/cache"

	"github.com/capacitorset/liqo-broker/pkg/serving/source"
)

// callerKey is under which the context of a request has its caller.
type callerKey[C any] struct{}

// Door returns a middleware that lets in whom identify returns, and refuses whom it returns an error for.
func Door[C any](a *API, identify func(ctx huma.Context, r *http.Request) (C, error)) Middleware {
	return func(ctx huma.Context, next func(huma.Context)) {
		request, _ := humago.Unwrap(ctx)
		who, err := identify(ctx, request)
		if err != nil {
			a.RefuseIn(ctx, err)
			return
		}
		next(huma.WithValue(ctx, callerKey[C]{}, who))
	}
}

// WithCaller returns a request whose caller was identified without a Door.
func WithCaller[C any](r *http.Request, who C) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), callerKey[C]{}, who))
}

// CallerOf returns the caller of a request; the zero value if none was let in.
func CallerOf[C any](ctx context.Context) C {
	who, _ := ctx.Value(callerKey[C]{}).(C)
	return who
}

// Callers keeps something of each caller, such as how often it may call, for a bounded number of them. It is safe for concurrent use.
type Callers[T any] struct {
	keep  time.Duration
	begin func(source.Source) T

	mu   sync.Mutex
	each *cache.LRUExpireCache
}

// NewCallers returns what keeps at most so many, for so long after each has called last. Whoever is not kept begins again.
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
