// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"context"
	"sync"

	"github.com/capacitorset/liqo-broker/pkg/core/capacity"
)

// Ledger keeps the books of a Reader until something changes, so that those who
// look at them one after the other do not all count every pod. It may be used
// concurrently.
type Ledger struct {
	reader *Reader

	mu      sync.Mutex
	changes int // Since the beginning.
	counted int // The changes that the books have.
	books   *capacity.Books
}

// NewLedger returns a Ledger, which has to be told of changes.
func NewLedger(r *Reader) *Ledger { return &Ledger{reader: r} }

// Changed says that the books of before are outdated.
func (l *Ledger) Changed() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.changes++
}

// Books returns books that have all changes up to this moment.
func (l *Ledger) Books(ctx context.Context) (*capacity.Books, error) {
	l.mu.Lock()
	books, counted, changes := l.books, l.counted, l.changes
	l.mu.Unlock()
	if books != nil && counted == changes {
		return books, nil
	}
	books, err := l.reader.Books(ctx)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.books == nil || changes > l.counted {
		l.books, l.counted = books, changes
	}
	return books, nil
}
