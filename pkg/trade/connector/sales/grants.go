// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package sales

import (
	"context"
	"sync"

	"github.com/capacitorset/liqo-broker/pkg/trade/core/grant"
)

// Grants tells the resource plugin what contracts give to clusters. It can be used concurrently.
type Grants struct {
	contracts Contracts

	// last is the book of the contracts after so many changes; nil if there is none.
	mu      sync.Mutex
	last    *grant.Book
	changes int64
}

// NewGrants returns the grants of contracts.
func NewGrants(contracts Contracts) *Grants { return &Grants{contracts: contracts} }

// Book returns what contracts give at this moment: what a resource plugin answers. It is made again only when a contract has changed: after
// it has begun again, Liqo asks for each cluster.
func (g *Grants) Book(ctx context.Context) (*grant.Book, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	changes, known := g.contracts.Changes() // Before they are read: what changes meanwhile is seen the next time.
	if known && g.last != nil && changes == g.changes {
		return g.last, nil
	}
	all, err := registerOf(ctx, g.contracts)
	if err != nil {
		return nil, err
	}
	book := all.book()
	if g.last = nil; known {
		g.last, g.changes = book, changes
	}
	return book, nil
}
