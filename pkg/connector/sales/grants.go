// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package sales

import (
	"context"

	"github.com/capacitorset/liqo-broker/pkg/core/grant"
)

// Grants tells the resource plugin what contracts give to clusters. It can be used concurrently.
type Grants struct{ contracts Contracts }

// NewGrants returns the grants of contracts.
func NewGrants(contracts Contracts) *Grants { return &Grants{contracts: contracts} }

// Book returns what contracts give at this moment: what a resource plugin answers.
func (g *Grants) Book(ctx context.Context) (*grant.Book, error) {
	all, err := registerOf(ctx, g.contracts)
	if err != nil {
		return nil, err
	}
	return all.book(), nil
}
