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
	v09 "github.com/capacitorset/liqo-broker/pkg/liqo/v09"
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
	var (
		gateway    *appsv1.Deployment
		deployment appsv1.Deployment
		missing    bool
		providers  v1alpha1.ProviderList
		consumers  v1alpha1.ConsumerList
		policies   v1alpha1.PlacementPolicyList
		queries    v1alpha1.ProviderQueryList
		decisions  v1alpha1.PlacementDecisionList
		offers     v09.ResourceOfferList
	)
	// Only the broker's own kinds and Deployment must be readable.
	group, ctx := errgroup.WithContext(ctx)
	for what, list := range map[string]client.ObjectList{
		"providers": &providers, "consumers": &consumers, "placement policies": &policies, "provider queries": &queries,
		"placement decisions": &decisions, "resource offers": &offers,
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
		gateway, err = gatewayOf(ctx, c)
		return err
	})
	if err := group.Wait(); err != nil {
		return overview.Observed{}, err
	}
	overview.SortProviders(providers.Items)
	overview.SortConsumers(consumers.Items)
	observed := overview.Observed{
		Providers: providers.Items, Consumers: consumers.Items, Policies: policies.Items, Queries: queries.Items,
		Decisions: decisions.Items, Offers: v09.OffersOf(offers.Items), Gateway: gateway,
	}
	if !missing {
		observed.Deployment = &deployment
	}
	return observed, nil
}

// gatewayOf returns the Deployment of Liqo's gateway; nil if there is none, or if the user may not read it: much can be said without.
func gatewayOf(ctx context.Context, c client.Client) (gateway *appsv1.Deployment, err error) {
	var found appsv1.Deployment
	err = c.Get(ctx, client.ObjectKey{Namespace: liqo.DefaultNamespace, Name: v09.GatewayName}, &found)
	switch {
	case err == nil:
		gateway = &found
	case apierrors.IsNotFound(err) || apierrors.IsForbidden(err):
		err = nil
	default:
		err = fmt.Errorf("get deployment %s/%s: %w", liqo.DefaultNamespace, v09.GatewayName, err)
	}
	return gateway, err
}
