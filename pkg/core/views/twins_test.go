// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package views_test

import (
	"maps"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/core/grant"
)

// twins are a consumer and the broker that places its pods by what the consumer's agent has told last.
type twins struct {
	*world
	away bool // The agent does not run.
	// ahead is by how much the clock of the consumer is.
	ahead time.Duration
	told  map[string]netip.Prefix
	when  time.Time // By the clock of the consumer.
	// So often a pod was placed, and so often none was because the agent was silent, or because what it had told is not granted any more.
	placed, silent, other int
}

// look has the agent look, unless it is away, and tell the broker what it acknowledges.
func (w *twins) look() {
	w.Helper()
	if !w.away && w.world.look() {
		w.told, w.when = maps.Clone(w.acknowledged), w.now.Add(w.ahead)
	}
}

// place has the broker place a pod on each provider on which it may, and checks that whatever shows it shows the right address.
func (w *twins) place() {
	w.Helper()
	v := grant.Views{Asked: true, Granted: map[cluster.ID]grant.View{}, Acknowledged: w.told, Told: w.when, Now: w.now}
	for key, prefix := range w.granted {
		v.Granted[cluster.ID(key)] = grant.View{Key: key, Prefix: prefix}
	}
	for key, prefix := range w.granted {
		told, is := w.told[key]
		if !v.Knows(cluster.ID(key)) {
			if is && told == prefix {
				w.silent++
			} else if is {
				w.other++
			}
			continue
		}
		w.placed++
		for name, k := range w.kubelets {
			if k.table != nil && (k.shows(prefix) != w.seen[prefix] || !slices.Contains(w.list, prefix)) {
				w.Fatalf("seed %d: a pod in view %s=%s is placed, and %s shows it in %s; it is reached in %s, the list is %v, and %v was told at %s",
					w.seed, key, prefix, name, k.shows(prefix), w.seen[prefix], w.list, w.told, w.when)
			}
		}
		w.shown[w.seen[prefix].Addr().Next()] = prefix
	}
}

// TestTwins has a broker place pods while the consumer's agent is missing, comes late, starts again, or tells by a clock that is wrong, and
// while views come, go and change. No pod is placed that is shown under another address than its own. While an agent is away nobody else
// writes its list, and what it has written it has told.
func TestTwins(t *testing.T) {
	placed, silent, other := 0, 0, 0
	for seed := range uint64(300) {
		w := &twins{world: newWorld(t, seed)}
		w.ahead = time.Duration(w.rand.IntN(9)-4) * time.Minute
		for range 300 {
			w.now = w.now.Add(time.Duration(w.rand.IntN(20_000)) * time.Millisecond)
			switch w.rand.IntN(16) {
			case 0:
				w.grant()
			case 1:
				w.start()
			case 2:
				w.stop()
			case 3:
				clear(w.shown)
			case 4:
				w.away = w.rand.IntN(2) == 0
				w.begin()
			case 5: // Nothing happens for minutes.
				w.now = w.now.Add(time.Duration(w.rand.IntN(7)) * time.Minute)
			case 6, 7:
				w.ready()
			case 8, 9:
				w.decide()
			case 10, 11:
				w.place()
			default:
				w.look()
			}
		}
		placed, silent, other = placed+w.placed, silent+w.silent, other+w.other
	}
	if placed == 0 || silent == 0 || other == 0 {
		t.Errorf("%d pods were placed, %d not for silence, %d not for what was told: the test does not try all", placed, silent, other)
	}
}
