// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

// Package negotiationtest has a store of negotiations in memory, for tests. It does not know who stores what.
package negotiationtest

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/capacitorset/liqo-broker/pkg/trade/core/contract"
	"github.com/capacitorset/liqo-broker/pkg/trade/core/ledger"
	"github.com/capacitorset/liqo-broker/pkg/trade/negotiation"
	"github.com/capacitorset/liqo-broker/pkg/trade/party"
	"github.com/capacitorset/liqo-broker/pkg/wake"
)

// FirstKeys is a negotiation.Identify that knows everybody who never changed its key.
func FirstKeys(_ context.Context, key ed25519.PublicKey) (party.Keys, error) {
	return party.FirstKey(key), nil
}

// Memory is a store in memory. The zero Memory is empty. It can be used concurrently.
type Memory struct {
	// AfterWrite is called after each write, and its error is returned in the place of the answer; nil does nothing. It must not be set
	// while the store is used.
	AfterWrite func() error
	// BeforeRead is called before each read of Update; nil does nothing. It must not be set while the store is used.
	BeforeRead func()

	mu      sync.Mutex
	records map[contract.Key]contract.Record
	books   ledger.Ledger
	changed wake.Broadcast
}

var _ negotiation.Store = (*Memory)(nil)

// Get implements negotiation.Store.
func (m *Memory) Get(_ context.Context, key contract.Key) (*contract.Record, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if record, found := m.records[key]; found {
		return &record, nil
	}
	return nil, nil //nolint:nilnil // That there is none is an answer.
}

// Recent implements negotiation.Store.
func (m *Memory) Recent(key contract.Key) (contract.Record, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	record, found := m.records[key]
	return record, found && !record.State.Final()
}

// Update implements negotiation.Store. It works on what it has read, and compares before it writes, as a store of several processes does.
func (m *Memory) Update(ctx context.Context, key contract.Key, decide negotiation.Decide) (contract.Record, error) {
	for {
		if err := ctx.Err(); err != nil {
			return contract.Record{}, err
		}
		m.reading()
		books := m.Ledger()
		m.reading()
		record, err := m.Get(ctx, key)
		if err != nil {
			return contract.Record{}, err
		}
		result, err := decide(record, books)
		written, differs := m.write(key, record, books, result)
		if !written {
			continue
		}
		if differs && m.AfterWrite != nil {
			if lost := m.AfterWrite(); lost != nil {
				return contract.Record{}, lost
			}
		}
		return result.Record, err
	}
}

func (m *Memory) reading() {
	if m.BeforeRead != nil {
		m.BeforeRead()
	}
}

// write writes a result over what it was made from.
func (m *Memory) write(key contract.Key, record *contract.Record, books ledger.Ledger, result contract.Result) (written, differs bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	stored, found := m.records[key]
	if found != (record != nil) || record != nil && stored.Version != record.Version || !m.books.Equal(books) {
		return false, false
	}
	differs = result.Record.Version != stored.Version || !result.After.Equal(books)
	if result.Record.Version > 0 {
		if m.records == nil {
			m.records = map[contract.Key]contract.Record{}
		}
		m.records[key] = result.Record
	}
	m.books = result.After
	if differs {
		m.changed.Send()
	}
	return true, differs
}

// Count implements negotiation.Store.
func (m *Memory) Count(_ context.Context, buyer string) (negotiation.Count, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	count := negotiation.Count{AllKept: len(m.records)}
	for key, record := range m.records {
		open := 0
		if !record.State.Final() {
			open = 1
		}
		text, err := json.Marshal(record)
		if err != nil {
			return negotiation.Count{}, fmt.Errorf("encode the record of contract %s: %w", key, err)
		}
		count.AllOpen += open
		count.AllBytes += len(text)
		if key.Buyer == buyer {
			count.Open += open
			count.Kept++
			count.Bytes += len(text)
			if record.Lapsed() {
				count.Lapsed++
			}
		}
	}
	return count, nil
}

// Wait implements negotiation.Store.
func (m *Memory) Wait(ctx context.Context, key contract.Key, after int64) error {
	for {
		m.mu.Lock()
		version := m.records[key].Version
		changed := m.changed.Next()
		m.mu.Unlock()
		if version > after {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		}
	}
}

// Forget removes a record, and what its contract holds, as a seller does long after its end.
func (m *Memory) Forget(key contract.Key) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.records, key)
	m.books = m.books.Release(key)
}

// Ledger returns the holds that are stored.
func (m *Memory) Ledger() ledger.Ledger {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.books
}
