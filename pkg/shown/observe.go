// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package shown

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/liqo/line"
	"github.com/capacitorset/liqo-broker/pkg/overview"
)

// Programs are the Deployments that say whether a broker runs.
type Programs struct {
	// Daemon is the broker's own.
	Daemon client.ObjectKey
	// Liqo is the namespace of Liqo, whose gateways are looked for.
	Liqo string
}

// Observe reads all that there is of a broker, the kinds side by side. Only the broker's own kinds, its Deployment and offers must be
// readable: much can be said without the gateways. With nil for the programs none are read.
func Observe(ctx context.Context, reader client.Reader, of line.Line, programs *Programs) (overview.Observed, error) {
	var (
		observed  = overview.Observed{Liqo: of}
		providers v1alpha1.ProviderList
		consumers v1alpha1.ConsumerList
		policies  v1alpha1.PlacementPolicyList
		queries   v1alpha1.ProviderQueryList
		decisions v1alpha1.PlacementDecisionList
		offers    = of.Kinds().Offers
	)
	// The broker's own kinds, and what is offered.
	group, ctx := errgroup.WithContext(ctx)
	for what, list := range map[string]client.ObjectList{
		"providers": &providers, "consumers": &consumers, "placement policies": &policies, "provider queries": &queries,
		"placement decisions": &decisions, "resource offers": offers,
	} {
		group.Go(func() error {
			if err := reader.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil { // Nothing below changes what it reads.
				return fmt.Errorf("list %s: %w", what, err)
			}
			return nil
		})
	}
	// What runs.
	if programs != nil {
		group.Go(func() (err error) {
			observed.Deployment, err = deployment(ctx, reader, programs.Daemon)
			return err
		})
		group.Go(func() (err error) {
			observed.Gateways, err = Gateways(ctx, reader, of, programs.Liqo)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return overview.Observed{}, err
	}
	// In order.
	overview.SortProviders(providers.Items)
	overview.SortConsumers(consumers.Items)
	observed.Providers, observed.Consumers, observed.Policies = providers.Items, consumers.Items, policies.Items
	observed.Queries, observed.Decisions = queries.Items, decisions.Items
	return observed, line.Each(offers, func(o client.Object) { observed.Offers = append(observed.Offers, of.OfferOf(o)) })
}

// deployment returns a Deployment; nil if there is none.
func deployment(ctx context.Context, reader client.Reader, key client.ObjectKey) (*appsv1.Deployment, error) {
	var found appsv1.Deployment
	switch err := reader.Get(ctx, key, &found); {
	case apierrors.IsNotFound(err):
		return nil, nil //nolint:nilnil // That there is none is an answer.
	case err != nil:
		return nil, fmt.Errorf("get deployment %s: %w", key, err)
	}
	return &found, nil
}

// Gateways returns those of Liqo in a namespace; none if they may not be read.
func Gateways(ctx context.Context, reader client.Reader, of line.Line, namespace string) ([]line.Gateway, error) {
	gateways, err := of.Gateways(ctx, reader, namespace)
	if apierrors.IsForbidden(err) {
		return nil, nil
	}
	return gateways, err
}
