// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/install"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/liqo/line"
	"github.com/capacitorset/liqo-broker/pkg/overview"
)

func (r *reading) statusCommand() *cobra.Command {
	var out output
	command := &cobra.Command{
		Use:   "status",
		Short: "Show the broker on one screen, and what to do next",
		Long: "Show the broker on one screen: its replicas and modes, providers, consumers, policies, decisions and offers, and what " +
			"to do about\neach thing that is not as it should be: problems (!) and hints (*). With a problem, the exit code is 3.",
		Example:           "  kubectl liqo-broker status\n  kubectl liqo-broker status -o json | jq .next",
		Args:              usage(cobra.NoArgs),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(command *cobra.Command, _ []string) error {
			c, err := r.open()
			if err != nil {
				return err
			}
			observed, err := observe(command.Context(), c)
			if err != nil {
				return r.clear(r.onBroker(command.Context(), c, err))
			}
			status := overview.Summarize(observed)
			if done, err := out.value(r.Out, status); err != nil {
				return err
			} else if !done {
				fmt.Fprint(r.Out, status.String())
			}
			if !status.Healthy {
				return errUnhealthy
			}
			return nil
		},
	}
	out.addFlags(command, formatJSON, formatYAML)
	return command
}

// observe reads all that there is of a broker, the kinds side by side.
func observe(ctx context.Context, c client.Client) (overview.Observed, error) {
	of, err := lineOf(c)
	if err != nil {
		return overview.Observed{}, err
	}
	var (
		observed   = overview.Observed{Liqo: of}
		deployment appsv1.Deployment
		missing    bool
		providers  v1alpha1.ProviderList
		consumers  v1alpha1.ConsumerList
		policies   v1alpha1.PlacementPolicyList
		queries    v1alpha1.ProviderQueryList
		decisions  v1alpha1.PlacementDecisionList
		offers     = of.Kinds().Offers
	)
	// Only the broker's own kinds, Deployment and offers must be readable.
	group, ctx := errgroup.WithContext(ctx)
	for what, list := range map[string]client.ObjectList{
		"providers": &providers, "consumers": &consumers, "placement policies": &policies, "provider queries": &queries,
		"placement decisions": &decisions, "resource offers": offers,
	} {
		group.Go(func() error { return listed(what, c.List(ctx, list)) })
	}
	group.Go(func() error {
		err := c.Get(ctx, client.ObjectKey{Namespace: install.BrokerNamespace, Name: install.BrokerName}, &deployment)
		if missing = apierrors.IsNotFound(err); missing || err == nil {
			return nil
		}
		return fmt.Errorf("get deployment %s/%s: %w", install.BrokerNamespace, install.BrokerName, err)
	})
	group.Go(func() (err error) {
		observed.Gateways, err = gatewaysOf(ctx, c, of)
		return err
	})
	if err := group.Wait(); err != nil {
		return overview.Observed{}, err
	}
	// In order, with what may be missing.
	overview.SortProviders(providers.Items)
	overview.SortConsumers(consumers.Items)
	observed.Providers, observed.Consumers, observed.Policies = providers.Items, consumers.Items, policies.Items
	observed.Queries, observed.Decisions = queries.Items, decisions.Items
	if !missing {
		observed.Deployment = &deployment
	}
	return observed, line.Each(offers, func(o client.Object) { observed.Offers = append(observed.Offers, of.OfferOf(o)) })
}

// gatewaysOf returns Liqo's gateways; none if the user may not read them: much can be said without.
func gatewaysOf(ctx context.Context, c client.Client, of line.Line) ([]line.Gateway, error) {
	gateways, err := of.Gateways(ctx, c, liqo.DefaultNamespace)
	if apierrors.IsForbidden(err) {
		return nil, nil
	}
	return gateways, err
}
