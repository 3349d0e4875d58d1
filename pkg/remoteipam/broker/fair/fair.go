// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fair has a lock that several parties take in turn: who wants it a thousand
// times makes another party wait no longer than who wants it once.
//
// It does not know what is locked.
package fair

import (
	"context"
	"slices"
	"sync"
)

// Lock is held by one at a time. When it gets free, it goes to the next party that waits,
// and within the party to who has waited longest. The zero value is free.
type Lock[Party comparable] struct {
	mu     sync.Mutex
	held   bool
	holder Party
	// waiting are who waits, by party; turns the parties that wait, the next one first,
	// without the holder: its turn comes after those of all that wait when it is done.
	waiting map[Party][]chan struct{}
	turns   []Party
}

// Acquire waits for the lock. Who gets it must call release, once. The error is the one
// of the context.
func (l *Lock[Party]) Acquire(ctx context.Context, party Party) (release func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	mine := l.enter(party)
	if mine == nil {
		return l.release, nil
	}
	select {
	case <-mine:
		return l.release, nil
	case <-ctx.Done():
		if !l.leave(party, mine) {
			l.release() // It came at the same moment.
		}
		return nil, ctx.Err()
	}
}

// enter takes the lock and returns nil, or returns a channel that is closed when it is
// the caller's.
func (l *Lock[Party]) enter(party Party) chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.held {
		l.held, l.holder = true, party
		return nil
	}
	if l.waiting == nil {
		l.waiting = map[Party][]chan struct{}{}
	}
	if len(l.waiting[party]) == 0 && party != l.holder {
		l.turns = append(l.turns, party)
	}
	mine := make(chan struct{})
	l.waiting[party] = append(l.waiting[party], mine)
	return mine
}

// leave ends the wait for the lock. It returns false if the lock is the caller's already.
func (l *Lock[Party]) leave(party Party, mine chan struct{}) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.Index(l.waiting[party], mine)
	if i < 0 {
		return false
	}
	l.waiting[party] = slices.Delete(l.waiting[party], i, i+1)
	if len(l.waiting[party]) == 0 {
		delete(l.waiting, party)
		l.turns = slices.DeleteFunc(l.turns, func(other Party) bool { return other == party })
	}
	return true
}

// release gives the lock to the next party.
func (l *Lock[Party]) release() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiting[l.holder]) > 0 {
		l.turns = append(l.turns, l.holder)
	}
	if len(l.turns) == 0 {
		l.held = false
		return
	}
	l.holder, l.turns = l.turns[0], l.turns[1:]
	next := l.waiting[l.holder][0]
	if rest := l.waiting[l.holder][1:]; len(rest) > 0 {
		l.waiting[l.holder] = rest
	} else {
		delete(l.waiting, l.holder)
	}
	close(next)
}
