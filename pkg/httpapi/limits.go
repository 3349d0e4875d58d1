// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"net/http"
	"time"

	"golang.org/x/time/rate"

	"github.com/capacitorset/liqo-broker/pkg/serving/rest"
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

	all  *rate.Limiter
	each *rest.Callers[*rate.Limiter]
}

func newLimits(of source.Func, known func(r *http.Request) (caller source.Source, ok bool)) *limits {
	each := func(source.Source) *rate.Limiter { return rate.NewLimiter(perSecondEach, atOnceEach) }
	return &limits{source: of, known: known, all: rate.NewLimiter(perSecondAll, atOnceAll), each: rest.NewCallers(maxCallers, rememberedAs, each)}
}

// handler passes on no more requests than the limits allow.
func (l *limits) handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !l.allow(r) {
			rest.Write(w, rest.TooMany())
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
		return l.each.Of(caller).Allow()
	}
	from := source.AddressOfRequest(r)
	return from.IsValid() && l.each.Of(l.source(from)).Allow() && l.all.Allow()
}
