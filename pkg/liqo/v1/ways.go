// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"context"
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/liqo/v1/api"
)

// Ways implements line.Reader. People say which peers are brokers. What is reached through one is what its Configuration lists behind the
// broker's own networks.
func (r reader) Ways(ctx context.Context) (liqo.Ways, error) {
	brokers, err := Brokers(ctx, r.objects)
	if err != nil {
		return liqo.Ways{}, err
	}
	ways := liqo.Ways{Through: make(map[cluster.ID][]netip.Prefix, len(brokers))}
	for _, broker := range brokers {
		ways.Through[broker.ID] = nil
	}
	if len(brokers) == 0 {
		return ways, nil
	}
	configurations, err := configurationsIn(ctx, r.objects)
	if err != nil {
		return ways, ignoreForbidden(err)
	}
	for i := range configurations {
		c := &configurations[i]
		if _, is := ways.Through[leadsTo(c.Labels)]; !is {
			continue
		}
		seen, err := r.seenThrough(ctx, c)
		if ignoreForbidden(err) != nil {
			return ways, err
		}
		ways.Through[leadsTo(c.Labels)] = append(ways.Through[leadsTo(c.Labels)], seen...)
	}
	return ways, nil
}

// seenThrough returns what is reached through the broker to which a Configuration leads; nothing if that is in the tenant namespace of
// somebody else, who says what it likes.
func (r reader) seenThrough(ctx context.Context, c *api.Configuration) ([]netip.Prefix, error) {
	var namespace corev1.Namespace
	if err := r.objects.Get(ctx, client.ObjectKey{Name: c.Namespace}, &namespace); err != nil {
		return nil, fmt.Errorf("get namespace %s: %w", c.Namespace, err)
	}
	if tenant, is := TenantOf(&namespace); !is || tenant != leadsTo(c.Labels) {
		return nil, nil
	}
	b := BrokerViews{Broker: leadsTo(c.Labels), configuration: c}
	if err := b.readList(ctx, r.objects, r.own); err != nil {
		return nil, err
	}
	return b.State.Seen(), nil
}

// ignoreForbidden returns an error unless it is that the caller may not read something.
func ignoreForbidden(err error) error {
	if apierrors.IsForbidden(err) {
		return nil
	}
	return err
}
