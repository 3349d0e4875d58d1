// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package trade

import (
	"iter"
	"slices"
)

// mostSlow is how many calls are in the middle at once.
const mostSlow = 4

// slow is what a process does that is paused before each of its calls: that of an old leader that goes on, or of another replica.
type slow struct {
	what string
	by   *process
	next func() (string, bool)
	stop func()
}

// slowly begins something in a process, up to its first call. Others go on then; it does as well when it is hurried.
func (w *world) slowly(p *process, what string, do func()) {
	s := &slow{what: p.name + ": " + what, by: p}
	s.next, s.stop = iter.Pull(func(yield func(string) bool) {
		p.pause = func() bool { return yield(what) }
		do()
	})
	w.notef("%s begins, slowly", s.what)
	if _, goesOn := s.next(); goesOn {
		w.slows = append(w.slows, s)
	}
}

// hurry lets something slow make its next call, or die instead.
func (w *world) hurry() {
	if len(w.slows) == 0 {
		return
	}
	s := w.slows[w.r.IntN(len(w.slows))]
	if w.r.IntN(40) == 0 {
		w.notef("%s dies", s.what)
		s.stop()
		w.forget(s)
		return
	}
	w.notef("%s goes on", s.what)
	w.slow++
	if _, goesOn := s.next(); !goesOn {
		w.notef("%s is at its end", s.what)
		w.forget(s)
	}
}

// isUnderway reports whether a process is in the middle of something.
func (w *world) isUnderway(p *process) bool {
	return !p.dead && slices.ContainsFunc(w.slows, func(s *slow) bool { return s.by == p })
}

func (w *world) forget(s *slow) {
	w.slows = slices.DeleteFunc(w.slows, func(o *slow) bool { return o == s })
}

// stopSlow ends all that is slow.
func (w *world) stopSlow() {
	for _, s := range w.slows {
		s.stop()
	}
	w.slows = nil
}
