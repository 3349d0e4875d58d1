// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/controller/watch"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
)

const (
	// lookInterval is how often the gateways are looked at.
	lookInterval = 5 * time.Second
	// A gateway is in doubt that has said nothing for a minute, or for six times as long as between what it said before, if people have it
	// speak less often than every 10 s or so.
	doubt, doubtPaces = time.Minute, 6
	// enough is how often in a row the API server has to answer that a gateway in doubt has still said nothing, with no longer than
	// maxPause between two answers: an API server that answers us for 45 s takes what the gateway writes, which tries every 2 s, and has
	// noticed by then that a connection is dead.
	enough, maxPause = 10, 3 * lookInterval
)

// gateways tells which gateways have ceased to say that their tunnels are up, and do not say that they are down. It goes by the time that
// passes here alone, so that no clock has to be right, and in doubt asks the API server itself: whether a gateway is silent or the API
// server slow, a cache does not tell.
//
// It may be used concurrently.
type gateways struct {
	cached, live func(context.Context) ([]liqo.Link, error)
	clock        clock.PassiveClock
	// turned has an event when the controller has to look at those that became silent, or ceased to be.
	turned chan event.GenericEvent

	mu      sync.Mutex
	looked  time.Time
	tunnels map[tunnel]sight
	todo    map[cluster.ID]bool
}

// tunnel is one to a peer, by the namespace that says so.
type tunnel struct {
	tenant string
	peer   cluster.ID
}

// sight is what was seen of a tunnel of which the gateway says that it is up.
type sight struct {
	// said is when the gateway has said so last, by its clock; since is when that was seen first, by ours.
	said, since time.Time
	// pace is how long before the gateway had said so; zero if it has not said so again since we look.
	pace time.Duration
	// missed is how often in a row the API server has answered that it has said nothing since it is in doubt.
	missed int
	silent bool
}

// newGateways returns nil if nobody says past the cache how the tunnels are.
func newGateways(cached, live func(context.Context) ([]liqo.Link, error), clock clock.PassiveClock) *gateways {
	if live == nil {
		return nil
	}
	return &gateways{
		cached: cached, live: live, clock: clock, turned: make(chan event.GenericEvent, 1),
		tunnels: map[tunnel]sight{}, todo: map[cluster.ID]bool{},
	}
}

var _ manager.LeaderElectionRunnable = (*gateways)(nil)

// NeedLeaderElection implements manager.LeaderElectionRunnable: who comes to lead knows how often the gateways speak.
func (*gateways) NeedLeaderElection() bool { return false }

// Start implements manager.Runnable.
func (g *gateways) Start(ctx context.Context) error {
	ticker := time.NewTicker(lookInterval)
	defer ticker.Stop()
	for {
		if err := g.lookAtAll(ctx); err != nil && ctx.Err() == nil {
			ctrl.LoggerFrom(ctx).Error(err, "Cannot look whether the gateways to providers still speak")
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// isSilent reports whether the gateway of a tunnel is silent. As long as this process has not heard it say anything, it is what it was said
// to be before.
func (g *gateways) isSilent(l *liqo.Link, before bool) bool {
	if l.Said.IsZero() {
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	seen, known := g.tunnels[tunnel{l.Tenant, l.Peer}]
	if !known || seen.pace == 0 {
		return before
	}
	return seen.silent
}

// takeTurned returns the providers whose gateways became silent, or ceased to be, since it was called last. It is a handler.MapFunc.
func (g *gateways) takeTurned(context.Context, client.Object) []reconcile.Request {
	g.mu.Lock()
	defer g.mu.Unlock()
	var requests []reconcile.Request
	for _, id := range slices.Sorted(maps.Keys(g.todo)) {
		requests = append(requests, watch.Provider(id)...)
	}
	clear(g.todo)
	return requests
}

// lookAtAll looks at the gateways once. If it fails, what was seen of those in doubt counts for nothing.
func (g *gateways) lookAtAll(ctx context.Context) error {
	links, err := g.cached(ctx)
	if err != nil {
		g.forgive()
		return err
	}
	if !g.see(saidOf(links)) {
		return nil
	}
	if links, err = g.live(ctx); err != nil {
		g.forgive()
		return err
	}
	g.confirm(saidOf(links))
	return nil
}

// saidOf returns when gateways have said last that their tunnels are up, of all that say so.
func saidOf(links []liqo.Link) map[tunnel]time.Time {
	all := make(map[tunnel]time.Time, len(links))
	for i := range links {
		if l := &links[i]; !l.Said.IsZero() {
			all[tunnel{l.Tenant, l.Peer}] = l.Said
		}
	}
	return all
}

// forgive has nothing speak against gateways that are in doubt.
func (g *gateways) forgive() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for key, seen := range g.tunnels {
		seen.missed = 0
		g.tunnels[key] = seen
	}
}

// see notes what the cache has of the tunnels, and returns whether some gateway is in doubt.
func (g *gateways) see(said map[tunnel]time.Time) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.clock.Now()
	late := now.Sub(g.looked).Abs() > maxPause
	g.looked = now
	doubtful := false
	for key, at := range said {
		seen, known := g.tunnels[key]
		switch {
		case !known:
			seen = sight{said: at, since: now}
		case !seen.said.Equal(at): // It was silent, or has not been heard before, and may have been called silent since long ago.
			if seen.silent || seen.pace == 0 {
				g.turn(key.peer)
			}
			seen = sight{said: at, since: now, pace: max(at.Sub(seen.said), 1)}
		case late || seen.since.After(now): // Or the clock was set back.
			seen.missed, seen.since = 0, earlier(seen.since, now)
		}
		g.tunnels[key] = seen
		doubtful = doubtful || seen.isDoubtful(now)
	}
	// Of the others nobody says that they are up.
	maps.DeleteFunc(g.tunnels, func(key tunnel, seen sight) bool {
		_, is := said[key]
		if !is && seen.silent {
			g.turn(key.peer)
		}
		return !is
	})
	return doubtful
}

// isDoubtful reports whether a gateway should have said something by now. Of one that has not been heard yet nobody knows.
func (s *sight) isDoubtful(now time.Time) bool {
	return s.pace > 0 && !s.silent && now.Sub(s.since) > max(doubt, doubtPaces*s.pace)
}

// confirm notes what the API server answers of the gateways in doubt.
func (g *gateways) confirm(said map[tunnel]time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.clock.Now()
	for key, seen := range g.tunnels {
		if !seen.isDoubtful(now) {
			continue
		}
		switch {
		case !seen.said.Equal(said[key]):
			seen.missed, seen.since = 0, now // The cache is late, or about to say that the tunnel is down.
		case seen.missed+1 < enough:
			seen.missed++
		default:
			seen.silent = true
			g.turn(key.peer)
		}
		g.tunnels[key] = seen
	}
}

// turn has the controller look at a provider. It is called with the lock held.
func (g *gateways) turn(provider cluster.ID) {
	g.todo[provider] = true
	select {
	case g.turned <- event.GenericEvent{Object: &v1alpha1.Provider{}}:
	default: // It is about to look.
	}
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
