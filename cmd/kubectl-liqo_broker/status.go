// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/install"
	"github.com/capacitorset/liqo-broker/pkg/liqo"
	"github.com/capacitorset/liqo-broker/pkg/overview"
	"github.com/capacitorset/liqo-broker/pkg/shown"
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

// observe reads all that there is of a broker.
func observe(ctx context.Context, c client.Client) (overview.Observed, error) {
	of, err := lineOf(c)
	if err != nil {
		return overview.Observed{}, err
	}
	return shown.Observe(ctx, c, of, &shown.Programs{
		Daemon: client.ObjectKey{Namespace: install.BrokerNamespace, Name: install.BrokerName}, Liqo: liqo.DefaultNamespace,
	})
}
