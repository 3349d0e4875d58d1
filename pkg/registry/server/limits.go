// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"net/http"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/util/cache"

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
	// burst is how many seconds' requests may come at once.
	burst = 10
	// strangersShare is how much less often than a party a network of strangers may call.
	strangersShare = 4
	// maxCallers bounds those that are remembered; who does not call is forgotten when it might call as often as a new one.
	maxCallers   = 1 << 14
	rememberedAs = 2 * burst * time.Second
)

// pace bounds how often each calls.
type pace struct {
	perSecond int

	mu   sync.Mutex
	each *cache.LRUExpireCache
}

func newPace(perSecond int) *pace {
	return &pace{perSecond: perSecond, each: cache.NewLRUExpireCache(maxCallers)}
}

// allow takes a request into account. A party counts for itself, from wherever it calls, so that strangers take nothing from it.
func (p *pace) allow(who caller, r *http.Request) bool {
	if who.party != nil {
		return p.of(source.Caller(who.party.ID), p.perSecond).Allow()
	}
	from := source.AddressOfRequest(r)
	return from.IsValid() && p.of(source.Network(from), max(1, p.perSecond/strangersShare)).Allow()
}

func (p *pace) of(who source.Source, perSecond int) *rate.Limiter {
	p.mu.Lock()
	defer p.mu.Unlock()
	known, _ := p.each.Get(who)
	limiter, ok := known.(*rate.Limiter)
	if !ok {
		limiter = rate.NewLimiter(rate.Limit(perSecond), perSecond*burst)
	}
	p.each.Add(who, limiter, rememberedAs)
	return limiter
}
