// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/capacitorset/liqo-broker/pkg/install"
	"github.com/capacitorset/liqo-broker/pkg/program"
)

// joiners are the flags of join.
type joiners struct {
	options              install.Options
	providers, consumers []string
	direct, keepTokens   bool
}

func (s *session) joinCommand() *cobra.Command {
	var j joiners
	command := &cobra.Command{
		Use:   "join (--provider CLUSTER | --consumer CLUSTER)...",
		Short: "Peer a broker with its providers and consumers, and prepare the consumers",
		Long: "Peer this cluster, which is a broker, with its providers and its consumers, in all directions that are needed and out of\n" +
			"band, as liqoctl does; wait until their tunnels are up; prepare the consumers; and replace the tokens that were told on the way.\n\n" +
			"With Liqo 1.x, which peers by credentials of both clusters, it prints the command of liqoctl for each peering that is missing, and\n" +
			"changes nothing; when all are there, it waits and prepares.\n\n" +
			"CLUSTER is a context of the kubeconfig, or the path of another kubeconfig, whose own context counts. What is as it should be\n" +
			"stays: run it again to add a cluster, or after it was interrupted.\n\n" +
			"A token opens the cluster to whoever has it. A command of \"liqoctl generate peer-command\" that nobody has run yet is of no use\n" +
			"after join has replaced the token in it: run join with --keep-tokens then, and replace the token later.",
		Example: "  kubectl liqo-broker --context broker join --provider milan --provider turin --consumer rome\n" +
			"  kubectl liqo-broker --kubeconfig broker.yaml join --consumer ./rome.yaml",
		Args: usage(cobra.NoArgs),
		RunE: func(command *cobra.Command, _ []string) error { return s.join(command.Context(), &j) },
	}
	s.dryRun.add(command)
	flags := command.Flags()
	flags.StringArrayVar(&j.providers, "provider", nil, "a cluster whose resources the broker is to have; more than one by more than one flag")
	flags.StringArrayVar(&j.consumers, "consumer", nil,
		"a cluster that is to have the broker's resources; more than one by more than one flag")
	flags.BoolVar(&j.direct, "direct", false,
		"have the consumers peer with the providers too, so that an orchestrator's consumers reach their pods without the broker")
	flags.BoolVar(&j.keepTokens, "keep-tokens", false, "leave the tokens of the clusters as they are")
	flags.DurationVar(&j.options.Timeout, "timeout", install.DefaultTimeout, "for how long each step may wait")
	imageFlags(command, &j.options)
	return command
}

// join makes a federation of the clusters that flags name.
func (s *session) join(ctx context.Context, flags *joiners) error {
	if len(flags.providers)+len(flags.consumers) == 0 {
		return program.Usage(errors.New("name a cluster with --provider or --consumer"))
	}
	flags.options.DryRun, flags.options.Tried = s.dryRun != dryRunNone, s.dryRun == dryRunServer
	if err := flags.options.Validate(); err != nil {
		return program.Usage(err)
	}

	// The ways to all of them, before anything is asked.
	broker, err := s.open()
	if err != nil {
		return err
	}
	j := install.Joining{
		Broker: install.Joiner{
			Called: cmp.Or(s.to.context(), "this cluster"), Client: broker, Kubeconfig: s.to.kubeconfig, Context: s.to.context(),
		},
		Direct: flags.direct, KeepTokens: flags.keepTokens,
		Found: func(who install.Joiner, setup *install.Setup) {
			fmt.Fprintln(s.Out, target(who.Called, setup))
		},
	}
	// The others, as their flags name them.
	for _, side := range []struct {
		names []string
		into  *[]install.Joiner
	}{{flags.providers, &j.Providers}, {flags.consumers, &j.Consumers}} {
		for _, name := range side.names {
			c, err := s.reachAt(name)
			if err != nil {
				return err
			}
			joiner := install.Joiner{Called: name, Client: s.dryRun.of(c)}
			joiner.Kubeconfig, joiner.Context = s.to.way(name)
			*side.into = append(*side.into, joiner)
		}
	}

	if err := install.Join(ctx, j, flags.options, s.Out); err != nil {
		return s.clear(err)
	}
	if flags.options.DryRun {
		fmt.Fprintf(s.Out, "Nothing was changed%s.\n", s.dryRun.mark())
		return nil
	}
	fmt.Fprintln(s.Out, "The clusters are one federation. On a consumer, \"kubectl liqo-broker test\" tries it.")
	return nil
}
