// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package views_test

import (
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
	// coming are the pods that are placed and not shown yet.
	coming []coming
	// So often a pod was placed, and so often none was because the agent was silent, or because what it had told is not granted any more.
	placed, silent, other int
}

// coming is a pod that is shown in a view at a time.
type coming struct {
	view netip.Prefix
	at   time.Time
}

// place has the broker place a pod on each provider on which it may.
func (w *twins) place() {
	w.Helper()
	believed := w.believes()
	v := grant.Views{
		Asked: true, Granted: map[cluster.ID]grant.View{}, Acknowledged: believed.acknowledged, Told: believed.at, Now: w.now,
	}
	for key, prefix := range w.granted {
		v.Granted[cluster.ID(key)] = grant.View{Key: key, Prefix: prefix}
	}
	for key, prefix := range w.granted {
		told, is := believed.acknowledged[key]
		if !v.Knows(cluster.ID(key)) {
			if is && told == prefix {
				w.silent++
			} else if is {
				w.other++
			}
			continue
		}
		w.placed++
		w.isRight(prefix)
		w.coming = append(w.coming, coming{view: prefix, at: w.now.Add(time.Duration(w.rand.IntN(5000)) * time.Millisecond)})
	}
}

// show shows the pods that are placed and have come.
func (w *twins) show() {
	w.Helper()
	w.coming = slices.DeleteFunc(w.coming, func(c coming) bool {
		if c.at.After(w.now) {
			return false
		}
		w.isRight(c.view)
		w.shown[w.seen[c.view].Addr().Next()] = c.view
		return true
	})
}

// isRight checks that whatever shows a pod in a view shows the address at which it is reached.
func (w *twins) isRight(view netip.Prefix) {
	w.Helper()
	for name, k := range w.kubelets {
		if k.table != nil && (k.shows(view) != w.seen[view] || !slices.Contains(w.list, view)) {
			w.Errorf("seed %d: a pod in view %s is placed at %s, and %s shows it in %s", w.seed, view, w.now, name, k.shows(view))
			w.Fatalf("it is reached in %s, the list is %v, and the broker believes %v", w.seen[view], w.list, w.believes())
		}
	}
}

// TestTwins has a broker place pods while the consumer's agent is missing, comes late, starts again, or tells by a clock that is wrong,
// while reports get lost or come late, and while views come, go and change. No pod is placed that is shown under another address than its
// own. Nobody but the agent writes its list.
func TestTwins(t *testing.T) {
	placed, silent, other := 0, 0, 0
	for seed := range uint64(2000) {
		w := &twins{world: newWorld(t, seed)}
		w.ahead = time.Duration(w.rand.IntN(11)-5) * time.Minute
		for range 300 {
			w.now = w.now.Add(time.Duration(w.rand.IntN([]int{1_000, 20_000}[w.rand.IntN(2)])) * time.Millisecond)
			w.show()
			switch w.rand.IntN(24) {
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
			case 10, 11, 12, 13:
				w.place()
			case 14:
				w.late()
			case 15, 16, 17, 18:
				if !w.away {
					w.tell()
				}
			default:
				if !w.away {
					w.look()
				}
			}
		}
		placed, silent, other = placed+w.placed, silent+w.silent, other+w.other
	}
	if placed == 0 || silent == 0 || other == 0 {
		t.Errorf("%d pods were placed, %d not for silence, %d not for what was told: the test does not try all", placed, silent, other)
	}
}
