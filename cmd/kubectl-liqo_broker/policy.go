// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/controller/placementpolicy/whatif"
	"github.com/capacitorset/liqo-broker/pkg/overview"
)

// maxPolicyFile is the most that is read of a file: etcd takes no larger object.
const maxPolicyFile = 8 << 20

func (r *reading) policyCommand() *cobra.Command {
	command := &cobra.Command{
		Use:     "policy",
		Short:   "Check placement policies before they are applied",
		Example: "  kubectl liqo-broker policy check cheapest.yaml",
	}
	command.AddCommand(r.policyCheckCommand())
	return command
}

func (r *reading) policyCheckCommand() *cobra.Command {
	var out output
	command := &cobra.Command{
		Use:   "check FILE",
		Short: "Check the placement policies of a file, and show what they would choose now",
		Long: "Check the placement policies of a file, or of the standard input with -, as the broker and its API server do, and show which " +
			"providers\nthey would choose now for which consumers, if nothing had been chosen before. Nothing is written. With a policy that is " +
			"not valid,\nweighs a KPI that no provider has, or cannot choose, the exit code is 3.",
		Example: "  kubectl liqo-broker policy check cheapest.yaml",
		Args:    usage(cobra.ExactArgs(1)),
		// A file that cannot be read is an error; a policy that is wrong is what was looked for, and has an exit code of its own.
		RunE: func(command *cobra.Command, args []string) error {
			c, err := r.open()
			if err != nil {
				return err
			}
			trier, err := trier(c)
			if err != nil {
				return err
			}
			policies, err := r.readPolicies(trier, args[0])
			if err != nil {
				return err
			}
			checks := make([]overview.PolicyCheck, len(policies))
			healthy := true
			for i := range policies {
				if checks[i], err = r.checkPolicy(command.Context(), trier, &policies[i]); err != nil {
					return r.clear(r.onBroker(command.Context(), c, err))
				}
				healthy = healthy && checks[i].Good
			}
			// For programs, or for people with a gap between two policies.
			if done, err := out.value(r.Out, checks); err != nil {
				return err
			} else if !done {
				for i := range checks {
					if i > 0 {
						fmt.Fprintln(r.Out)
					}
					if err := checks[i].Print(r.Out, func(table *metav1.Table) error { return out.table(r.Out, table) }); err != nil {
						return err
					}
				}
			}
			if !healthy {
				return errUnhealthy
			}
			return nil
		},
	}
	out.addFlags(command, formatJSON, formatYAML)
	return command
}

// checkPolicy tries a policy.
func (r *reading) checkPolicy(ctx context.Context, trier *whatif.Trier, d *whatif.Document) (overview.PolicyCheck, error) {
	tried, err := trier.Check(ctx, r.now(), d)
	check := overview.PolicyCheck{Name: d.Policy.Name, Problems: tried.Problems, Notes: tried.Notes}
	if err != nil {
		return check, err
	}
	for i := range tried.Trial.Decisions {
		check.Add(r.now(), &tried.Trial.Decisions[i].ConsumerDecision, tried.Trial.Decisions[i].Err)
	}
	check.Good = len(check.Problems) == 0
	return check, nil
}

// trier returns what tries policies, with the rights of a client.
func trier(c client.Client) (*whatif.Trier, error) {
	of, err := lineOf(c)
	if err != nil {
		return nil, err
	}
	return whatif.New(of, c, whatif.Admission(c))
}

// readPolicies reads the placement policies of a file; there is at least one, and nothing else.
func (r *reading) readPolicies(trier *whatif.Trier, file string) ([]whatif.Document, error) {
	var content []byte
	var err error
	if file == "-" {
		content, err = io.ReadAll(io.LimitReader(r.In, maxPolicyFile))
	} else {
		content, err = os.ReadFile(file)
	}
	if err != nil {
		return nil, fmt.Errorf("read the policy: %w", err)
	}
	policies, err := trier.Read(content)
	switch {
	case errors.Is(err, whatif.ErrNothing):
		return nil, fmt.Errorf("%s %w", file, err)
	case err != nil:
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return policies, nil
}
