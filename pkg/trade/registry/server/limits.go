// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"net/http"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/capacitorset/liqo-broker/pkg/serving/rest"
	"github.com/capacitorset/liqo-broker/pkg/serving/source"
)

// Limits bound what one party, and all strangers, may ask of the registry.
type Limits struct {
	// Offers is how many offers a party may have.
	Offers int
	// PerSecond is how many requests of a party are answered in a second; ten times as many at once.
	PerSecond int
	// Watchers bounds those that watch at the same time, and WatchersEach those of one party.
	Watchers, WatchersEach int
	// Connections bounds those that are open at the same time, and ConnectionsEach those from one address.
	Connections, ConnectionsEach int
}

// DefaultLimits are those of a registry for some thousand parties.
func DefaultLimits() Limits {
	return Limits{Offers: 200, PerSecond: 20, Watchers: 4096, WatchersEach: 4, Connections: 8192, ConnectionsEach: 64}
}

const (
	// effortOnce is what the expression of one page of a list may cost, in CEL's unit: a comparison of each of ten thousand offers of some
	// plans costs less. Then the page ends. effortEach is what those of a party may cost in a second, ten times as much at once: about a tenth
	// of a processor. effortOfText is what it costs to compile each character of one that is not known.
	effortOnce, effortEach, effortOfText = 200_000, 300_000, 100
	// filtersAtOnce is how many expressions are evaluated at the same time.
	filtersAtOnce = 2
	// answersAtOnce bounds the lists that are on their way to their readers, and answersEach those of one party. Each holds about a megabyte:
	// what maxPage lets into a page, and the same as text.
	answersAtOnce, answersEach = 128, 2
	// maxPage bounds the items of a page, in bytes.
	maxPage = 512 << 10
	// burst is how many seconds' requests may come at once.
	burst = 10
	// strangersShare is how much less often than a party a network of strangers may call.
	strangersShare = 4
	// maxCallers bounds those that are remembered; who does not call is forgotten when it might call as often as a new one.
	maxCallers   = 1 << 14
	rememberedAs = 2 * burst * time.Second
)

// newPace bounds how often each calls: a party so often, and a network of strangers less.
func newPace(perSecond int) *rest.Callers[*rate.Limiter] {
	return rest.NewCallers(maxCallers, rememberedAs, func(who source.Source) *rate.Limiter {
		each := perSecond
		if !who.IsCaller() {
			each = max(1, perSecond/strangersShare)
		}
		return rate.NewLimiter(rate.Limit(each), each*burst)
	})
}

// paced takes a request into account, and refuses one that is too many. A party counts for itself, from wherever it calls, so that
// strangers take nothing from it.
func (s *Server) paced(who caller) error {
	if who.party == nil && !who.address.IsValid() || !s.pace.Of(who.source()).Allow() {
		return rest.TooMany()
	}
	return nil
}

// effort bounds what the expressions of filters cost. What a caller has spent beyond its share is taken from what it gets later.
type effort struct {
	pace  *rest.Callers[*rate.Limiter]
	turns chan struct{} // Who evaluates has put something in.
}

func newEffort(perSecond int) *effort {
	return &effort{pace: newPace(perSecond), turns: make(chan struct{}, filtersAtOnce)}
}

// begin waits for a turn to compile and evaluate expressions. Who has it must call end. It fails if the caller has spent its share, or when
// ctx ends.
func (x *effort) begin(ctx context.Context, who caller) (end func(), err error) {
	select {
	case x.turns <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if x.pace.Of(who.source()).Tokens() < 1 {
		<-x.turns
		return nil, rest.Later(http.StatusTooManyRequests, messageTooDear, "1")
	}
	return sync.OnceFunc(func() { <-x.turns }), nil
}

// spend takes into account what expressions of a caller have cost, and returns after which time it has its share again.
func (x *effort) spend(who caller, cost int) time.Duration {
	limiter := x.pace.Of(who.source())
	return limiter.ReserveN(time.Now(), min(cost, limiter.Burst())).Delay()
}

// wait is spend for who may wait until then.
func (x *effort) wait(ctx context.Context, who caller, cost int) error {
	delay := x.spend(who, cost)
	if delay == 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
