// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"context"
	"sync"

	"github.com/capacitorset/liqo-broker/pkg/core/capacity"
)

// CapacityCache keeps the capacity that a Reader found until something changes, so that those who
// look at them one after the other do not all count every pod. It may be used
// concurrently.
type CapacityCache struct {
	reader *Reader

	mu      sync.Mutex
	changes int // Since the beginning.
	counted int // The changes that the snapshot has.
	snap    *capacity.Snapshot
}

// NewCapacityCache returns a CapacityCache, which has to be told of changes.
func NewCapacityCache(r *Reader) *CapacityCache { return &CapacityCache{reader: r} }

// Changed says that the last snapshot is outdated.
func (l *CapacityCache) Changed() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.changes++
}

// Capacity returns a snapshot that has all changes up to this moment.
func (l *CapacityCache) Capacity(ctx context.Context) (*capacity.Snapshot, error) {
	l.mu.Lock()
	snap, counted, changes := l.snap, l.counted, l.changes
	l.mu.Unlock()
	if snap != nil && counted == changes {
		return snap, nil
	}
	snap, err := l.reader.Capacity(ctx)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.snap == nil || changes > l.counted {
		l.snap, l.counted = snap, changes
	}
	return snap, nil
}
