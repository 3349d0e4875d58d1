// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"net/http"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/util/cache"

	"github.com/capacitorset/liqo-broker/pkg/source"
)

// What is answered per second, and at once: to each for whom callers count, and to all.
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

	mu   sync.Mutex
	all  *rate.Limiter
	each *cache.LRUExpireCache
}

func newLimits(of source.Func) *limits {
	return &limits{source: of, all: rate.NewLimiter(perSecondAll, atOnceAll), each: cache.NewLRUExpireCache(maxCallers)}
}

// handler passes on no more requests than the limits allow.
func (l *limits) handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !l.allow(r.RemoteAddr) {
			w.Header().Set("Retry-After", "1")
			writeProblem(w, http.StatusTooManyRequests, "too many requests: try again in a second")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// allow takes a request of a host with a port into account. The one of all is asked
// last, so that what a single caller has too much takes nothing from the others.
func (l *limits) allow(from string) bool {
	port, err := netip.ParseAddrPort(from)
	if err != nil {
		return false
	}
	return l.of(l.source(port.Addr().Unmap())).Allow() && l.all.Allow()
}

func (l *limits) of(caller source.Source) *rate.Limiter {
	l.mu.Lock()
	defer l.mu.Unlock()
	limiter := rate.NewLimiter(perSecondEach, atOnceEach)
	if known, ok := l.each.Get(caller); ok {
		limiter = known.(*rate.Limiter)
	}
	l.each.Add(caller, limiter, rememberedAs)
	return limiter
}
