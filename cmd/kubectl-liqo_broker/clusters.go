// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"math"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/v1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/core/cluster"
	"github.com/capacitorset/liqo-broker/pkg/overview"
)

func (r *reading) providersCommand() *cobra.Command { //nolint:dupl // Two commands that have their words apart, and nothing else.
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
		none:     "No cluster provides yet. Peer with one, and it appears here: liqoctl peer out-of-band --help",
		table:    func(all []v1alpha1.Provider) *metav1.Table { return overview.Providers(r.now(), all) },
		remarks: func(ctx context.Context, c client.Client) ([]overview.Finding, error) {
			gateway, err := gatewayOf(ctx, c)
			return overview.OfGateway(gateway), err
		},
	})
}

func (r *reading) consumersCommand() *cobra.Command { //nolint:dupl // Two commands that have their words apart, and nothing else.
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
		none:     "No cluster consumes yet. One that peers with the broker appears here: liqoctl peer out-of-band --help",
		table:    func(all []v1alpha1.Consumer) *metav1.Table { return overview.Consumers(r.now(), all) },
	})
}

// clusterList is how clusters are listed that stand for themselves in objects of a type.
type clusterList[T any] struct {
	// read returns a list and its items.
	read     func(context.Context, client.Client) (client.ObjectList, *[]T, error)
	identity func(*T) cluster.Identity
	// none is what people are told if there is none.
	none  string
	table func([]T) *metav1.Table
	// remarks are what people should know of what the table says; nil is nothing.
	remarks func(context.Context, client.Client) ([]overview.Finding, error)
}

// clustersCommand has a command list clusters: all, or those that its arguments name.
func clustersCommand[T any](r *reading, command *cobra.Command, of clusterList[T]) *cobra.Command {
	var out output
	command.RunE = func(command *cobra.Command, args []string) error {
		c, err := r.open()
		if err != nil {
			return err
		}
		list, items, err := of.read(command.Context(), c)
		if err != nil {
			return r.clear(r.onBroker(command.Context(), c, err))
		}
		if *items, err = only(*items, of.identity, args); err != nil {
			return err
		}
		if len(*items) == 0 && out.isText() {
			fmt.Fprintln(r.ErrOut, of.none)
			return nil
		}
		if err := out.objects(r.Out, c.Scheme(), list, of.table(*items)); err != nil || of.remarks == nil || !out.isText() {
			return err
		}
		remarks, err := of.remarks(command.Context(), c)
		for _, remark := range remarks {
			fmt.Fprintf(r.ErrOut, "%s\n%s\n", remark.What, remark.Do)
		}
		return r.clear(err)
	}
	out.addFlags(command, formatJSON, formatYAML, formatName, formatWide)
	return command
}
