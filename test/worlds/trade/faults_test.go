// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package trade

import (
	"errors"
	"math/rand/v2"
)

// Errors of calls to which something has happened.
var (
	errKilled  = errors.New("the process is killed")
	errUnknown = errors.New("etcdserver: request timed out") // It was done, or not.
)

// faults are how often things go wrong in a world: one in so many calls or messages; 0 is never.
type faults struct {
	// killed is a process that dies before or after a write or a deed, and unknown a call that fails before or after it was done.
	killed, unknown int
	// conflict is a write that somebody else has preceded.
	conflict int
	// lost is a message or an answer, doubled a message that comes twice, and late one that comes again after a while.
	lost, doubled, late int
	// behind is how late caches are, from 1 to 9.
	behind int
}

// anyFaults returns those of a world. Worlds differ: what happens all the time in one never happens in another.
func anyFaults(r *rand.Rand) faults {
	often := func(n int) int { return n * []int{0, 1, 1, 3}[r.IntN(4)] }
	return faults{
		killed: often(45), unknown: often(90), conflict: often(30), lost: often(14), doubled: often(14), late: often(5), behind: 1 + r.IntN(9),
	}
}

// once reports whether something happens that does once in n times; never if n is 0, and while the world is calm.
func (w *world) once(n int) bool {
	happens := !w.calm && n > 0 && w.r.IntN(n) == 0
	if happens {
		w.wrong++
	}
	return happens
}
