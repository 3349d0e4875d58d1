// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/overview"
)

// completionTimeout is how long a shell waits for names.
const completionTimeout = 3 * time.Second

// reading is what the commands need that look at a cluster, or change one field of one object.
type reading struct {
	*session
	// open returns a client of the cluster, and now the time.
	open func() (client.Client, error)
	now  func() time.Time
}

// commands returns the commands that look at a cluster, or change one field of one object.
func (r *reading) commands() []*cobra.Command {
	return append([]*cobra.Command{r.providersCommand(), r.consumersCommand(), r.statusCommand(), r.whereCommand(), r.explainCommand(), r.policyCommand()}, r.settingCommands()...)
}

func newReading(s *session) *reading { return &reading{session: s, open: s.client, now: time.Now} }

// clear returns an error of the API server, or of the way to it, as one sentence that says what to do.
func (r *reading) clear(err error) error {
	unreachable := &url.Error{}
	switch {
	case err == nil:
		return nil
	case meta.IsNoMatchError(err):
		return fmt.Errorf("there is no broker on %s: it knows no objects of %s. Choose another cluster with --context, or install a broker with: kubectl liqo-broker install",
			r.where(), v1alpha1.GroupVersion.Group)
	case apierrors.IsForbidden(err):
		return fmt.Errorf("you lack a right on %s: %w", r.where(), err)
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("%s does not accept your credentials: %w", r.where(), err)
	case errors.Is(err, context.Canceled):
		return errors.New("interrupted")
	case errors.As(err, &unreachable):
		return fmt.Errorf("%s cannot be reached: %w", r.where(), unreachable)
	default:
		return err
	}
}

// where says in a sentence which cluster is meant.
func (r *reading) where() string {
	name := r.to.context()
	if name == "" {
		return "this cluster"
	}
	return fmt.Sprintf("the cluster of context %q", name)
}

// providers returns all providers, in order of their names.
func (r *reading) providers(ctx context.Context, c client.Client) (*v1alpha1.ProviderList, error) {
	var all v1alpha1.ProviderList
	if err := listed("providers", c.List(ctx, &all)); err != nil {
		return nil, err
	}
	overview.SortProviders(all.Items)
	return &all, nil
}

// consumers returns all consumers, in order of their names.
func (r *reading) consumers(ctx context.Context, c client.Client) (*v1alpha1.ConsumerList, error) {
	var all v1alpha1.ConsumerList
	if err := listed("consumers", c.List(ctx, &all)); err != nil {
		return nil, err
	}
	overview.SortConsumers(all.Items)
	return &all, nil
}

func providerIdentities(list *v1alpha1.ProviderList) []cluster.Identity {
	all := make([]cluster.Identity, len(list.Items))
	for i := range list.Items {
		all[i] = overview.ProviderIdentity(&list.Items[i])
	}
	return all
}

func consumerIdentities(list *v1alpha1.ConsumerList) []cluster.Identity {
	all := make([]cluster.Identity, len(list.Items))
	for i := range list.Items {
		all[i] = overview.ConsumerIdentity(&list.Items[i])
	}
	return all
}

// find returns the cluster that an argument means.
func find(all []cluster.Identity, text string) (cluster.Identity, error) {
	id, err := overview.Find(all, text)
	ambiguous := &overview.AmbiguousError{}
	if errors.As(err, &ambiguous) {
		return id, usageError{err}
	}
	return id, err
}

// only keeps the items that arguments mean; all without arguments.
func only[T any](items []T, identity func(*T) cluster.Identity, args []string) ([]T, error) {
	if len(args) == 0 {
		return items, nil
	}
	all := make([]cluster.Identity, len(items))
	for i := range items {
		all[i] = identity(&items[i])
	}
	wanted := map[cluster.ID]bool{}
	for _, text := range args {
		found, err := find(all, text)
		if err != nil {
			return nil, err
		}
		wanted[found.ID] = true
	}
	var kept []T
	for i := range items {
		if wanted[all[i].ID] {
			kept = append(kept, items[i])
		}
	}
	return kept, nil
}

// identities returns the clusters of one kind.
type identities func(ctx context.Context, c client.Client) ([]cluster.Identity, error)

func (r *reading) providerNames(ctx context.Context, c client.Client) ([]cluster.Identity, error) {
	all, err := r.providers(ctx, c)
	if err != nil {
		return nil, err
	}
	return providerIdentities(all), nil
}

func (r *reading) consumerNames(ctx context.Context, c client.Client) ([]cluster.Identity, error) {
	all, err := r.consumers(ctx, c)
	if err != nil {
		return nil, err
	}
	return consumerIdentities(all), nil
}

// complete lets a shell complete names and IDs in at most so many arguments.
func (r *reading) complete(names identities, most int) cobra.CompletionFunc {
	return r.completing(most, func(ctx context.Context, c client.Client, begun string) ([]cobra.Completion, error) {
		all, err := names(ctx, c)
		return overview.Completions(all, begun), err
	})
}

// completing lets a shell complete at most so many arguments with what a function offers for the beginning of one. Without an answer in
// time, it offers nothing.
func (r *reading) completing(most int, offer func(ctx context.Context, c client.Client, begun string) ([]cobra.Completion, error)) cobra.CompletionFunc {
	return func(command *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) >= most {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(command.Context(), completionTimeout)
		defer cancel()
		c, err := r.open()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		offered, err := offer(ctx, c, begun)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return offered, cobra.ShellCompDirectiveNoFileComp
	}
}

// usage returns a check of arguments whose error is one of usage.
func usage(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(command *cobra.Command, args []string) error {
		if err := check(command, args); err != nil {
			return usageError{fmt.Errorf("%w: see %s --help", err, command.CommandPath())}
		}
		return nil
	}
}
