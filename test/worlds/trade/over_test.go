// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package trade

import (
	"fmt"
	"time"

	"github.com/capacitorset/liqo-broker/pkg/trade/core/contract"
)

// longest is longer than any contract and any wait lasts, and kept longer than Sales are kept.
const longest, kept = 40 * 24 * time.Hour, 8 * 24 * time.Hour

// ends lets the time of all contracts come, and looks that everything is over and can be deleted, and that nothing is left of it.
func (w *world) ends() {
	for _, b := range w.buyers {
		for _, r := range b.wishes() { // It would buy again.
			b.remove(r)
		}
		b.collect()
	}
	w.wait(longest)
	w.wait(2 * drainFor)
	w.rested()
	for _, b := range w.buyers {
		w.note(b.isOver(), b.name)
		for _, p := range b.all() {
			b.remove(p)
		}
	}
	for _, s := range w.sellers {
		s.tidy() // It does every ten minutes.
		w.note(s.holdsNothing(), s.name)
	}
	w.settle()
	for _, b := range w.buyers {
		w.note(b.isGone(), b.name)
	}
	w.wait(kept)
	w.settle()
	for _, s := range w.sellers {
		w.note(s.isForgotten(), s.name)
	}
}

// wait lets some time pass at once, and everybody do what is due then.
func (w *world) wait(some time.Duration) {
	w.now = w.now.Add(some)
	w.notef("%s have passed", some)
	w.settle()
}

// isOver: what was bought is over at the end.
func (b *buyer) isOver() error {
	for _, p := range b.all() {
		if known := b.stored(p); !contract.State(p.Status.State).Final() && !known.Purchase.Standing.Over() && p.Status.Record != "" {
			return fmt.Errorf("after its end purchase %s is %s, %s", p.Name, p.Status.State, reasonOf(p.Status.Conditions))
		}
	}
	return nil
}

// isGone: what was bought can be deleted.
func (b *buyer) isGone() error {
	for _, p := range b.all() {
		return fmt.Errorf("purchase %s cannot be deleted: %s, %s", p.Name, p.Status.State, reasonOf(p.Status.Conditions))
	}
	return nil
}

// holdsNothing: the ledger is empty at the end.
func (s *seller) holdsNothing() error {
	if held := s.held(); len(held.Holds) > 0 {
		return fmt.Errorf("when all is over it holds %+v", held)
	}
	return nil
}

// isForgotten: Sales are not kept for ever.
func (s *seller) isForgotten() error {
	if sales := s.all(); len(sales) > 0 {
		return fmt.Errorf("%d sales are kept, such as %s: %s", len(sales), sales[0].Name, readableOf(sales[0]))
	}
	return nil
}
