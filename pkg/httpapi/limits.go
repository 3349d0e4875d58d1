// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"net/http"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/util/cache"

	"github.com/capacitorset/liqo-broker/pkg/serving/source"
)

// What is answered per second, and at once: to each for whom callers count, and to all who
// are not known.
const (
	perSecondEach, atOnceEach = 10, 40
	perSecondAll, atOnceAll   = 100, 200
	// maxCallers bounds those that are remembered; who does not call is forgotten when it
	// might call as often as a new one.
	maxCallers   = 4096
	rememberedAs = atOnceEach / perSecondEach * time.Second
)

// limits bound how often the API is called.
type limits struct {
	source source.Func
	known  func(r *http.Request) (caller source.Source, ok bool)

	mu   sync.Mutex
	all  *rate.Limiter
	each *cache.LRUExpireCache
}

func newLimits(of source.Func, known func(r *http.Request) (caller source.Source, ok bool)) *limits {
	return &limits{source: of, known: known, all: rate.NewLimiter(perSecondAll, atOnceAll), each: cache.NewLRUExpireCache(maxCallers)}
}

// handler passes on no more requests than the limits allow.
func (l *limits) handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !l.allow(r) {
			w.Header().Set("Retry-After", "1")
			writeProblem(w, http.StatusTooManyRequests, "too many requests: try again in a second")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// allow takes a request into account. A caller that is known counts for itself, wherever
// it calls from, so that strangers take nothing from it. Of strangers, the limit of all is
// asked last, so that what a single one has too much takes nothing from the others.
func (l *limits) allow(r *http.Request) bool {
	if caller, ok := l.known(r); ok {
		return l.of(caller).Allow()
	}
	from := source.AddressOfRequest(r)
	return from.IsValid() && l.of(l.source(from)).Allow() && l.all.Allow()
}

func (l *limits) of(caller source.Source) *rate.Limiter {
	l.mu.Lock()
	defer l.mu.Unlock()
	known, _ := l.each.Get(caller)
	limiter, ok := known.(*rate.Limiter)
	if !ok {
		limiter = rate.NewLimiter(perSecondEach, atOnceEach)
	}
	l.each.Add(caller, limiter, rememberedAs)
	return limiter
}
