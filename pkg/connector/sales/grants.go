// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package sales

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/core/grant"
)

// Grants tells the resource plugin what contracts give to clusters. It can be used concurrently.
type Grants struct{ reader client.Reader }

// NewGrants returns the grants of the Sales that a reader has, which may be a cache: what it has not seen yet comes a moment later.
func NewGrants(reader client.Reader) *Grants { return &Grants{reader: reader} }

// Book returns what contracts give at this moment: what a resource plugin answers.
func (g *Grants) Book(ctx context.Context) (*grant.Book, error) {
	all, err := list(ctx, g.reader)
	if err != nil {
		return nil, err
	}
	return all.book(), nil
}
