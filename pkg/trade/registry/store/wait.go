// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"sync"
	"time"
)

// pollInterval is how often Wait looks for what nobody has told it: changes of another process on SQLite, or while PostgreSQL cannot be heard.
const pollInterval = 250 * time.Millisecond

// announcer wakes all that wait. The zero announcer is ready.
type announcer struct {
	mu   sync.Mutex
	wake chan struct{}
}

// announce wakes them.
func (a *announcer) announce() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.wake != nil {
		close(a.wake)
		a.wake = nil
	}
}

// next returns a channel that the next announcement closes.
func (a *announcer) next() <-chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.wake == nil {
		a.wake = make(chan struct{})
	}
	return a.wake
}

// Wait returns the revision of the database as soon as it is another than the one that the caller knows: usually a later one, and an
// earlier one after a backup was restored. It hears of changes by this process at once, of those by others through PostgreSQL's NOTIFY,
// and polls four times a second besides. One caller in each process is enough: it tells the others. It returns the error of the context
// when that ends.
func (s *Store) Wait(ctx context.Context, known int64) (int64, error) {
	ticker := time.NewTicker(s.poll)
	defer ticker.Stop()
	for {
		changed := s.changes.next() // Before the look: a change between the two is heard.
		revision, err := s.Revision(ctx)
		if err != nil || revision != known {
			return revision, err
		}
		select {
		case <-ctx.Done():
			return known, ctx.Err()
		case <-changed:
		case <-ticker.C:
		}
	}
}
