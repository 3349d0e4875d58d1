// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package trade

import (
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/capacitorset/liqo-broker/pkg/trade/core/contract"
	"github.com/capacitorset/liqo-broker/test/worlds"
)

const (
	// usual is how many worlds a test looks at, unless it is told for how long to.
	usual = 8
	// steps is how much happens in a world.
	steps = 400
	// many is how many worlds are enough for everything to happen in one of them.
	many = 100
)

// lines is how much of the log of a world is shown that fails: LIQO_BROKER_TEST_LINES.
func lines() int {
	if n, err := strconv.Atoi(os.Getenv("LIQO_BROKER_TEST_LINES")); err == nil {
		return n
	}
	return 60
}

// play lets a world happen, come to rest, and end.
func (w *world) play() {
	w.t.Helper()
	for _, b := range w.buyers {
		b.buy()
	}
	if w.r.IntN(2) == 0 {
		w.settle()
	}
	w.calm = false
	for range steps {
		w.steps++
		w.happen()
		w.fail()
	}
	w.soothe()
	w.settle()
	w.wait(decideFor + reserveFor) // What waits for somebody's decision is refused.
	w.rested()
	w.count()
	w.fail()
	w.ends()
	w.fail()
}

// count counts what was seen.
func (w *world) count() {
	w.worlds++
	for _, b := range w.buyers {
		for _, p := range b.all() {
			if len(p.OwnerReferences) == 0 && p.Status.Record != "" {
				w.ordered++
			}
			if b.stored(p).Purchase.NotSetUp {
				w.unused++
			}
			if renewal := b.stored(p).Renewal; renewal != nil && renewal.Times > 0 {
				w.renewed++
			}
		}
	}
	for _, s := range w.sellers {
		for _, r := range s.sold() {
			if slices.ContainsFunc(r.History, func(e contract.Transition) bool { return e.To == contract.Active }) {
				w.active++
			}
			if r.Terms.Revision > 1 {
				w.changed++
			}
			if r.State == contract.Ended {
				w.ended++
			}
		}
	}
}

// TestTrade looks at random worlds. After each step a seller has sold no more than it has, holds what is signed, and grants what is paid;
// contracts keep to the table; a buyer knows what its seller wrote; what runs is paid; and nothing is stuck. In the end both sides see the
// same, and nothing is left.
func TestTrade(t *testing.T) {
	ctrl.SetLogger(logr.Discard())
	var all seen
	worlds.Some(t, usual, func(t *testing.T, seed uint64) {
		w := newWorld(t, seed)
		defer w.close()
		w.play()
		all.add(w.seen)
	})
	worlds.Sayf(t, "%d steps, people ordered %d, %d contracts were active, %d had new terms, %d ended before the end of their world, %d "+
		"processes died, "+
		"%d calls came from slow ones, %d of them did something to a buyer's Liqo, %d sellers were restored, "+
		"%d contracts were not set up in time, %d were renewed without people",
		all.steps, all.ordered, all.active, all.changed, all.ended, all.kills, all.slow, all.deeds, all.restored, all.unused, all.renewed)
	if all.worlds >= usual && all.ordered == 0 ||
		all.worlds >= many && min(all.active, all.changed, all.ended, all.kills, all.slow, all.deeds, all.restored, all.unused,
			all.renewed) == 0 {
		t.Error("these worlds do not play what they are for")
	}
}

func (s *seen) add(more seen) {
	s.worlds, s.steps, s.ordered, s.active = s.worlds+more.worlds, s.steps+more.steps, s.ordered+more.ordered, s.active+more.active
	s.changed, s.ended, s.kills = s.changed+more.changed, s.ended+more.ended, s.kills+more.kills
	s.slow, s.deeds, s.restored = s.slow+more.slow, s.deeds+more.deeds, s.restored+more.restored
	s.unused, s.renewed = s.unused+more.unused, s.renewed+more.renewed
}
