// Copyright The liqo-broker Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/capacitorset/liqo-broker/pkg/api/connectorv1alpha1"
	"github.com/capacitorset/liqo-broker/pkg/program"
	"github.com/capacitorset/liqo-broker/pkg/trade/desk"
	"github.com/capacitorset/liqo-broker/pkg/trade/show"
)

func (r *reading) contractsCommand() *cobra.Command {
	var out output
	command := &cobra.Command{
		Use:     "contracts",
		Aliases: []string{"contract"},
		Short:   "List what this cluster has bought and sold, and decide about it",
		Long:    "List the contracts by which this cluster buys (Purchases) and sells (Sales).",
		Example: "  kubectl liqo-broker contracts -o wide\n  kubectl liqo-broker contracts show nightly\n  kubectl liqo-broker contracts " +
			"approve s-4f2c",
		Args: usage(cobra.NoArgs),
		RunE: func(command *cobra.Command, _ []string) error {
			c, err := r.open()
			if err != nil {
				return err
			}
			all, err := desk.Contracts(command.Context(), c)
			if err != nil {
				return r.trades(err)
			}
			shown := make([]show.Contract, 0, len(all))
			for _, one := range all {
				shown = append(shown, one.Contract)
			}
			if err := sortBy(&out, shown); err != nil {
				return err
			}
			// For programs an empty list is an answer; people are told what to do.
			if done, err := out.value(r.Out, shown); done || err != nil {
				return err
			}
			if len(shown) == 0 {
				fmt.Fprintln(r.ErrOut, "This cluster has neither bought nor sold anything. See: kubectl liqo-broker offers, and buy")
				return nil
			}
			if err := out.table(r.Out, show.Contracts(r.now(), shown)); err != nil {
				return err
			}
			printTotals(r.Out, r.now(), all)
			return nil
		},
	}
	out.addFlags(command, formatJSON, formatYAML, formatWide)
	command.AddCommand(r.showContractCommand(), r.exportCommand())
	for _, d := range deeds {
		command.AddCommand(r.deedCommand(d))
	}
	return command
}

// contract returns the contract of a name.
func (r *reading) contract(ctx context.Context, c client.Client, name string) (*desk.Contract, error) {
	all, err := desk.Contracts(ctx, c)
	if err != nil {
		return nil, err
	}
	var found []desk.Contract
	for _, one := range all {
		if one.Name == name {
			found = append(found, one)
		}
	}
	if len(found) == 0 {
		found = ofRequest(all, name)
	}
	switch len(found) {
	case 0:
		return nil, fmt.Errorf("there is no contract %.80q. See: kubectl liqo-broker contracts", name)
	case 1:
		return &found[0], nil
	}
	if found[0].Sale == nil && found[1].Sale == nil {
		return nil, program.Usage(fmt.Errorf("the capacity request %s has several purchases: name one, such as %s", name, found[0].Name))
	}
	return nil, program.Usage(fmt.Errorf("a purchase and a sale have the name %s: use kubectl", name))
}

// ofRequest returns what a capacity request has bought, and has not given up.
func ofRequest(all []desk.Contract, name string) (found []desk.Contract) {
	for _, one := range all {
		if one.Request() == name && one.Purchase.DeletionTimestamp.IsZero() {
			found = append(found, one)
		}
	}
	// What is kept for the bill, after another one was bought in its place, is not meant.
	if meant := slices.DeleteFunc(slices.Clone(found), func(one desk.Contract) bool { return one.Purchase.Spec.End != nil }); len(meant) > 0 {
		return meant
	}
	return found
}

// completeContracts lets a shell complete names.
func (r *reading) completeContracts() cobra.CompletionFunc {
	return r.completing(1, func(ctx context.Context, c client.Client, begun string) ([]cobra.Completion, error) {
		all, err := desk.Contracts(ctx, c)
		var names []cobra.Completion
		for _, one := range all {
			if strings.HasPrefix(one.Name, begun) {
				names = append(names, one.Name)
			}
		}
		return names, err
	})
}

func (r *reading) showContractCommand() *cobra.Command {
	return &cobra.Command{
		Use:               "show NAME",
		Short:             "Show a contract, and what became of it, step by step",
		Example:           "  kubectl liqo-broker contracts show nightly",
		Args:              usage(cobra.ExactArgs(1)),
		ValidArgsFunction: r.completeContracts(),
		RunE: func(command *cobra.Command, args []string) error {
			c, err := r.open()
			if err != nil {
				return err
			}
			one, err := r.contract(command.Context(), c, args[0])
			if err != nil {
				return r.trades(err)
			}
			fmt.Fprint(r.Out, one.Describe(r.now()))
			trail, err := one.Trail()
			if err != nil {
				return err
			}
			fmt.Fprintln(r.Out, "\nWhat became of it:")
			return (&output{}).table(r.Out, show.Transitions(trail))
		},
	}
}

