// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package sales

import (
	"context"
	"errors"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/core/grant"
)

// Grants tells the resource plugin what contracts give to clusters. It can be used concurrently.
type Grants struct {
	reader client.Reader
	of     ClusterOf
}

// NewGrants returns the grants of the Sales that a reader has, which may be a cache: what it has not seen yet comes a moment later.
func NewGrants(reader client.Reader, of ClusterOf) (*Grants, error) {
	if reader == nil || of == nil {
		return nil, errors.New("grants need a reader and a way to read clusters")
	}
	return &Grants{reader: reader, of: of}, nil
}

// Book returns what contracts give at this moment: what a resource plugin answers.
func (g *Grants) Book(ctx context.Context) (*grant.Book, error) {
	all, err := list(ctx, g.reader, g.of)
	if err != nil {
		return nil, err
	}
	return all.book(), nil
}
