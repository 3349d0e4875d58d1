// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package purchases

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/trade/connector/peering"
	"github.com/capacitorset/liqo-broker/pkg/trade/negotiation/negotiationv1"
)

// reaches returns why the clusters cannot peer, as far as this side sees it: the error is peering.ErrNotReachable if the seller's is not
// reached where it says, or nobody is told where this one is. Nothing is dialled at a host that credentials would not be followed to.
func (d *drive) reaches(ctx context.Context, at peering.Endpoints) error {
	if own, err := d.purchases.cfg.Reach.Own(ctx); own.Auth == "" || own.APIServer == "" {
		if err == nil {
			err = errors.New("liqo does not tell")
		}
		return fmt.Errorf("%w: it is not known where others reach this cluster: %w", peering.ErrNotReachable, err)
	}
	host := ""
	if auth, err := url.Parse(at.Auth); err == nil {
		host = strings.ToLower(auth.Hostname())
	}
	if err := d.believe(cluster.ID(at.Cluster), host); err != nil {
		return fmt.Errorf("%w: %w", peering.ErrNotReachable, err)
	}
	if err := d.purchases.cfg.Reach.Try(ctx, at); err != nil {
		return fmt.Errorf("this cluster does not reach the seller's: %w", err)
	}
	return nil
}

// own returns where this cluster is reached, as the seller is told. What is missing the seller does not reach.
func (d *drive) own(ctx context.Context) *negotiationv1.Endpoints {
	own, _ := d.purchases.cfg.Reach.Own(ctx)
	told := negotiationv1.Endpoints(own)
	return &told
}

// reached forgets that the seller has not signed because it does not reach this cluster, once the contract goes on.
func (d *drive) reached() {
	if d.record.Unreached && !d.record.Purchase.State().Final() {
		d.record.Unreached, d.record.Note = false, ""
	}
}
