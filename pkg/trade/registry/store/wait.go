// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"time"
)

// pollInterval is how often Wait looks for what nobody has told it: changes of another process on SQLite, or while PostgreSQL cannot be
// heard.
const pollInterval = 250 * time.Millisecond

// Wait returns the revision of the database as soon as it is another than the one that the caller knows: usually a later one, and an
// earlier one after a backup was restored. It hears of changes by this process at once, of those by others through PostgreSQL's NOTIFY,
// and polls four times a second besides. One caller in each process is enough: it tells the others. It returns the error of the context
// when that ends.
func (s *Store) Wait(ctx context.Context, known int64) (int64, error) {
	ticker := time.NewTicker(s.poll)
	defer ticker.Stop()
	for {
		changed := s.changes.Next() // Before the look: a change between the two is heard.
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