// deedOptions are the flags of commands that decide.
type deedOptions struct {
	need

	reason string
	until  string
	plan   string
	// terms are those that are meant; 0 for those that wait.
	terms int64
}

// deed is a command that decides about a contract.
type deed struct {
	verb, short, done string
	// flags adds the flags that the deed has.
	flags func(*cobra.Command, *deedOptions)
	// do changes the object. The error says why it cannot.
	do func(*desk.Contract, *deedOptions) error
}

func reasoned(command *cobra.Command, o *deedOptions) {
	command.Flags().StringVar(&o.reason, "reason", "", "what the other side is told")
}

func decided(command *cobra.Command, o *deedOptions) {
	command.Flags().Int64Var(&o.terms, "terms", 0,
		"the terms that are meant, as contracts show numbers them; needed to approve a change of a contract")
}

var deeds = []deed{
	{
		verb: "end", short: "End a contract: workloads leave, and the peering ends", done: "is being ended", flags: reasoned,
		do: func(c *desk.Contract, o *deedOptions) error {
			c.End(o.reason)
			return nil
		},
	},
	{
		verb: "resize", short: "Ask the seller for another size of a plan with a range, or for another plan", done: "asks for other terms",
		flags: func(command *cobra.Command, o *deedOptions) {
			o.addResources(command.Flags())
			command.Flags().StringVar(&o.plan, "plan", "", "another plan of the same offer, for the time that is left")
		},
		do: func(c *desk.Contract, o *deedOptions) error {
			if c.Purchase == nil {
				return desk.ErrOnlyBought
			}
			wanted, err := o.resources()
			if err != nil {
				return err
			}
			if len(wanted) == 0 && o.plan == "" {
				return program.Usage(errors.New("--cpu, --memory, --pods, --resource or --plan is needed"))
			}
			return c.Resize(wanted, o.plan)
		},
	},
	{
		verb: "renew", short: "Ask the seller for a later end", done: "asks for a later end",
		flags: func(command *cobra.Command, o *deedOptions) {
			command.Flags().StringVar(&o.until, "until", "", "the end, such as 2030-01-31T12:00:00Z; it is needed")
		},
		do: func(c *desk.Contract, o *deedOptions) error {
			if c.Purchase == nil {
				return desk.ErrOnlyBought
			}
			end, err := time.Parse(time.RFC3339, o.until)
			if err != nil {
				return program.Usage(fmt.Errorf("--until=%.40q is not a time such as 2030-01-31T12:00:00Z", o.until))
			}
			return c.Renew(end)
		},
	},
	{
		verb: "approve", short: "Approve what a buyer asks for", done: "is approved", flags: decided,
		do: func(c *desk.Contract, o *deedOptions) error {
			return c.Decide(connectorv1alpha1.DecisionApprove, "", o.terms)
		},
	},
	{
		verb: "refuse", short: "Refuse what a buyer asks for", done: "is refused",
		flags: func(command *cobra.Command, o *deedOptions) {
			reasoned(command, o)
			decided(command, o)
		},
		do: func(c *desk.Contract, o *deedOptions) error {
			return c.Decide(connectorv1alpha1.DecisionRefuse, o.reason, o.terms)
		},
	},
	{
		verb: "suspend", short: "Grant a buyer nothing for now", done: "is suspended", flags: reasoned,
		do: func(c *desk.Contract, o *deedOptions) error { return c.Suspend(true, o.reason) },
	},
	{
		verb: "resume", short: "Grant a buyer again what it has bought", done: "is resumed",
		do: func(c *desk.Contract, _ *deedOptions) error { return c.Suspend(false, "") },
	},
}

func (r *reading) deedCommand(d deed) *cobra.Command {
	var o deedOptions
	command := &cobra.Command{
		Use: d.verb + " NAME", Short: d.short, Example: "  kubectl liqo-broker contracts " + d.verb + " nightly",
		Args: usage(cobra.ExactArgs(1)), ValidArgsFunction: r.completeContracts(),
		RunE: func(command *cobra.Command, args []string) error {
			c, err := r.openTarget(command.Context())
			if err != nil {
				return err
			}
			one, err := r.contract(command.Context(), c, args[0])
			if err != nil {
				return r.trades(err)
			}
			if err := d.do(one, &o); err != nil {
				return meant(err)
			}
			// What somebody else has changed meanwhile, nobody overwrites: the decision was about what was seen.
			err = c.Update(command.Context(), one.Object())
			if apierrors.IsConflict(err) {
				return fmt.Errorf("contract %s has changed meanwhile: look at it again", one.Name)
			}
			if err != nil {
				return r.trades(fmt.Errorf("change contract %s: %w", one.Name, err))
			}
			fmt.Fprintf(r.Out, "contract %s %s%s\n", one.Name, d.done, r.dryRun.mark())
			return nil
		},
	}
	r.dryRun.add(command)
	if d.flags != nil {
		d.flags(command, &o)
	}
	return command
}
