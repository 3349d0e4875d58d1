// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math"

	"github.com/spf13/cobra"

	"github.com/capacitorset/liqo-broker/pkg/overview"
)

func (r *reading) providersCommand() *cobra.Command {
	var out output
	command := &cobra.Command{
		Use:     "providers [PROVIDER...]",
		Aliases: []string{"provider"},
		Short:   "List the clusters that provide, with what they offer",
		Long: "List the clusters that share resources with the broker. PROVIDER is a name, a cluster ID, or the beginning of one of both that\n" +
			"means one cluster only.",
		Example:           "  kubectl liqo-broker providers\n  kubectl liqo-broker providers milan -o yaml",
		ValidArgsFunction: r.complete(r.providerNames, math.MaxInt),
		RunE: func(command *cobra.Command, args []string) error {
			c, err := r.open()
			if err != nil {
				return err
			}
			list, err := r.providers(command.Context(), c)
			if err != nil {
				return r.clear(err)
			}
			if list.Items, err = only(list.Items, overview.ProviderIdentity, args); err != nil {
				return err
			}
			if len(list.Items) == 0 && out.isText() {
				fmt.Fprintln(r.ErrOut, "No cluster provides yet. Peer with one, and it appears here: liqoctl peer out-of-band --help")
				return nil
			}
			return out.objects(r.Out, c.Scheme(), list, overview.Providers(r.now(), list.Items))
		},
	}
	out.add(command, formatJSON, formatYAML, formatName, formatWide)
	return command
}

func (r *reading) consumersCommand() *cobra.Command {
	var out output
	command := &cobra.Command{
		Use:     "consumers [CONSUMER...]",
		Aliases: []string{"consumer"},
		Short:   "List the clusters that consume, with what they are offered",
		Long: "List the clusters that use the broker. CONSUMER is a name, a cluster ID, or the beginning of one of both that means one\n" +
			"cluster only.",
		Example:           "  kubectl liqo-broker consumers\n  kubectl liqo-broker consumers rome -o yaml",
		ValidArgsFunction: r.complete(r.consumerNames, math.MaxInt),
		RunE: func(command *cobra.Command, args []string) error {
			c, err := r.open()
			if err != nil {
				return err
			}
			list, err := r.consumers(command.Context(), c)
			if err != nil {
				return r.clear(err)
			}
			if list.Items, err = only(list.Items, overview.ConsumerIdentity, args); err != nil {
				return err
			}
			if len(list.Items) == 0 && out.isText() {
				fmt.Fprintln(r.ErrOut, "No cluster consumes yet. One that peers with the broker appears here: liqoctl peer out-of-band --help")
				return nil
			}
			return out.objects(r.Out, c.Scheme(), list, overview.Consumers(r.now(), list.Items))
		},
	}
	out.add(command, formatJSON, formatYAML, formatName, formatWide)
	return command
}
