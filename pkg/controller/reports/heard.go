// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package reports

import (
	"context"
	"net/netip"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/core/grant"
	v1 "github.com/capacitorset/liqo-broker/pkg/liqo/v1"
)

// Heard returns what was heard of a consumer's agent, and which views its ResourceSlices tell it.
func (r *Reports) Heard(ctx context.Context, consumer cluster.ID) (grant.Heard, error) {
	views, err := r.Views(ctx, consumer)
	if err != nil || !views.Asked {
		return grant.Heard{Views: views}, err
	}
	heard := grant.Heard{Views: views, ToldViews: map[string]netip.Prefix{}}
	_, unreadable, err := r.told(ctx, consumer)
	if err != nil {
		return grant.Heard{}, err
	}
	if unreadable != nil {
		heard.Unreadable = unreadable.Error()
	}
	peer, err := r.cfg.Reader.Peer(ctx, consumer)
	if err != nil || peer == nil {
		return heard, err
	}
	requests, err := v1.RequestsBy(ctx, r.cfg.Client, r.cfg.Reader.Own(), peer)
	if err != nil {
		return grant.Heard{}, err
	}
	heard.ToldViews = requests.ToldViews()
	return heard, nil
}
