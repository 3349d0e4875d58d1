// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/overview"
	"github.com/capacitorset/liqo-broker/pkg/program"
	"github.com/capacitorset/liqo-broker/pkg/shown"
)

func (r *reading) providersCommand() *cobra.Command {
	return clustersCommand(r, &cobra.Command{
		Use:     "providers [PROVIDER...]",
		Aliases: []string{"provider"},
		Short:   "List the clusters that provide, with what they offer",
		Long: "List the clusters that share resources with the broker. PROVIDER is a name, a cluster ID, or the beginning of one of both that\n" +
			"means one cluster only.",
		Example:           "  kubectl liqo-broker providers\n  kubectl liqo-broker providers milan -o yaml",
		ValidArgsFunction: r.complete(r.providerNames, math.MaxInt),
	}, clusterList[v1alpha1.Provider]{
		read: func(ctx context.Context, c client.Client) (client.ObjectList, *[]v1alpha1.Provider, error) {
			list, err := r.providers(ctx, c)
			return list, &list.Items, err
		},
		identity: overview.ProviderIdentity,
		none:     "No cluster provides yet. Peer with one, and it appears here: ",
		table:    func(all []v1alpha1.Provider) *metav1.Table { return overview.Providers(r.now(), all) },
		remarks: func(ctx context.Context, c client.Client) ([]overview.Finding, error) {
			of, err := lineOf(c)
			if err != nil {
				return nil, err
			}
			gateways, err := shown.Gateways(ctx, c, of, liqo.DefaultNamespace)
			return overview.OfGateways(gateways), err
		},
	})
}

func (r *reading) consumersCommand() *cobra.Command {
	return clustersCommand(r, &cobra.Command{
		Use:     "consumers [CONSUMER...]",
		Aliases: []string{"consumer"},
		Short:   "List the clusters that consume, with what they are offered",
		Long: "List the clusters that use the broker. CONSUMER is a name, a cluster ID, or the beginning of one of both that means one\n" +
			"cluster only.",
		Example:           "  kubectl liqo-broker consumers\n  kubectl liqo-broker consumers rome -o yaml",
		ValidArgsFunction: r.complete(r.consumerNames, math.MaxInt),
	}, clusterList[v1alpha1.Consumer]{
		read: func(ctx context.Context, c client.Client) (client.ObjectList, *[]v1alpha1.Consumer, error) {
			list, err := r.consumers(ctx, c)
			return list, &list.Items, err
		},
		identity: overview.ConsumerIdentity,
		none:     "No cluster consumes yet. One that peers with the broker appears here: ",
		table:    func(all []v1alpha1.Consumer) *metav1.Table { return overview.Consumers(r.now(), all) },
	})
}

// clusterList is how clusters are listed that stand for themselves in objects of a type.
type clusterList[T any] struct {
	// read returns a list and its items.
	read     func(context.Context, client.Client) (client.ObjectList, *[]T, error)
	identity func(*T) cluster.Identity
	// none is what people are told if there is none; a command follows that says how clusters are peered.
	none  string
	table func([]T) *metav1.Table
	// remarks are what people should know of what the table says; nil is nothing.
	remarks func(context.Context, client.Client) ([]overview.Finding, error)
}

// sayNone says that there is nothing, and how people peer.
func (r *reading) sayNone(c client.Client, none string) error {
	of, err := lineOf(c)
	if err != nil {
		return r.clear(err)
	}
	commands := overview.CommandsOf(of)
	fmt.Fprintln(r.ErrOut, none+commands.Peer)
	return nil
}

// sayRemarks says what people should know of a table.
func (r *reading) sayRemarks(
	ctx context.Context, c client.Client, of func(context.Context, client.Client) ([]overview.Finding, error),
) error {
	remarks, err := of(ctx, c)
	if err != nil {
		return r.clear(err)
	}
	for _, remark := range remarks {
		fmt.Fprintf(r.ErrOut, "%s\n%s\n", remark.What, remark.Do)
	}
	return nil
}

// clustersCommand has a command list clusters: all, or those that its arguments name.
func clustersCommand[T any](r *reading, command *cobra.Command, of clusterList[T]) *cobra.Command {
	var out output
	var selected string
	var watch bool
	var selector labels.Selector
	command.RunE = func(command *cobra.Command, args []string) error {
		c, err := r.open()
		if err != nil {
			return err
		}
		look := func(ctx context.Context) (client.ObjectList, *[]T, error) {
			list, items, err := of.read(ctx, c)
			if err != nil {
				return nil, nil, r.clear(r.onBroker(ctx, c, err))
			}
			*items, err = only(*items, of.identity, args)
			if err != nil {
				return nil, nil, err
			}
			*items = slices.DeleteFunc(*items, func(item T) bool { return !selector.Matches(labels.Set(object(&item).GetLabels())) })
			return list, items, sortBy(&out, *items)
		}
		list, items, err := look(command.Context())
		if err != nil {
			return err
		}

		// What there is, and what should be known of it.
		if len(*items) == 0 && out.isText() {
			if err := r.sayNone(c, of.none); err != nil {
				return err
			}
		} else if err := out.objects(r.Out, c.Scheme(), list, of.table(*items)); err != nil {
			return err
		}
		if of.remarks != nil && out.isText() && len(*items) > 0 {
			if err := r.sayRemarks(command.Context(), c, of.remarks); err != nil {
				return err
			}
		}
		if !watch {
			return nil
		}

		// What changes, until somebody ends it. A table has its headers already.
		out.noHeaders = true
		return followClusters(command.Context(), r.pause, *items, look, func(list client.ObjectList, changed []T) error {
			return out.objects(r.Out, c.Scheme(), list, of.table(changed))
		})
	}
	out.addFlags(command, formatJSON, formatYAML, formatName, formatWide)
	flags := command.Flags()
	flags.StringVarP(&selected, "selector", "l", "", "only those with these labels, such as tier=gold,region!=eu")
	flags.BoolVarP(&watch, "watch", "w", false, "after listing, print each that has changed, until this is ended")
	check := command.PreRunE
	command.PreRunE = func(command *cobra.Command, args []string) (err error) {
		if selector, err = labels.Parse(selected); err != nil {
			return program.Usage(fmt.Errorf("--selector=%s: %w", selected, err))
		}
		if watch && !out.isText() && out.format != formatName {
			return program.Usage(fmt.Errorf("--watch prints tables or names, and no %s", out.format))
		}
		return check(command, args)
	}
	return command
}

// object returns the object that stands for a cluster.
func object[T any](item *T) client.Object {
	o, _ := any(item).(client.Object)
	return o
}

// followClusters looks again and again, and shows the items that have changed since they were seen, until ctx ends.
func followClusters[T any](
	ctx context.Context, pause time.Duration, items []T, look func(context.Context) (client.ObjectList, *[]T, error),
	show func(client.ObjectList, []T) error,
) error {
	seen := map[string]string{}
	isNew := func(item *T) bool {
		o := object(item)
		was := seen[o.GetName()]
		seen[o.GetName()] = o.GetResourceVersion()
		return was != o.GetResourceVersion()
	}
	for i := range items {
		isNew(&items[i])
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
		list, now, err := look(ctx)
		if ctx.Err() != nil {
			return nil //nolint:nilerr // Whoever watches has ended it.
		}
		if err != nil {
			return err
		}
		*now = slices.DeleteFunc(*now, func(item T) bool { return !isNew(&item) })
		if len(*now) == 0 {
			continue
		}
		if err := show(list, *now); err != nil {
			return err
		}
	}
}
