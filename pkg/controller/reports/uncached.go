// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package reports

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/core/grant"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	v1 "github.com/capacitorset/liqo-broker/pkg/liqo/v1"
)

// Uncached returns what was heard of the agents of some consumers on the cluster with an ID, for who has no cache: the API server is asked
// for all peers once. Which views their ResourceSlices tell them is left out.
func Uncached(
	ctx context.Context, objects client.Reader, own cluster.ID, now time.Time, consumers []v1alpha1.Consumer,
) (map[cluster.ID]grant.Heard, error) {
	var providers v1alpha1.ProviderList
	if err := objects.List(ctx, &providers); err != nil {
		return nil, fmt.Errorf("list providers: %w", err)
	}
	pods, err := v1.ProviderPods(ctx, objects, own)
	if err != nil {
		return nil, err
	}
	peers, err := v1.Line{}.Reader(objects, own).Peers(ctx)
	if err != nil {
		return nil, err
	}
	all := make(map[cluster.ID]grant.Heard, len(consumers))
	for i := range consumers {
		c := &consumers[i]
		id := cluster.ID(c.Name)
		heard := grant.Heard{Views: grant.Views{
			Asked: c.HasToAcknowledge(), Granted: grantedOf(providers.Items, pods, id), Acknowledged: map[string]netip.Prefix{}, Now: now,
		}}
		if at := slices.IndexFunc(peers, func(p liqo.Peer) bool { return p.ID == id }); at >= 0 && heard.Asked {
			told, unreadable, err := toldBy(ctx, objects, &peers[at])
			if err != nil {
				return nil, err
			}
			heard.Acknowledged, heard.Told = told.Views, told.At
			if unreadable != nil {
				heard.Unreadable = unreadable.Error()
			}
		}
		all[id] = heard
	}
	return all, nil
}
