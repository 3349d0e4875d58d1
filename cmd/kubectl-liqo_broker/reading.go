// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/install/bundle"
	"github.com/capacitorset/liqo-broker/pkg/overview"
	"github.com/capacitorset/liqo-broker/pkg/program"
	"github.com/capacitorset/liqo-broker/pkg/trade/registry/discovery"
)

// completionTimeout is how long a shell waits for names.
const completionTimeout = 3 * time.Second

// reading is what the commands need that look at a cluster, or change one field of one object.
type reading struct {
	*session
	// now returns the time, and pause is between two looks at what somebody watches.
	now   func() time.Time
	pause time.Duration
	// logs reads the end of a container's log, and kubernetes asks for the version of the API server.
	logs       bundle.Logs
	kubernetes func(ctx context.Context) string
	// asConnector returns a client with the rights of the connector.
	asConnector func() (client.Client, error)
	// terminal reports whether somebody can be asked; local and inDomain look for registries in the local network, and in a domain.
	terminal func() bool
	local    func(ctx context.Context) ([]discovery.Found, error)
	inDomain func(ctx context.Context, resolver *discovery.Resolver, domain string) ([]discovery.Found, error)
}

// commands returns the commands that look at a cluster, or change one field of one object.
func (r *reading) commands() []*cobra.Command {
	settings := r.settingCommands()
	for _, setting := range settings {
		if setting.Name() == "enable" {
			setting.Aliases = []string{"uncordon"} // As kubectl has it for nodes.
		}
	}
	return append([]*cobra.Command{
		r.providersCommand(), r.consumersCommand(), r.statusCommand(), r.whereCommand(), r.explainCommand(), r.policyCommand(),
		r.diagnoseCommand(), r.uiCommand(), r.versionCommand(),
	},
		append(settings, r.tradeCommands()...)...)
}

func newReading(s *session) *reading {
	return &reading{
		session: s, now: time.Now, pause: 2 * time.Second, logs: s.readLogs, kubernetes: s.serverVersion,
		asConnector: func() (client.Client, error) {
			return s.clientAs("system:serviceaccount:liqo-broker-connector:liqo-broker-connector")
		},
		terminal: func() bool { return isTerminal(s.In) }, local: discovery.FindLocal,
		inDomain: func(ctx context.Context, resolver *discovery.Resolver, domain string) ([]discovery.Found, error) {
			return resolver.Find(ctx, domain)
		},
	}
}

// providers returns all providers, in order of their names; with an error none.
func (r *reading) providers(ctx context.Context, c client.Client) (*v1alpha1.ProviderList, error) {
	var all v1alpha1.ProviderList
	err := listed("providers", c.List(ctx, &all))
	overview.SortProviders(all.Items)
	return &all, err
}

// consumers returns all consumers, in order of their names; with an error none.
func (r *reading) consumers(ctx context.Context, c client.Client) (*v1alpha1.ConsumerList, error) {
	var all v1alpha1.ConsumerList
	err := listed("consumers", c.List(ctx, &all))
	overview.SortConsumers(all.Items)
	return &all, err
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
		return id, program.Usage(err)
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
		return nil, r.onBroker(ctx, c, err)
	}
	return providerIdentities(all), nil
}

func (r *reading) consumerNames(ctx context.Context, c client.Client) ([]cluster.Identity, error) {
	all, err := r.consumers(ctx, c)
	if err != nil {
		return nil, r.onBroker(ctx, c, err)
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
func (r *reading) completing(
	most int, offer func(ctx context.Context, c client.Client, begun string) ([]cobra.Completion, error),
) cobra.CompletionFunc {
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
func usage(check cobra.PositionalArgs) cobra.PositionalArgs { return program.Arguments(check) }
