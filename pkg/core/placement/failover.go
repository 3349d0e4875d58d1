// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"time"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
)

// DefaultGrace is the grace where nobody says otherwise. A gateway that starts
// again has its tunnels back in 20 s (docs/faults.md): nothing is to move for that.
const DefaultGrace = 30 * time.Second

// Mode says whether the pods on a provider that is out of reach are replaced.
type Mode int

// The modes.
const (
	// Never: they stay where they are until the provider is back.
	Never Mode = iota
	// AfterGrace: they are replaced when the provider has been lost for the grace.
	AfterGrace
	// Immediate: they are replaced as soon as the provider is lost.
	Immediate
)

// Failover is the rule for the pods on providers that are out of reach.
type Failover struct {
	Mode Mode
	// Grace is for how long a provider is lost before its pods are replaced, if the
	// mode is AfterGrace.
	Grace time.Duration
	// ReplaceSole tells that pods are replaced too of which no second one may run.
	ReplaceSole bool
}

// rest returns for how long a lost provider may still come back before its pods
// are replaced; false if they are not. One that people want drained is to be
// left, so that Never does not hold for it. Pods that serve their consumer without
// the broker are not replaced: nobody would know when the last one goes. Where the
// peering ends, nothing comes back, and what Liqo has not evicted it never will: the
// virtual kubelet may have gone before the pods.
func (f Failover) rest(now time.Time, p Provider) (rest time.Duration, fails bool) {
	grace := f.Grace
	switch {
	case !p.lost():
		return 0, false
	case p.Health == Ending:
		grace = DefaultGrace
	case p.Direct || f.Mode == Never && !p.isLeft():
		return 0, false
	case f.Mode == Immediate:
		return 0, true
	}
	since := p.LostSince
	if since.After(now) { // The clock was set back.
		since = now
	}
	return max(0, grace-now.Sub(since)), true
}

// isLost reports whether the copy is on a provider that is out of reach. One that is
// ready is not: its node is back, and the provider about to be.
func (c Copy) isLost(providers map[cluster.ID]member) bool {
	return c.Spot == OnProvider && !c.Missing && !c.Ready && providers[c.Provider].lost()
}

// replace decides about the copies of one workload that are on a lost provider.
// None of them serves, so that they need no budget.
func (plan *Plan) replace(copies []Copy, providers map[cluster.ID]member, f Failover, room func() *vacancies) {
	for _, c := range copies {
		if !c.isLost(providers) {
			continue
		}
		p := providers[c.Provider]
		var reason Reason
		switch {
		case !p.failed && !p.leaves():
			continue
		case !p.failed:
			reason = OutOfReach
		case c.Sole && !f.ReplaceSole && p.Health != Ending:
			reason = MayRunThere
		case p.Health == Ending:
		case room().none():
			reason = NoTarget
		case !room().take(c):
			reason = NoRoom
		}
		if reason == "" {
			plan.Replace = append(plan.Replace, c.Pod)
			continue
		}
		plan.Held = append(plan.Held, Held{Pod: c.Pod, Provider: c.Provider, Reason: reason})
	}
}
